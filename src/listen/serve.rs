//! Decides how one client connection is served: its deadlines, its limits, and its end.
//!
//! From the first moment of a shutdown on, each answer announces `Connection: close`; a connection
//! being drained finishes the request it carries, and one that was just made has a moment for its
//! first. Must never look at a request: a service is handed in.

use std::cell::Cell;
use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder as Http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{sleep_until, timeout_at};
use tower::Service;
use tower::util::MapResponse;

use super::drain::{Draining, Stage};
use super::http2::serve as http2;
use super::opening::{Opened, Protocol};
use super::watched::{Deadlines, Watched};
use crate::observe::EndpointMeters;
use crate::protocol::Outcome;
use crate::state::connection::{Connection, Phase};

/// How long a new connection has for its first request although the gateway drains: its client
/// could not know.
pub(super) const GRACE: Duration = Duration::from_millis(250);

/// How many header lines hyper reads without allocating for them.
const INLINE_HEADERS: usize = 100;

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

/// Serves one connection in clear to its end: its first bytes tell what it speaks.
pub(super) async fn either<T, S, B>(
    socket: T,
    connection: Rc<Connection>,
    limits: Limits,
    service: S,
    draining: Draining,
    unreadable: EndpointMeters,
) where
    T: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + 'static,
    S::Future: 'static,
    B: Body + Unpin + 'static,
    B::Data: 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let accepted = connection.since();
    let mut opened = Opened::new(socket);
    let mut stopping = draining.clone();
    let protocol = tokio::select! {
        biased;
        protocol = timeout_at(accepted + limits.header_timeout, opened.protocol()) => protocol,
        () = async {
            stopping.reached(Stage::Draining).await;
            sleep_until(accepted + GRACE).await;
        } => return,
    };
    match protocol {
        Ok(Ok(Protocol::Http1)) => {
            http1(opened, connection, limits, service, draining, unreadable).await;
        }
        Ok(Ok(Protocol::Http2)) => {
            // In memory of its own: a connection of HTTP/1.1 does not pay for its size.
            let serving = http2(opened, connection, limits, service, draining, unreadable);
            Box::pin(serving).await;
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, peer = %connection.peer, "client connection ended");
        }
        Err(_) if opened.has_begun() => unreadable.ended(Outcome::BadHttp, Duration::ZERO),
        Err(_) => {}
    }
}

/// Serves one connection of HTTP/1.1 to its end.
pub(super) async fn http1<T, S, B>(
    socket: T,
    connection: Rc<Connection>,
    limits: Limits,
    service: S,
    mut draining: Draining,
    unreadable: EndpointMeters,
) where
    T: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + 'static,
    S::Future: 'static,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let peer: SocketAddr = connection.peer;
    let accepted = connection.since();
    let deadlines = Deadlines {
        head: limits.header_timeout,
        idle: limits.idle_timeout,
    };
    let io = TokioIo::new(Watched::new(socket, Rc::clone(&connection), deadlines));
    let mut builder = Http1::new();
    builder
        .timer(TokioTimer::new())
        // The socket has its own deadlines, which tell a slow head from a quiet connection.
        .header_read_timeout(None)
        .max_header_size(limits.header_bytes)
        .max_buf_size((2 * limits.header_bytes).max(64 * 1024));
    if limits.header_count != INLINE_HEADERS {
        builder.max_headers(limits.header_count);
    }
    let is_leaving = Rc::new(Cell::new(draining.stage() >= Stage::Leaving));
    let service = closing(service, Rc::clone(&is_leaving));
    let mut serving = pin!(builder.serve_connection(io, TowerToHyperService::new(service)));
    let ended = 'ended: {
        for stage in [Stage::Leaving, Stage::Draining, Stage::Stopped] {
            tokio::select! {
                biased;
                ended = &mut serving => break 'ended ended,
                () = draining.reached(stage) => {}
            }
            match stage {
                Stage::Serving => {}
                Stage::Leaving => is_leaving.set(true),
                Stage::Draining => {
                    tokio::select! {
                        biased;
                        ended = &mut serving => break 'ended ended,
                        () = sleep_until(accepted + GRACE) => {}
                    }
                    serving.as_mut().graceful_shutdown();
                }
                Stage::Stopped => return,
            }
        }
        return;
    };
    if let Err(error) = ended {
        if error.is_parse() || is_slow(&error, connection.phase()) {
            unreadable.ended(Outcome::BadHttp, Duration::ZERO);
        }
        tracing::debug!(%error, %peer, "client connection ended");
    }
}

/// The same service, whose answers end their connection once the gateway leaves.
fn closing<S, B>(
    service: S,
    is_leaving: Rc<Cell<bool>>,
) -> impl Service<
    Request<Incoming>,
    Response = Response<B>,
    Error = Infallible,
    Future = impl Future<Output = Result<Response<B>, Infallible>> + 'static,
> + Clone
+ 'static
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + 'static,
    S::Future: 'static,
    B: 'static,
{
    MapResponse::new(service, move |mut answer: Response<B>| {
        if is_leaving.get() {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(CONNECTION, close);
        }
        answer
    })
}

/// Whether a connection ended because its request head was not complete in time.
fn is_slow(error: &hyper::Error, phase: Phase) -> bool {
    let cause = error.source().and_then(|it| it.downcast_ref::<io::Error>());
    phase == Phase::Head && cause.is_some_and(|it| it.kind() == io::ErrorKind::TimedOut)
}
