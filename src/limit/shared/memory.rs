//! Decides what is known here of buckets that a store keeps: what was granted and is not used yet
//! (leases), and up to when the store would surely refuse (the deny cache).
//!
//! Both are exact. A lease was charged in the store before it was handed out. A bucket's moment in
//! the store only ever moves away, so what an answer said of it is a lower bound ever after: while the
//! bound refuses, the store would. To find out in time what it cannot know (a bucket was forgiven, a
//! quota was changed elsewhere) a bound is believed for a second at most.
//!
//! One call at a time asks the store about a bucket; those that come meanwhile wait for what it
//! brings, and the next asks for all of them at once. Every lock is held for one table operation and
//! never across anything that waits. Full, a shard forgets what no longer says anything; else it
//! takes no new bucket, whose calls then each ask the store.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::failure::Failure;
use super::key::Digest;
use crate::limit::Moment;
use crate::limit::fingerprint::{Fingerprint, Spread};
use crate::limit::limiter::Shortage;
use crate::limit::pace::{Pace, Standing};
use crate::limit::store::Tag;

/// How many shards the memory has. One lock each.
pub(super) const SHARDS: usize = 64;

/// Most buckets that one shard knows of: 65,536 in all.
const PER_SHARD: usize = 1024;

/// How long what was granted may be used.
pub(super) const LEASE: Duration = Duration::from_millis(200);

/// How long a lower bound is believed.
const BELIEVED: Duration = Duration::from_secs(1);

/// What is known of the buckets of one store.
#[derive(Debug)]
pub(super) struct Memory {
    shards: [Mutex<HashMap<Fingerprint, Page, Spread>>; SHARDS],
}

/// What is known of one bucket.
#[derive(Debug)]
struct Page {
    digest: Digest,
    of: Tag,
    /// It is paid for up to here at least.
    floor: Moment,
    /// It was paid for up to here at most, when it was last looked at.
    ceiling: Moment,
    /// When that stops being believed.
    believed: Moment,
    /// Granted and not used.
    tokens: u32,
    /// Until when they may be.
    lapse: Moment,
    flight: Option<Arc<Flight>>,
    /// What those want who wait for the flight.
    wanted: u32,
    /// What they wanted who were waiting when the last one came back, and have not been served.
    expected: u32,
}

/// A question that is on its way to the store.
#[derive(Debug)]
pub(super) struct Flight {
    gate: Semaphore,
    failure: OnceLock<Failure>,
}

/// What one call wants of one bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want<'q> {
    /// The quota's place among the endpoint's.
    pub(super) place: usize,
    pub(super) pace: &'q Pace,
    pub(super) bucket: Fingerprint,
    pub(super) of: Tag,
    pub(super) cost: u32,
    /// How much is asked for at once, where that is more than one.
    pub(super) lease: u32,
}

impl Want<'_> {
    /// It is refused for so long.
    pub(super) fn shortage(&self, wait: Duration) -> Shortage {
        Shortage {
            quota: self.place,
            wait,
            cost: NonZeroU32::new(self.cost).unwrap_or(NonZeroU32::MIN),
        }
    }
}

/// What the memory says to it.
#[derive(Debug)]
pub(super) enum Word {
    /// Taken from a lease.
    Taken,
    /// The store would refuse, and for so long.
    Refused(Duration),
    /// Another call asks the store: wait for it.
    Wait(Arc<Flight>),
    /// Ask the store for so much. No flight where the memory is full.
    Ask {
        digest: Digest,
        most: u32,
        flight: Option<Arc<Flight>>,
    },
}

