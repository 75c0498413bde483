//! Waiting and measuring. Nothing else in the tests reads a clock or pauses.

#![allow(
    clippy::disallowed_methods,
    reason = "this file owns the tests' real time"
)]

use std::thread;
use std::time::{Duration, Instant};

/// How long anything that must happen may take: far longer than it does.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A stopwatch.
pub struct Watch(Instant);

impl Watch {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Waits until the condition holds, looking often; panics when it never does.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let watch = Watch::start();
    while !holds() {
        assert!(watch.elapsed() < PATIENCE, "never happened: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Whether the condition holds for as long as this: for what must not happen.
pub fn stays(time: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let watch = Watch::start();
    while watch.elapsed() < time {
        if !holds() {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Lets this much time pass, where the passing of time itself is what is tested.
pub fn elapse(time: Duration) {
    thread::sleep(time);
}
