//! Decides whether a new configuration is taken back because requests fail under it.
//!
//! After a reload what the gateway itself fails is watched, among the requests that end: those that
//! began under the new configuration against all that ended since. Where that is too many, and was
//! not too many before, the configuration before serves again. Callers' mistakes and dealers'
//! answers never count.
//!
//! Must never cost a request anything: it reads counters from time to time. Must never go to and
//! fro: what was gone back to, by anybody, is not watched.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::reload::{Figures, Reloader};
use super::snapshot::Snapshot;
use crate::config::Guard;

/// How often the counters are read.
const LOOK: Duration = Duration::from_millis(250);

/// How many looks into the past are kept: the longest window is cut into so many.
const LOOKS: u32 = 128;

/// The longest that is looked back where nothing is watched.
const LONGEST: Duration = Duration::from_secs(3600);

/// Requests of one configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    ended: u64,
    failed: u64,
}

/// What is remembered between looks.
#[derive(Debug)]
struct Guardian {
    /// The generation that was looked at last.
    generation: u64,
    /// Looks at that generation, oldest first; the first is its beginning or a window ago.
    looks: VecDeque<(Instant, Tally)>,
    watch: Option<Watch>,
}

/// A configuration on probation.
#[derive(Clone, Copy, Debug)]
struct Watch {
    guard: Guard,
    since: Instant,
    /// What the counters said when it began.
    start: Tally,
    /// Which generation is gone back to.
    to: u64,
    /// Whether too many failed already before it.
    was_bad: bool,
}

/// What one look sees.
#[derive(Clone, Copy, Debug)]
struct Look {
    generation: u64,
    /// Whether this generation was gone back to.
    is_rollback: bool,
    guard: Option<Guard>,
    tally: Tally,
}

/// Watches every configuration that goes live, for ever.
pub async fn follow(reloader: Arc<Reloader>) {
    let mut serving = reloader.live().load();
    let mut guardian = Guardian::new(Instant::now(), serving.generation, tally(&serving));
    let mut tick = interval(LOOK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = reloader.replaced() => {}
        }
        let now = Instant::now();
        let next = reloader.live().load();
        if next.generation != serving.generation {
            // What ended under it until now is the measure of the next.
            guardian.note(now, tally(&serving));
            serving = next;
        }
        let is_rollback = guardian.generation != serving.generation
            && reloader
                .generations()
                .iter()
                .any(|it| it.number == serving.generation && it.how.of().is_some());
        let look = Look {
            generation: serving.generation,
            is_rollback,
            guard: serving.settings.reload.rollback_on_errors,
            tally: tally(&serving),
        };
        if let Some((to, figures)) = guardian.look(now, look) {
            // Logged, counted and remembered where it happens. Refused, it is not tried again.
            drop(reloader.retreat(to, figures));
        }
    }
}

/// What was counted under a configuration so far, and by the same counters before it.
fn tally(snapshot: &Snapshot) -> Tally {
    let mut tally = Tally::default();
    for endpoint in &snapshot.endpoints {
        tally.ended += endpoint
            .meters
            .outcomes()
            .map(|(_, count)| count)
            .sum::<u64>();
        tally.failed += endpoint.failed();
    }
    tally
}

impl Tally {
    fn since(self, earlier: Self) -> Self {
        Self {
            ended: self.ended.saturating_sub(earlier.ended),
            failed: self.failed.saturating_sub(earlier.failed),
        }
    }

    fn is_bad(self, guard: &Guard) -> bool {
        guard.ratio.is_exceeded(self.failed, self.ended)
    }
}

impl Guardian {
    fn new(now: Instant, generation: u64, tally: Tally) -> Self {
        Self {
            generation,
            looks: VecDeque::from([(now, tally)]),
            watch: None,
        }
    }

    /// Remembers what the counters of the generation that was looked at last say.
    fn note(&mut self, now: Instant, tally: Tally) {
        let window = self.watch.as_ref().map_or(LONGEST, |it| it.guard.window);
        self.looks.push_back((now, tally));
        let is_dense = self.looks.len() > usize::try_from(LOOKS).unwrap_or(usize::MAX);
        if is_dense {
            // Every second one is enough to know what was a window ago.
            let mut keep = false;
            self.looks.retain(|_| {
                keep = !keep;
                keep
            });
        }
        while self
            .looks
            .get(1)
            .is_some_and(|(at, _)| now.duration_since(*at) > window)
        {
            self.looks.pop_front();
        }
    }

    /// What ended within a window until the last look.
    fn recent(&self, window: Duration) -> Tally {
        let Some((now, last)) = self.looks.back() else {
            return Tally::default();
        };
        let first = self
            .looks
            .iter()
            .rev()
            .take_while(|(at, _)| now.duration_since(*at) <= window)
            .last();
        first.map_or_else(Tally::default, |(_, first)| last.since(*first))
    }

    /// Looks once. What is to be gone back to, and why.
    fn look(&mut self, now: Instant, look: Look) -> Option<(u64, Figures)> {
        if look.generation != self.generation {
            self.begin(now, look);
            return None;
        }
        self.note(now, look.tally);
        let watch = self.watch?;
        let seen = look.tally.since(watch.start);
        let after = now.duration_since(watch.since);
        let is_enough = seen.ended >= u64::from(watch.guard.min_requests);
        if is_enough && seen.is_bad(&watch.guard) && !watch.was_bad && after <= watch.guard.window {
            self.watch = None;
            let figures = Figures {
                generation: look.generation,
                ended: seen.ended,
                failed: seen.failed,
                after,
                ratio: watch.guard.ratio,
            };
            return Some((watch.to, figures));
        }
        if after >= watch.guard.window {
            self.watch = None;
        }
        None
    }

    /// Another generation serves.
    fn begin(&mut self, now: Instant, look: Look) {
        // Numbers go up by one. One that came and went between two looks was never seen: it is what is
        // gone back to, and what was seen before it says whether all was well.
        let before = look.generation.saturating_sub(1);
        let was_seen = before == self.generation;
        let unfinished = self.watch.take().filter(|_| was_seen);
        self.watch = look.guard.filter(|_| !look.is_rollback).map(|guard| {
            let of_before = self.recent(guard.window);
            // One that fails itself and was not taken back yet is no measure, and no refuge.
            let (to, was_bad) = match unfinished {
                Some(watch) if !watch.was_bad && of_before.is_bad(&guard) => (watch.to, false),
                _ => (before, of_before.is_bad(&guard)),
            };
            Watch {
                guard,
                since: now,
                start: look.tally,
                to,
                was_bad,
            }
        });
        self.generation = look.generation;
        self.looks = VecDeque::from([(now, look.tally)]);
    }
}

#[cfg(test)]
mod tests;
