//! Decides which bucket is kept and which is forgotten, within a fixed number of them.
//!
//! A bucket whose moment has passed says nothing that an absent one does not, so it may go at any
//! time; one that still owes must never go, or a flood of made-up callers would wipe everybody's
//! debt, the flooder's first. At capacity strangers therefore share one overflow bucket per quota.
//!
//! Beside the buckets stand the places that requests have taken where a quota counts requests at once.
//! There are never more of them than requests, and a place that nobody has is not kept.
//!
//! Every lock is held for a few table operations and never across anything that waits; only what an
//! operator asks for looks through a whole shard, one after the other. Shards are locked in rising
//! order, the overflow last.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::clock::Moment;
use super::fingerprint::{Fingerprint, Spread};

/// How many shards the table has. One lock each.
pub const SHARDS: usize = 64;

/// A full shard looks for expired buckets at most this often.
const SWEEP_EVERY_NS: u64 = 100_000_000;

/// An emptied table keeps this much room.
pub(super) const ROOM_KEPT: usize = 64;

/// The buckets of all quotas.
#[derive(Debug)]
pub(super) struct Store {
    shards: [Shard; SHARDS],
    overflow: Mutex<Table>,
    per_shard: usize,
    overflowed: AtomicU64,
}

/// On its own pair of cache lines, so that workers on different shards do not slow each other.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(Mutex<Table>);

impl Store {
    /// A store of at most this many strangers' buckets, but at least one per shard.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Shard::default()),
            overflow: Mutex::default(),
            per_shard: (capacity / SHARDS).max(1),
            overflowed: AtomicU64::new(0),
        }
    }

    /// The shard in which a bucket stands.
    pub(super) fn lock(&self, bucket: Fingerprint) -> MutexGuard<'_, Table> {
        self.at(shard_of(bucket)).0.lock()
    }

    /// Several shards at once, each once, in rising order.
    pub(super) fn lock_all(&self, buckets: impl Iterator<Item = Fingerprint>) -> Held<'_> {
        let wanted = buckets.fold(0_u64, |wanted, bucket| wanted | 1 << shard_of(bucket));
        let mut tables = Vec::with_capacity(wanted.count_ones() as usize);
        let mut left = wanted;
        while left != 0 {
            tables.push(self.at(left.trailing_zeros() as usize).0.lock());
            left &= left - 1;
        }
        Held { wanted, tables }
    }

    /// The overflow buckets. Lock them last.
    pub(super) fn lock_overflow(&self) -> MutexGuard<'_, Table> {
        self.overflow.lock()
    }

    /// Whether a new bucket may enter a shard that already expects `entering` others.
    pub(super) fn has_room(&self, table: &mut Table, entering: usize, now: Moment) -> bool {
        if table.buckets.len().saturating_add(entering) < self.per_shard {
            return true;
        }
        let due = table
            .swept
            .is_none_or(|swept| now.as_nanos().saturating_sub(swept.as_nanos()) >= SWEEP_EVERY_NS);
        if due {
            table.forget_expired(now);
        }
        table.buckets.len().saturating_add(entering) < self.per_shard
    }

    /// Notes that an overflow bucket decided on a stranger.
    pub(super) fn count_overflow(&self) {
        self.overflowed.fetch_add(1, Ordering::Relaxed);
    }

    /// How often an overflow bucket decided on a stranger.
    pub(super) fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// How many buckets are kept, expired ones that nobody has swept yet included.
    pub(super) fn live(&self) -> usize {
        let shards: usize = self
            .shards
            .iter()
            .map(|shard| shard.0.lock().buckets.len())
            .sum();
        shards.saturating_add(self.overflow.lock().buckets.len())
    }

    /// Shows every bucket that says something, one shard after the other.
    pub(super) fn look(&self, now: Moment, mut see: impl FnMut(Fingerprint, Tag, Seen)) {
        for shard in &self.shards {
            let table = shard.0.lock();
            for (bucket, kept) in &table.buckets {
                if kept.tat > now {
                    see(*bucket, kept.of, Seen::Owes(kept.tat));
                }
            }
            for (bucket, taken) in &table.taken {
                see(*bucket, taken.of, Seen::Taken(taken.count));
            }
        }
    }

    /// Forgets what these owe. How many buckets that were.
    pub(super) fn forgive(&self, owners: &[u32], now: Moment) -> usize {
        let mut forgiven = 0;
        for shard in &self.shards {
            shard.0.lock().buckets.retain(|_, bucket| {
                let is_theirs = owners.contains(&bucket.of.owner);
                forgiven += usize::from(is_theirs && bucket.tat > now);
                !is_theirs
            });
        }
        forgiven
    }

    /// Forgets the expired buckets of one shard and gives unused memory back.
    pub(super) fn sweep(&self, shard: usize, now: Moment) {
        let mut table = self.at(shard).0.lock();
        table.forget_expired(now);
        table.shrink();
        drop(table);
        if shard.is_multiple_of(SHARDS) {
            let mut overflow = self.overflow.lock();
            overflow.forget_expired(now);
            overflow.shrink();
        }
    }

    /// Over all shards, how much room there is for places that are taken.
    #[cfg(test)]
    pub(super) fn room_of_places(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|shard| shard.0.lock().taken.capacity()).sum()
    }

    fn at(&self, index: usize) -> &Shard {
        let [first, ..] = &self.shards;
        self.shards.get(index % SHARDS).unwrap_or(first)
    }
}

