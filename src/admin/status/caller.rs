//! Decides which callers operators are told of: those nearest to a limit, and those refused most.
//!
//! Callers go by their names in the access log. They come from traffic: JSON escapes them, and whoever
//! shows them must too. Must never show what names a caller otherwise: a key is not known here.

use std::cmp::Reverse;

use serde::Serialize;

use super::Office;
use crate::admin::limits::{millis, placed};
use crate::limit::{Notable, Quota, Standing};
use crate::state::Snapshot;

/// How many are looked at, those who ask most and those who are refused most.
const LOOKED_AT: usize = 100;

/// How many are told of.
const TOLD: usize = 30;

#[derive(Serialize)]
pub(super) struct Caller {
    caller: String,
    /// Estimated from samples; both fade.
    calls: u64,
    refused: u64,
    /// Which quota refused last.
    refused_by: Option<String>,
    /// The bucket in which least is left, of those that this process keeps and that are not full.
    tightest: Option<Tightest>,
}

#[derive(Serialize)]
struct Tightest {
    quota: String,
    /// `None`: all that name the quota.
    endpoint: Option<String>,
    remaining: u32,
    most: u32,
    /// `None`: requests at once.
    full_in_ms: Option<u64>,
}

pub(super) fn callers(office: &Office, snapshot: &Snapshot) -> Vec<Caller> {
    let limiter = &office.shared.limiter;
    let mut notables = limiter.notables();
    let most = |notables: &mut Vec<Notable>, count: fn(&Notable) -> u64| {
        notables.sort_by_key(|it| Reverse(count(it)));
        let rest = notables.split_off(notables.len().min(LOOKED_AT / 2));
        std::mem::replace(notables, rest)
    };
    let mut looked_at = most(&mut notables, |it| it.refused);
    looked_at.extend(most(&mut notables, |it| it.calls));
    let placed = placed(snapshot);
    let quotas: Vec<&Quota> = placed.iter().map(|it| it.quota).collect();
    let who: Vec<_> = looked_at.iter().map(|it| &it.caller).collect();
    let standings = limiter.tightest(&who, &quotas);
    let mut all: Vec<_> = looked_at.iter().zip(standings).collect();
    all.sort_by_key(|(notable, tightest)| {
        let used = tightest.map(|(_, standing)| used(&standing));
        (
            Reverse(used),
            Reverse(notable.refused),
            Reverse(notable.calls),
        )
    });
    let told = all.into_iter().take(TOLD);
    told.map(|(notable, tightest)| Caller {
        caller: notable.caller.to_string(),
        calls: notable.calls,
        refused: notable.refused,
        refused_by: notable.quota.as_ref().map(ToString::to_string),
        tightest: tightest.and_then(|(at, standing)| {
            let placed = placed.get(at)?;
            Some(Tightest {
                quota: placed.quota.name().to_owned(),
                endpoint: placed.endpoint.map(ToOwned::to_owned),
                remaining: standing.remaining(),
                most: standing.most(),
                full_in_ms: match standing {
                    Standing::Rate { .. } => Some(millis(standing.until_full())),
                    Standing::AtOnce { .. } => None,
                },
            })
        }),
    })
    .collect()
}

/// In millionths.
fn used(standing: &Standing) -> u64 {
    let most = u64::from(standing.most());
    let used = most.saturating_sub(u64::from(standing.remaining()));
    used.saturating_mul(1_000_000)
        .checked_div(most)
        .unwrap_or_default()
}
