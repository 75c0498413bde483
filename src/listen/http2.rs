//! Decides how one HTTP/2 connection is served: its limits, its silence, its end.
//!
//! Each stream is a request of its own; the connection is quiet when none is open. A quiet one is
//! told to go (GOAWAY) after the idle timeout, one that is drained at once, and its streams finish.
//! A stream whose client takes nothing of its answer for the idle timeout is cut alone. A client
//! that keeps asking and taking back is cut whole. A panic of ours ends its stream alone. The connection and its streams stand in one future:
//! there is no task and no channel between them. Must never look at a request.

mod stream;

use std::cell::Cell;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, Stream as _};
use h2::server::{Builder, Connection as Session, Handshake, SendResponse};
use h2::{Ping, PingPong, RecvStream};
use http::Request;
use tokio::time::Instant;

use self::stream::{Streams, answer};
use super::drain::Stage;
use super::http1::{Ended, GRACE};
use super::serve::{Handler, Limits, Transport};
use super::served::Ticket;
use super::stall::Stall;
use super::witness::witnessed;
use crate::state::connection::{Connection, Phase};
use crate::wire::Timer;

/// What a client may send of one request body before we read it, bytes.
const STREAM_WINDOW: u32 = 64 * 1024;

/// The same for all bodies of a connection. They are read as they come, into a counted budget.
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// What is held of one answer for a client that does not take it, bytes.
const SEND_BUFFER: usize = 64 * 1024;

/// Streams a client may take back before they were looked at.
const UNSEEN_RESETS: usize = 20;

/// Streams that we reset for a client's mistakes.
const OWN_RESETS: usize = 100;

/// How often a client is asked whether it is still there, and how long it may take to say so.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);

/// How long a client that was told to go may take to close a connection without a stream.
const GOODBYE: Duration = Duration::from_secs(1);

/// Serves one connection to its end. Its preface is still to be read.
pub(super) async fn serve<T, H>(
    socket: T,
    connection: &Connection,
    limits: Limits,
    handler: &H,
    ticket: &Ticket,
) -> Ended
where
    T: Transport,
    H: Handler,
{
    // No head is due: a client may open its connection before it needs it.
    let accepted = connection.since();
    connection.enter(Phase::Idle, Instant::now());
    let streams = Streams::new(limits.idle_timeout);
    let is_told = Cell::new(false);
    let header_bytes = u32::try_from(limits.header_bytes).unwrap_or(u32::MAX);
    let handshake = Builder::new()
        .max_concurrent_streams(limits.concurrent_streams)
        .max_header_list_size(header_bytes)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(UNSEEN_RESETS)
        .max_local_error_reset_streams(Some(OWN_RESETS))
        .handshake(Stall::new(socket, limits.idle_timeout, &is_told));
    let streams = &streams;
    let mut http2 = Http2 {
        protocol: Protocol::Shaking(handshake),
        open: FuturesUnordered::new(),
        // In memory of its own, where it stays: it is large.
        begin: move |request, respond| {
            let answering = answer(handler, streams, ticket, request, respond);
            let guarded = AssertUnwindSafe(answering).catch_unwind();
            Box::pin(guarded.map(|answered| {
                if answered.is_err() {
                    witnessed(&connection.listener.meters.panicked);
                }
            }))
        },
        connection,
        ticket,
        quiet_for: limits.idle_timeout,
        leave_at: accepted + GRACE,
        is_told: &is_told,
        timer: Timer::default(),
    };
    let mut is_watched = false;
    poll_fn(|context| {
        if !std::mem::replace(&mut is_watched, true) {
            ticket.watch(context.waker());
        }
        let ended = http2.poll(context);
        match streams.are_a_flood() {
            true => Poll::Ready(Ended::Unreadable),
            false => ended,
        }
    })
    .await
}

/// One connection and its streams.
struct Http2<'c, T, F, N> {
    protocol: Protocol<'c, T>,
    /// The streams whose requests are being served.
    open: FuturesUnordered<F>,
    /// Begins to serve a request.
    begin: N,
    connection: &'c Connection,
    ticket: &'c Ticket,
    /// How long the connection may be quiet.
    quiet_for: Duration,
    /// When it is told to go in a drain.
    leave_at: Instant,
    /// Whether the client was told to go.
    is_told: &'c Cell<bool>,
    timer: Timer,
}

