//! Decides what a configuration's twin is: a snapshot of the same settings on which a request can be
//! tried out without anything being counted, charged or connected.
//!
//! It decides as the snapshot does, but for what lies outside of both: quotas that a store keeps are
//! here kept by the process, for whoever tries the request to fill in what the store says; keys of
//! issuers are those of this moment and are not fetched anew; what is missing of a body never comes.

use std::sync::Arc;
use std::time::Duration;

use super::findings::Findings;
use super::logs::Logs;
use super::snapshot::{Shared, Snapshot, compile};
use super::tls::Keyring;
use crate::config::Settings;
use crate::limit::shared::Thread;
use crate::limit::{Clock, Limiter, SHARDS};
use crate::observe::Metrics;

/// Buckets of its own, all full, and counters that nobody reads. `in_flight`: how many requests are
/// being served.
#[must_use]
pub fn apart(clock: &Arc<dyn Clock>, in_flight: i64) -> Shared {
    let metrics = Metrics::new("");
    metrics.requests_in_flight.set(in_flight);
    Shared {
        // Room for what one request asks for in each shard.
        limiter: Limiter::new(Arc::clone(clock), 1024 * SHARDS),
        metrics,
        clock: Arc::clone(clock),
        stores: Thread::default(),
        logs: Logs::default(),
        findings: Findings::default(),
    }
}

/// The twin of a snapshot of these settings, of this generation.
#[must_use]
pub fn twin(settings: &Settings, generation: u64, shared: &Shared, keyring: &Keyring) -> Snapshot {
    let mut alike = settings.clone();
    for quota in &mut alike.quotas {
        quota.kept = None;
    }
    alike.stores.clear();
    alike.limits.body_timeout = Duration::ZERO;
    let mut twin = compile(Arc::new(alike.clone()), generation, shared, keyring, None);
    twin.issuers = twin.issuers.still();
    alike.quotas.clone_from(&settings.quotas);
    alike.stores.clone_from(&settings.stores);
    twin.settings = Arc::new(alike);
    twin
}
