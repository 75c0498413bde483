//! Decides what is remembered of an upstream's failures: how many of each kind, and the last one.
//!
//! For operators alone: no request is sent elsewhere or refused by it. Written on failures only.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::Cause;

/// Failed exchanges with an upstream.
#[derive(Debug, Default)]
pub struct Health {
    failed: [AtomicU64; Cause::ALL.len()],
    last: Mutex<Option<(Cause, Instant)>>,
}

impl Health {
    /// An exchange failed.
    pub fn failed(&self, cause: Cause) {
        if let Some(count) = self.failed.get(cause as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        *self.last.lock() = Some((cause, Instant::now()));
    }

    /// How many exchanges failed, by cause.
    pub fn failures(&self) -> impl Iterator<Item = (Cause, u64)> {
        let counts = self.failed.iter().map(|it| it.load(Ordering::Relaxed));
        Cause::ALL.into_iter().zip(counts)
    }

    /// The last failure, and when it was.
    #[must_use]
    pub fn last(&self) -> Option<(Cause, Instant)> {
        *self.last.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_is_counted_under_its_cause() {
        let health = Health::default();
        assert!(health.last().is_none());
        for (place, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, place);
            for _ in 0..=place {
                health.failed(cause);
            }
            assert_eq!(health.last().unwrap().0, cause);
        }
        let counts: Vec<_> = health.failures().map(|(_, count)| count).collect();
        assert_eq!(counts, (1..=10).collect::<Vec<_>>());
    }
}
