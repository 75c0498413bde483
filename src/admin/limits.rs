//! Decides what operators are told of quotas and callers, and lets them forgive one.
//!
//! Callers go by their names in the access log. Must never show what names a caller otherwise: a key
//! is not known here.

mod stored;

use std::cmp::Reverse;
use std::collections::HashSet;

use http::StatusCode;
use percent_encoding::percent_decode_str;
use serde::Serialize;

use super::Office;
use super::answer::{Answer, json, json_as, text};
use crate::config::{Dimension, Settings};
use crate::limit::{Entry, Notable, Owner, Quota, SAMPLED, Standing};
use crate::state::Snapshot;

/// How many callers and buckets are listed at most.
const LISTED: usize = 100;

/// `GET /limits`.
#[derive(Serialize)]
struct Limits<'s> {
    /// Buckets in memory, those that are full again and not yet forgotten included.
    keys: usize,
    most_keys: usize,
    /// Calls that were decided on a bucket that strangers share.
    overflow: u64,
    quotas: Vec<Limited<'s>>,
    callers: Callers,
}

#[derive(Serialize)]
struct Limited<'s> {
    name: &'s str,
    admitted: u64,
    refused: u64,
    /// Buckets that are not full.
    in_use: usize,
    /// Where strangers share a bucket that is not full.
    overflow: Vec<Overflow<'s>>,
}

#[derive(Serialize)]
struct Overflow<'s> {
    endpoint: Option<&'s str>,
    full_in_ms: u64,
}

#[derive(Serialize)]
struct Callers {
    /// Of so many admitted calls of a worker one is noted, for all of them.
    sampled: u32,
    busiest: Vec<Named>,
    most_refused: Vec<Named>,
}

#[derive(Serialize)]
struct Named {
    caller: String,
    calls: u64,
    refused: u64,
    /// Which refused last.
    quota: Option<String>,
}

/// `GET /limits/{caller}`.
#[derive(Serialize)]
struct Account<'s> {
    caller: &'s str,
    plan: Option<&'s str>,
    calls: u64,
    refused: u64,
    buckets: Vec<Bucket<'s>>,
    /// How many more buckets there are.
    more: usize,
    stores: Vec<stored::Account<'s>>,
}

#[derive(Serialize)]
struct Bucket<'s> {
    quota: &'s str,
    /// `None`: all that name the quota.
    endpoint: Option<&'s str>,
    skill: Option<&'s str>,
    /// What is counted apart beside the caller, and not kept.
    untold: Vec<&'static str>,
    remaining: u32,
    most: u32,
    /// `None`: requests at once.
    full_in_ms: Option<u64>,
}

/// `DELETE /limits/{caller}`.
#[derive(Serialize)]
struct Forgiveness<'s> {
    caller: &'s str,
    /// Buckets that owed something and are full now.
    forgiven: usize,
    /// Requests that count at once and are still open.
    still_open: u64,
    stores: Vec<stored::Forgiveness<'s>>,
}

/// A quota as an endpoint has it.
#[derive(Clone, Copy)]
pub(super) struct Placed<'s> {
    pub(super) quota: &'s Quota,
    /// `None`: all that name it.
    pub(super) endpoint: Option<&'s str>,
    configured: usize,
}

pub(super) fn all(office: &Office) -> Answer {
    let snapshot = office.reloader.live().load();
    let limiter = &office.shared.limiter;
    let placed = placed(&snapshot);
    let in_use = limiter.in_use(&bare(&placed));
    let quotas = snapshot.settings.quotas.iter().enumerate();
    let quotas = quotas.map(|(at, quota)| {
        let metrics = &office.shared.metrics;
        let meters = match quota.kept {
            None => metrics.quota(&quota.name),
            Some(_) => metrics.stored_quota(&quota.name),
        };
        let (admitted, refused) = meters.total();
        let here = || {
            placed
                .iter()
                .zip(&in_use)
                .filter(|(it, _)| it.configured == at)
        };
        Limited {
            name: &quota.name,
            admitted,
            refused,
            in_use: here().map(|(_, in_use)| in_use).sum(),
            overflow: here()
                .filter_map(|(placed, _)| {
                    Some(Overflow {
                        endpoint: placed.endpoint,
                        full_in_ms: millis(limiter.overflow(placed.quota)?),
                    })
                })
                .collect(),
        }
    });
    let notables = limiter.notables();
    json(&Limits {
        keys: limiter.live(),
        most_keys: snapshot.settings.limits.limiter_keys,
        overflow: limiter.overflowed(),
        quotas: quotas.collect(),
        callers: Callers {
            sampled: SAMPLED,
            busiest: most(&notables, |notable| notable.calls),
            most_refused: most(&notables, |notable| notable.refused),
        },
    })
}

