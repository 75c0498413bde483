//! Decides what is remembered of the last requests, so that "why was this one refused?" has an answer
//! long after: what the access log's line says of it, in memory.
//!
//! Each worker writes into a ring of its own ([`Ring`]), whose entries have one size and are written
//! over in turn: nothing is allocated for a request, and no worker waits for another. Whoever looks
//! ([`Decisions`]) holds a ring's lock for a few entries at a time. Texts are cut to what an entry has
//! room for, the less telling ones first. Must never keep a header's value, a body, or a path.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::clock::Timestamp;
use super::line::Line;
use crate::protocol::{Outcome, Steps};

/// How many decisions are kept for certain, as long as no worker takes more than twice its share.
pub const KEPT: usize = 10_000;

/// The bytes that an entry has for its texts.
const ROOM: usize = 360;

/// How many entries are looked at under one lock.
const AT_ONCE: u64 = 64;

/// The texts of an entry, in the order in which they get their room.
const TEXTS: usize = 11;

/// The most bytes of each of them.
const MOST: [usize; TEXTS] = [128, 36, 64, 64, 64, 48, 64, 48, 64, 64, 48];

/// The last decisions of all workers.
#[derive(Clone, Debug)]
pub struct Decisions {
    rings: Arc<[Arc<Mutex<Entries>>]>,
    first: Arc<Mutex<Entries>>,
}

/// One worker's. It is the only one who writes there.
#[derive(Clone, Debug)]
pub struct Ring(Arc<Mutex<Entries>>);

#[derive(Debug)]
struct Entries {
    all: Vec<Entry>,
    most: usize,
    /// How many there have been; each stands at its number modulo `most`.
    count: u64,
}

/// One request in a fixed number of bytes.
#[derive(Clone, Debug)]
struct Entry {
    ts: Timestamp,
    generation: u64,
    duration: Duration,
    upstream_duration: Option<Duration>,
    retry_after_ms: Option<u64>,
    bytes_in: u64,
    code: Option<i32>,
    cost: Option<u32>,
    status: u16,
    outcome: Outcome,
    reported: Steps,
    fills_version: bool,
    fills_extensions: bool,
    stripped_query: bool,
    lengths: [u8; TEXTS],
    texts: [u8; ROOM],
}

/// What is remembered of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "each is the field of its name in the access log"
)]
pub struct Decision {
    pub ts: Timestamp,
    pub request_id: String,
    pub endpoint: Option<String>,
    pub contract: Option<String>,
    pub caller: Option<String>,
    pub rpc_method: Option<String>,
    pub skill: Option<String>,
    pub normalized: Vec<&'static str>,
    pub status: Option<u16>,
    pub rpc_code: Option<i32>,
    pub outcome: Outcome,
    pub error_id: Option<String>,
    pub quota: Option<String>,
    pub cost: Option<u32>,
    pub limit_source: Option<String>,
    pub retry_after_ms: Option<u64>,
    pub reported: Steps,
    pub stripped_query: bool,
    pub why: Option<String>,
    pub upstream: Option<String>,
    pub bytes_in: u64,
    pub duration: Duration,
    pub upstream_duration: Option<Duration>,
    pub generation: u64,
}

impl Decisions {
    /// Of so many workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let share = KEPT.div_ceil(workers.max(1));
        Self::keeping(workers, KEPT.min(2 * share))
    }

    /// So many of each worker, at least one.
    #[must_use]
    pub fn keeping(workers: usize, most: usize) -> Self {
        let entries = || Entries {
            all: Vec::new(),
            most: most.max(1),
            count: 0,
        };
        let ring = || Arc::new(Mutex::new(entries()));
        let first = ring();
        let others = (1..workers).map(|_| ring());
        Self {
            rings: std::iter::once(Arc::clone(&first)).chain(others).collect(),
            first,
        }
    }

    /// A worker's own. Workers that there should not be share the first.
    #[must_use]
    pub fn ring(&self, worker: usize) -> Ring {
        let ring = self.rings.get(worker).unwrap_or(&self.first);
        Ring(Arc::clone(ring))
    }

    /// The newest of those that are wanted, at most so many, newest first.
    ///
    /// `wants` is asked under a worker's lock, about the parts that an entry is looked for by.
    #[must_use]
    pub fn find(&self, most: usize, wants: impl Fn(&Parts<'_>) -> bool) -> Vec<Decision> {
        let mut found = Vec::new();
        for ring in self.rings.iter() {
            let mut here = 0;
            let mut below = ring.lock().count;
            while here < most {
                let entries = ring.lock();
                // What was written over meanwhile is gone.
                let oldest = entries.count.saturating_sub(entries.all.len() as u64);
                let to = below.saturating_sub(AT_ONCE).max(oldest);
                if below <= to {
                    break;
                }
                for number in (to..below).rev() {
                    if let Some(entry) = entries.at(number)
                        && here < most
                        && wants(&entry.parts())
                    {
                        here += 1;
                        found.push(entry.told());
                    }
                }
                below = to;
            }
        }
        found.sort_by_key(|decision| std::cmp::Reverse(decision.ts));
        found.truncate(most);
        found
    }

    /// Those of a request id or an error id, newest first.
    #[must_use]
    pub fn of(&self, id: &str) -> Vec<Decision> {
        let id = id.as_bytes();
        let [longest, ..] = MOST;
        let cut = id.get(..longest).unwrap_or(id);
        let is = |it: &[u8]| !it.is_empty() && it.eq_ignore_ascii_case(id);
        self.find(KEPT, |parts| {
            (parts.request_id == cut && !cut.is_empty()) || is(parts.error_id)
        })
    }
}

