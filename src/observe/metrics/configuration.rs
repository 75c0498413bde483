//! Decides what is counted of configurations: which one serves, and how often it was replaced.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{NAMES, add, made};
use crate::observe::clock::Timestamp;

/// Which configuration serves, and how it came.
#[derive(Debug, Default)]
pub struct Configuration {
    reloads: Family<Reloaded, Counter>,
    rollbacks: Family<RolledBack, Counter>,
    generation: Gauge,
    info: Family<Serving, Gauge>,
    applied_at: Gauge,
}

/// Why an older configuration serves again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Somebody asked for it.
    Asked,
    /// Too many requests failed.
    Guard,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 2] = [Self::Asked, Self::Guard];

    /// The label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Guard => "guard",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reloaded {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RolledBack {
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Serving {
    generation: String,
    hash: String,
}

impl Configuration {
    pub(super) fn register(&self, registry: &mut Registry) {
        for result in ["success", "failure"] {
            made(&self.reloads, Reloaded { result });
        }
        for cause in Cause::ALL.map(Cause::label) {
            made(&self.rollbacks, RolledBack { cause });
        }
        add(
            registry,
            "forecourt_config_reloads_total",
            self.reloads.clone(),
        );
        add(
            registry,
            "forecourt_config_rollbacks_total",
            self.rollbacks.clone(),
        );
        add(
            registry,
            "forecourt_config_generation",
            self.generation.clone(),
        );
        // A gauge, for it changes: the library appends nothing to its name.
        let name = "forecourt_config_info";
        let help = NAMES.iter().find(|(known, _)| *known == name);
        registry.register(name, help.map_or("", |(_, help)| *help), self.info.clone());
        add(
            registry,
            "forecourt_config_last_reload_success_timestamp_seconds",
            self.applied_at.clone(),
        );
    }

    /// Notes which configuration serves from now on: at the start and after each change.
    pub fn applied(&self, generation: u64, hash: &str, at: Timestamp) {
        self.generation
            .set(i64::try_from(generation).unwrap_or(i64::MAX));
        self.info.clear();
        let serving = Serving {
            generation: generation.to_string(),
            hash: hash.to_owned(),
        };
        made(&self.info, serving).set(1);
        self.applied_at.set(at.as_second());
    }

    /// Counts a reload: whether the new configuration was taken.
    pub fn reloaded(&self, taken: bool) {
        let result = if taken { "success" } else { "failure" };
        made(&self.reloads, Reloaded { result }).inc();
    }

    /// Counts that an older configuration serves again.
    pub fn rolled_back(&self, cause: Cause) {
        let cause = cause.label();
        made(&self.rollbacks, RolledBack { cause }).inc();
    }
}
