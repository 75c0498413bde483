//! Decides whether a store is worth asking: after five failures in a row it is not, for a second;
//! then one call tries, and the others do not wait for it.
//!
//! Time comes in with each question: nothing here reads a clock.

use std::time::Duration;

use parking_lot::Mutex;

use crate::limit::Moment;

/// So many failures in a row, and the store is not asked.
const FAILURES: u32 = 5;

/// For so long.
pub(super) const OPEN: Duration = Duration::from_secs(1);

/// Whether calls go to a store.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed { failures: u32 },
    Open { until: Moment },
    Probing,
}

impl Default for State {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

/// Leave for one call. What became of the call is told to it; dropped untold, it was never made.
#[derive(Debug)]
pub(super) struct Leave<'a> {
    breaker: &'a Breaker,
    is_probe: bool,
}

impl Breaker {
    /// Leave to ask the store; `None` while it is not asked.
    pub(super) fn leave(&self, now: Moment) -> Option<Leave<'_>> {
        let mut state = self.0.lock();
        let is_probe = match *state {
            State::Closed { .. } => false,
            State::Open { until } if now >= until => {
                *state = State::Probing;
                true
            }
            State::Open { .. } | State::Probing => return None,
        };
        Some(Leave {
            breaker: self,
            is_probe,
        })
    }

    /// Whether every call gets leave.
    pub(super) fn is_closed(&self) -> bool {
        matches!(*self.0.lock(), State::Closed { .. })
    }
}

impl Leave<'_> {
    /// The store answered.
    pub(super) fn answered(mut self) {
        self.is_probe = false;
        *self.breaker.0.lock() = State::default();
    }

    /// It failed. Whether it is no longer asked because of that.
    pub(super) fn failed(mut self, now: Moment) -> bool {
        let mut state = self.breaker.0.lock();
        let next = match *state {
            State::Closed { failures } if failures + 1 < FAILURES => State::Closed {
                failures: failures + 1,
            },
            // A call from before it opened says nothing new.
            State::Open { until } => State::Open { until },
            State::Probing if !self.is_probe => State::Probing,
            State::Closed { .. } | State::Probing => State::Open {
                until: now.after(OPEN),
            },
        };
        let opens = matches!(next, State::Open { .. }) && *state != next;
        *state = next;
        drop(state);
        self.is_probe = false;
        opens
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            // Given up half-way: the next call tries.
            *self.breaker.0.lock() = State::Open {
                until: Moment::default(),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::from_nanos(ms * 1_000_000)
    }

    fn fail(breaker: &Breaker, ms: u64) -> bool {
        breaker.leave(at(ms)).unwrap().failed(at(ms))
    }

    #[test]
    fn five_failures_in_a_row_open_it_for_a_second() {
        let breaker = Breaker::default();
        for _ in 0..3 {
            for _ in 0..4 {
                assert!(!fail(&breaker, 0));
            }
            breaker.leave(at(0)).unwrap().answered();
        }
        for _ in 0..4 {
            assert!(!fail(&breaker, 0));
        }
        assert!(breaker.is_closed());
        assert!(fail(&breaker, 7));
        assert!(!breaker.is_closed());
        assert!(breaker.leave(at(1006)).is_none());
        assert!(breaker.leave(at(1007)).is_some());
    }

    fn opened() -> Breaker {
        let breaker = Breaker::default();
        for _ in 0..5 {
            fail(&breaker, 0);
        }
        breaker
    }

    #[test]
    fn one_call_tries_and_its_answer_decides() {
        let breaker = opened();
        let probe = breaker.leave(at(1000)).unwrap();
        assert!(breaker.leave(at(5000)).is_none());
        assert!(probe.failed(at(1010)));
        assert!(breaker.leave(at(2009)).is_none());
        let probe = breaker.leave(at(2010)).unwrap();
        probe.answered();
        assert!(breaker.is_closed());
        assert!(!fail(&breaker, 2011));
    }

    #[test]
    fn a_probe_that_was_given_up_leaves_room_for_another() {
        let breaker = opened();
        drop(breaker.leave(at(1000)).unwrap());
        assert!(breaker.leave(at(1000)).is_some());
    }

    #[test]
    fn calls_from_before_do_not_lengthen_it() {
        let breaker = Breaker::default();
        let late: Vec<_> = (0..3).map(|_| breaker.leave(at(0)).unwrap()).collect();
        for _ in 0..5 {
            fail(&breaker, 0);
        }
        for leave in late {
            assert!(!leave.failed(at(900)));
        }
        let probe = breaker.leave(at(1000));
        assert!(probe.is_some());
    }
}
