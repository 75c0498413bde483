//! The admin socket: probes, metrics, status, reload. Its own port, loopback by default.
//!
//! | path | answers |
//! |---|---|
//! | `GET /livez` | 200 while the process turns; never looks at upstreams |
//! | `GET /readyz` | 200 while new calls are welcome, else 503 |
//! | `GET /metrics` | Prometheus text, or OpenMetrics where asked for |
//! | `GET /config` | the configuration that serves, in JSON, secrets masked |
//! | `GET /status` | listeners, endpoints, upstreams, the last reload: JSON |
//! | `POST /reload` | reads the configuration file now: 200, or 422 with every problem; with `?dry-run` only says what that would change |
//! | `POST /diff` | says what the configuration in its body would change: 200, or 422 with every problem |
//! | `POST /rollback` | serves the generation before, or `?generation=N`: 200, 404 where it is not kept, 422 where it cannot be served any more |
//! | `GET /generations` | the configurations that are kept: JSON |
//! | `GET`, `PUT /log` | the level of the diagnostics; changes it for a time: JSON |
//! | `GET /limits` | quotas in use, and who asks most: JSON |
//! | `GET`, `DELETE /limits/{caller}` | how a caller's buckets stand, here and in stores; forgives it |
//! | `POST /explain` | what would become of a request, and why: JSON |
//! | `GET /decisions`, `GET /decisions/{id}` | what was decided lately, and why: JSON |
//!
//! Must never show a secret. What tells about the inside or changes it is refused to a browser page,
//! and under a name that is not an address: no page may see or drive this socket (`guard`).

mod answer;
mod attempt;
mod config;
mod explain;
mod guard;
mod limits;
mod log;
mod probe;
mod query;
mod route;
mod status;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, HeaderValue};
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

use crate::observe::{Decisions, Timestamp, WallClock};
use crate::state::{Readiness, Reloader, Shared};

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
    async fn receive(&self, request: Request<Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        let Some(page) = route::Page::at(head.uri.path()) else {
            return text(StatusCode::NOT_FOUND, "not found\n");
        };
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

/// Serves the admin socket for ever.
///
/// # Errors
/// When the socket cannot be used at all.
pub async fn serve(listener: std::net::TcpListener, office: Office) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let no_store = HeaderValue::from_static("no-store");
    let service = ServiceBuilder::new()
        .layer(CatchPanicLayer::new())
        .layer(SetResponseHeaderLayer::overriding(CACHE_CONTROL, no_store))
        .service_fn(move |request: Request<Incoming>| {
            let office = office.clone();
            async move { Ok::<_, Infallible>(office.receive(request).await) }
        });
    loop {
        let (socket, _) = match listener.accept().await {
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
        let service = TowerToHyperService::new(service.clone());
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
