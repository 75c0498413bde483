//! Decides what can be counted through a handle, without a look-up and without a lock.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

use super::exemplars::Exemplars;
use super::store::StoredQuotaMeters;
use crate::observe::clock::Timestamp;
use crate::observe::histogram::Histogram;
use crate::protocol::{Outcome, Step};

/// The names of all headers that are filled in, as label values.
pub(super) const FILLED: [&str; 2] = ["a2a-version", "a2a-extensions"];

/// What is counted at one endpoint. Clones count together.
#[derive(Clone, Debug)]
pub struct EndpointMeters {
    pub(super) ended: [Counter; Outcome::ALL.len()],
    pub(super) duration: Histogram,
    pub(super) exemplars: Arc<Exemplars>,
    pub(super) upstream_duration: Histogram,
    pub(super) filled: [Counter; FILLED.len()],
    pub(super) reported: [Counter; Step::ALL.len()],
    pub(super) stripped: Counter,
}

impl EndpointMeters {
    /// A request ended this way, so long after its head had come.
    pub fn ended(&self, outcome: Outcome, took: Duration) {
        if let Some(counter) = self.ended.get(outcome.index()) {
            counter.inc();
        }
        self.duration.observe(took);
    }

    /// A request that took so long is recorded under this trace.
    pub fn exemplify(&self, took: Duration, trace: [u8; 16], at: Timestamp) {
        self.exemplars.note(took, trace, at);
    }

    /// How many requests ended in each way, by label.
    pub fn outcomes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let outcomes = Outcome::ALL.into_iter().zip(&self.ended);
        outcomes.map(|(outcome, counter)| (outcome.label(), counter.get()))
    }

    /// The upstream's head came, so long after the request was handed over.
    pub fn answered(&self, took: Duration) {
        self.upstream_duration.observe(took);
    }

    /// An absent `A2A-Version` was filled in.
    pub fn filled_version(&self) {
        let [version, _] = &self.filled;
        version.inc();
    }

    /// An absent `A2A-Extensions` was filled in.
    pub fn filled_extensions(&self) {
        let [_, extensions] = &self.filled;
        extensions.inc();
    }

    /// A step in report mode would have refused.
    pub fn reported(&self, step: Step) {
        if let Some(counter) = self.reported.get(step.index()) {
            counter.inc();
        }
    }

    /// A protocol parameter was removed from the query.
    pub fn stripped_query(&self) {
        self.stripped.inc();
    }
}

/// What is counted for one quota. Clones count together.
#[derive(Clone, Debug)]
pub struct QuotaMeters {
    /// Calls that this quota and all beside it admitted.
    pub admitted: Counter,
    /// Calls that this quota held back longest.
    pub refused: Counter,
    /// The same by source, where a store keeps it. Then nothing is counted in the two above.
    pub stored: Option<StoredQuotaMeters>,
}

impl QuotaMeters {
    /// How many calls it admitted and refused, whoever said so.
    #[must_use]
    pub fn total(&self) -> (u64, u64) {
        match &self.stored {
            None => (self.admitted.get(), self.refused.get()),
            Some(stored) => stored.total(),
        }
    }
}

/// What is counted for one listener. Clones count together.
#[derive(Clone, Debug)]
pub struct ListenerMeters {
    /// Open connections. See [`Presence`].
    pub connections: Gauge,
    /// Connections closed on arrival because there were too many.
    pub refused: Counter,
    /// Health probes that were answered.
    pub probes: Counter,
    /// Connections closed because their peer may not send a PROXY header.
    pub untrusted: Counter,
    /// Connections closed because what came was no PROXY header.
    pub malformed: Counter,
    /// Connections closed because the PROXY header was not complete in time.
    pub late: Counter,
}

/// What is counted for one upstream. Clones count together.
#[derive(Clone, Debug)]
pub struct UpstreamMeters {
    /// Pooled connections that wait for a request.
    pub idle: Gauge,
    /// Connections that carry a request.
    pub active: Gauge,
}

/// Counts one up in a gauge as long as it lives, however it ends.
#[derive(Debug)]
pub struct Presence {
    gauge: Gauge,
    before: i64,
}

impl Presence {
    /// One more, until this is dropped.
    #[must_use]
    pub fn of(gauge: &Gauge) -> Self {
        Self {
            before: gauge.inc(),
            gauge: gauge.clone(),
        }
    }

    /// How many there were when this one came.
    #[must_use]
    pub fn before(&self) -> usize {
        usize::try_from(self.before).unwrap_or(0)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.gauge.dec();
    }
}
