//! Decides what a load balancer is told that probes the port it sends traffic to.
//!
//! A probe is no call: it is answered before anything else of it is looked at, it is counted apart,
//! and no dealer sees it. Must never answer anything but GET and HEAD of the listener's path.

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::Body as HttpBody;
use tokio::time::Instant;

use super::body::Body;
use super::worker::Worker;
use crate::http1::{Answer, Lines, RequestHead};
use crate::state::connection::Connection;

/// The answer to a probe; `None`: it is none.
pub(super) fn answer(
    worker: &Worker,
    connection: &Connection,
    head: &RequestHead,
    body: &impl HttpBody,
) -> Option<Answer<Body>> {
    let health = connection.listener.health.as_deref()?;
    let reads = matches!(head.method, Method::GET | Method::HEAD);
    if head.uri.path() != health || !reads {
        return None;
    }
    // With a body, or with something odd about its head, it is looked at like any request.
    let is_odd = head.has_bare_line_feed || head.has_fragment || head.length().is_none();
    if is_odd || !body.is_end_stream() {
        return None;
    }
    connection.listener.meters.probes.inc();
    let now = Instant::now();
    connection.begin(now);
    connection.end(now);
    let (status, text) = match worker.readiness.is_ready() {
        true => (StatusCode::OK, "ok\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
    };
    let mut lines = Lines::new();
    lines.push(b"content-type", b"text/plain; charset=utf-8");
    lines.push(b"cache-control", b"no-store");
    Some(Answer {
        status,
        lines,
        body: Body::apart(Bytes::from_static(text.as_bytes())),
    })
}
