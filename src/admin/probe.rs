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

/// Whether calls are welcome; where the query asks for `verbose`, with what there is to say beside it. That
/// never says more than machines may know.
pub(super) fn ready(office: &Office, query: Option<&str>) -> Answer {
    let is_ready = office.readiness.is_ready();
    let (status, word) = match is_ready {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
    };
    let is_verbose = query.is_some_and(|query| query.split('&').any(|it| it == "verbose"));
    if !is_verbose {
        return text(status, format!("{word}\n"));
    }
    let snapshot = office.reloader.live().load();
    let listeners = office.reloader.sockets().addresses().len();
    let last = match office.reloader.last().map(|attempt| attempt.result) {
        None => "none since the start",
        Some(Ok(_)) => "well",
        Some(Err(_)) => "rejected: the configuration before it serves",
    };
    text(
        status,
        format!(
            "{word}\nconfiguration: generation {}, {}\nlisteners: {listeners}\nlast reload: {last}\n",
            snapshot.generation, snapshot.effective.hash,
        ),
    )
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
