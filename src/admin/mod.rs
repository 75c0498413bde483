//! The admin socket: probes, metrics, reload. Its own port, loopback by default.
//!
//! | path | answers |
//! |---|---|
//! | `GET /livez` | 200 while the process turns; never looks at upstreams |
//! | `GET /readyz` | 200 while new calls are welcome, else 503 |
//! | `GET /metrics` | Prometheus text, or OpenMetrics where asked for |
//! | `POST /reload` | reads the configuration file now: 200, or 422 with every problem |
//!
//! Must never show a secret. A POST from a browser page, or under a name that is not an address,
//! is refused: no page may drive this socket.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue, ORIGIN};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;

use crate::observe::Exposition;
use crate::state::reload::Reloaded;
use crate::state::{Reloader, Shared};

/// How many connections the admin socket serves at once.
const CONNECTIONS: usize = 64;

/// How long a client of the admin socket may take for its request.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether new calls are welcome.
#[derive(Debug, Default)]
pub struct Readiness(AtomicBool);

impl Readiness {
    /// Whether new calls are welcome.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Says whether new calls are welcome.
    pub fn set_ready(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }
}

/// What the admin socket tells about and works on.
#[derive(Clone, Debug)]
pub struct Office {
    /// Buckets and counters.
    pub shared: Arc<Shared>,
    /// The configuration.
    pub reloader: Arc<Reloader>,
    /// Whether new calls are welcome.
    pub readiness: Arc<Readiness>,
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
            let answer = office.answer(request.method(), request.uri().path(), request.headers());
            async move { Ok::<_, Infallible>(answer) }
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

impl Office {
    /// Answers one request.
    #[must_use]
    pub fn answer(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Response<Full<Bytes>> {
        let wanted = match path {
            "/livez" | "/readyz" | "/metrics" => Method::GET,
            "/reload" => Method::POST,
            _ => return text(StatusCode::NOT_FOUND, "not found\n"),
        };
        let is_head_of_get = wanted == Method::GET && method == Method::HEAD;
        if *method != wanted && !is_head_of_get {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
            let allow = if wanted == Method::POST {
                "POST"
            } else {
                "GET, HEAD"
            };
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static(allow));
            return response;
        }
        match path {
            "/livez" => text(StatusCode::OK, "ok\n"),
            "/readyz" if self.readiness.is_ready() => text(StatusCode::OK, "ready\n"),
            "/readyz" => text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
            "/metrics" => self.metrics(headers),
            _ if !is_from_an_operator(headers) => text(
                StatusCode::FORBIDDEN,
                "only from the command line, by address\n",
            ),
            _ => self.reload(),
        }
    }

    fn metrics(&self, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let limiter = &self.shared.limiter;
        let metrics = &self.shared.metrics;
        metrics.limiter(limiter.live(), limiter.overflowed());
        let asks_openmetrics = headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|accept| accept.to_str().ok())
            .any(|accept| accept.contains("application/openmetrics-text"));
        let exposition = if asks_openmetrics {
            Exposition::OpenMetrics
        } else {
            Exposition::Text
        };
        let mut response = Response::new(Full::from(metrics.render(exposition)));
        let type_ = HeaderValue::from_static(exposition.content_type());
        response.headers_mut().insert(CONTENT_TYPE, type_);
        response
    }

    fn reload(&self) -> Response<Full<Bytes>> {
        match self.reloader.reload() {
            Ok(Reloaded::Applied(generation)) => text(
                StatusCode::OK,
                format!("applied, generation {generation}\n"),
            ),
            Ok(Reloaded::Unchanged(generation)) => text(
                StatusCode::OK,
                format!("unchanged, generation {generation}\n"),
            ),
            Err(rejected) => text(StatusCode::UNPROCESSABLE_ENTITY, format!("{rejected}\n")),
        }
    }
}

/// Whether no browser page can have sent this: it has no `Origin`, and its `Host` is an address or
/// `localhost`, which no foreign name can be rebound to.
fn is_from_an_operator(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default(),
        _ => return false,
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    let literal = name.trim_start_matches('[').trim_end_matches(']');
    let is_address = literal.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost");
    is_address && !headers.contains_key(ORIGIN)
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let type_ = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, type_);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_page_can_drive_the_admin_socket() {
        for (host, origin, fine) in [
            ("127.0.0.1:9901", None, true),
            ("[::1]:9901", None, true),
            ("localhost:9901", None, true),
            ("10.0.0.7", None, true),
            ("evil.example:9901", None, false),
            ("127.0.0.1.evil.example", None, false),
            ("", None, false),
            ("127.0.0.1:9901", Some("http://127.0.0.1:9901"), false),
            ("127.0.0.1:9901", Some("null"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_static(origin));
            }
            assert_eq!(is_from_an_operator(&headers), fine, "{host} {origin:?}");
        }
        assert!(!is_from_an_operator(&HeaderMap::new()));
    }
}
