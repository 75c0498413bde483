//! Decides how a client's connection becomes a TLS one: its deadline, what was negotiated, and why it
//! came to nothing. Must never answer in clear, and never hold up whoever accepts: a handshake runs
//! in the task of its own connection.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustls::{Error, InvalidMessage, PeerIncompatible, ProtocolVersion, ServerConnection};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::drain::{Draining, Stage};
use super::http1::GRACE;
use super::opening::Protocol;
use super::serve::Transport;
use crate::observe::{HandshakeFailure, HandshakeMeters};
use crate::state::Terminator;
use crate::state::connection::{Connection, Phase, Session};

/// TLS at one listener.
#[derive(Clone, Debug)]
pub struct Doorman {
    /// The certificates and what else handshakes are made with.
    pub terminator: Arc<Terminator>,
    /// What is counted of them.
    pub meters: HandshakeMeters,
}

impl Doorman {
    /// Shakes hands within `limit` of the connection's beginning; from then on a request is due.
    /// `None`: it came to nothing, which is counted. In a box: a session is a large thing to move.
    pub(super) async fn shake(
        &self,
        socket: TcpStream,
        connection: &Rc<Connection>,
        limit: Duration,
        mut draining: Draining,
    ) -> Option<(Box<TlsStream<TcpStream>>, Protocol)> {
        let accepted = connection.since();
        let acceptor = TlsAcceptor::from(self.terminator.config());
        let shaking = timeout_at(accepted + limit, acceptor.accept(socket));
        let drained = async {
            draining.reached(Stage::Draining).await;
            sleep(GRACE).await;
        };
        let shaken = tokio::select! {
            biased;
            shaken = shaking => shaken.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
            // Nobody has asked for anything yet.
            () = drained => return None,
        };
        match shaken {
            Ok(stream) => {
                connection.enter(Phase::Head, Instant::now());
                connection.secured(session(stream.get_ref().1));
                if let Some([shown, ..]) = stream.get_ref().1.peer_certificates() {
                    connection.showed(shown);
                }
                let protocol = match stream.get_ref().1.alpn_protocol() {
                    Some(b"h2") => Protocol::Http2,
                    Some(_) | None => Protocol::Http1,
                };
                Some((Box::new(stream), protocol))
            }
            Err(error) => {
                let why = reason(&error);
                self.meters.failed(why);
                let peer = connection.peer;
                tracing::debug!(%error, reason = why.label(), %peer, "TLS handshake failed");
                None
            }
        }
    }
}

fn session(agreed: &ServerConnection) -> Session {
    Session {
        version: match agreed.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            // Nothing older is spoken.
            _ => "TLSv1.3",
        },
        sni: agreed.server_name().map(Into::into),
    }
}

impl Transport for Box<TlsStream<TcpStream>> {
    fn reset_on_close(&mut self) {
        // Without the message that ends a session in order, it is cut in any case.
        let _ = SockRef::from(self.get_ref().0).set_linger(Some(Duration::ZERO));
    }

    fn farewell(&mut self) {
        let (socket, session) = self.get_mut();
        session.send_close_notify();
        let mut last = Vec::new();
        if session.write_tls(&mut last).is_ok() {
            let _ = socket.try_write(&last);
        }
    }
}

/// Why a handshake failed, by the library's error.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "the library's errors, of which few are told apart"
)]
fn reason(error: &io::Error) -> HandshakeFailure {
    let inner = error.get_ref().and_then(|it| it.downcast_ref::<Error>());
    let Some(inner) = inner else {
        return match error.kind() {
            io::ErrorKind::TimedOut => HandshakeFailure::Timeout,
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => HandshakeFailure::Closed,
            _ => HandshakeFailure::Other,
        };
    };
    match inner {
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => HandshakeFailure::NotTls,
        Error::PeerIncompatible(
            PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            // It came with TLS 1.2, and is looked for before the version is.
            | PeerIncompatible::SignatureAlgorithmsExtensionRequired,
        ) => HandshakeFailure::Version,
        Error::PeerIncompatible(_) => HandshakeFailure::Parameters,
        Error::NoApplicationProtocol => HandshakeFailure::Protocol,
        Error::NoCertificatesPresented => HandshakeFailure::NoCertificate,
        Error::InvalidCertificate(_) => HandshakeFailure::Certificate,
        Error::AlertReceived(_) => HandshakeFailure::Alert,
        _ => HandshakeFailure::Other,
    }
}
