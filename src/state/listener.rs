//! Decides what a listener knows of those in front of it: load balancers that probe, and proxies
//! whose word on the client is believed.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::config;
use crate::observe::ListenerMeters;

pub use crate::config::ClientHeader;

/// A listener, as its connections and their requests see it.
#[derive(Debug)]
pub struct Listener {
    /// Its name in the configuration.
    pub name: Box<str>,
    /// The path that load balancers probe.
    pub health: Option<Box<str>>,
    /// Who must, and alone may, begin a connection with a PROXY protocol header.
    pub proxy_protocol: Option<Networks>,
    /// Whose word on the client's address is believed.
    pub trusted_proxies: Networks,
    /// The header that has their word.
    pub client_header: ClientHeader,
    /// Its counters.
    pub meters: ListenerMeters,
}

impl Listener {
    /// What was configured.
    #[must_use]
    pub fn new(settings: &config::Listener, meters: ListenerMeters) -> Self {
        let front = &settings.front;
        Self {
            name: settings.name.clone(),
            health: front.health.clone(),
            proxy_protocol: front.proxy_protocol.clone().map(Networks::of),
            trusted_proxies: Networks::of(front.trusted_proxies.clone()),
            client_header: front.client_header,
            meters,
        }
    }

    /// One with nothing in front of it.
    #[must_use]
    pub fn bare(name: &str, meters: ListenerMeters) -> Self {
        Self {
            name: name.into(),
            health: None,
            proxy_protocol: None,
            trusted_proxies: Networks::default(),
            client_header: ClientHeader::default(),
            meters,
        }
    }
}

/// Addresses, by their networks.
#[derive(Clone, Debug, Default)]
pub struct Networks(Box<[IpNet]>);

impl Networks {
    /// All that these networks have.
    #[must_use]
    pub fn of(networks: Vec<IpNet>) -> Self {
        Self(networks.into())
    }

    /// Whether an address is in one of them. IPv4 counts in both spellings.
    #[must_use]
    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_a_network_whatever_its_spelling() {
        let networks = Networks::of(
            ["10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"]
                .map(|it| it.parse().unwrap())
                .into(),
        );
        for (address, is_in) in [
            ("10.255.0.1", true),
            ("::ffff:10.1.2.3", true),
            ("11.0.0.1", false),
            ("::ffff:11.0.0.1", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("2001:db8:ffff::1", true),
            ("2001:db9::1", false),
            ("::10.0.0.1", false),
        ] {
            assert_eq!(
                networks.contain(address.parse().unwrap()),
                is_in,
                "{address}"
            );
        }
        assert!(!Networks::default().contain([10, 0, 0, 1].into()));
    }
}
