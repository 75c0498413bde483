//! Decides what operators are told of endpoints: what they are pinned to, how calls ended, and how long
//! they took.

use std::collections::BTreeMap;

use serde::Serialize;

use super::both;
use crate::config::{self, Settings};
use crate::observe::Seen;
use crate::state::{Endpoint, Snapshot};

#[derive(Serialize)]
pub(super) struct Served<'s> {
    name: &'s str,
    /// `None`: any.
    host: Option<String>,
    path: &'s str,
    contracts: Vec<Contract<'s>>,
    quotas: Vec<&'s str>,
    report: Vec<&'static str>,
    requests: BTreeMap<&'static str, u64>,
    /// From the head of a request to the last byte of its answer.
    latency: Latency,
    /// To the head of an upstream's answer.
    upstream_latency: Latency,
}

#[derive(Serialize)]
struct Contract<'s> {
    name: &'s str,
    a2a_version: String,
    extension: &'s str,
    upstream: &'s str,
}

/// How long something took since the start.
#[derive(Serialize)]
struct Latency {
    count: u64,
    sum_ms: f64,
    /// `None`: there was none.
    p50_ms: Option<f64>,
    p90_ms: Option<f64>,
    p99_ms: Option<f64>,
    /// How many fell between each bound and the one before it; those above all bounds last.
    buckets: Vec<u64>,
}

impl Latency {
    fn of(seen: &Seen) -> Self {
        let rounded = |ms: f64| (ms * 1000.0).round() / 1000.0;
        let part = |part| seen.quantile_ms(part).map(rounded);
        Self {
            count: seen.count(),
            sum_ms: rounded(seen.sum.as_secs_f64() * 1000.0),
            p50_ms: part(0.5),
            p90_ms: part(0.9),
            p99_ms: part(0.99),
            buckets: seen.counts.to_vec(),
        }
    }
}

pub(super) fn endpoints(snapshot: &Snapshot) -> Vec<Served<'_>> {
    let settings: &Settings = &snapshot.settings;
    both(&settings.endpoints, &snapshot.endpoints)
        .map(|(configured, compiled)| served(configured, compiled, settings))
        .collect()
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
    let meters = &compiled.meters;
    Served {
        name: &configured.name,
        host,
        path: &configured.path,
        contracts: contracts.collect(),
        quotas: quotas
            .filter_map(|at| settings.quotas.get(*at).map(|it| &*it.name))
            .collect(),
        report: configured.report.iter().map(|step| step.name()).collect(),
        requests: happened(meters.outcomes()),
        latency: Latency::of(&meters.latency()),
        upstream_latency: Latency::of(&meters.upstream_latency()),
    }
}

/// What happened at all.
pub(super) fn happened(
    outcomes: impl Iterator<Item = (&'static str, u64)>,
) -> BTreeMap<&'static str, u64> {
    outcomes.filter(|(_, count)| *count > 0).collect()
}
