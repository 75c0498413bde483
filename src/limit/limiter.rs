//! Decides one call against all quotas of its endpoint: all admit, or nothing is charged.
//!
//! The locks that a decision needs are taken together, in one order, and the charge is written
//! before they are released: no other thread sees half of it. The clock is read once, before any
//! lock; a call that waited for a lock may thus be told to wait a few ns too long, never too short.

use std::num::NonZeroU32;
use std::time::Duration;

use super::caller::Subject;
use super::clock::{Clock, Moment};
use super::fingerprint::Fingerprint;
use super::quota::{Quota, Standing};
use super::store::{Held, SHARDS, Store, Table, same_shard};

/// The buckets of this process. Shared by all workers, kept across reloads.
#[derive(Debug)]
pub struct Limiter<C> {
    clock: C,
    store: Store,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Admitted and charged to every quota. How the tightest of them stands now; none if there
    /// was no quota.
    Admitted(Option<Standing>),
    /// Refused by at least one quota, and charged to none.
    Refused(Shortage),
}

/// The quota that holds a refused call back longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Its place in the list of quotas that was checked.
    pub quota: usize,
    /// The exact time after which the same call is admitted, if nobody else comes.
    pub wait: Duration,
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
    /// A limiter without any debt, which keeps at most `capacity` buckets of strangers (29 to 57
    /// bytes each), but at least one in each of its [`SHARDS`].
    #[must_use]
    pub fn new(clock: C, capacity: usize) -> Self {
        Self {
            clock,
            store: Store::new(capacity),
        }
    }

    /// Checks a call of this cost against all quotas together: either all are charged or none.
    ///
    /// A cost above a quota's burst counts as its whole burst. A bucket that is named twice is
    /// charged once.
    pub fn check(&self, quotas: &[Quota], who: &Subject, cost: NonZeroU32) -> Decision {
        match quotas {
            [] => Decision::Admitted(None),
            [quota] => match self.check_one(quota, who, cost, self.clock.now()) {
                Ok(standing) => Decision::Admitted(Some(standing)),
                Err(wait) => Decision::Refused(Shortage { quota: 0, wait }),
            },
            several => self.check_all(several, who, cost, self.clock.now()),
        }
    }

    /// Charges each quota that can still be charged, and says nothing: for calls that were
    /// refused for another reason before their quotas were checked.
    pub fn charge(&self, quotas: &[Quota], who: &Subject, cost: NonZeroU32) {
        let now = self.clock.now();
        for quota in quotas {
            // A bucket that cannot pay is empty already.
            self.check_one(quota, who, cost, now).ok();
        }
    }

    /// How this subject's bucket stands. Charges nothing.
    #[must_use]
    pub fn standing(&self, quota: &Quota, who: &Subject) -> Standing {
        let now = self.clock.now();
        let bucket = quota.bucket(who);
        let mut table = self.store.lock(bucket);
        let known = table.tat(bucket).copied();
        let debt = match known {
            Some(tat) => debt(tat, now),
            None if self.fits(quota, &mut table, 0, now) => 0,
            None => {
                drop(table);
                let mut overflow = self.store.lock_overflow();
                overflow
                    .tat(quota.overflow())
                    .map_or(0, |tat| debt(*tat, now))
            }
        };
        quota.standing(debt)
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

    fn check_one(
        &self,
        quota: &Quota,
        who: &Subject,
        cost: NonZeroU32,
        now: Moment,
    ) -> Result<Standing, Duration> {
        let bucket = quota.bucket(who);
        let mut table = self.store.lock(bucket);
        let next = if let Some(tat) = table.tat(bucket) {
            let next = quota.decide(debt(*tat, now), cost);
            if let Ok(next) = next {
                *tat = owing(next, now);
            }
            next
        } else if self.fits(quota, &mut table, 0, now) {
            let next = quota.decide(0, cost);
            if let Ok(next) = next {
                table.put(bucket, owing(next, now));
            }
            next
        } else {
            drop(table);
            let mut overflow = self.store.lock_overflow();
            let previous = overflow.tat(quota.overflow()).copied();
            let next = quota.decide(previous.map_or(0, |tat| debt(tat, now)), cost);
            if let Ok(next) = next {
                overflow.put(quota.overflow(), owing(next, now));
            }
            self.store.count_overflow();
            next
        };
        match next {
            Ok(debt) => Ok(quota.standing(debt)),
            Err(wait) => Err(Duration::from_nanos(wait)),
        }
    }

    fn check_all(
        &self,
        quotas: &[Quota],
        who: &Subject,
        cost: NonZeroU32,
        now: Moment,
    ) -> Decision {
        let mut drafts: Vec<Draft> = quotas
            .iter()
            .map(|quota| Draft::new(quota.bucket(who)))
            .collect();
        let mut held = self.store.lock_all(drafts.iter().map(|draft| draft.bucket));
        self.place(quotas, &mut drafts, &mut held, now);
        let mut overflow = drafts
            .iter()
            .any(|draft| draft.place == Place::Overflow)
            .then(|| self.store.lock_overflow());

        let mut shortage: Option<Shortage> = None;
        let mut tightest: Option<Standing> = None;
        for (index, (quota, draft)) in quotas.iter().zip(&mut drafts).enumerate() {
            if draft.place == Place::Overflow
                && let Some(overflow) = overflow.as_mut()
            {
                draft.bucket = quota.overflow();
                draft.debt = overflow.tat(draft.bucket).map_or(0, |tat| debt(*tat, now));
            }
            match quota.decide(draft.debt, cost) {
                Ok(next) => {
                    draft.debt = next;
                    tightest = Some(tighter(tightest, quota.standing(next)));
                }
                Err(wait) => {
                    let wait = Duration::from_nanos(wait);
                    if shortage.is_none_or(|longest| wait > longest.wait) {
                        shortage = Some(Shortage { quota: index, wait });
                    }
                }
            }
        }
        if let Some(shortage) = shortage {
            return Decision::Refused(shortage);
        }
        for draft in &drafts {
            let table = match draft.place {
                Place::Own => held.table(draft.bucket),
                Place::Overflow => overflow.as_deref_mut(),
            };
            if let Some(table) = table {
                table.put(draft.bucket, owing(draft.debt, now));
            }
        }
        Decision::Admitted(tightest)
    }

    /// Finds out for each quota whether the subject has, or may have, a bucket of its own.
    fn place(&self, quotas: &[Quota], drafts: &mut [Draft], held: &mut Held<'_>, now: Moment) {
        for (index, quota) in quotas.iter().enumerate() {
            let (before, rest) = drafts.split_at_mut(index);
            let Some(draft) = rest.first_mut() else {
                continue;
            };
            let Some(table) = held.table(draft.bucket) else {
                continue;
            };
            if let Some(tat) = table.tat(draft.bucket) {
                draft.debt = debt(*tat, now);
                continue;
            }
            let entering = before
                .iter()
                .filter(|other| other.enters && same_shard(other.bucket, draft.bucket))
                .count();
            if self.fits(quota, table, entering, now) {
                draft.enters = quota.floods();
            } else {
                draft.place = Place::Overflow;
                self.store.count_overflow();
            }
        }
    }

    /// Buckets whose number the configuration bounds always fit.
    fn fits(&self, quota: &Quota, table: &mut Table, entering: usize, now: Moment) -> bool {
        !quota.floods() || self.store.has_room(table, entering, now)
    }
}

/// One quota's part of a decision on several.
struct Draft {
    bucket: Fingerprint,
    place: Place,
    enters: bool,
    debt: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Own,
    Overflow,
}

impl Draft {
    const fn new(bucket: Fingerprint) -> Self {
        Self {
            bucket,
            place: Place::Own,
            enters: false,
            debt: 0,
        }
    }
}

/// How far the bucket is from full, in ns.
const fn debt(tat: Moment, now: Moment) -> u64 {
    tat.as_nanos().saturating_sub(now.as_nanos())
}

const fn owing(debt: u64, now: Moment) -> Moment {
    Moment::from_nanos(now.as_nanos().saturating_add(debt))
}

fn tighter(one: Option<Standing>, other: Standing) -> Standing {
    match one {
        Some(one) if one.remaining() <= other.remaining() => one,
        Some(_) | None => other,
    }
}

fn rounded_up(wait: Duration, unit: u128) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(unit))
        .unwrap_or(u64::MAX)
        .max(1)
}

#[cfg(test)]
mod tests;
