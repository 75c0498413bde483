//! Decides whether one bucket admits one call: GCRA, by governor.
//!
//! A bucket is one number, the *theoretical arrival time* (TAT): the moment up to which what was
//! consumed is paid for. governor is used as the pure decision. Its rule (`tau = t * (burst - 1)`,
//! refuse while `now < tat + weight - tau`, else `max(tat, now) + t + weight`) does not change when
//! all moments are shifted alike, so it is asked relative to now, with a clock that always reads
//! zero; the absolute TAT stays in the limiter's table. So one bucket can outlive the quota that
//! made it, and a changed rate keeps the debt in time.
//!
//! Nothing here knows where a bucket is kept, and no quota holds state.

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

use crate::config::{Dimension, Per};

use super::caller::Subject;
use super::clock::nanos;
use super::fingerprint::{Domain, Fingerprint};

/// The longest time an empty bucket may take to fill, in ns (about 146 years). governor's
/// arithmetic must not wrap; a configuration that asks for more is held to this.
pub const LONGEST_REFILL: u64 = 1 << 62;

/// What a quota says, under its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The quota's name. Its buckets belong to the name: renamed, it starts afresh.
    pub name: Box<str>,
    /// What it counts by.
    pub per: Per,
    /// The time in which one request is earned back. At least 1 ns.
    pub interval: Duration,
    /// How many requests fit into a full bucket.
    pub burst: NonZeroU32,
    /// One bucket across all endpoints that name the quota, instead of one for each.
    pub shared: bool,
}

/// A quota compiled for one endpoint: a few words, no state.
pub struct Quota {
    name: Box<str>,
    scope: Fingerprint,
    by_caller: bool,
    by_address: bool,
    interval: u64,
    burst: NonZeroU32,
    gcra: RateLimiter<Bucket, Carry, Zero, NoOpMiddleware<Nanos>>,
}

impl Quota {
    /// Compiles a rule for the endpoint of this name.
    ///
    /// Total: an interval of zero becomes 1 ns, and the burst is lowered where a full refill would
    /// take longer than [`LONGEST_REFILL`]. Both belong to the checks of the configuration.
    #[must_use]
    pub fn compile(rule: &Rule, endpoint: &str) -> Self {
        let interval = nanos(rule.interval).clamp(1, LONGEST_REFILL);
        let most = u32::try_from(LONGEST_REFILL / interval).unwrap_or(u32::MAX);
        let burst = NonZeroU32::new(rule.burst.get().min(most)).unwrap_or(NonZeroU32::MIN);

        let by_caller = rule.per.contains(Dimension::Caller);
        let by_address = rule.per.contains(Dimension::Address);
        let by_endpoint =
            rule.per.contains(Dimension::Endpoint) || ((by_caller || by_address) && !rule.shared);
        let mut parts = vec![rule.name.as_bytes()];
        let dimensions = [u8::from(by_caller), u8::from(by_address)];
        parts.push(&dimensions);
        if by_endpoint {
            parts.push(endpoint.as_bytes());
        }

        Self {
            name: rule.name.clone(),
            scope: Fingerprint::of(Domain::Quota, parts),
            by_caller,
            by_address,
            interval,
            burst,
            gcra: RateLimiter::new(governor_quota(interval, burst), Carry, Zero),
        }
    }

    /// The quota's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many requests fit into a full bucket.
    #[must_use]
    pub const fn burst(&self) -> NonZeroU32 {
        self.burst
    }

    /// The time in which one request is earned back.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval)
    }

    /// The bucket of this subject.
    pub(super) fn bucket(&self, who: &Subject) -> Fingerprint {
        let mut bucket = self.scope;
        if self.by_caller {
            bucket = bucket.with(who.caller());
        }
        if self.by_address {
            bucket = bucket.with(who.address());
        }
        bucket
    }

    /// The bucket that strangers share when the table is full.
    pub(super) const fn overflow(&self) -> Fingerprint {
        self.scope
    }

    /// Whether the number of its buckets depends on traffic, not on the configuration alone.
    pub(super) const fn floods(&self) -> bool {
        self.by_caller || self.by_address
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

    /// How a bucket with this debt (ns) stands.
    pub(super) const fn standing(&self, debt: u64) -> Standing {
        Standing {
            debt,
            interval: self.interval,
            burst: self.burst,
        }
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Quota")
            .field("name", &self.name)
            .field("interval", &self.interval())
            .field("burst", &self.burst)
            .finish_non_exhaustive()
    }
}

/// How one bucket stands at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    debt: u64,
    interval: u64,
    burst: NonZeroU32,
}

impl Standing {
    /// How many requests would be admitted now.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        let whole = self.credit() / self.interval;
        // The credit is at most interval * burst.
        if whole > u32::MAX as u64 {
            u32::MAX
        } else {
            whole as u32
        }
    }

    /// The time until one more would be; zero when the bucket is full.
    #[must_use]
    pub const fn until_next(&self) -> Duration {
        if self.debt == 0 {
            return Duration::ZERO;
        }
        // A debt from an earlier, larger quota has to come down to this one's first.
        let excess = self.debt.saturating_sub(self.capacity());
        let missing = self.interval - self.credit() % self.interval;
        Duration::from_nanos(excess.saturating_add(missing))
    }

    /// The time until the bucket is full.
    #[must_use]
    pub const fn until_full(&self) -> Duration {
        Duration::from_nanos(self.debt)
    }

    /// How many requests fit into the full bucket.
    #[must_use]
    pub const fn burst(&self) -> u32 {
        self.burst.get()
    }

    const fn capacity(&self) -> u64 {
        // At most LONGEST_REFILL: `compile` saw to it.
        self.interval.saturating_mul(self.burst.get() as u64)
    }

    const fn credit(&self) -> u64 {
        self.capacity().saturating_sub(self.debt)
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
