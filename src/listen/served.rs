//! Decides how the connections of one listener are told that the gateway stops, and when the last of
//! them has ended.
//!
//! A connection looks at the stage whenever it is polled and is woken when the stage moves: between
//! the two a request pays nothing for it. Must never end a connection itself.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, interval};

use super::drain::{Draining, Stage};

/// How often the time of day in answers is looked up.
const TICK: Duration = Duration::from_millis(500);

/// The connections of one listener of one worker.
pub(super) struct Served {
    count: Cell<usize>,
    ended: Notify,
    stage: Cell<Stage>,
    /// When that was reached, as far as it is known here.
    since: Cell<Instant>,
    wakers: RefCell<Wakers>,
    date: RefCell<Rc<str>>,
}

#[derive(Default)]
struct Wakers {
    slots: Vec<Option<Waker>>,
    free: Vec<usize>,
}

/// One connection's place among them, until dropped.
pub(super) struct Ticket {
    served: Rc<Served>,
    slot: Cell<Option<usize>>,
}

impl Default for Served {
    fn default() -> Self {
        Self {
            count: Cell::new(0),
            ended: Notify::new(),
            stage: Cell::new(Stage::Serving),
            since: Cell::new(Instant::now()),
            wakers: RefCell::default(),
            date: RefCell::new(date()),
        }
    }
}

impl Served {
    /// One more connection.
    pub(super) fn enter(self: &Rc<Self>) -> Ticket {
        self.count.set(self.count.get() + 1);
        Ticket {
            served: Rc::clone(self),
            slot: Cell::new(None),
        }
    }

    /// Tells the connections of each stage as it is reached, and the time of day; never ends.
    pub(super) async fn follow(&self, mut draining: Draining) -> Infallible {
        let stages = async {
            for stage in [Stage::Leaving, Stage::Draining, Stage::Stopped] {
                draining.reached(stage).await;
                self.stage.set(stage);
                self.since.set(Instant::now());
                let wakers = std::mem::take(&mut *self.wakers.borrow_mut());
                for waker in wakers.slots.iter().flatten() {
                    waker.wake_by_ref();
                }
                *self.wakers.borrow_mut() = wakers;
            }
            std::future::pending::<Infallible>().await
        };
        let dates = async {
            let mut ticks = interval(TICK);
            loop {
                ticks.tick().await;
                let now = date();
                if *now != **self.date.borrow() {
                    *self.date.borrow_mut() = now;
                }
            }
        };
        tokio::select! {
            never = stages => never,
            never = dates => never,
        }
    }

    /// Resolves when no connection is left.
    pub(super) async fn all_done(&self) {
        while self.count.get() > 0 {
            self.ended.notified().await;
        }
    }
}

/// The time of day as an answer's `Date` has it.
#[allow(
    clippy::disallowed_methods,
    reason = "a courtesy to clients that nothing here depends on; the clock handed in may stand still"
)]
fn date() -> Rc<str> {
    httpdate::fmt_http_date(std::time::SystemTime::now()).into()
}

impl Ticket {
    /// How far the shutdown is.
    pub(super) fn stage(&self) -> Stage {
        self.served.stage.get()
    }

    /// Since when it is that far.
    pub(super) fn since(&self) -> Instant {
        self.served.since.get()
    }

    /// The time of day as an answer's `Date` has it, half a second old at most.
    pub(super) fn date(&self) -> Rc<str> {
        Rc::clone(&self.served.date.borrow())
    }

    /// Resolves when the stage is reached. Only one task of a connection may wait.
    pub(super) async fn reached(&self, stage: Stage) {
        poll_fn(|context| {
            if self.stage() >= stage {
                return Poll::Ready(());
            }
            self.watch(context.waker());
            Poll::Pending
        })
        .await;
    }

    /// Wakes this task when the stage moves, from now on.
    pub(super) fn watch(&self, waker: &Waker) {
        let mut wakers = self.served.wakers.borrow_mut();
        let slot = self.slot.get().or_else(|| wakers.free.pop());
        let slot = slot.unwrap_or_else(|| {
            wakers.slots.push(None);
            wakers.slots.len() - 1
        });
        if let Some(place) = wakers.slots.get_mut(slot) {
            *place = Some(waker.clone());
        }
        self.slot.set(Some(slot));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.get() {
            let mut wakers = self.served.wakers.borrow_mut();
            if let Some(place) = wakers.slots.get_mut(slot) {
                *place = None;
                wakers.free.push(slot);
            }
        }
        self.served.count.set(self.served.count.get() - 1);
        self.served.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_come_and_go_leave_nothing_behind() {
        let served = Rc::new(Served::default());
        let waker = Waker::noop();
        for _ in 0..100 {
            let tickets: Vec<_> = (0..4).map(|_| served.enter()).collect();
            for ticket in &tickets {
                // Whatever serves a connection says anew whom to wake.
                ticket.watch(waker);
                ticket.watch(waker);
            }
            assert_eq!(served.count.get(), 4);
        }
        assert_eq!(served.count.get(), 0);
        let wakers = served.wakers.borrow();
        assert_eq!((wakers.slots.len(), wakers.free.len()), (4, 4));
    }
}