/// What the store said of one bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    /// Granted now, the call's cost included; 0 where it, or another of the same call, refused.
    pub(super) granted: u32,
    /// How long the store would refuse; 0 where it would not.
    pub(super) wait: u64,
    /// How far the bucket is from full, in ns.
    pub(super) debt: u64,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }

    fn shard(&self, bucket: Fingerprint) -> &Mutex<HashMap<Fingerprint, Page, Spread>> {
        let [first, ..] = &self.shards;
        let index = (bucket.high() >> (u64::BITS - SHARDS.trailing_zeros())) as usize;
        self.shards.get(index).unwrap_or(first)
    }

    /// What is known, and what is to be done. `digest` is asked where the bucket is new here.
    pub(super) fn look(
        &self,
        want: &Want<'_>,
        digest: impl FnOnce() -> Digest,
        now: Moment,
    ) -> Word {
        let mut pages = self.shard(want.bucket).lock();
        if !pages.contains_key(&want.bucket) {
            drop(pages);
            // Hashed outside of the lock.
            let page = Page::new(digest(), want.of);
            pages = self.shard(want.bucket).lock();
            if pages.len() >= PER_SHARD {
                pages.retain(|_, page| page.says_something(now));
            }
            if pages.len() >= PER_SHARD {
                return Word::Ask {
                    digest: page.digest,
                    most: want.cost,
                    flight: None,
                };
            }
            pages.entry(want.bucket).or_insert(page);
        }
        let Some(page) = pages.get_mut(&want.bucket) else {
            // It was put there above.
            return Word::Ask {
                digest: Digest::nothing(),
                most: want.cost,
                flight: None,
            };
        };
        page.look(want, now)
    }

    /// Writes down what the store said of a question that was sent and answered at these moments.
    /// Where all of the call's buckets granted, the cost is used up and the rest is a lease.
    pub(super) fn note(&self, want: &Want<'_>, said: Said, (sent, now): (Moment, Moment)) {
        let mut pages = self.shard(want.bucket).lock();
        let Some(page) = pages.get_mut(&want.bucket) else {
            return;
        };
        page.floor = Moment::from_nanos(sent.as_nanos().saturating_add(said.debt));
        page.ceiling = Moment::from_nanos(now.as_nanos().saturating_add(said.debt));
        page.believed = now.after(BELIEVED);
        let left = if page.lapse > sent { page.tokens } else { 0 };
        page.tokens = left.saturating_add(said.granted.saturating_sub(want.cost));
        if said.granted > 0 {
            page.lapse = sent.after(LEASE);
        }
    }

    /// Puts back what was taken for a call that is not made.
    pub(super) fn put_back(&self, want: &Want<'_>) {
        if let Some(page) = self.shard(want.bucket).lock().get_mut(&want.bucket) {
            page.tokens = page.tokens.saturating_add(want.cost);
        }
    }

    /// A bucket was given something back.
    pub(super) fn lower(&self, bucket: Fingerprint, ns: u64) {
        if let Some(page) = self.shard(bucket).lock().get_mut(&bucket) {
            let lower = |it: Moment| Moment::from_nanos(it.as_nanos().saturating_sub(ns));
            page.floor = lower(page.floor);
            page.ceiling = lower(page.ceiling);
        }
    }

    /// The question came back, or was given up: whoever waited goes on.
    pub(super) fn landed(&self, bucket: Fingerprint, flight: &Arc<Flight>) {
        if let Some(page) = self.shard(bucket).lock().get_mut(&bucket)
            && page
                .flight
                .as_ref()
                .is_some_and(|it| Arc::ptr_eq(it, flight))
        {
            page.flight = None;
            page.expected = match flight.failure.get() {
                None => page.wanted,
                Some(_) => 0,
            };
        }
        flight.gate.close();
    }

    /// A call no longer waits.
    pub(super) fn waits_no_more(&self, want: &Want<'_>) {
        if let Some(page) = self.shard(want.bucket).lock().get_mut(&want.bucket) {
            page.wanted = page.wanted.saturating_sub(want.cost);
        }
    }

    /// How a bucket stands as far as is known: full where nothing is.
    pub(super) fn standing(&self, pace: &Pace, bucket: Fingerprint, now: Moment) -> Standing {
        let pages = self.shard(bucket).lock();
        let page = pages.get(&bucket);
        page.map_or_else(|| pace.standing(0), |page| page.standing(pace, now))
    }

    /// Under which key a bucket is kept, where that is known here.
    pub(super) fn digest(&self, bucket: Fingerprint) -> Option<Digest> {
        self.shard(bucket)
            .lock()
            .get(&bucket)
            .map(|page| page.digest)
    }

    /// The buckets of an owner by its digits: under which key each is kept, and what it is of.
    pub(super) fn of(&self, owner: &[u32]) -> Vec<(Fingerprint, Tag, Digest)> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let pages = shard.lock();
            let its = pages
                .iter()
                .filter(|(_, page)| owner.contains(&page.of.owner));
            all.extend(its.map(|(bucket, page)| (*bucket, page.of, page.digest)));
        }
        all
    }

    /// Forgets whatever was said of an owner's buckets, and what was granted to it. What a question
    /// that is on its way brings is forgotten too: it was asked before.
    pub(super) fn forget(&self, owner: &[u32]) {
        for shard in &self.shards {
            let mut pages = shard.lock();
            pages.retain(|_, page| !owner.contains(&page.of.owner));
        }
    }

    /// Forgets what no longer says anything in one shard (taken modulo [`SHARDS`]).
    pub(super) fn sweep(&self, shard: usize, now: Moment) {
        if let Some(pages) = self.shards.get(shard % SHARDS) {
            let mut pages = pages.lock();
            pages.retain(|_, page| page.says_something(now));
            if pages.capacity() / 4 > pages.len().max(16) {
                let used = pages.len();
                pages.shrink_to(used * 2);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }
}

impl Page {
    const fn new(digest: Digest, of: Tag) -> Self {
        Self {
            digest,
            of,
            floor: Moment::from_nanos(0),
            ceiling: Moment::from_nanos(0),
            believed: Moment::from_nanos(0),
            tokens: 0,
            lapse: Moment::from_nanos(0),
            flight: None,
            wanted: 0,
            expected: 0,
        }
    }

    fn says_something(&self, now: Moment) -> bool {
        self.flight.is_some() || self.ceiling > now || (self.tokens > 0 && self.lapse > now)
    }

    fn look(&mut self, want: &Want<'_>, now: Moment) -> Word {
        if self.lapse <= now {
            self.tokens = 0;
        }
        if let Some(left) = self.tokens.checked_sub(want.cost) {
            self.tokens = left;
            self.expected = self.expected.saturating_sub(want.cost);
            return Word::Taken;
        }
        // Where more than one is asked for, a quarter of it must be there: a question for one is not
        // worth its while.
        let least = want.cost.max(want.lease / 4);
        if now < self.believed && wait(want.pace, least, self.floor, now) > 0 {
            let told = wait(want.pace, least, self.ceiling, now).max(1);
            return Word::Refused(Duration::from_nanos(told));
        }
        if let Some(flight) = &self.flight {
            self.wanted = self.wanted.saturating_add(want.cost);
            return Word::Wait(Arc::clone(flight));
        }
        let flight = Arc::new(Flight {
            gate: Semaphore::new(0),
            failure: OnceLock::new(),
        });
        self.flight = Some(Arc::clone(&flight));
        // Those who waited for the flight before are here to be served by this one.
        let most = want
            .cost
            .max(want.lease)
            .max(std::mem::take(&mut self.expected));
        Word::Ask {
            digest: self.digest,
            most,
            flight: Some(flight),
        }
    }

    /// What can still be used here counts as not used.
    fn standing(&self, pace: &Pace, now: Moment) -> Standing {
        let interval = u64::try_from(pace.interval().as_nanos()).unwrap_or(u64::MAX);
        let held = interval.saturating_mul(self.tokens.into());
        let debt = self.ceiling.as_nanos().saturating_sub(now.as_nanos());
        pace.standing(debt.saturating_sub(held))
    }
}

/// How long a bucket that is paid for up to `tat` refuses this cost, in ns.
pub(super) fn wait(pace: &Pace, cost: u32, tat: Moment, now: Moment) -> u64 {
    let interval = pace.interval().as_nanos();
    let burst = u128::from(pace.burst().get());
    // Both at most 2^62, as `Pace::new` saw to.
    let needs = interval * u128::from(cost).min(burst);
    let debt = u128::from(tat.as_nanos().saturating_sub(now.as_nanos()));
    let wait = (debt + needs).saturating_sub(interval * burst);
    u64::try_from(wait).unwrap_or(u64::MAX)
}

impl Flight {
    /// Waits until it is back. Why, where it came to nothing.
    pub(super) async fn back(&self) -> Option<Failure> {
        // It is never given a permit, only closed.
        drop(self.gate.acquire().await);
        self.failure.get().copied()
    }

    /// It came to nothing; those who wait for it will not try themselves.
    pub(super) fn fails(&self, failure: Failure) {
        self.failure.set(failure).ok();
    }
}

#[cfg(test)]
mod tests;
