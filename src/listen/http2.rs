//! Decides how one HTTP/2 connection is served: its limits, its silence, its end.
//!
//! Each stream is a request of its own; the connection is quiet when none is open. A quiet one is
//! told to go (GOAWAY) after the idle timeout, one that is drained at once, and its streams finish.
//! A stream whose client takes nothing of its answer for the idle timeout is cut alone. A client
//! that keeps asking and taking back is cut whole. Must never look at a request.

use std::cell::Cell;
use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::drain::Stage;
use super::http1::{Ended, GRACE};
use super::serve::{Handler, Limits, Transport};
use super::served::Ticket;
use super::spelling::translate;
use super::stall::Stall;
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

/// How many requests a client may take back unanswered at once, and how soon one more.
const TAKEN_BACK: u32 = 100;
const FORGIVEN: Duration = Duration::from_millis(100);

/// Serves one connection to its end. Its preface is still to be read.
pub(super) async fn serve<T, H>(
    socket: T,
    connection: &Connection,
    limits: Limits,
    handler: &Rc<H>,
    ticket: &Ticket,
) -> Ended
where
    T: Transport,
    H: Handler + 'static,
{
    let accepted = connection.since();
    // No head is due: a client may open its connection before it needs it.
    connection.enter(Phase::Idle, Instant::now());
    let streams = Rc::new(Streams::new(limits.idle_timeout));
    let io = TokioIo::new(Stall::new(socket, limits.idle_timeout));
    let header_bytes = u32::try_from(limits.header_bytes).unwrap_or(u32::MAX);
    let service = paced(Rc::clone(handler), Rc::clone(&streams));
    let mut serving = pin!(
        http2::Builder::new(Spawn(Rc::clone(&streams)))
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.concurrent_streams)
            .max_header_list_size(header_bytes)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .max_pending_accept_reset_streams(UNSEEN_RESETS)
            .max_local_error_reset_streams(OWN_RESETS)
            .keep_alive_interval(PING)
            .keep_alive_timeout(PONG)
            .serve_connection(io, service)
    );
    let mut quiet_for = limits.idle_timeout;
    let mut stage = Stage::Leaving;
    let mut leave_at = None;
    loop {
        let quiet_at = match connection.phase() {
            Phase::Idle => connection.since() + quiet_for,
            Phase::Busy | Phase::Head => Instant::now() + quiet_for,
        };
        let due = leave_at.map_or(quiet_at, |at| quiet_at.min(at));
        tokio::select! {
            biased;
            ended = &mut serving => {
                return match ended {
                    Ok(()) => Ended::Well,
                    Err(error) if is_breach(&error) => Ended::Unreadable,
                    Err(_) => Ended::Broken,
                };
            }
            () = streams.flooded.notified() => return Ended::Unreadable,
            () = ticket.reached(stage) => {
                if stage == Stage::Stopped {
                    return Ended::Broken;
                }
                stage = Stage::Stopped;
                leave_at = Some(accepted + GRACE);
            }
            () = sleep_until(due) => {
                let now = Instant::now();
                let is_quiet = connection.phase() == Phase::Idle
                    && connection.since() + quiet_for <= now;
                if is_quiet && quiet_for == GOODBYE {
                    return Ended::Well;
                }
                if is_quiet || leave_at.take_if(|at| *at <= now).is_some() {
                    serving.as_mut().graceful_shutdown();
                    quiet_for = GOODBYE;
                    connection.quiet_from(now);
                }
            }
        }
    }
}

/// Whether a connection ended because its client broke the protocol.
fn is_breach(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|it| it.downcast_ref::<h2::Error>());
    cause.is_some_and(h2::Error::is_library)
}

/// What the streams of one connection share.
struct Streams {
    idle: Duration,
    /// The stream whose request was just handed to the service, on its way to its task.
    begun: Cell<Option<Rc<Cell<Pace>>>>,
    taken_back: Cell<u32>,
    forgiven: Cell<Instant>,
    flooded: Notify,
}

/// How far one stream is.
#[derive(Clone, Copy, Default)]
enum Pace {
    /// No answer yet.
    #[default]
    Asked,
    /// We wait for the next piece of the answer.
    Ours,
    /// Since then the client has not taken what was there for it.
    Theirs(Instant),
}

impl Streams {
    fn new(idle: Duration) -> Self {
        Self {
            idle,
            begun: Cell::default(),
            taken_back: Cell::new(0),
            forgiven: Cell::new(Instant::now()),
            flooded: Notify::new(),
        }
    }

    /// A client took a request back before it was answered.
    fn takes_back(&self) {
        let now = Instant::now();
        let since = now.duration_since(self.forgiven.replace(now));
        let pardon = since.as_millis() / FORGIVEN.as_millis();
        let pardon = u32::try_from(pardon).unwrap_or(u32::MAX);
        if pardon == 0 {
            // Parts of a pardon are not lost.
            self.forgiven.set(now - since);
        }
        let count = self.taken_back.get().saturating_sub(pardon) + 1;
        self.taken_back.set(count);
        if count > TAKEN_BACK {
            self.flooded.notify_one();
        }
    }
}

/// Runs each stream as a task of this thread, as long as its client takes what it is given.
#[derive(Clone)]
struct Spawn(Rc<Streams>);

impl<F: Future<Output = ()> + 'static> Executor<F> for Spawn {
    fn execute(&self, stream: F) {
        let streams = Rc::clone(&self.0);
        let pace = streams.begun.take().unwrap_or_default();
        tokio::task::spawn_local(async move {
            let mut stream = pin!(stream);
            let mut timer = Timer::default();
            poll_fn(|context| {
                if stream.as_mut().poll(context).is_ready() {
                    return Poll::Ready(());
                }
                match pace.get() {
                    Pace::Asked | Pace::Ours => Poll::Pending,
                    Pace::Theirs(since) => timer.poll(since + streams.idle, context),
                }
            })
            .await;
            if matches!(pace.get(), Pace::Asked) {
                streams.takes_back();
            }
        });
    }
}

/// The handler as a service, whose answers say how their clients take them. Called by hyper right before it
/// hands the stream to [`Spawn`].
fn paced<H>(
    handler: Rc<H>,
    streams: Rc<Streams>,
) -> impl HttpService<
    Incoming,
    ResBody = Paced<H::Body>,
    Error = Infallible,
    Future = impl Future<Output = Result<Response<Paced<H::Body>>, Infallible>> + 'static,
>
where
    H: Handler + 'static,
{
    service_fn(move |request: Request<Incoming>| {
        let pace = Rc::new(Cell::new(Pace::Asked));
        streams.begun.set(Some(Rc::clone(&pace)));
        let handler = Rc::clone(&handler);
        async move {
            let (mut parts, body) = request.into_parts();
            translate(&mut parts);
            let answer = handler.handle(parts.into(), body).await;
            pace.set(Pace::Theirs(Instant::now()));
            let body = answer.body;
            let mut response = Response::new(Paced { body, pace });
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.lines.to_map();
            Ok(response)
        }
    })
}

/// An answer's body that says whether its client takes it.
struct Paced<B> {
    body: B,
    pace: Rc<Cell<Pace>>,
}

impl<B: Body + Unpin> Body for Paced<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.pace.set(match &polled {
            Poll::Pending => Pace::Ours,
            Poll::Ready(_) => Pace::Theirs(Instant::now()),
        });
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
