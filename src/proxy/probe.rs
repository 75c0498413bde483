//! Decides what a load balancer is told that probes the port it sends traffic to.
//!
//! A probe is no call: it is answered before anything else of it is looked at, it is counted apart,
//! and no dealer sees it. Must never answer anything but GET and HEAD of the listener's path.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode, request};
use http_body::Body as HttpBody;
use tokio::time::Instant;

use super::body::Body;
use super::worker::Worker;
use crate::state::connection::{Connection, Framing};

/// The answer to a probe; `None`: it is none.
pub(super) fn answer(
    worker: &Worker,
    connection: &Connection,
    parts: &request::Parts,
    body: &impl HttpBody,
) -> Option<Response<Body>> {
    let health = connection.listener.health.as_deref()?;
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    if parts.uri.path() != health || !reads {
        return None;
    }
    // With a body, or with something odd about its end, it is looked at like any request.
    let framing = connection.framing();
    let one_length = Framing {
        lengths: 1,
        ..Framing::default()
    };
    let is_plain = framing == Framing::default() || framing == one_length;
    if !is_plain || !body.is_end_stream() {
        return None;
    }
    connection.listener.meters.probes.inc();
    let now = Instant::now();
    connection.begin(now);
    connection.end(now);
    let is_ready = worker.readiness.is_ready();
    let body = if is_ready { "ok\n" } else { "not ready\n" };
    let mut answer = Response::new(Body::apart(Bytes::from_static(body.as_bytes())));
    let headers = answer.headers_mut();
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(CONTENT_TYPE, plain);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if !is_ready {
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    Some(answer)
}