/// The room that a table of so many is left, to grow into.
fn room_for(used: usize) -> usize {
    used.saturating_mul(2).max(ROOM_KEPT)
}

/// The topmost bits choose the shard; the table within takes others ([`Spread`]).
const fn shard_of(bucket: Fingerprint) -> usize {
    (bucket.high() >> (u64::BITS - SHARDS.trailing_zeros())) as usize
}

/// The shards that one decision needs, locked.
pub(super) struct Held<'a> {
    wanted: u64,
    tables: Vec<MutexGuard<'a, Table>>,
}

impl Held<'_> {
    /// The table in which a bucket stands, if its shard is held.
    pub(super) fn table(&mut self, bucket: Fingerprint) -> Option<&mut Table> {
        let below = (1_u64 << shard_of(bucket)) - 1;
        let index = (self.wanted & below).count_ones() as usize;
        self.tables.get_mut(index).map(|table| &mut **table)
    }
}

/// Whether two buckets stand in one shard.
pub(super) const fn same_shard(one: Fingerprint, other: Fingerprint) -> bool {
    shard_of(one) == shard_of(other)
}

/// What a bucket is of, for operators: enough to find it, too little to tell whose it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tag {
    /// The shown digits of whoever has it: a caller's, else an address's. 0: nobody alone.
    pub(super) owner: u32,
    /// [`Quota::tag`](super::Quota).
    pub(super) quota: u32,
}

impl Tag {
    /// The same quota, and nobody's in particular.
    pub(super) const fn of_nobody(self) -> Self {
        Self { owner: 0, ..self }
    }
}

/// A bucket: the moment up to which it is paid for.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tat: Moment,
    of: Tag,
}

/// Places that are taken at once.
#[derive(Clone, Copy, Debug)]
struct Taken {
    count: u32,
    of: Tag,
}

/// What stands in one shard.
#[derive(Debug, Default)]
pub(super) struct Table {
    buckets: HashMap<Fingerprint, Bucket, Spread>,
    taken: HashMap<Fingerprint, Taken, Spread>,
    swept: Option<Moment>,
}

/// What a shard tells an operator of one bucket.
#[derive(Clone, Copy, Debug)]
pub(super) enum Seen {
    /// It is paid for up to this moment, which is still to come.
    Owes(Moment),
    /// So many places are taken.
    Taken(u32),
}

impl Table {
    pub(super) fn tat(&mut self, bucket: Fingerprint) -> Option<&mut Moment> {
        self.buckets.get_mut(&bucket).map(|bucket| &mut bucket.tat)
    }

    pub(super) fn put(&mut self, bucket: Fingerprint, tat: Moment, of: Tag) {
        self.buckets.insert(bucket, Bucket { tat, of });
    }

    /// How many places are taken.
    pub(super) fn taken(&self, bucket: Fingerprint) -> u32 {
        self.taken.get(&bucket).map_or(0, |taken| taken.count)
    }

    /// Takes one more place.
    pub(super) fn take(&mut self, bucket: Fingerprint, of: Tag) {
        let taken = self.taken.entry(bucket).or_insert(Taken { count: 0, of });
        taken.count = taken.count.saturating_add(1);
    }

    /// So many places are taken.
    pub(super) fn seat(&mut self, bucket: Fingerprint, of: Tag, count: u32) {
        if count > 0 {
            self.taken.insert(bucket, Taken { count, of });
        }
    }

    /// Gives a place back.
    pub(super) fn give_back(&mut self, bucket: Fingerprint) {
        if let Entry::Occupied(mut taken) = self.taken.entry(bucket) {
            if taken.get().count > 1 {
                taken.get_mut().count -= 1;
            } else {
                taken.remove();
            }
        }
    }

    fn forget_expired(&mut self, now: Moment) {
        self.buckets.retain(|_, bucket| bucket.tat > now);
        self.swept = Some(now);
    }

    /// A table's own `capacity` is not asked: what was removed from a table that was nearly full counts
    /// as room that it does not have, so an emptied one can look small and be large.
    fn shrink(&mut self) {
        self.buckets.shrink_to(room_for(self.buckets.len()));
        self.taken.shrink_to(room_for(self.taken.len()));
    }

    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.buckets.capacity()
    }
}
