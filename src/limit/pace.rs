//! Decides by GCRA: a bucket is one number, the moment up to which it is paid for (the TAT).
//!
//! governor is used as the pure decision. Its rule (`tau = t * (burst - 1)`, refuse while
//! `now < tat + weight - tau`, else `max(tat, now) + t + weight`) does not change when all moments
//! are shifted alike, so it is asked relative to now, with a clock that always reads zero; the
//! absolute TAT stays in the limiter's table. So one bucket can outlive the pace it was made under,
//! and a changed one keeps the debt in time.

use std::cell::Cell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::{NotUntil, RateLimiter};

use super::clock::nanos;

/// The longest time an empty bucket may take to fill, in ns (about 146 years). governor's
/// arithmetic must not wrap; a configuration that asks for more is held to this.
pub const LONGEST_REFILL: u64 = 1 << 62;

/// So much, so often: a few words, no state.
pub(super) struct Pace {
    interval: u64,
    burst: NonZeroU32,
    gcra: RateLimiter<Bucket, Carry, Zero, NoOpMiddleware<Nanos>>,
}

impl Pace {
    /// Total: an interval of zero becomes 1 ns, and the burst is lowered where a full refill would
    /// take longer than [`LONGEST_REFILL`]. Both belong to the checks of the configuration.
    pub(super) fn new(interval: Duration, burst: NonZeroU32) -> Self {
        let interval = nanos(interval).clamp(1, LONGEST_REFILL);
        let most = u32::try_from(LONGEST_REFILL / interval).unwrap_or(u32::MAX);
        let burst = NonZeroU32::new(burst.get().min(most)).unwrap_or(NonZeroU32::MIN);
        Self {
            interval,
            burst,
            gcra: RateLimiter::new(governor_quota(interval, burst), Carry, Zero),
        }
    }

    /// How many requests fit into a full bucket.
    pub(super) const fn burst(&self) -> NonZeroU32 {
        self.burst
    }

    /// The time in which one request is earned back.
    pub(super) const fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval)
    }

    /// Decides on a bucket that is `debt` ns away from full, and what its debt becomes.
    ///
    /// A cost above the burst counts as the whole burst.
    ///
    /// # Errors
    ///
    /// Refused: the exact time in ns after which the same call is admitted if nobody else comes.
    pub(super) fn decide(&self, debt: u64, cost: NonZeroU32) -> Result<u64, u64> {
        let bucket = Bucket {
            previous: (debt > 0).then(|| Nanos::new(debt)),
            next: Cell::new(0),
        };
        match self.gcra.check_key_n(&bucket, cost.min(self.burst)) {
            Ok(Ok(())) => Ok(bucket.next.get()),
            Ok(Err(refused)) => Err(wait(&refused)),
            // Not reached: the cost is no more than the burst.
            Err(_insufficient) => Err(debt.saturating_add(self.interval)),
        }
    }

    /// What a call of this cost adds to the debt, in ns.
    pub(super) fn price(&self, cost: NonZeroU32) -> u64 {
        self.interval
            .saturating_mul(cost.min(self.burst).get().into())
    }

    /// How a bucket with this debt (ns) stands.
    pub(super) const fn standing(&self, debt: u64) -> Standing {
        Standing::Rate {
            debt,
            interval: self.interval,
            burst: self.burst,
        }
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pace")
            .field("interval", &self.interval())
            .field("burst", &self.burst)
            .finish_non_exhaustive()
    }
}

/// How one bucket stands at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Of a rate.
    Rate {
        /// How far it is from full, in ns.
        debt: u64,
        /// The time in which one request is earned back, in ns.
        interval: u64,
        /// How many requests fit into it.
        burst: NonZeroU32,
    },
    /// Of requests at once.
    AtOnce {
        /// How many there may be.
        most: NonZeroU32,
        /// How many there are.
        taken: u32,
    },
}

impl Standing {
    /// How many requests would be admitted now.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        match self {
            Self::AtOnce { most, taken } => most.get().saturating_sub(*taken),
            Self::Rate { interval, .. } => {
                let whole = self.credit() / *interval;
                // The credit is at most interval * burst.
                if whole > u32::MAX as u64 {
                    u32::MAX
                } else {
                    whole as u32
                }
            }
        }
    }

    /// The time until one more would be; zero when the bucket is full, or when nobody can know.
    #[must_use]
    pub const fn until_next(&self) -> Duration {
        match self {
            Self::AtOnce { .. } | Self::Rate { debt: 0, .. } => Duration::ZERO,
            Self::Rate { debt, interval, .. } => {
                // A debt from an earlier, larger quota has to come down to this one's first.
                let excess = debt.saturating_sub(self.capacity());
                let missing = *interval - self.credit() % *interval;
                Duration::from_nanos(excess.saturating_add(missing))
            }
        }
    }

    /// The time until the bucket is full; zero when nobody can know.
    #[must_use]
    pub const fn until_full(&self) -> Duration {
        match self {
            Self::AtOnce { .. } => Duration::ZERO,
            Self::Rate { debt, .. } => Duration::from_nanos(*debt),
        }
    }

    /// How many requests are admitted when there were none before.
    #[must_use]
    pub const fn most(&self) -> u32 {
        match self {
            Self::AtOnce { most, .. } => most.get(),
            Self::Rate { burst, .. } => burst.get(),
        }
    }

    /// Whether a smaller part of it is left than of another.
    #[must_use]
    pub const fn is_tighter_than(&self, other: &Self) -> bool {
        self.remaining() as u64 * (other.most() as u64)
            < other.remaining() as u64 * self.most() as u64
    }

    /// In ns; 0 where it is no rate.
    const fn capacity(&self) -> u64 {
        match self {
            Self::AtOnce { .. } => 0,
            // At most LONGEST_REFILL: `Pace::new` saw to it.
            Self::Rate {
                interval, burst, ..
            } => interval.saturating_mul(burst.get() as u64),
        }
    }

    const fn credit(&self) -> u64 {
        match self {
            Self::AtOnce { .. } => 0,
            Self::Rate { debt, .. } => self.capacity().saturating_sub(*debt),
        }
    }
}

fn governor_quota(interval: u64, burst: NonZeroU32) -> governor::Quota {
    governor::Quota::with_period(Duration::from_nanos(interval))
        .unwrap_or_else(|| governor::Quota::per_second(burst))
        .allow_burst(burst)
}

/// The earliest moment is relative to the clock, and the clock reads zero.
fn wait(refused: &NotUntil<Nanos>) -> u64 {
    refused.earliest_possible().as_u64()
}

/// The state that goes into one decision and comes out of it.
#[derive(Clone, PartialEq, Eq)]
struct Bucket {
    previous: Option<Nanos>,
    next: Cell<u64>,
}

/// governor wants its keys hashable; [`Carry`] never hashes one.
impl Hash for Bucket {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.previous.map(Nanos::as_u64).hash(state);
    }
}

/// A store that keeps nothing: the key carries the state.
#[derive(Debug)]
struct Carry;

impl StateStore for Carry {
    type Key = Bucket;

    fn measure_and_replace<T, F, E>(&self, bucket: &Bucket, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let (outcome, next) = decide(bucket.previous)?;
        bucket.next.set(next.as_u64());
        Ok(outcome)
    }
}

/// A clock that always reads zero: every decision is taken relative to now.
#[derive(Debug)]
struct Zero;

impl Clock for Zero {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::new(0)
    }
}

#[cfg(test)]
mod tests;
