//! Decides what operators are told of the gateway as it is now: one JSON object, made of one
//! snapshot.
//!
//! Counters are those of `/metrics`: whoever asks twice has the rates. What never happened is left out.
//! Must never show a secret. Names here are the configuration's, but for callers.

mod caller;
mod endpoint;
mod finding;
mod issuer;
mod listener;
mod quota;
mod upstream;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use serde::Serialize;

use super::answer::{Answer, json};
use super::attempt::Told;
use super::{Office, log};
use crate::config::{Problems, Settings};
use crate::observe::{Seen, rfc3339};
use crate::state::Standing;

/// `GET /status`.
#[derive(Serialize)]
struct Status<'s> {
    version: &'static str,
    started: String,
    now: String,
    ready: bool,
    workers: usize,
    /// The workers that have yet to take up what a reload changed about listeners.
    workers_behind: Vec<usize>,
    configuration: Configuration<'s>,
    admin: SocketAddr,
    listeners: Vec<listener::Listener>,
    /// Files with certificates, keys and roots whose content is not in force, and why.
    refused_files: BTreeMap<String, String>,
    issuers: Vec<issuer::Issuer<'s>>,
    /// The upper bounds of the buckets in `latency`, but for the last.
    latency_bounds_ms: Vec<f64>,
    endpoints: Vec<endpoint::Served<'s>>,
    /// How requests ended that found no endpoint.
    elsewhere: BTreeMap<&'static str, u64>,
    quotas: Vec<quota::Quota<'s>>,
    /// Those nearest to a limit first.
    callers: Vec<caller::Caller>,
    upstreams: Vec<upstream::Upstream<'s>>,
    limiter: Limiter,
    /// What steps in report mode would have refused.
    report_findings: Vec<finding::Finding>,
    log: log::Shown,
    requests_in_flight: i64,
    most_requests_in_flight: usize,
    in_flight_bytes: i64,
    most_in_flight_bytes: u64,
    /// Client connections at once, over all listeners.
    most_connections: usize,
    access_log_dropped: u64,
}

#[derive(Serialize)]
struct Configuration<'s> {
    file: String,
    /// The files that it includes.
    included: Vec<String>,
    generation: u64,
    hash: &'s str,
    loaded: String,
    /// What is probably not meant in what serves.
    warnings: &'s Problems,
    /// Whether the file, as it was last read, says something else than what serves.
    differs_from_file: bool,
    /// `served`, `rejected`, `set_aside`.
    standing: Standing,
    last_reload: Option<Told>,
    /// What was applied and rejected, newest first.
    history: Vec<Told>,
    /// The generations that are kept, the one that serves first.
    kept: Vec<u64>,
}

#[derive(Serialize)]
struct Limiter {
    keys: usize,
    most_keys: usize,
    overflow: u64,
}

pub(super) fn tell(office: &Office) -> Answer {
    let snapshot = office.reloader.live().load();
    let metrics = &office.shared.metrics;
    let limiter = &office.shared.limiter;
    let process = &office.process;
    let settings: &Settings = &snapshot.settings;
    let standing = office.reloader.file();
    let attempts = office.reloader.attempts();
    let generations = office.reloader.generations();
    json(&Status {
        version: process.version,
        started: rfc3339(process.started),
        now: rfc3339(office.wall.now()),
        ready: office.readiness.is_ready(),
        workers: process.workers,
        workers_behind: office.reloader.workers_behind(),
        configuration: Configuration {
            file: shown(office.reloader.path()),
            included: settings.origin.included().map(shown).collect(),
            generation: snapshot.generation,
            hash: &snapshot.effective.hash,
            loaded: rfc3339(office.reloader.loaded()),
            warnings: &settings.warnings,
            differs_from_file: standing != Standing::Served,
            standing,
            last_reload: office.reloader.last().map(Told::of),
            history: attempts.into_iter().map(Told::of).collect(),
            kept: generations.iter().map(|it| it.number).collect(),
        },
        admin: process.admin,
        listeners: listener::listeners(office),
        refused_files: office
            .reloader
            .keyring()
            .refused()
            .into_iter()
            .map(|(file, why)| (file.display().to_string(), why))
            .collect(),
        issuers: issuer::issuers(&snapshot),
        latency_bounds_ms: Seen::bounds_ms().collect(),
        endpoints: endpoint::endpoints(&snapshot),
        elsewhere: endpoint::happened(metrics.endpoint("").outcomes()),
        quotas: quota::quotas(&snapshot),
        callers: caller::callers(office, &snapshot),
        upstreams: upstream::upstreams(&snapshot),
        limiter: Limiter {
            keys: limiter.live(),
            most_keys: settings.limits.limiter_keys,
            overflow: limiter.overflowed(),
        },
        report_findings: finding::findings(&office.shared.findings),
        log: log::shown(office),
        requests_in_flight: metrics.requests_in_flight.get(),
        most_requests_in_flight: settings.limits.in_flight_requests,
        in_flight_bytes: metrics.in_flight_bytes.get(),
        most_in_flight_bytes: settings.limits.in_flight_bytes,
        most_connections: settings.limits.connections,
        access_log_dropped: metrics.access_log_dropped.get(),
    })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// What was configured beside what was compiled of it: both stand in the same order.
fn both<'s, A, B>(
    configured: &'s [A],
    compiled: &'s [std::sync::Arc<B>],
) -> impl Iterator<Item = (&'s A, &'s B)> {
    configured.iter().zip(compiled.iter().map(|it| &**it))
}
