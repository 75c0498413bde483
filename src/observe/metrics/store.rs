//! Decides what is counted of stores that several processes share, and of quotas kept in them.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::labels::decided;
use super::{Metrics, QuotaMeters, add, made};
use crate::observe::histogram::Histogram;

/// Who decides on a quota that a store keeps, as label values.
const SOURCES: [&str; 4] = ["store", "lease", "deny_cache", "fallback"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct In {
    store: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailedIn {
    store: String,
    kind: &'static str,
}

/// The families of stores.
#[derive(Debug, Default)]
pub(super) struct Stores {
    calls: Family<In, Counter>,
    took: Family<In, Histogram>,
    errors: Family<FailedIn, Counter>,
    degraded: Family<In, Gauge>,
}

impl Stores {
    pub(super) fn register(&self, registry: &mut Registry) {
        add(
            registry,
            "forecourt_ratelimit_store_calls_total",
            self.calls.clone(),
        );
        add(
            registry,
            "forecourt_ratelimit_store_duration_seconds",
            self.took.clone(),
        );
        add(
            registry,
            "forecourt_ratelimit_store_errors_total",
            self.errors.clone(),
        );
        add(
            registry,
            "forecourt_ratelimit_store_degraded",
            self.degraded.clone(),
        );
    }
}

/// What is counted of one store. Clones count together.
#[derive(Clone, Debug)]
pub struct StoreMeters {
    /// Calls that were sent to it.
    pub calls: Counter,
    /// Decisions it did not take, in the order of the kinds that were given.
    pub errors: Vec<Counter>,
    /// 1 while it is not asked.
    pub degraded: Gauge,
    took: Histogram,
}

impl StoreMeters {
    /// It answered after so long.
    pub fn answered(&self, took: Duration) {
        self.took.observe(took);
    }
}

/// What is counted of one quota that a store keeps. Clones count together.
#[derive(Clone, Debug)]
pub struct StoredQuotaMeters([(Counter, Counter); SOURCES.len()]);

impl StoredQuotaMeters {
    /// It, and all beside it, admitted a call: by word of this source.
    pub fn admitted(&self, source: &str) {
        if let Some((admitted, _)) = self.at(source) {
            admitted.inc();
        }
    }

    /// It held a call back longest: by word of this source.
    pub fn refused(&self, source: &str) {
        if let Some((_, refused)) = self.at(source) {
            refused.inc();
        }
    }

    /// How many calls it admitted and refused, by whatever source.
    #[must_use]
    pub fn total(&self) -> (u64, u64) {
        let each = self.0.iter().map(|(one, other)| (one.get(), other.get()));
        each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    fn at(&self, source: &str) -> Option<&(Counter, Counter)> {
        let place = SOURCES.iter().position(|known| *known == source)?;
        self.0.get(place)
    }
}

impl Metrics {
    /// The handles of a store that can fail in these ways.
    #[must_use]
    pub fn store(&self, name: &str, kinds: &[&'static str]) -> StoreMeters {
        let store = || name.to_owned();
        let labels = In { store: store() };
        let errors = kinds.iter().map(|kind| {
            let labels = FailedIn {
                store: store(),
                kind,
            };
            made(&self.stores.errors, labels)
        });
        StoreMeters {
            errors: errors.collect(),
            calls: made(&self.stores.calls, labels.clone()),
            degraded: made(&self.stores.degraded, labels.clone()),
            took: made(&self.stores.took, labels),
        }
    }

    /// Drops the series of a store that is no longer configured.
    pub fn forget_store(&self, name: &str, kinds: &[&'static str]) {
        let store = || name.to_owned();
        for kind in kinds {
            self.stores.errors.remove(&FailedIn {
                store: store(),
                kind,
            });
        }
        let labels = In { store: store() };
        self.stores.calls.remove(&labels);
        self.stores.degraded.remove(&labels);
        self.stores.took.remove(&labels);
    }

    /// The handles of a quota that a store keeps, over all endpoints that name it.
    #[must_use]
    pub fn stored_quota(&self, name: &str) -> QuotaMeters {
        let stored = SOURCES.map(|source| {
            (
                made(&self.decisions, decided(name, "admitted", source)),
                made(&self.decisions, decided(name, "refused", source)),
            )
        });
        QuotaMeters {
            admitted: Counter::default(),
            refused: Counter::default(),
            stored: Some(StoredQuotaMeters(stored)),
        }
    }

    /// Drops what was counted of a quota by word of a store.
    pub fn forget_stored_quota(&self, name: &str) {
        for source in SOURCES {
            for decision in ["admitted", "refused"] {
                self.decisions.remove(&decided(name, decision, source));
            }
        }
    }
}
