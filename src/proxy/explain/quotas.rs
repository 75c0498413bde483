//! Decides what is told of a caller's quotas, and has those of a rehearsal stand alike.
//!
//! Buckets are looked at where they are kept, here or in a store, and charged nowhere.

use std::sync::Arc;

use super::Ground;
use super::told;
use crate::http1::Fields;
use crate::limit::shared::Identity;
use crate::limit::{Caller, Decision, Limiter, SHARDS, Standing, Subject};
use crate::state::{Endpoint, Shared, Snapshot};

/// How one quota stands.
pub(super) struct Stood {
    /// Its place among the endpoint's.
    place: usize,
    standing: Standing,
    store: Option<Box<str>>,
    failure: Option<&'static str>,
}

/// How the caller stands with each quota of the endpoint, which is one of the twin.
pub(super) async fn look(
    ground: &Ground<'_>,
    endpoint: &Endpoint,
    who: &Subject<'_>,
    caller: &Caller,
    fields: &Fields,
) -> Vec<Stood> {
    let served = &ground.snapshot.endpoints;
    let served = served.iter().find(|it| it.name == endpoint.name);
    let groups = served.map(|it| &*it.groups).unwrap_or_default();
    let mut all = Vec::new();
    for (place, quota) in endpoint.quotas.iter().enumerate() {
        // The twin keeps each of them here, so it says how a full bucket stands.
        let Some(standing) = ground.shared.limiter.standing(quota, who) else {
            continue;
        };
        all.push(Stood {
            place,
            standing,
            store: store_of(ground.snapshot, quota.name()),
            failure: None,
        });
    }
    let identity = Identity { caller, fields };
    for group in groups {
        let quotas = served.map(|it| &*it.quotas).unwrap_or_default();
        let asked = group.ask_standing(quotas, who, &identity).await;
        for stood in all.iter_mut().filter(|it| group.has(it.place)) {
            match &asked {
                Ok(standings) => {
                    let told = standings.iter().find(|(place, _)| *place == stood.place);
                    stood.standing = told.map_or(stood.standing, |(_, standing)| *standing);
                }
                Err(failure) => stood.failure = Some(failure.label()),
            }
        }
    }
    all
}

/// Has the buckets of a rehearsal stand as those that were looked at.
pub(super) fn resemble(shared: &Shared, endpoint: &Endpoint, who: &Subject<'_>, all: &[Stood]) {
    for stood in all {
        if let Some(quota) = endpoint.quotas.get(stood.place) {
            shared.limiter.resemble(quota, who, stood.standing);
        }
    }
}

/// The store that keeps a quota.
fn store_of(snapshot: &Snapshot, name: &str) -> Option<Box<str>> {
    let settings = &snapshot.settings;
    let quota = settings.quotas.iter().find(|it| *it.name == *name)?;
    let store = settings.stores.get(quota.kept?.store)?;
    Some(store.name.clone())
}

/// What is told of them. `caller` where it is known.
pub(super) fn told(
    ground: &Ground<'_>,
    endpoint: &Endpoint,
    who: &Subject<'_>,
    caller: Option<&Caller>,
    all: &[Stood],
) -> Vec<told::Quota> {
    let snapshot = ground.snapshot;
    let lines = snapshot.key_lines();
    let plans = &snapshot.settings.plans;
    let plan = caller.and_then(|it| Some(&*plans.get(it.plan()?)?.name));
    let mut told = Vec::new();
    for (place, quota) in endpoint.quotas.iter().enumerate() {
        let name = quota.name();
        let mut rules: Vec<&[&str]> = Vec::new();
        let by_plan = plan.map(|plan| ["plan", plan, "quotas", name]);
        rules.extend(by_plan.as_ref().map(|it| it.as_slice()));
        let own = [["quota", name, "rate"], ["quota", name, "concurrent"]];
        rules.extend(own.iter().map(|it| it.as_slice()));
        let rules = lines.rule(&rules).into_iter().collect();
        let store = store_of(snapshot, name).map(String::from);
        let kept_in = store.unwrap_or_else(|| "local".to_owned());
        let Some(stood) = all.iter().find(|it| it.place == place) else {
            told.push(told::Quota {
                name: name.to_owned(),
                kept_in,
                store_error: None,
                looks_at_it: false,
                limit: 0,
                remaining: 0,
                cost: 0,
                admits: true,
                retry_after_ms: None,
                rules,
            });
            continue;
        };
        let alone = Limiter::new(Arc::clone(&ground.shared.clock), 64 * SHARDS);
        alone.resemble(quota, who, stood.standing);
        let shortage = match alone.check(std::slice::from_ref(quota), who) {
            Decision::Admitted(_) => None,
            Decision::Refused(shortage) => Some(shortage),
        };
        told.push(told::Quota {
            name: name.to_owned(),
            kept_in: stood.store.clone().map_or(kept_in, String::from),
            store_error: stood.failure,
            looks_at_it: true,
            limit: stood.standing.most(),
            remaining: stood.standing.remaining(),
            cost: quota.cost(who).get(),
            admits: shortage.is_none(),
            retry_after_ms: shortage.map(|it| it.retry_after_ms()),
            rules,
        });
    }
    told
}
