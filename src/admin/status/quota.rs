//! Decides what operators are told of quotas: what was decided by each, over all endpoints.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Serialize;

use super::both;
use crate::config;
use crate::observe::QuotaMeters;
use crate::state::Snapshot;

#[derive(Serialize)]
pub(super) struct Quota<'s> {
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

pub(super) fn quotas(snapshot: &Snapshot) -> Vec<Quota<'_>> {
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
