//! Decides which series are dropped when a configuration goes live: those of names that are gone.

use std::collections::HashSet;

use crate::config::{Authenticate, Settings};
use crate::credential::token::Bad;
use crate::state::snapshot::Shared;
use crate::state::stores;

/// Drops the series of what is no longer configured.
pub(super) fn forget(before: &Settings, after: &Settings, shared: &Shared) {
    let metrics = &shared.metrics;
    for gone in missing(&before.listeners, &after.listeners, |it| &it.name) {
        metrics.forget_listener(gone);
    }
    for listener in after.listeners.iter().filter(|it| it.tls.is_none()) {
        metrics.forget_handshakes(&listener.name);
    }
    for gone in missing(&before.endpoints, &after.endpoints, |it| &it.name) {
        metrics.forget_endpoint(gone);
    }
    for endpoint in &after.endpoints {
        if endpoint.authenticate == Authenticate::Off {
            metrics.forget_credentials(&endpoint.name);
        }
    }
    for gone in missing(&before.quotas, &after.quotas, |it| &it.name) {
        metrics.forget_quota(gone);
    }
    for gone in missing(&before.upstreams, &after.upstreams, |it| &it.name) {
        metrics.forget_upstream(gone);
    }
    for gone in missing(&before.issuers, &after.issuers, |it| &it.name) {
        metrics.forget_issuer(gone, &Bad::ALL.map(Bad::label));
    }
    for gone in missing(&before.stores, &after.stores, |it| &it.name) {
        stores::forget(gone, shared);
    }
}

/// The names that stand before and not after.
fn missing<'a, T>(
    before: &'a [T],
    after: &'a [T],
    name: impl Fn(&'a T) -> &'a str,
) -> impl Iterator<Item = &'a str> {
    let kept: HashSet<&str> = after.iter().map(&name).collect();
    before
        .iter()
        .map(name)
        .filter(move |name| !kept.contains(name))
}
