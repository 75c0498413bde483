//! Decides what is known about a client connection, and what it is doing.
//!
//! `listen` makes one for each accepted socket and enforces its deadlines; `proxy` reads it and
//! says when a request begins and ends. It holds no socket and must never wait.

use std::cell::{Cell, OnceCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use http::HeaderValue;
use tokio::time::Instant;

use super::listener::Listener;
use crate::credential::{Callers, Certificate, Shows};

/// One client connection, shared by its socket and its requests. Stays on its worker thread.
#[derive(Debug)]
pub struct Connection {
    /// The address the connection came from.
    pub peer: SocketAddr,
    /// What it was accepted on.
    pub listener: Rc<Listener>,
    /// `http` or `https`: what the client speaks.
    pub scheme: &'static str,
    /// The client's address as `X-Forwarded-For` spells it, as far as the connection tells.
    pub forwarded_for: HeaderValue,
    /// The peer's address as text, where the client may be another: a proxy's.
    pub via: Option<Box<str>>,
    /// Whether requests tell their client by a header that is believed.
    pub is_told: bool,
    client: IpAddr,
    /// What the client's certificate says, where it showed one.
    certificate: OnceCell<Box<Certificate>>,
    /// What was agreed on in its handshake, over TLS.
    session: OnceCell<Box<Session>>,
    /// Whom it showed by the configuration of this generation.
    shows: Cell<(u64, Shows)>,
    phase: Cell<Phase>,
    since: Cell<Instant>,
    in_flight: Cell<usize>,
}

/// What a handshake agreed on.
#[derive(Debug)]
pub struct Session {
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// The name that the client asked for.
    pub sni: Option<Box<str>>,
}

/// What a connection is doing, which tells what deadline holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading a request head.
    Head,
    /// At least one request is being served; over HTTP/2 there may be many.
    Busy,
    /// Between requests.
    Idle,
}

impl Connection {
    /// A connection accepted at `now`, from which a request head is due.
    #[must_use]
    pub fn new(
        peer: SocketAddr,
        listener: Rc<Listener>,
        scheme: &'static str,
        now: Instant,
    ) -> Self {
        Self::on_behalf(peer, peer, listener, scheme, now)
    }

    /// One that a peer made on behalf of a client: what it said of it is believed.
    #[must_use]
    pub fn on_behalf(
        client: SocketAddr,
        peer: SocketAddr,
        listener: Rc<Listener>,
        scheme: &'static str,
        now: Instant,
    ) -> Self {
        let address = client.ip().to_canonical();
        let is_told = listener.trusted_proxies.contain(address);
        let is_proxied = is_told || client != peer;
        Self {
            peer,
            listener,
            scheme,
            forwarded_for: spelled(address),
            via: is_proxied.then(|| peer.ip().to_canonical().to_string().into()),
            is_told,
            client: address,
            certificate: OnceCell::new(),
            session: OnceCell::new(),
            shows: Cell::default(),
            phase: Cell::new(Phase::Head),
            since: Cell::new(now),
            in_flight: Cell::new(0),
        }
    }

    /// The client's address, as far as the connection tells; an IPv4 address mapped into IPv6 is
    /// given as IPv4.
    #[must_use]
    pub const fn client(&self) -> IpAddr {
        self.client
    }

    /// The client has shown this certificate, in DER, and TLS has verified it.
    pub fn showed(&self, der: &[u8]) {
        // There is one handshake, so it is shown once.
        self.certificate
            .get_or_init(|| Box::new(Certificate::read(der)));
    }

    /// A handshake has agreed on this.
    pub fn secured(&self, session: Session) {
        // There is one handshake.
        self.session.get_or_init(|| Box::new(session));
    }

    /// What the handshake agreed on; none in clear.
    #[must_use]
    pub fn session(&self) -> Option<&Session> {
        self.session.get().map(|session| &**session)
    }

    /// Whom the client's certificate shows by the configuration of a generation, counted from 1.
    /// Looked up once for each.
    #[must_use]
    pub fn shows(&self, callers: &Callers, generation: u64) -> Shows {
        let Some(certificate) = self.certificate.get() else {
            return Shows::Nobody;
        };
        match self.shows.get() {
            (before, shows) if before == generation => shows,
            _ => {
                let shows = callers.recognise(certificate);
                self.shows.set((generation, shows));
                shows
            }
        }
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

    /// A request is being served from now on.
    pub fn begin(&self, now: Instant) {
        self.in_flight.set(self.in_flight.get() + 1);
        self.enter(Phase::Busy, now);
    }

    /// A request has ended. With the last of them the connection is quiet.
    pub fn end(&self, now: Instant) {
        let left = self.in_flight.get().saturating_sub(1);
        self.in_flight.set(left);
        if left == 0 {
            self.enter(Phase::Idle, now);
        }
    }

    /// Counts a quiet connection's silence from now on.
    pub fn quiet_from(&self, now: Instant) {
        if self.phase() == Phase::Idle {
            self.since.set(now);
        }
    }
}

/// An address as a header spells it.
#[must_use]
pub fn spelled(address: IpAddr) -> HeaderValue {
    HeaderValue::from_str(&address.to_string())
        .unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_quiet_when_its_last_request_has_ended() {
        let peer = "127.0.0.1:1".parse().unwrap();
        let meters = crate::observe::Metrics::new("0").listener("public");
        let listener = Rc::new(Listener::bare("public", meters));
        let now = Instant::now();
        let connection = Connection::on_behalf(peer, peer, listener, "http", now);
        connection.begin(Instant::now());
        connection.begin(Instant::now());
        connection.end(Instant::now());
        assert_eq!(connection.phase(), Phase::Busy);
        tokio::time::advance(std::time::Duration::from_secs(1)).await;
        connection.end(Instant::now());
        assert_eq!(connection.phase(), Phase::Idle);
        assert_eq!(connection.since(), Instant::now());
    }
}
