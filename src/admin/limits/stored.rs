//! Decides what operators are told of a caller's buckets in stores, and forgives it there.
//!
//! What cannot be found by the caller's name is said. A store that does not answer is named with the
//! reason, and holds nothing up: each has its own time, and they are asked together.

use futures_util::future::join_all;
use serde::Serialize;

use super::{Bucket, Placed, bare, listed};
use crate::config::Dimension;
use crate::limit::Owner;
use crate::limit::shared::{Failure, Store};
use crate::state::Snapshot;

/// How a caller stands in a store.
#[derive(Serialize)]
pub(super) struct Account<'s> {
    store: &'s str,
    /// Why it did not answer, or not to the end.
    error: Option<&'static str>,
    buckets: Vec<Bucket<'s>>,
    /// How many more buckets there are.
    more: usize,
    /// What the caller's name does not tell: buckets that differ in it are found only where this
    /// process asked about them lately.
    incomplete: Vec<&'static str>,
}

/// What became of a caller's buckets in a store.
#[derive(Serialize)]
pub(super) struct Forgiveness<'s> {
    store: &'s str,
    pub(super) error: Option<&'static str>,
    /// Buckets that owed something and are full now.
    pub(super) forgiven: usize,
    incomplete: Vec<&'static str>,
}

pub(super) async fn accounts<'s>(
    snapshot: &'s Snapshot,
    placed: &[Placed<'s>],
    owner: &Owner,
    plan: Option<usize>,
) -> Vec<Account<'s>> {
    let each = stores(snapshot, placed).map(|(store, placed)| async move {
        let (entries, failure) = store.entries(owner, &bare(&placed), plan).await;
        let (buckets, more) = listed(entries, &placed, &snapshot.settings);
        Account {
            store: store.name(),
            error: failure.map(Failure::label),
            buckets,
            more,
            incomplete: incomplete(owner, &placed),
        }
    });
    join_all(each).await
}

pub(super) async fn forgive<'s>(
    snapshot: &'s Snapshot,
    placed: &[Placed<'s>],
    owner: &Owner,
) -> Vec<Forgiveness<'s>> {
    let each = stores(snapshot, placed).map(|(store, placed)| async move {
        let (forgiven, failure) = store.forgive(owner, &bare(&placed)).await;
        Forgiveness {
            store: store.name(),
            error: failure.map(Failure::label),
            forgiven,
            incomplete: incomplete(owner, &placed),
        }
    });
    join_all(each).await
}

/// The stores, each with the quotas of endpoints that it keeps.
fn stores<'s, 'p>(
    snapshot: &'s Snapshot,
    placed: &'p [Placed<'s>],
) -> impl Iterator<Item = (&'s Store, Vec<Placed<'s>>)> + use<'s, 'p> {
    let quotas = &snapshot.settings.quotas;
    let stores = snapshot.stores.iter().enumerate();
    stores.map(move |(at, store)| {
        let is_kept = |it: &&Placed<'s>| {
            let kept = quotas.get(it.configured).and_then(|quota| quota.kept);
            kept.is_some_and(|kept| kept.store == at)
        };
        (&**store, placed.iter().filter(is_kept).copied().collect())
    })
}

fn incomplete(owner: &Owner, placed: &[Placed<'_>]) -> Vec<&'static str> {
    let all = [Dimension::Caller, Dimension::Address, Dimension::Tenant];
    let is_untold = |it: &Dimension| {
        placed
            .iter()
            .any(|placed| placed.quota.untold(owner).any(|not| not == *it))
    };
    all.into_iter()
        .filter(is_untold)
        .map(Dimension::name)
        .collect()
}
