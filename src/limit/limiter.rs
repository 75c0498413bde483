//! Decides one call against all quotas of its endpoint: all admit, or nothing is charged.
//!
//! The locks that a decision needs are taken together, in one order, and the charge is written
//! before they are released: no other thread sees half of it. The clock is read once, before any
//! lock; a call that waited for a lock may thus be told to wait a few ns too long, never too short.
//!
//! Quotas whose buckets are not kept here are passed over: whoever keeps them decides on them, and
//! gives back with [`Limiter::refund`] what was charged here where it says no.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::clock::{Clock, Moment};
use super::notable::Notables;
use super::pace::{Pace, Standing};
use super::quota::{Ask, Kind, Quota};
use super::seats::Seats;
use super::store::{SHARDS, Store, Table};
use super::subject::Subject;

/// What is told of the wait for a place among requests at once. Nobody can know when one of them
/// ends: it is when to ask again, and no promise.
pub const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The buckets of this process. Shared by all workers, kept across reloads.
#[derive(Debug)]
pub struct Limiter<C> {
    pub(super) clock: C,
    pub(super) store: Arc<Store>,
    pub(super) notables: Notables,
}

/// What became of a call.
#[derive(Debug)]
pub enum Decision {
    /// Admitted, and charged to every quota that looks at it.
    Admitted(Admission),
    /// Refused by at least one quota, and charged to none.
    Refused(Shortage),
}

/// An admitted call.
#[derive(Debug, Default)]
pub struct Admission {
    /// How the tightest of its quotas stands now; none if no quota looks at it.
    pub tightest: Option<Standing>,
    /// The places it has among requests at once, as long as this is kept.
    pub seats: Option<Seats>,
    pub(super) at: Moment,
}

/// The quota that holds a refused call back longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Its place in the list of quotas that was checked.
    pub quota: usize,
    /// The exact time after which the same call is admitted, if nobody else comes; of a number of
    /// requests at once [`ASK_AGAIN`].
    pub wait: Duration,
    /// What the call counts there.
    pub cost: NonZeroU32,
}

impl Shortage {
    /// The wait in whole ms, rounded up, at least 1. A caller who waits this long is admitted.
    #[must_use]
    pub fn retry_after_ms(&self) -> u64 {
        rounded_up(self.wait, 1_000_000)
    }

    /// The wait in whole seconds, rounded up, at least 1: the value of `Retry-After`.
    #[must_use]
    pub fn retry_after_secs(&self) -> u64 {
        rounded_up(self.wait, 1_000_000_000)
    }
}

impl<C: Clock> Limiter<C> {
    /// A limiter without any debt, which keeps at most `capacity` buckets of strangers (37 to 75
    /// bytes each), but at least one in each of its [`SHARDS`].
    #[must_use]
    pub fn new(clock: C, capacity: usize) -> Self {
        Self {
            clock,
            store: Arc::new(Store::new(capacity)),
            notables: Notables::default(),
        }
    }

    /// Checks a call against all quotas that look at it together: either all are charged or none.
    ///
    /// A cost above a quota's burst counts as its whole burst. A bucket that is named twice is
    /// charged once.
    pub fn check(&self, quotas: &[Quota], who: &Subject<'_>) -> Decision {
        match quotas {
            [] => Decision::Admitted(Admission::default()),
            [quota] => self.check_one(quota, who),
            several => self.check_several(several, who, self.clock.now()),
        }
    }

    /// Charges each quota that can still be charged, and says nothing: for calls that were
    /// refused for another reason before their quotas were checked. A number of requests at once
    /// has nothing to charge: such a call is over.
    pub fn charge(&self, quotas: &[Quota], who: &Subject<'_>) {
        let now = self.clock.now();
        for (quota, ask) in asks(quotas, who) {
            if let Kind::Rate(pace) = ask.kind {
                // A bucket that cannot pay is empty already.
                self.pay(quota, &ask, pace, now).ok();
            }
        }
    }

    /// Gives back what a call was charged that somebody else then refused. Its places are given
    /// back by dropping the admission.
    ///
    /// What time has earned back since is not given a second time, and nothing is given to a bucket
    /// that strangers share: nobody gets more by it than the quota says.
    pub fn refund(&self, quotas: &[Quota], who: &Subject<'_>, admission: &Admission) {
        let now = self.clock.now();
        for (_, ask) in asks(quotas, who) {
            let Kind::Rate(pace) = ask.kind else { continue };
            let back = pace.price(ask.cost).saturating_sub(debt(now, admission.at));
            let mut table = self.store.lock(ask.bucket);
            if let Some(tat) = table.tat(ask.bucket) {
                *tat = Moment::from_nanos(tat.as_nanos().saturating_sub(back));
            }
        }
    }

    /// How this subject's bucket stands; `None` where the quota does not look at the call, or is
    /// not kept here. Charges nothing.
    #[must_use]
    pub fn standing(&self, quota: &Quota, who: &Subject<'_>) -> Option<Standing> {
        let ask = quota.ask(who).filter(|_| quota.is_local())?;
        let now = self.clock.now();
        let mut table = self.store.lock(ask.bucket);
        let pace = match ask.kind {
            Kind::Rate(pace) => pace,
            Kind::AtOnce(most) => {
                let taken = table.taken(ask.bucket);
                return Some(Standing::AtOnce { most: *most, taken });
            }
        };
        let known = table.tat(ask.bucket).copied();
        let owed = match known {
            Some(tat) => debt(tat, now),
            None if self.fits(&ask, &mut table, 0, now) => 0,
            None => {
                drop(table);
                let mut overflow = self.store.lock_overflow();
                overflow
                    .tat(quota.overflow())
                    .map_or(0, |tat| debt(*tat, now))
            }
        };
        Some(pace.standing(owed))
    }

