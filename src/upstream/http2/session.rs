//! Decides the life of one HTTP/2 connection to an upstream: opened, carrying streams, closed.
//!
//! It is used once the upstream has said how many streams it takes, so nothing is sent to a peer
//! that does not speak HTTP/2. It takes no new stream after GOAWAY, at its age limit, or when it is
//! found dead; those it carries finish. Dropping it closes the socket.

use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Ping, PingPong};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::upstream::Upstream;
use crate::upstream::connect::connect;
use crate::upstream::fault::{Cause, Fault};
use crate::upstream::pool::lifetime;
use crate::upstream::stream::Stream;

/// Streams on one connection, whatever the upstream would take.
const MOST_STREAMS: usize = 100;

/// What an upstream may send of one answer before its client takes it, bytes.
const STREAM_WINDOW: u32 = 64 * 1024;

/// The same for all answers of a connection: as much as all streams, so that clients that do not
/// take theirs never hold up another's.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * 100;

/// The largest response head, bytes.
const HEADER_BYTES: u32 = 128 * 1024;

/// Streams that we gave up whose late frames are still told from mistakes.
const REMEMBERED_RESETS: usize = 1000;

/// How often an upstream that carries streams is asked whether it is there, and how long it may
/// take to say so.
const PING: Duration = Duration::from_secs(60);
const PONG: Duration = Duration::from_secs(20);

/// One open connection.
pub(super) struct Session {
    sender: SendRequest<Bytes>,
    upstream: Arc<Upstream>,
    /// Streams that are open.
    open: Cell<usize>,
    quiet_since: Cell<Instant>,
    expires: Instant,
    takes_no_more: Cell<bool>,
    task: OnceCell<AbortHandle>,
    _permit: OwnedSemaphorePermit,
}

impl Session {
    /// Opens a connection, within the connect timeout, up to the upstream's settings.
    ///
    /// # Errors
    /// Why not; nothing of any request was sent.
    pub(super) async fn open(
        upstream: Arc<Upstream>,
        permit: OwnedSemaphorePermit,
    ) -> Result<Rc<Self>, Fault> {
        let limit = upstream.timeouts.connect;
        let opened = timeout(limit, handshake(&upstream)).await;
        let (sender, connection, pings) =
            opened.unwrap_or_else(|_| Err(Fault::unsent(Cause::ConnectTimeout)))?;
        upstream.meters.idle.inc();
        let session = Rc::new(Self {
            sender,
            upstream,
            open: Cell::new(0),
            quiet_since: Cell::new(Instant::now()),
            expires: Instant::now() + lifetime(),
            takes_no_more: Cell::new(false),
            task: OnceCell::new(),
            _permit: permit,
        });
        let task = tokio::task::spawn_local(drive(connection, pings, Rc::downgrade(&session)));
        let _ = session.task.set(task.abort_handle());
        Ok(session)
    }

    /// How many streams the upstream takes at once, as far as we use them.
    pub(super) fn most(&self) -> usize {
        self.sender.current_max_send_streams().min(MOST_STREAMS)
    }

    /// Whether another stream may be opened now.
    pub(super) fn has_room(&self, now: Instant) -> bool {
        !self.is_over(now) && self.open.get() < self.most()
    }

    /// Whether no new stream is opened on it any more.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.takes_no_more.get() || now >= self.expires
    }

    /// No new stream from now on.
    pub(super) fn retire(&self) {
        self.takes_no_more.set(true);
    }

    /// Whether it is of no more use: it takes no more streams and carries none, or has been quiet
    /// for long enough.
    pub(super) fn is_done(&self, now: Instant) -> bool {
        let mut sender = self.sender.clone();
        let ready = sender.poll_ready(&mut Context::from_waker(Waker::noop()));
        if matches!(ready, Poll::Ready(Err(_))) {
            self.retire();
        }
        let keep = self.upstream.timeouts.keep_alive;
        self.open.get() == 0 && (self.is_over(now) || now >= self.quiet_since.get() + keep)
    }

    /// Puts a request on it.
    pub(super) fn sender(&self) -> SendRequest<Bytes> {
        self.sender.clone()
    }

    /// One more stream.
    pub(super) fn enter(&self) {
        let before = self.open.replace(self.open.get() + 1);
        if before == 0 {
            self.upstream.meters.idle.dec();
            self.upstream.meters.active.inc();
        }
    }

    /// One stream less.
    pub(super) fn leave(&self, now: Instant) {
        let left = self.open.get().saturating_sub(1);
        self.open.set(left);
        if left == 0 {
            self.quiet_since.set(now);
            self.upstream.meters.active.dec();
            self.upstream.meters.idle.inc();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let meters = &self.upstream.meters;
        if self.open.get() == 0 {
            meters.idle.dec();
        } else {
            meters.active.dec();
        }
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

type Handshake = (
    SendRequest<Bytes>,
    Connection<Stream, Bytes>,
    Option<PingPong>,
);

async fn handshake(upstream: &Upstream) -> Result<Handshake, Fault> {
    let stream = connect(upstream).await?;
    if !stream.may_speak_http2() {
        let why = "the upstream did not agree to HTTP/2 in its TLS handshake";
        return Err(Fault::unsent(Cause::Invalid).because(why));
    }
    let refused = |error: h2::Error| {
        let cause = if error.is_library() {
            Cause::Invalid
        } else {
            Cause::Reset
        };
        Fault::unsent(cause).because(error)
    };
    let (sender, mut connection) = Builder::new()
        // Until the settings have come.
        .initial_max_send_streams(0)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEADER_BYTES)
        .max_concurrent_reset_streams(REMEMBERED_RESETS)
        .enable_push(false)
        .handshake(stream)
        .await
        .map_err(refused)?;
    let pings = connection.ping_pong();
    poll_fn(|context| match Pin::new(&mut connection).poll(context) {
        Poll::Ready(Ok(())) => Poll::Ready(Err(Fault::unsent(Cause::Reset))),
        Poll::Ready(Err(error)) => Poll::Ready(Err(refused(error))),
        Poll::Pending if sender.current_max_send_streams() > 0 => Poll::Ready(Ok(())),
        Poll::Pending => Poll::Pending,
    })
    .await?;
    Ok((sender, connection, pings))
}

/// Reads and writes until the connection has ended.
async fn drive(
    connection: Connection<Stream, Bytes>,
    pings: Option<PingPong>,
    session: Weak<Session>,
) {
    tokio::select! {
        ended = connection => {
            if let Err(error) = ended {
                tracing::debug!(%error, "upstream connection ended");
            }
        }
        () = silent(pings, &session) => {
            tracing::debug!("upstream connection dead");
        }
    }
    if let Some(session) = session.upgrade() {
        session.retire();
    }
}

/// Resolves when a connection that carries streams does not answer a ping.
async fn silent(pings: Option<PingPong>, session: &Weak<Session>) {
    let Some(mut pings) = pings else {
        return std::future::pending().await;
    };
    loop {
        sleep(PING).await;
        let is_quiet = session
            .upgrade()
            .is_none_or(|session| session.open.get() == 0);
        if !is_quiet && timeout(PONG, pings.ping(Ping::opaque())).await.is_err() {
            return;
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("open", &self.open)
            .field("takes_no_more", &self.takes_no_more)
            .finish_non_exhaustive()
    }
}