pub(super) async fn one(office: &Office, name: &str) -> Answer {
    let Some(name) = decoded(name) else {
        return text(StatusCode::BAD_REQUEST, "the name is not UTF-8\n");
    };
    let snapshot = office.reloader.live().load();
    let limiter = &office.shared.limiter;
    let placed = placed(&snapshot);
    let notables = limiter.notables();
    let notable = notables.iter().find(|it| it.caller.to_string() == name);
    let settings = &snapshot.settings;
    let plan = match settings.known.iter().find(|caller| *caller.name == name) {
        Some(caller) => caller.plan,
        None => notable.and_then(|notable| notable.caller.plan()),
    };
    let bare = bare(&placed);
    let owner = Owner::named(&name);
    let entries = limiter.entries(&owner, &bare, plan);
    let (buckets, more) = listed(entries, &placed, settings);
    let stores = stored::accounts(&snapshot, &placed, &owner, plan).await;
    let plans = &settings.plans;
    json(&Account {
        caller: &name,
        plan: plan.and_then(|place| Some(&*plans.get(place)?.name)),
        calls: notable.map_or(0, |notable| notable.calls),
        refused: notable.map_or(0, |notable| notable.refused),
        buckets,
        more,
        stores,
    })
}

pub(super) async fn forgive(office: &Office, name: &str) -> Answer {
    let Some(name) = decoded(name) else {
        return text(StatusCode::BAD_REQUEST, "the name is not UTF-8\n");
    };
    let snapshot = office.reloader.live().load();
    let owner = Owner::named(&name);
    let forgiven = office.shared.limiter.forgive(&owner);
    let stores = stored::forgive(&snapshot, &placed(&snapshot), &owner).await;
    let buckets = stores.iter().map(|store| store.forgiven);
    let buckets = buckets.fold(forgiven.buckets, usize::saturating_add);
    let is_done = stores.iter().all(|store| store.error.is_none());
    tracing::info!(caller = ?name, buckets, is_done, "forgave a caller");
    let status = match is_done {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    json_as(
        status,
        &Forgiveness {
            caller: &name,
            forgiven: forgiven.buckets,
            still_open: forgiven.still_open,
            stores,
        },
    )
}

/// The first of these buckets, and how many more there are.
fn listed<'s>(
    entries: Vec<Entry<'s>>,
    placed: &[Placed<'s>],
    settings: &Settings,
) -> (Vec<Bucket<'s>>, usize) {
    let more = entries.len().saturating_sub(LISTED);
    let buckets = entries.into_iter().take(LISTED).filter_map(|entry| {
        let Placed {
            quota,
            endpoint,
            configured,
        } = placed.get(entry.quota)?;
        let per = settings.quotas.get(*configured)?.per;
        let untold = [Dimension::Address, Dimension::Tenant, Dimension::Skill];
        let untold = untold.into_iter().filter(|it| per.contains(*it));
        Some(Bucket {
            quota: quota.name(),
            endpoint: *endpoint,
            skill: entry.skill,
            untold: if entry.is_of_another {
                untold.map(Dimension::name).collect()
            } else {
                Vec::new()
            },
            remaining: entry.standing.remaining(),
            most: entry.standing.most(),
            full_in_ms: match entry.standing {
                Standing::Rate { .. } => Some(millis(entry.standing.until_full())),
                Standing::AtOnce { .. } => None,
            },
        })
    });
    (buckets.collect(), more)
}

/// A caller's name as it stands in a path.
fn decoded(name: &str) -> Option<String> {
    let name = percent_decode_str(name).decode_utf8().ok()?;
    Some(name.into_owned())
}

/// The quotas of all endpoints, one that is shared once.
pub(super) fn placed(snapshot: &Snapshot) -> Vec<Placed<'_>> {
    let mut seen = HashSet::new();
    let endpoints = snapshot.settings.endpoints.iter().zip(&snapshot.endpoints);
    let each = endpoints.flat_map(|(configured, compiled)| {
        let quotas = configured.quotas.iter().zip(&compiled.quotas);
        quotas.map(|(at, quota)| (*at, quota, &*compiled.name))
    });
    each.filter(|(_, quota, _)| seen.insert(quota.tag()))
        .map(|(configured, quota, endpoint)| Placed {
            quota,
            endpoint: quota.is_of_one_endpoint().then_some(endpoint),
            configured,
        })
        .collect()
}

fn bare<'s>(placed: &[Placed<'s>]) -> Vec<&'s Quota> {
    placed.iter().map(|placed| placed.quota).collect()
}

/// Those with most, and something at all.
fn most(notables: &[Notable], count: impl Fn(&Notable) -> u64) -> Vec<Named> {
    let mut sorted: Vec<_> = notables.iter().filter(|it| count(it) > 0).collect();
    sorted.sort_by_key(|notable| Reverse(count(notable)));
    let named = sorted.into_iter().take(LISTED).map(|notable| Named {
        caller: notable.caller.to_string(),
        calls: notable.calls,
        refused: notable.refused,
        quota: notable.quota.as_ref().map(ToString::to_string),
    });
    named.collect()
}

/// Whole ms, rounded up.
pub(super) fn millis(wait: std::time::Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
