//! Decides what is known about a client connection, and what it is doing.
//!
//! `listen` makes one for each accepted socket and enforces its deadlines; `proxy` reads it and
//! says when a request begins and ends. It holds no socket and must never wait.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use http::HeaderValue;
use tokio::time::Instant;

/// One client connection, shared by its socket and its requests. Stays on its worker thread.
#[derive(Debug)]
pub struct Connection {
    /// The address the client connected from.
    pub peer: SocketAddr,
    /// The listener's name in the configuration.
    pub listener: Rc<str>,
    /// `http` or `https`: what the client speaks.
    pub scheme: &'static str,
    /// The client's address as `X-Forwarded-For` spells it.
    pub forwarded_for: HeaderValue,
    phase: Cell<Phase>,
    since: Cell<Instant>,
    framing: Cell<Framing>,
}

/// What a connection is doing, which tells what deadline holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading a request head.
    Head,
    /// A request is being served.
    Busy,
    /// Between requests.
    Idle,
}

/// How often the current head names its body's framing. The HTTP parser resolves contradictions
/// silently; these are the raw facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Lines named `Content-Length`.
    pub lengths: u8,
    /// Lines named `Transfer-Encoding`.
    pub encodings: u8,
}

impl Connection {
    /// A connection accepted at `now`, from which a request head is due.
    #[must_use]
    pub fn new(peer: SocketAddr, listener: Rc<str>, scheme: &'static str, now: Instant) -> Self {
        let address = canonical(peer.ip());
        Self {
            peer,
            listener,
            scheme,
            forwarded_for: HeaderValue::from_str(&address.to_string())
                .unwrap_or_else(|_| HeaderValue::from_static("unknown")),
            phase: Cell::new(Phase::Head),
            since: Cell::new(now),
            framing: Cell::default(),
        }
    }

    /// The client's address; an IPv4 address mapped into IPv6 is given as IPv4.
    #[must_use]
    pub fn client(&self) -> IpAddr {
        canonical(self.peer.ip())
    }

    /// What the connection is doing.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Since when.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since.get()
    }

    /// Says what the connection is doing from now on.
    pub fn enter(&self, phase: Phase, now: Instant) {
        self.phase.set(phase);
        self.since.set(now);
    }

    /// How the current head frames its body.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing.get()
    }

    /// Says how the current head frames its body.
    pub fn set_framing(&self, framing: Framing) {
        self.framing.set(framing);
    }
}

fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}
