//! Decides when an upstream has been silent for too long within a body.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::fault::{Cause, Fault};

/// The wait for the next piece of a body.
#[derive(Debug)]
pub(super) struct Silence {
    longest: Duration,
    since: Instant,
    /// Set up only when the body makes us wait; moved only when it fires too early.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Silence {
    /// It begins now.
    pub(super) fn new(longest: Duration) -> Self {
        Self {
            longest,
            since: Instant::now(),
            timer: None,
        }
    }

    /// A piece came.
    pub(super) fn broken(&mut self) {
        self.since = Instant::now();
    }

    /// Resolves when it has lasted too long.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Fault> {
        let due = self.since + self.longest;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        loop {
            ready!(timer.as_mut().poll(context));
            if timer.deadline() >= due {
                return Poll::Ready(Fault::sent(Cause::IdleTimeout));
            }
            timer.as_mut().reset(due);
        }
    }
}
