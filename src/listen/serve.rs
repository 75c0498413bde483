//! Decides which protocol a client connection is served in, and what that takes.
//!
//! Must never look at a request: a handler is handed in.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::http1::{self, Ended};
use super::served::Ticket;
use crate::http1::{Answer, RequestHead};
use crate::observe::EndpointMeters;
use crate::protocol::Outcome;
use crate::state::connection::Connection;

/// What a client connection may use up. Read for each new connection, so a reload counts at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections, over all workers.
    pub connections: usize,
    /// Bytes of a request head.
    pub header_bytes: usize,
    /// Lines of a request head.
    pub header_count: usize,
    /// Time for a request head to be complete.
    pub header_timeout: Duration,
    /// Time a connection may be quiet.
    pub idle_timeout: Duration,
}

/// What answers requests. One for each connection.
pub trait Handler {
    /// The body of an answer. It says when it has ended and how long it is, where that is known.
    type Body: Body<Data = Bytes> + Unpin;

    /// Answers one request. Dropping the future gives it up: its client is gone.
    fn handle<B>(&self, head: RequestHead, body: B) -> impl Future<Output = Answer<Self::Body>>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn Error + Send + Sync>>;
}

/// What a client's bytes travel in.
pub(super) trait Transport: AsyncRead + AsyncWrite + Unpin {
    /// Closing it shall not look like an end: the client is to see that something is missing.
    fn reset_on_close(&mut self);

    /// Says that the connection ends in order, as far as that goes without waiting. In clear its
    /// close says so.
    fn farewell(&mut self) {}
}

impl Transport for TcpStream {
    fn reset_on_close(&mut self) {
        let _ = socket2::SockRef::from(&*self).set_linger(Some(Duration::ZERO));
    }
}

/// Serves one connection to its end.
pub(super) async fn one<T: Transport, H: Handler>(
    socket: T,
    connection: &Connection,
    limits: Limits,
    handler: &H,
    ticket: &Ticket,
    unreadable: &EndpointMeters,
) {
    let ended = http1::serve(socket, connection, limits, handler, ticket).await;
    if ended == Ended::Unreadable {
        unreadable.ended(Outcome::BadHttp, Duration::ZERO);
    }
    tracing::debug!(?ended, peer = %connection.peer, "client connection ended");
}
