//! Decides which protocol a client connection is served in, and what that takes.
//!
//! Must never look at a request: a handler is handed in.

use std::error::Error;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep_until, timeout_at};

use super::drain::Stage;
use super::http1::{self, Ended};
use super::http2;
use super::opening::{Opened, Protocol};
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
    /// Requests open at once on one HTTP/2 connection.
    pub concurrent_streams: u32,
}

/// What answers requests. One for each connection.
pub trait Handler {
    /// The body of an answer. It says when it has ended and how long it is, where that is known.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin;

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

/// Serves one connection in clear to its end: its first bytes tell what it speaks.
pub(super) async fn either<T, H>(
    socket: T,
    connection: &Rc<Connection>,
    limits: Limits,
    handler: &Rc<H>,
    ticket: &Ticket,
    unreadable: &EndpointMeters,
) where
    T: Transport,
    H: Handler + 'static,
{
    let accepted = connection.since();
    let mut opened = Opened::new(socket);
    let left = async {
        ticket.reached(Stage::Draining).await;
        sleep_until(accepted.max(ticket.since()) + http1::GRACE).await;
    };
    let protocol = tokio::select! {
        biased;
        protocol = timeout_at(accepted + limits.header_timeout, opened.protocol()) => protocol,
        () = left => return,
        () = ticket.reached(Stage::Stopped) => return,
    };
    match protocol {
        Ok(Ok(protocol)) => {
            one(
                protocol, opened, connection, limits, handler, ticket, unreadable,
            )
            .await;
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, peer = %connection.peer, "client connection ended");
        }
        Err(_) if opened.has_begun() => unreadable.ended(Outcome::BadHttp, Duration::ZERO),
        Err(_) => {}
    }
}

/// Serves one connection to its end in a protocol that is settled.
pub(super) async fn one<T, H>(
    protocol: Protocol,
    socket: T,
    connection: &Rc<Connection>,
    limits: Limits,
    handler: &Rc<H>,
    ticket: &Ticket,
    unreadable: &EndpointMeters,
) where
    T: Transport,
    H: Handler + 'static,
{
    let ended = match protocol {
        Protocol::Http1 => http1::serve(socket, connection, limits, &**handler, ticket).await,
        Protocol::Http2 => {
            // In memory of its own: a connection of HTTP/1.1 does not pay for its size.
            Box::pin(http2::serve(socket, connection, limits, &**handler, ticket)).await
        }
    };
    if ended == Ended::Unreadable {
        unreadable.ended(Outcome::BadHttp, Duration::ZERO);
    }
    tracing::debug!(?ended, peer = %connection.peer, "client connection ended");
}