    /// Has this subject's bucket stand like that: for decisions that are to be the same somewhere else.
    pub fn resemble(&self, quota: &Quota, who: &Subject<'_>, standing: Standing) {
        let Some(ask) = quota.ask(who) else { return };
        let mut table = self.store.lock(ask.bucket);
        match standing {
            Standing::Rate { debt, .. } => {
                table.put(ask.bucket, owing(debt, self.clock.now()), ask.of);
            }
            Standing::AtOnce { taken, .. } => table.seat(ask.bucket, ask.of, taken),
        }
    }

    /// The time by which it decides.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Forgets the expired buckets of one shard (any number; taken modulo [`SHARDS`]) and gives
    /// unused memory back. Call it for one shard after the other, slowly: all within a minute.
    pub fn sweep(&self, shard: usize) {
        self.store.sweep(shard % SHARDS, self.clock.now());
    }

    /// How many buckets are kept, expired ones that were not swept yet included.
    #[must_use]
    pub fn live(&self) -> usize {
        self.store.live()
    }

    /// How often a stranger was decided on by an overflow bucket because the table was full.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        self.store.overflowed()
    }

    fn check_one(&self, quota: &Quota, who: &Subject<'_>) -> Decision {
        let Some(ask) = quota.ask(who).filter(|_| quota.is_local()) else {
            return Decision::Admitted(Admission::default());
        };
        let now = self.clock.now();
        let (decided, seats) = match ask.kind {
            Kind::Rate(pace) => (self.pay(quota, &ask, pace, now), None),
            Kind::AtOnce(most) => {
                let mut table = self.store.lock(ask.bucket);
                let decided = seat(*most, table.taken(ask.bucket));
                let seats = decided.is_ok().then(|| {
                    table.take(ask.bucket, ask.of);
                    drop(table);
                    Seats::taken(&self.store, ask.bucket)
                });
                (decided, seats)
            }
        };
        match decided {
            Ok(standing) => Decision::Admitted(Admission {
                tightest: Some(standing),
                seats,
                at: now,
            }),
            Err(wait) => Decision::Refused(Shortage {
                quota: 0,
                wait,
                cost: ask.cost,
            }),
        }
    }

    /// Charges one bucket of a rate, if it can pay.
    fn pay(
        &self,
        quota: &Quota,
        ask: &Ask<'_>,
        pace: &Pace,
        now: Moment,
    ) -> Result<Standing, Duration> {
        let Ask {
            bucket, of, cost, ..
        } = *ask;
        let mut table = self.store.lock(bucket);
        let next = if let Some(tat) = table.tat(bucket) {
            let next = pace.decide(debt(*tat, now), cost);
            if let Ok(next) = next {
                *tat = owing(next, now);
            }
            next
        } else if self.fits(ask, &mut table, 0, now) {
            let next = pace.decide(0, cost);
            if let Ok(next) = next {
                table.put(bucket, owing(next, now), of);
            }
            next
        } else {
            drop(table);
            let mut overflow = self.store.lock_overflow();
            let previous = overflow.tat(quota.overflow()).copied();
            let next = pace.decide(previous.map_or(0, |tat| debt(tat, now)), cost);
            if let Ok(next) = next {
                overflow.put(quota.overflow(), owing(next, now), of.of_nobody());
            }
            self.store.count_overflow();
            next
        };
        match next {
            Ok(debt) => Ok(pace.standing(debt)),
            Err(wait) => Err(Duration::from_nanos(wait)),
        }
    }

    /// Buckets whose number the configuration bounds always fit.
    pub(super) fn fits(
        &self,
        ask: &Ask<'_>,
        table: &mut Table,
        entering: usize,
        now: Moment,
    ) -> bool {
        !ask.floods || self.store.has_room(table, entering, now)
    }
}

/// What a call asks of those quotas that look at it and are kept here.
fn asks<'q>(quotas: &'q [Quota], who: &Subject<'_>) -> impl Iterator<Item = (&'q Quota, Ask<'q>)> {
    let local = quotas.iter().filter(|quota| quota.is_local());
    local.filter_map(|quota| Some((quota, quota.ask(who)?)))
}

/// One more among requests at once.
pub(super) const fn seat(most: NonZeroU32, taken: u32) -> Result<Standing, Duration> {
    if taken < most.get() {
        let taken = taken + 1;
        Ok(Standing::AtOnce { most, taken })
    } else {
        Err(ASK_AGAIN)
    }
}

/// How far the bucket is from full, in ns.
pub(super) const fn debt(tat: Moment, now: Moment) -> u64 {
    tat.as_nanos().saturating_sub(now.as_nanos())
}

pub(super) const fn owing(debt: u64, now: Moment) -> Moment {
    Moment::from_nanos(now.as_nanos().saturating_add(debt))
}

fn rounded_up(wait: Duration, unit: u128) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(unit))
        .unwrap_or(u64::MAX)
        .max(1)
}

#[cfg(test)]
mod tests;
