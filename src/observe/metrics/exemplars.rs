//! Decides which recorded request stands as an example in a bucket of the latency histogram: the last
//! one. Shown in OpenMetrics alone, as `# {trace_id="..."} seconds timestamp` behind the bucket.
//!
//! The client library gives exemplars only with its own histogram, which takes a lock for every request;
//! this one takes a lock for those that are recorded.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::observe::clock::Timestamp;
use crate::observe::histogram::Histogram;
use crate::observe::trace::Context;

/// The examples of one endpoint's requests, by bucket.
#[derive(Debug, Default)]
pub(super) struct Exemplars(Mutex<BTreeMap<usize, Exemplar>>);

#[derive(Clone, Copy, Debug)]
struct Exemplar {
    trace: [u8; 16],
    took: Duration,
    at: Timestamp,
}

/// The examples of all endpoints.
#[derive(Debug, Default)]
pub(super) struct AllExemplars(Mutex<BTreeMap<Box<str>, Arc<Exemplars>>>);

impl Exemplars {
    pub(super) fn note(&self, took: Duration, trace: [u8; 16], at: Timestamp) {
        let exemplar = Exemplar { trace, took, at };
        self.0.lock().insert(Histogram::bucket(took), exemplar);
    }
}

impl AllExemplars {
    /// Those of an endpoint.
    pub(super) fn of(&self, endpoint: &str) -> Arc<Exemplars> {
        Arc::clone(self.0.lock().entry(endpoint.into()).or_default())
    }

    /// Drops those of an endpoint that is no longer configured.
    pub(super) fn forget(&self, endpoint: &str) {
        self.0.lock().remove(endpoint);
    }

    /// Writes them behind the buckets of a family in OpenMetrics text.
    pub(super) fn write(&self, text: &mut String, family: &str) {
        for (endpoint, exemplars) in self.0.lock().iter() {
            for (bucket, exemplar) in exemplars.0.lock().iter() {
                let bound = Histogram::bound(*bucket);
                let line = format!("{family}_bucket{{le=\"{bound}\",endpoint=\"{endpoint}\"}} ");
                let Some(end) = text.find(&line).and_then(|at| {
                    let rest = text.get(at..)?;
                    Some(at + rest.find('\n')?)
                }) else {
                    continue;
                };
                text.insert_str(end, &exemplar.spell());
            }
        }
    }
}

impl Exemplar {
    fn spell(&self) -> String {
        let context = Context {
            trace: self.trace,
            span: [0; 8],
            flags: 0,
        };
        let trace = context.spell_trace();
        let trace = std::str::from_utf8(&trace).unwrap_or_default();
        let mut out = format!(" # {{trace_id=\"{trace}\"}} {}", self.took.as_secs_f64());
        // Writing to a string does not fail.
        let millis = self.at.as_millisecond();
        write!(
            out,
            " {}.{:03}",
            millis.div_euclid(1000),
            millis.rem_euclid(1000)
        )
        .ok();
        out
    }
}
