//! Decides what operators are told of upstreams: how much of what they may carry they carry, and what
//! failed. Nothing is asked of a dealer for it.

use std::collections::BTreeMap;

use serde::Serialize;
use tokio::time::Instant;

use super::both;
use super::endpoint::happened;
use crate::state::Snapshot;

#[derive(Serialize)]
pub(super) struct Upstream<'s> {
    name: &'s str,
    url: String,
    active: i64,
    idle: i64,
    /// Connections that are open or being opened.
    connections: usize,
    max_connections: usize,
    /// Requests that wait for a connection.
    waiting: usize,
    max_waiting: usize,
    /// `None` where it is not limited, and not counted.
    in_flight: Option<usize>,
    max_in_flight: Option<usize>,
    /// Exchanges that came to no answer's head, by cause.
    failures: BTreeMap<&'static str, u64>,
    last_failure: Option<Failure>,
}

#[derive(Serialize)]
struct Failure {
    cause: &'static str,
    ago_ms: u64,
}

pub(super) fn upstreams(snapshot: &Snapshot) -> Vec<Upstream<'_>> {
    let now = Instant::now();
    both(&snapshot.settings.upstreams, &snapshot.upstreams)
        .map(|(configured, compiled)| {
            let (free, waiting, in_flight) = compiled.load();
            let failures = compiled.health.failures();
            let last = compiled.health.last();
            Upstream {
                name: &configured.name,
                url: configured.url.to_string(),
                active: compiled.meters.active.get(),
                idle: compiled.meters.idle.get(),
                connections: configured.max_connections.saturating_sub(free),
                max_connections: configured.max_connections,
                waiting,
                max_waiting: configured.max_waiting,
                in_flight,
                max_in_flight: configured.max_in_flight,
                failures: happened(failures.map(|(cause, count)| (cause.text(), count))),
                last_failure: last.map(|(cause, at)| Failure {
                    cause: cause.text(),
                    ago_ms: now
                        .saturating_duration_since(at)
                        .as_millis()
                        .try_into()
                        .unwrap_or(u64::MAX),
                }),
            }
        })
        .collect()
}
