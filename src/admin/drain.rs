//! Decides what an operator is told who has the gateway leave: for how long it stays at most.
//!
//! What is begun is the drain that SIGTERM begins. To ask again hurries nothing: the hook of an
//! orchestrator asks, and its signal follows.

use http::StatusCode;
use serde::Serialize;

use super::Office;
use super::answer::{Answer, json_as};

/// `POST /drain`.
#[derive(Serialize)]
struct Drains {
    draining: bool,
    /// `[shutdown] delay` and `timeout` together.
    at_most_ms: u64,
}

/// `waits`: the answer does not come; the connection ends with the process.
pub(super) async fn begin(office: &Office, waits: bool) -> Answer {
    office.leaving.ask();
    if waits {
        std::future::pending::<()>().await;
    }
    let snapshot = office.reloader.live().load();
    let shutdown = &snapshot.settings.shutdown;
    let at_most = shutdown.delay.saturating_add(shutdown.timeout);
    let drains = Drains {
        draining: true,
        at_most_ms: u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX),
    };
    json_as(StatusCode::ACCEPTED, &drains)
}
