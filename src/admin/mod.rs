//! The admin socket: probes, metrics, status, reload. Its own port, loopback by default.
//!
//! | path | answers |
//! |---|---|
//! | `GET /` | the page for people, which shows what `/status` tells as it changes |
//! | `GET /livez`, `GET /healthz` | 200 while the process turns; never looks at upstreams |
//! | `GET /readyz` | 200 while new calls are welcome, else 503; more lines with `?verbose` |
//! | `GET /metrics` | Prometheus text, or OpenMetrics where asked for |
//! | `GET /config` | the configuration that serves, in JSON, secrets masked |
//! | `GET /status` | listeners, endpoints, upstreams, callers, reloads: JSON; the page where `Accept` prefers HTML |
//! | `POST /reload` | reads the configuration file now: 200, or 422 with every problem; with `?dry-run` only says what that would change |
//! | `POST /diff` | says what the configuration in its body would change: 200, or 422 with every problem |
//! | `POST /rollback` | serves the generation before, or `?generation=N`: 200, 404 where it is not kept, 422 where it cannot be served any more |
//! | `GET /generations` | the configurations that are kept: JSON |
//! | `POST /drain` | begins to leave, as on SIGTERM: 202; with `?wait` the answer is the end of the process |
//! | `GET`, `PUT /log` | the level of the diagnostics; changes it for a time: JSON |
//! | `GET /limits` | quotas in use, and who asks most: JSON |
//! | `GET`, `DELETE /limits/{caller}` | how a caller's buckets stand, here and in stores; forgives it |
//! | `POST /explain` | what would become of a request, and why: JSON |
//! | `GET /decisions`, `GET /decisions/{id}` | what was decided lately, and why: JSON |
//!
//! Must never show a secret. What tells about the inside or changes it is for operators: whoever has a
//! token of `[admin] token_sha256`; without one whoever comes by address on loopback, and no browser's
//! page but our own (`guard`).

mod answer;
mod attempt;
mod attempts;
mod config;
mod drain;
mod explain;
mod guard;
mod limits;
mod log;
mod page;
mod probe;
mod query;
mod route;
mod status;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use answer::{Answer, text};
use attempts::Attempts;

use crate::observe::{Decisions, Timestamp, WallClock};
use crate::state::{Leaving, Readiness, Reloader, Shared};

/// Which sites may load an answer into their pages.
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-resource-policy");

/// How many connections the admin socket serves at once.
const CONNECTIONS: usize = 64;

/// How long a client of the admin socket may take for its request.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the admin socket tells about and works on.
#[derive(Clone, Debug)]
pub struct Office {
    /// Buckets and counters.
    pub shared: Arc<Shared>,
    /// The configuration.
    pub reloader: Arc<Reloader>,
    /// Whether new calls are welcome.
    pub readiness: Arc<Readiness>,
    /// Whether an operator wants the gateway to leave.
    pub leaving: Arc<Leaving>,
    /// The process.
    pub process: Arc<Process>,
    /// What was decided lately.
    pub decisions: Decisions,
    /// The time of day.
    pub wall: Arc<dyn WallClock>,
}

/// What does not change while the process lives.
#[derive(Clone, Debug)]
pub struct Process {
    /// The version that runs.
    pub version: &'static str,
    /// When it began to serve.
    pub started: Timestamp,
    /// Worker threads.
    pub workers: usize,
    /// The address of the admin socket.
    pub admin: SocketAddr,
}

impl Office {
    /// Reads a request whole, and answers it.
    async fn receive(&self, request: Request<Incoming>, visitor: &Visitor) -> Answer {
        let (head, body) = request.into_parts();
        let Some(page) = route::Page::at(head.uri.path()) else {
            return text(StatusCode::NOT_FOUND, "not found\n");
        };
        // Of strangers no body is read.
        if let Some(refusal) = self.refuse(page, &head, visitor) {
            return refusal;
        }
        let body = match page.takes(self) {
            0 => Bytes::new(),
            most => match timeout(PATIENCE, Limited::new(body, most).collect()).await {
                Ok(Ok(body)) => body.to_bytes(),
                Ok(Err(_)) => return text(StatusCode::PAYLOAD_TOO_LARGE, "too large, or broken\n"),
                Err(_) => return text(StatusCode::REQUEST_TIMEOUT, "too slow\n"),
            },
        };
        self.answer(page, &Request::from_parts(head, body)).await
    }
}

/// Whoever is at the other end of a connection.
#[derive(Clone, Debug)]
struct Visitor {
    peer: IpAddr,
    /// What all of them tried.
    attempts: Arc<Attempts>,
}

/// Serves the admin socket for ever.
///
/// # Errors
/// When the socket cannot be used at all.
pub async fn serve(listener: std::net::TcpListener, office: Office) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let attempts = Arc::<Attempts>::default();
    loop {
        let (socket, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "cannot accept on the admin socket");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let visitor = Visitor {
            peer: peer.ip(),
            attempts: Arc::clone(&attempts),
        };
        let office = office.clone();
        let service = ServiceBuilder::new()
            .layer(CatchPanicLayer::new())
            .layer(always(CACHE_CONTROL, "no-store"))
            .layer(always(X_CONTENT_TYPE_OPTIONS, "nosniff"))
            // No page of another site may show it or run it.
            .layer(always(CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"))
            .service_fn(move |request: Request<Incoming>| {
                let (office, visitor) = (office.clone(), visitor.clone());
                async move { Ok::<_, Infallible>(office.receive(request, &visitor).await) }
            });
        let service = TowerToHyperService::new(service);
        tokio::task::spawn_local(async move {
            let serving = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .max_buf_size(16 * 1024)
                .serve_connection(TokioIo::new(socket), service);
            // How an admin connection ends is of no interest.
            let _ = serving.await;
            drop(place);
        });
    }
}

fn always(name: HeaderName, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::overriding(name, HeaderValue::from_static(value))
}
