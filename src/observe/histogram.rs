//! Decides into which bucket a duration falls. Two additions, no lock: the client library's own
//! histogram takes a mutex, and this one is shared by all workers on every request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Upper bounds in microseconds: what a gateway adds, what an agent takes, what a blocking agent
/// takes while it thinks.
const BOUNDS_US: [u64; 18] = [
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    75_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
];

/// How often durations fell into which bucket. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct Histogram(Arc<Cells>);

#[derive(Debug, Default)]
struct Cells {
    counts: [AtomicU64; BOUNDS_US.len()],
    above: AtomicU64,
    sum_ns: AtomicU64,
}

impl Histogram {
    /// The place of the bucket of a duration.
    #[inline]
    pub(super) fn bucket(duration: Duration) -> usize {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        BOUNDS_US.partition_point(|bound| bound * 1000 < ns)
    }

    /// The upper bound of a bucket, in seconds, as it is spelled in OpenMetrics.
    pub(super) fn bound(bucket: usize) -> String {
        match BOUNDS_US.get(bucket) {
            Some(bound) => format!("{:?}", *bound as f64 / 1e6),
            None => "+Inf".to_owned(),
        }
    }

    /// Counts one duration.
    pub fn observe(&self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.0
            .counts
            .get(Self::bucket(duration))
            .unwrap_or(&self.0.above)
            .fetch_add(1, Ordering::Relaxed);
        self.0.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }
}

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let bounds = BOUNDS_US.iter().map(|bound| *bound as f64 / 1e6);
        let buckets: Vec<(f64, u64)> = bounds
            .chain([f64::INFINITY])
            .zip(self.0.counts.iter().chain([&self.0.above]))
            .map(|(bound, count)| (bound, count.load(Ordering::Relaxed)))
            .collect();
        // The count is that of the buckets, whatever is being added meanwhile.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = self.0.sum_ns.load(Ordering::Relaxed) as f64 / 1e9;
        encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::{prometheus_text, text};
    use prometheus_client::registry::Registry;

    #[test]
    fn bounds_are_inclusive_and_the_counts_add_up() {
        let histogram = Histogram::default();
        for us in [0, 500, 501, 1_000, 120_000_000, 120_000_001] {
            histogram.observe(Duration::from_micros(us));
        }
        let mut registry = Registry::default();
        registry.register("d", "d", histogram);
        for encode in [text::encode, prometheus_text::encode] {
            let mut out = String::new();
            encode(&mut out, &registry).unwrap();
            for line in [
                "d_bucket{le=\"0.0005\"} 2",
                "d_bucket{le=\"0.001\"} 4",
                "d_bucket{le=\"0.0025\"} 4",
                "d_bucket{le=\"+Inf\"} 6",
                "d_count 6",
                "d_sum 240.002002",
            ] {
                assert!(out.lines().any(|have| have == line), "{line} not in\n{out}");
            }
            assert_eq!(out.matches("+Inf").count(), 1);
        }
    }
}