/// How far the protocol is.
enum Protocol<'c, T> {
    /// The client's preface is awaited.
    Shaking(Handshake<Stall<'c, T>, Bytes>),
    /// Streams come and go.
    Serving(Session<Stall<'c, T>, Bytes>, Alive),
}

impl<T, F, N> Http2<'_, T, F, N>
where
    T: Transport,
    F: Future<Output = ()>,
    N: Fn(Request<RecvStream>, SendResponse<Bytes>) -> F,
{
    /// Ready when the connection has ended.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Ended> {
        if self.ticket.stage() == Stage::Stopped {
            return Poll::Ready(Ended::Broken);
        }
        loop {
            if let Poll::Ready(ended) = self.poll_protocol(context) {
                return Poll::Ready(match ended {
                    Ok(()) => Ended::Well,
                    // The client broke the protocol.
                    Err(error) if error.is_library() => Ended::Unreadable,
                    Err(_) => Ended::Broken,
                });
            }
            while let Poll::Ready(Some(())) = Pin::new(&mut self.open).poll_next(context) {}
            if let Some(ended) = ready!(self.poll_due(context)) {
                return Poll::Ready(ended);
            }
        }
    }

    /// Reads what came, writes what is to be sent, and begins to serve each request.
    fn poll_protocol(&mut self, context: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        if let Protocol::Shaking(handshake) = &mut self.protocol {
            let mut session = ready!(Pin::new(handshake).poll(context))?;
            let alive = Alive::new(session.ping_pong());
            if self.is_told.get() {
                session.graceful_shutdown();
            }
            self.protocol = Protocol::Serving(session, alive);
        }
        let Protocol::Serving(session, _) = &mut self.protocol else {
            return Poll::Pending;
        };
        while let Some(accepted) = ready!(session.poll_accept(context)) {
            let (request, respond) = accepted?;
            self.open.push((self.begin)(request, respond));
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when the time has come: for the connection to end, or for the client to be told to go.
    fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<Option<Ended>> {
        let is_quiet = self.connection.phase() == Phase::Idle;
        let quiet_at = is_quiet.then(|| self.connection.since() + self.quiet_for);
        let is_leaving = self.ticket.stage() >= Stage::Leaving && !self.is_told.get();
        let leave_at = is_leaving.then_some(self.leave_at);
        let ask_at = match &mut self.protocol {
            Protocol::Shaking(_) => None,
            Protocol::Serving(_, alive) => alive.due(context),
        };
        let Some(due) = [quiet_at, leave_at, ask_at].into_iter().flatten().min() else {
            return Poll::Pending;
        };
        ready!(self.timer.poll(due, context));
        let now = Instant::now();
        let has_come = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if has_come(quiet_at) && self.is_told.get() {
            return Poll::Ready(Some(Ended::Well));
        }
        let goes = has_come(quiet_at) || has_come(leave_at);
        if let Protocol::Serving(session, alive) = &mut self.protocol {
            if goes {
                session.graceful_shutdown();
            }
            if has_come(ask_at) && !alive.ask(now) {
                return Poll::Ready(Some(Ended::Broken));
            }
        }
        if goes {
            self.is_told.set(true);
            self.quiet_for = GOODBYE;
            self.connection.quiet_from(now);
        }
        Poll::Ready(None)
    }
}

/// Asks the client now and then whether it is still there.
struct Alive {
    /// `None` where nobody can ask.
    asking: Option<PingPong>,
    is_asked: bool,
    /// When it is asked, or when its answer is due.
    due: Instant,
}

impl Alive {
    fn new(asking: Option<PingPong>) -> Self {
        Self {
            asking,
            is_asked: false,
            due: Instant::now() + PING,
        }
    }

    /// When there is something to do.
    fn due(&mut self, context: &mut Context<'_>) -> Option<Instant> {
        let asking = self.asking.as_mut()?;
        if self.is_asked && matches!(asking.poll_pong(context), Poll::Ready(Ok(_))) {
            self.is_asked = false;
            self.due = Instant::now() + PING;
        }
        Some(self.due)
    }

    /// Asks. `false`: it was asked, and has not answered in time.
    fn ask(&mut self, now: Instant) -> bool {
        if self.is_asked {
            return false;
        }
        if let Some(asking) = &mut self.asking {
            // A connection that has just ended tells so itself.
            let _ = asking.send_ping(Ping::opaque());
        }
        self.is_asked = true;
        self.due = now + PONG;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::rc::Rc;

    use http::StatusCode;
    use http_body::Body;
    use http_body_util::Empty;
    use tokio::io::duplex;
    use tokio::time::timeout;

    use super::*;
    use crate::http1::{Answer, Lines, RequestHead};
    use crate::listen::served::Served;
    use crate::state::Listener;

    struct Nothing;

    impl Handler for Nothing {
        type Body = Empty<Bytes>;

        async fn handle<B>(&self, _: RequestHead, _: B) -> Answer<Self::Body>
        where
            B: Body<Data = Bytes> + Unpin,
        {
            Answer {
                status: StatusCode::OK,
                lines: Lines::new(),
                body: Empty::new(),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_answer_a_ping_is_cut() {
        let hour = Duration::from_secs(3600);
        let limits = Limits {
            connections: 1,
            header_bytes: 1 << 14,
            header_count: 100,
            header_timeout: hour,
            idle_timeout: hour,
            concurrent_streams: 1,
        };
        let peer: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let meters = crate::observe::Metrics::new("0").listener("public");
        for answers in [true, false] {
            let (near, far) = duplex(1 << 16);
            let listener = Rc::new(Listener::bare("public", meters.clone()));
            let connection = Connection::new(peer, listener, "http", Instant::now());
            let ticket = Rc::new(Served::default()).enter();
            let (_requests, client) = h2::client::handshake(near).await.unwrap();
            let mut client = std::pin::pin!(client);
            let served = serve(far, &connection, limits, &Nothing, &ticket);
            let both = async {
                tokio::select! {
                    ended = served => Some(ended),
                    _ = client.as_mut(), if answers => None,
                }
            };
            let start = Instant::now();
            let ended = timeout(10 * (PING + PONG), both).await;
            match answers {
                true => assert!(ended.is_err(), "{ended:?}"),
                false => {
                    assert_eq!(ended.unwrap(), Some(Ended::Broken));
                    assert_eq!(start.elapsed(), PING + PONG);
                }
            }
        }
    }
}
