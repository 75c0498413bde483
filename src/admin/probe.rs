//! Decides what machines are told: whether the process turns, whether calls are welcome, and the
//! numbers. Must never look at an upstream.

use http::header::{ACCEPT, HeaderValue};
use http::{HeaderMap, StatusCode};

use super::Office;
use super::answer::{Answer, text, whole};
use crate::observe::Exposition;

pub(super) fn live() -> Answer {
    text(StatusCode::OK, "ok\n")
}

pub(super) fn ready(office: &Office) -> Answer {
    if office.readiness.is_ready() {
        text(StatusCode::OK, "ready\n")
    } else {
        text(StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
    }
}

pub(super) fn metrics(office: &Office, headers: &HeaderMap) -> Answer {
    let limiter = &office.shared.limiter;
    let metrics = &office.shared.metrics;
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
    let type_ = HeaderValue::from_static(exposition.content_type());
    whole(StatusCode::OK, type_, metrics.render(exposition).into())
}
