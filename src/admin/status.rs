//! Decides what operators are told of the gateway as it is now: one JSON object, made of one
//! snapshot.
//!
//! Counters are those of `/metrics`; outcomes that never happened are left out. Must never show a
//! secret. Names here are the configuration's, but for callers whom a step in report mode would have
//! refused.

mod finding;
mod issuer;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::Path;

use serde::Serialize;

use super::answer::{Answer, json};
use super::attempt::Told;
use super::{Office, log};
use crate::config::{self, Problems, Settings};
use crate::observe::{QuotaMeters, rfc3339};
use crate::state::tls::Shown;
use crate::state::{Endpoint, Snapshot, Standing};

/// `GET /status`.
#[derive(Serialize)]
struct Status<'s> {
    version: &'static str,
    started: String,
    ready: bool,
    workers: usize,
    /// The workers that have yet to take up what a reload changed about listeners.
    workers_behind: Vec<usize>,
    configuration: Configuration<'s>,
    admin: SocketAddr,
    listeners: Vec<Listener>,
    /// Files with certificates, keys and roots whose content is not in force, and why.
    refused_files: BTreeMap<String, String>,
    issuers: Vec<issuer::Issuer<'s>>,
    endpoints: Vec<Served<'s>>,
    quotas: Vec<Quota<'s>>,
    upstreams: Vec<Upstream<'s>>,
    limiter: Limiter,
    /// What steps in report mode would have refused.
    report_findings: Vec<finding::Finding>,
    log: log::Shown,
    requests_in_flight: i64,
    in_flight_bytes: i64,
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
struct Listener {
    name: Box<str>,
    address: SocketAddr,
    connections: i64,
    refused: u64,
    /// The default one first; none where it is in clear.
    certificates: Vec<Certificate>,
}

#[derive(Serialize)]
struct Certificate {
    file: String,
    names: Vec<Box<str>>,
    addresses: Vec<IpAddr>,
    serial: Box<str>,
    not_before: String,
    not_after: String,
    /// Why what its files hold now is not what is in force.
    refused: Option<String>,
}

#[derive(Serialize)]
struct Served<'s> {
    name: &'s str,
    /// `None`: any.
    host: Option<String>,
    path: &'s str,
    contracts: Vec<Contract<'s>>,
    quotas: Vec<&'s str>,
    report: Vec<&'static str>,
    requests: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct Contract<'s> {
    name: &'s str,
    a2a_version: String,
    extension: &'s str,
    upstream: &'s str,
}

#[derive(Serialize)]
struct Quota<'s> {
    name: &'s str,
    per: Vec<&'static str>,
    /// `None` where it counts requests at once.
    rate: Option<String>,
    burst: Option<u32>,
    /// `None` where it is a rate.
    concurrent: Option<u32>,
    shared: bool,
    admitted: u64,
    refused: u64,
}

#[derive(Serialize)]
struct Upstream<'s> {
    name: &'s str,
    url: String,
    active: i64,
    idle: i64,
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
        listeners: office
            .reloader
            .sockets()
            .addresses()
            .into_iter()
            .map(|(name, address)| {
                let meters = metrics.listener(&name);
                Listener {
                    address,
                    connections: meters.connections.get(),
                    refused: meters.refused.get(),
                    certificates: office
                        .reloader
                        .keyring()
                        .shown(&name)
                        .into_iter()
                        .map(certificate)
                        .collect(),
                    name,
                }
            })
            .collect(),
        refused_files: office
            .reloader
            .keyring()
            .refused()
            .into_iter()
            .map(|(file, why)| (file.display().to_string(), why))
            .collect(),
        issuers: issuer::issuers(&snapshot),
        endpoints: both(&settings.endpoints, &snapshot.endpoints)
            .map(|(configured, compiled)| served(configured, compiled, settings))
            .collect(),
        quotas: quotas(&snapshot),
        upstreams: both(&settings.upstreams, &snapshot.upstreams)
            .map(|(configured, compiled)| Upstream {
                name: &configured.name,
                url: configured.url.to_string(),
                active: compiled.meters.active.get(),
                idle: compiled.meters.idle.get(),
            })
            .collect(),
        limiter: Limiter {
            keys: limiter.live(),
            most_keys: settings.limits.limiter_keys,
            overflow: limiter.overflowed(),
        },
        report_findings: finding::findings(&office.shared.findings),
        log: log::shown(office),
        requests_in_flight: metrics.requests_in_flight.get(),
        in_flight_bytes: metrics.in_flight_bytes.get(),
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

fn certificate(shown: Shown) -> Certificate {
    Certificate {
        file: shown.certificate.display().to_string(),
        names: shown.names,
        addresses: shown.addresses,
        serial: shown.serial,
        not_before: rfc3339(shown.not_before),
        not_after: rfc3339(shown.not_after),
        refused: shown.refused,
    }
}

fn served<'s>(
    configured: &'s config::Endpoint,
    compiled: &'s Endpoint,
    settings: &'s Settings,
) -> Served<'s> {
    let contracts = configured.contracts.iter().map(|pin| Contract {
        name: &pin.contract.name,
        a2a_version: pin.contract.a2a_version.to_string(),
        extension: pin.contract.extension.as_str(),
        upstream: settings
            .upstreams
            .get(pin.upstream)
            .map_or("", |it| &it.name),
    });
    let quotas = configured.quotas.iter();
    let host = match &configured.host {
        config::Host::Any => None,
        host @ (config::Host::Exact(_) | config::Host::OneLabel(_)) => Some(host.to_string()),
    };
    Served {
        name: &configured.name,
        host,
        path: &configured.path,
        contracts: contracts.collect(),
        quotas: quotas
            .filter_map(|at| settings.quotas.get(*at).map(|it| &*it.name))
            .collect(),
        report: configured.report.iter().map(|step| step.name()).collect(),
        requests: compiled
            .meters
            .outcomes()
            .filter(|(_, count)| *count > 0)
            .collect(),
    }
}

/// The quotas with what was decided by them, over all endpoints.
fn quotas(snapshot: &Snapshot) -> Vec<Quota<'_>> {
    let settings = &snapshot.settings;
    let mut decided = BTreeMap::new();
    for (configured, compiled) in both(&settings.endpoints, &snapshot.endpoints) {
        let meters = compiled.quota_meters.iter().map(QuotaMeters::total);
        decided.extend(configured.quotas.iter().copied().zip(meters));
    }
    let quotas = settings.quotas.iter().enumerate();
    quotas
        .map(|(at, quota)| {
            let (admitted, refused) = decided.get(&at).copied().unwrap_or_default();
            Quota {
                name: &quota.name,
                per: quota.per.iter().map(config::Dimension::name).collect(),
                rate: quota.allowance.rate(),
                burst: quota.allowance.burst().map(NonZeroU32::get),
                concurrent: quota.allowance.concurrent().map(NonZeroU32::get),
                shared: quota.shared,
                admitted,
                refused,
            }
        })
        .collect()
}
