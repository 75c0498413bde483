//! Decides what time it is for the limiter: nanoseconds since the limiter's clock was made.
//!
//! A bucket stores an absolute moment, so the epoch is fixed once per process and must never move,
//! neither with the wall clock nor with a reload of the configuration.

#![allow(
    clippy::disallowed_methods,
    reason = "this file owns the monotonic clock"
)]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A moment: nanoseconds since the clock's epoch. Good for 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The moment this many ns after the epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The moment this much later; stops at the end of time instead of wrapping.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(nanos(wait)))
    }
}

/// Tells the time since a fixed epoch.
///
/// It should not run backwards; if it does, buckets look fuller than they are and nothing breaks.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Now.
    fn now(&self) -> Moment;
}

/// A clock that is handed around, so that only the composition root knows which one it is.
impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Moment {
        (**self).now()
    }
}

/// The monotonic clock of the operating system; its epoch is the moment it was made.
#[derive(Clone, Debug)]
pub struct SystemClock {
    epoch: Instant,
}

impl SystemClock {
    /// A clock that starts now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            epoch: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        Moment(nanos(self.epoch.elapsed()))
    }
}

/// A clock that stands still until it is moved. Clones show the same time, on every thread.
#[derive(Clone, Debug, Default)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// A clock that stands at its epoch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(nanos(by), Ordering::SeqCst);
    }

    /// Puts the clock to a moment, also an earlier one.
    pub fn set(&self, moment: Moment) {
        self.0.store(moment.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment(self.0.load(Ordering::SeqCst))
    }
}

/// A duration in ns, capped at 584 years.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_starts_near_zero_and_goes_on() {
        let clock = SystemClock::new();
        let first = clock.now();
        let second = clock.now();
        assert!(first <= second);
        assert!(second < Moment::default().after(Duration::from_secs(60)));
    }

    #[test]
    fn clones_of_a_manual_clock_show_the_same_time() {
        let clock = ManualClock::new();
        let other: Arc<dyn Clock> = Arc::new(clock.clone());
        assert_eq!(other.now(), Moment::default());
        let other = clock.clone();
        std::thread::spawn(move || other.advance(Duration::from_millis(5)))
            .join()
            .unwrap();
        assert_eq!(clock.now(), Moment::from_nanos(5_000_000));
        clock.set(Moment::from_nanos(1));
        assert_eq!(clock.now().as_nanos(), 1);
    }

    #[test]
    fn time_ends_instead_of_wrapping() {
        let end = Moment::from_nanos(u64::MAX - 1).after(Duration::from_secs(1));
        assert_eq!(end.as_nanos(), u64::MAX);
    }
}