/// By what a decision is looked for.
#[derive(Clone, Copy, Debug)]
#[allow(
    missing_docs,
    reason = "each is the field of its name in the access log"
)]
pub struct Parts<'e> {
    pub request_id: &'e [u8],
    pub error_id: &'e [u8],
    pub endpoint: &'e [u8],
    pub caller: &'e [u8],
    pub outcome: Outcome,
}

impl Ring {
    /// Remembers a request. Takes the lock that nobody else holds but whoever looks.
    pub fn keep(&self, line: &Line<'_>) {
        let mut entries = self.0.lock();
        let Entries { all, most, count } = &mut *entries;
        if all.len() < *most {
            if all.capacity() == 0 {
                // Memory that nobody has written to costs nothing.
                all.reserve_exact(*most);
            }
            all.push(Entry::of(line));
        } else if let Some(entry) = all.get_mut((*count % *most as u64) as usize) {
            entry.become_of(line);
        }
        *count += 1;
    }
}

impl Entries {
    fn at(&self, number: u64) -> Option<&Entry> {
        self.all.get((number % self.most as u64) as usize)
    }
}

impl Entry {
    fn of(line: &Line<'_>) -> Self {
        let mut entry = Self {
            ts: line.ts,
            generation: 0,
            duration: Duration::ZERO,
            upstream_duration: None,
            retry_after_ms: None,
            bytes_in: 0,
            code: None,
            cost: None,
            status: 0,
            outcome: line.outcome,
            reported: Steps::NONE,
            fills_version: false,
            fills_extensions: false,
            stripped_query: false,
            lengths: [0; TEXTS],
            texts: [0; ROOM],
        };
        entry.become_of(line);
        entry
    }

    fn become_of(&mut self, line: &Line<'_>) {
        self.ts = line.ts;
        self.generation = line.generation;
        self.duration = line.duration;
        self.upstream_duration = line.upstream_duration;
        self.retry_after_ms = line.retry_after_ms;
        self.bytes_in = line.bytes_in;
        self.code = line.rpc_code.and_then(|code| i32::try_from(code).ok());
        self.cost = line.cost;
        self.status = line.status.unwrap_or(0);
        self.outcome = line.outcome;
        self.reported = line.reported;
        self.fills_version = line.normalized.contains(&VERSION);
        self.fills_extensions = line.normalized.contains(&EXTENSIONS);
        self.stripped_query = line.stripped_query;
        let texts = [
            line.request_id.unwrap_or_default(),
            bytes_of(line.error_id),
            bytes_of(line.endpoint),
            bytes_of(line.caller),
            bytes_of(line.quota),
            bytes_of(line.contract),
            line.rpc_method.unwrap_or_default(),
            line.skill.unwrap_or_default(),
            bytes_of(line.upstream),
            bytes_of(line.why),
            bytes_of(line.limit_source),
        ];
        let mut room = self.texts.as_mut_slice();
        for ((text, length), most) in texts.into_iter().zip(&mut self.lengths).zip(MOST) {
            let taken = text.len().min(most).min(room.len());
            let (here, rest) = room.split_at_mut(taken);
            here.copy_from_slice(text.get(..taken).unwrap_or_default());
            // At most 128.
            *length = taken as u8;
            room = rest;
        }
    }

    fn texts(&self) -> [&[u8]; TEXTS] {
        let mut rest = self.texts.as_slice();
        self.lengths.map(|length| {
            let (here, after) = rest.split_at_checked(length.into()).unwrap_or_default();
            rest = after;
            here
        })
    }

    fn parts(&self) -> Parts<'_> {
        let [request_id, error_id, endpoint, caller, ..] = self.texts();
        Parts {
            request_id,
            error_id,
            endpoint,
            caller,
            outcome: self.outcome,
        }
    }

    fn told(&self) -> Decision {
        let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        let some = |it: &[u8]| (!it.is_empty()).then(|| text(it));
        let [
            id,
            error_id,
            endpoint,
            caller,
            quota,
            contract,
            method,
            skill,
            upstream,
            why,
            source,
        ] = self.texts();
        let normalized = [
            (self.fills_version, VERSION),
            (self.fills_extensions, EXTENSIONS),
        ];
        Decision {
            ts: self.ts,
            request_id: text(id),
            endpoint: some(endpoint),
            contract: some(contract),
            caller: some(caller),
            rpc_method: some(method),
            skill: some(skill),
            normalized: normalized
                .into_iter()
                .filter_map(|(fills, name)| fills.then_some(name))
                .collect(),
            status: (self.status > 0).then_some(self.status),
            rpc_code: self.code,
            outcome: self.outcome,
            error_id: some(error_id),
            quota: some(quota),
            cost: self.cost,
            limit_source: some(source),
            retry_after_ms: self.retry_after_ms,
            reported: self.reported,
            stripped_query: self.stripped_query,
            why: some(why),
            upstream: some(upstream),
            bytes_in: self.bytes_in,
            duration: self.duration,
            upstream_duration: self.upstream_duration,
            generation: self.generation,
        }
    }
}

fn bytes_of(text: Option<&str>) -> &[u8] {
    text.map(str::as_bytes).unwrap_or_default()
}

/// The names of the headers that are filled in.
const VERSION: &str = "a2a-version";
const EXTENSIONS: &str = "a2a-extensions";

#[cfg(test)]
mod tests;
