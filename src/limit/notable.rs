//! Decides which callers are remembered by name, so that an operator can be told who asks most.
//!
//! The buckets know fingerprints alone. This is a summary of who came (Space-Saving, in a fixed
//! number of entries): whoever makes more than one call in `SHELF` of those noted in its part is in
//! it. It decides nothing: no call is admitted or refused by it. Refusals are noted one by one, admitted
//! calls by samples; both fade by half every five minutes.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use super::caller::Caller;
use super::clock::Moment;

/// How many parts, one lock each.
const SHELVES: usize = 16;

/// How many callers are remembered in a part.
const SHELF: usize = 64;

/// Of so many admitted calls, one is noted, for all of them.
pub const SAMPLED: u32 = 16;

/// In so long half of what was noted is forgotten, in ns.
const FADES_NS: u64 = 300_000_000_000;

/// Who came.
#[derive(Debug, Default)]
pub(super) struct Notables {
    shelves: [Mutex<Shelf>; SHELVES],
}

#[derive(Debug, Default)]
struct Shelf {
    entries: Vec<Entry>,
    faded: u64,
}

#[derive(Debug)]
struct Entry {
    /// How often at most it came, what it took over included.
    rank: u64,
    notable: Notable,
}

/// A caller that is remembered.
#[derive(Clone, Debug)]
pub struct Notable {
    /// Who.
    pub caller: Caller,
    /// Calls that were admitted, estimated from samples.
    pub calls: u64,
    /// Calls that were refused over a quota.
    pub refused: u64,
    /// The quota that refused last.
    pub quota: Option<Arc<str>>,
}

impl Notables {
    /// An admitted call, for as many as it stands for.
    pub(super) fn admitted(&self, caller: &Caller, calls: u32, now: Moment) {
        let note = |notable: &mut Notable| notable.calls += u64::from(calls);
        self.shelf(caller, now).note(caller, calls, note);
    }

    /// A refused call.
    pub(super) fn refused(&self, caller: &Caller, quota: &Arc<str>, now: Moment) {
        let note = |notable: &mut Notable| {
            notable.refused += 1;
            if notable.quota.as_ref().is_none_or(|it| it != quota) {
                notable.quota = Some(Arc::clone(quota));
            }
        };
        self.shelf(caller, now).note(caller, 1, note);
    }

    /// Everybody who is remembered, in no order.
    pub(super) fn all(&self, now: Moment) -> Vec<Notable> {
        let mut all = Vec::new();
        for shelf in &self.shelves {
            let mut shelf = shelf.lock();
            shelf.fade(now);
            all.extend(shelf.entries.iter().map(|entry| entry.notable.clone()));
        }
        all
    }

    fn shelf(&self, caller: &Caller, now: Moment) -> MutexGuard<'_, Shelf> {
        let [first, ..] = &self.shelves;
        let index = caller.fingerprint().short() as usize % SHELVES;
        let mut shelf = self.shelves.get(index).unwrap_or(first).lock();
        shelf.fade(now);
        shelf
    }
}

impl Shelf {
    fn note(&mut self, caller: &Caller, calls: u32, note: impl FnOnce(&mut Notable)) {
        let print = caller.fingerprint();
        let known = self
            .entries
            .iter_mut()
            .find(|entry| entry.notable.caller.fingerprint() == print);
        if let Some(entry) = known {
            entry.rank += u64::from(calls);
            if entry.notable.caller.plan() != caller.plan() {
                entry.notable.caller = caller.clone();
            }
            return note(&mut entry.notable);
        }
        let mut notable = Notable {
            caller: caller.clone(),
            calls: 0,
            refused: 0,
            quota: None,
        };
        note(&mut notable);
        let rank = u64::from(calls);
        if self.entries.len() < SHELF {
            self.entries.push(Entry { rank, notable });
        } else if let Some(least) = self.entries.iter_mut().min_by_key(|entry| entry.rank) {
            // Whoever comes in place of another may have come as often as that one.
            let rank = least.rank + rank;
            *least = Entry { rank, notable };
        }
    }

    fn fade(&mut self, now: Moment) {
        let passed = now.as_nanos().saturating_sub(self.faded) / FADES_NS;
        if passed == 0 {
            return;
        }
        self.faded += passed * FADES_NS;
        let halved = |count: u64| count.checked_shr(passed.min(64) as u32).unwrap_or(0);
        for entry in &mut self.entries {
            entry.rank = halved(entry.rank);
            entry.notable.calls = halved(entry.notable.calls);
            entry.notable.refused = halved(entry.notable.refused);
        }
        self.entries.retain(|entry| entry.rank > 0);
    }
}

#[cfg(test)]
mod tests;
