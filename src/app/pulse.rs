//! Decides whether every thread of the gateway turns: each has a heart that its timer beats.
//!
//! A thread that hangs, or that does not come to its timers for all it has to do, beats no more. Costs
//! the request path nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One thread's heart.
#[derive(Clone, Debug, Default)]
pub(super) struct Heart(Arc<AtomicU64>);

impl Heart {
    /// Beats: the thread turns.
    pub(super) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The hearts of all threads, and how often each had beaten when they were felt last.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Vec<Felt>);

#[derive(Clone, Debug)]
struct Felt {
    thread: Box<str>,
    heart: Heart,
    beats: u64,
}

impl Pulse {
    /// One more thread.
    pub(super) fn add(&mut self, thread: impl Into<Box<str>>) -> Heart {
        let heart = Heart::default();
        self.0.push(Felt {
            thread: thread.into(),
            heart: heart.clone(),
            beats: 0,
        });
        heart
    }

    /// The threads that have not turned since they were felt last.
    pub fn still(&self) -> impl Iterator<Item = &str> {
        let still = self.0.iter().filter(|felt| felt.now() == felt.beats);
        still.map(|felt| &*felt.thread)
    }

    /// From here on the next beats count.
    pub fn feel(&mut self) {
        for felt in &mut self.0 {
            felt.beats = felt.now();
        }
    }
}

impl Felt {
    fn now(&self) -> u64 {
        self.heart.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_turned_is_named() {
        let mut pulse = Pulse::default();
        let (one, two) = (pulse.add("one"), pulse.add("two"));
        let still = |pulse: &Pulse| pulse.still().collect::<Vec<_>>().join(" ");
        assert_eq!(still(&pulse), "one two");
        one.beat();
        assert_eq!(still(&pulse), "two");
        two.beat();
        assert_eq!(still(&pulse), "");
        // What was felt does not count again.
        pulse.feel();
        assert_eq!(still(&pulse), "one two");
        two.beat();
        assert_eq!(still(&pulse), "one");
    }
}
