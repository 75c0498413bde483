//! Decides when wrong tokens are no longer looked at: after so many in a minute from one address.
//!
//! A token that `forecourt key admin` made cannot be guessed at any speed; one of an operator's own
//! perhaps. Must never grow with who comes: a fixed number of addresses is known apart, all others are
//! counted as one.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How many wrong tokens of an address are looked at in a window.
const MOST: u32 = 10;

/// How long they count.
const WINDOW: Duration = Duration::from_secs(60);

/// How many addresses are known apart.
const PEERS: usize = 1024;

/// Whom all others are counted as.
const OTHERS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Wrong tokens of late.
#[derive(Debug, Default)]
pub(super) struct Attempts(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    began: Option<Instant>,
    failed: HashMap<IpAddr, u32>,
}

impl Attempts {
    /// How long no token of this address is looked at; `None`: it is.
    pub(super) fn wait(&self, peer: IpAddr, now: Instant) -> Option<Duration> {
        let mut window = self.0.lock();
        let over = window.turned(now) + WINDOW;
        let peer = window.counted_as(peer);
        let failed = window.failed.get(&peer).copied().unwrap_or_default();
        (failed >= MOST).then(|| over.saturating_duration_since(now))
    }

    /// A wrong token came from there.
    pub(super) fn failed(&self, peer: IpAddr, now: Instant) {
        let mut window = self.0.lock();
        window.turned(now);
        let peer = window.counted_as(peer);
        let failed = window.failed.entry(peer).or_default();
        *failed = failed.saturating_add(1);
    }
}

impl Window {
    /// When the window began that is open now.
    fn turned(&mut self, now: Instant) -> Instant {
        match self.began {
            Some(began) if now.saturating_duration_since(began) < WINDOW => began,
            Some(_) | None => {
                self.failed = HashMap::new();
                self.began = Some(now);
                now
            }
        }
    }

    fn counted_as(&self, peer: IpAddr) -> IpAddr {
        let network = match peer.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            // Whoever has one address of a network has them all.
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(
                address.to_bits() & !u128::from(u64::MAX),
            )),
        };
        match self.failed.contains_key(&network) || self.failed.len() < PEERS {
            true => network,
            false => OTHERS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    #[test]
    fn an_address_is_heard_again_when_its_minute_is_over() {
        let (attempts, began) = (Attempts::default(), Instant::now());
        let here = at("192.0.2.7");
        for _ in 0..MOST {
            assert_eq!(attempts.wait(here, began), None);
            attempts.failed(here, began);
        }
        let later = began + Duration::from_secs(20);
        assert_eq!(attempts.wait(here, later), Some(Duration::from_secs(40)));
        assert_eq!(attempts.wait(at("192.0.2.8"), later), None);
        assert_eq!(attempts.wait(here, began + WINDOW), None);
    }

    #[test]
    fn a_network_of_ipv6_is_one_and_so_is_a_mapped_address() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for _ in 0..MOST {
            attempts.failed(at("2001:db8::1"), now);
            attempts.failed(at("::ffff:192.0.2.7"), now);
        }
        assert!(attempts.wait(at("2001:db8::2"), now).is_some());
        assert!(attempts.wait(at("2001:db8:0:1::1"), now).is_none());
        assert!(attempts.wait(at("192.0.2.7"), now).is_some());
    }

    #[test]
    fn it_does_not_grow_and_the_others_are_one() {
        let (attempts, now) = (Attempts::default(), Instant::now());
        for number in 1..=3000_u32 {
            attempts.failed(IpAddr::V4(Ipv4Addr::from_bits(number)), now);
        }
        assert!(attempts.0.lock().failed.len() <= PEERS + 1);
        // Known apart, and with one wrong token.
        assert!(attempts.wait(at("0.0.0.5"), now).is_none());
        assert!(attempts.wait(at("198.51.100.1"), now).is_some());
    }
}
