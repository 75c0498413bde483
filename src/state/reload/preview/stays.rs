//! Decides what is told of what a change leaves alone: buckets of quotas, connections, requests.
//!
//! Must never guess: a bucket goes on where the compiled quota finds it again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::config::{Allowance, Settings};
use crate::limit::{Clock, Limiter, Quota};
use crate::state::snapshot::{Snapshot, rule};

/// How many of a kind are told by name; of more their number is told.
const NAMED: usize = 20;

/// What makes a quota's buckets at one endpoint, or at all that share them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Identity<'s> {
    tag: u32,
    /// Whether it counts requests at once.
    at_once: bool,
    /// Where they are kept, if not here.
    store: Option<&'s str>,
}

/// The sentences.
pub(super) fn stays(
    serving: &Snapshot,
    next: &Settings,
    limiter: &Limiter<Arc<dyn Clock>>,
) -> Vec<String> {
    let settings: &Settings = &serving.settings;
    if settings.serves_like(next) {
        return Vec::new();
    }
    let mut told = quotas(serving, next, limiter);
    let changed: Vec<_> = settings
        .upstreams
        .iter()
        .filter(|it| !next.upstreams.contains(it))
        .map(|it| &*it.name)
        .collect();
    if !changed.is_empty() {
        let names = listed(&changed);
        told.push(format!(
            "upstream {names}: connections end with the calls on them; new calls open new ones"
        ));
    }
    let closed: Vec<_> = settings
        .listeners
        .iter()
        .filter(|it| !next.listeners.iter().any(|other| it.is_open_for(other)))
        .map(|it| &*it.name)
        .collect();
    if !closed.is_empty() {
        let names = listed(&closed);
        told.push(format!(
            "listener {names}: closes; its connections end with the requests on them, and are cut after \
             [shutdown] timeout"
        ));
    }
    told.push("requests and streams in flight end on the configuration they began with".to_owned());
    told
}

fn quotas(serving: &Snapshot, next: &Settings, limiter: &Limiter<Arc<dyn Clock>>) -> Vec<String> {
    let before = identities(&serving.settings);
    let after = identities(next);
    let compiled = serving.endpoints.iter().flat_map(|it| &it.quotas);
    let compiled: BTreeMap<u32, &Quota> = compiled.map(|it| (it.tag(), it)).collect();
    let in_use = limiter.in_use(&compiled.values().copied().collect::<Vec<_>>());
    let in_use: BTreeMap<u32, usize> = compiled.keys().copied().zip(in_use).collect();
    let (mut kept, mut used) = (0, 0);
    let mut anew = Vec::new();
    for (name, places) in &before {
        let Some(found) = after.get(name) else {
            continue;
        };
        let count = |places: &mut dyn Iterator<Item = &Identity<'_>>| {
            let tags: BTreeSet<_> = places.map(|it| it.tag).collect();
            let counts = tags.iter().map(|tag| in_use.get(tag).copied().unwrap_or(0));
            counts.sum::<usize>()
        };
        if places.is_disjoint(found) {
            anew.push((*name, count(&mut places.iter())));
        } else {
            kept += 1;
            used += count(&mut places.intersection(found));
        }
    }
    let mut told = Vec::new();
    if kept > 0 {
        let (quotas, buckets) = (
            counted(kept, "quota", "quotas"),
            counted(used, "bucket", "buckets"),
        );
        told.push(format!(
            "{quotas} found again with {buckets} in use; new rates, bursts, costs and plans hold for them \
             at once"
        ));
    }
    let more = anew.len().saturating_sub(NAMED);
    for (name, used) in anew.into_iter().take(NAMED) {
        told.push(format!(
            "quota {name}: counts something else or elsewhere, so callers start anew; {} in use left behind",
            counted(used, "bucket", "buckets")
        ));
    }
    if more > 0 {
        told.push(format!("and so with {more} quotas more"));
    }
    told
}

/// What the buckets of each quota that endpoints name are known by.
fn identities(settings: &Settings) -> BTreeMap<&str, BTreeSet<Identity<'_>>> {
    let mut found: BTreeMap<&str, BTreeSet<Identity<'_>>> = BTreeMap::new();
    for endpoint in &settings.endpoints {
        for place in &endpoint.quotas {
            let (Some(quota), Some(rule)) = (settings.quotas.get(*place), rule(*place, settings))
            else {
                continue;
            };
            let store = quota.kept.as_ref();
            let identity = Identity {
                tag: Quota::compile(&rule, &endpoint.name).tag(),
                at_once: matches!(quota.allowance, Allowance::Concurrent(_)),
                store: store.and_then(|it| Some(&*settings.stores.get(it.store)?.name)),
            };
            found.entry(&quota.name).or_default().insert(identity);
        }
    }
    found
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn listed(names: &[&str]) -> String {
    match names.get(..NAMED) {
        Some(first) if names.len() > NAMED => {
            format!("{} and {} more", first.join(", "), names.len() - NAMED)
        }
        _ => names.join(", "),
    }
}
