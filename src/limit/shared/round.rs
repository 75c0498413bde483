//! Decides one call on all quotas that one store keeps: by what is known here, else by asking.
//!
//! A call that is refused, fails or is given up half-way leaves nothing behind: what it took of leases
//! is put back, and whoever waits for its question goes on (`Round` sees to it when it is dropped).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout_at;

use super::By;
use super::failure::Failure;
use super::key::Digest;
use super::memory::{Flight, Memory, Said, Want, Word, wait};
use super::script::Question;
use super::store::Inner;
use crate::limit::Moment;
use crate::limit::limiter::Shortage;

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Admitted(By),
    Refused(Shortage, By),
}

/// Decides on all of these together. `digest` names a bucket that is not known here yet.
pub(super) async fn decide(
    store: &Arc<Inner>,
    wants: &[Want<'_>],
    digest: impl Fn(usize) -> Digest,
) -> Result<Verdict, Failure> {
    let deadline = store.deadline();
    loop {
        let mut round = Round::new(&store.memory, wants);
        match round.look(&digest, store.now()) {
            Look::Refused(shortage) => return Ok(Verdict::Refused(shortage, By::DenyCache)),
            Look::Taken => {
                round.taken.clear();
                return Ok(Verdict::Admitted(By::Lease));
            }
            Look::Wait(want, flight) => {
                drop(round);
                let waiting = Waiting {
                    memory: &store.memory,
                    want,
                };
                let back = timeout_at(deadline, flight.back()).await;
                drop(waiting);
                if let Some(failure) = back.unwrap_or(Some(Failure::Timeout)) {
                    return Err(failure);
                }
            }
            Look::Ask => {
                let sent = store.now();
                let questions: Vec<_> = round.asked.iter().map(|asked| asked.question).collect();
                let answer = store.ask(&questions, deadline).await;
                return match answer {
                    Ok(said) => Ok(round.land(&said, sent, store.now())),
                    Err(failure) => {
                        round.fails(failure);
                        Err(failure)
                    }
                };
            }
        }
    }
}

/// What a look at the memory came to.
enum Look<'w> {
    Taken,
    Refused(Shortage),
    Wait(&'w Want<'w>, Arc<Flight>),
    Ask,
}

/// What a call has taken and asked for so far.
struct Round<'w> {
    memory: &'w Memory,
    wants: &'w [Want<'w>],
    /// Taken from leases; put back when this is dropped.
    taken: Vec<&'w Want<'w>>,
    asked: Vec<Asked<'w>>,
}

struct Asked<'w> {
    want: &'w Want<'w>,
    question: Question<'w>,
    flight: Option<Arc<Flight>>,
}

impl<'w> Round<'w> {
    const fn new(memory: &'w Memory, wants: &'w [Want<'w>]) -> Self {
        Self {
            memory,
            wants,
            taken: Vec::new(),
            asked: Vec::new(),
        }
    }

    fn look(&mut self, digest: &impl Fn(usize) -> Digest, now: Moment) -> Look<'w> {
        let mut shortage: Option<Shortage> = None;
        for want in self.wants {
            match self.memory.look(want, || digest(want.place), now) {
                Word::Taken => self.taken.push(want),
                Word::Refused(wait) => longest(&mut shortage, want, wait),
                Word::Wait(flight) => {
                    if shortage.is_none() {
                        return Look::Wait(want, flight);
                    }
                    self.memory.waits_no_more(want);
                }
                Word::Ask {
                    digest,
                    most,
                    flight,
                } => self.asked.push(Asked {
                    want,
                    question: Question {
                        pace: want.pace,
                        digest,
                        cost: want.cost,
                        most,
                    },
                    flight,
                }),
            }
        }
        match shortage {
            Some(shortage) => Look::Refused(shortage),
            None if self.asked.is_empty() => Look::Taken,
            None => Look::Ask,
        }
    }

    /// Takes the store's answer.
    fn land(mut self, said: &[Said], sent: Moment, now: Moment) -> Verdict {
        let is_granted = said.len() == self.asked.len() && said.iter().all(|said| said.granted > 0);
        let mut shortage = None;
        for (asked, said) in self.asked.iter().zip(said) {
            self.memory.note(asked.want, *said, (sent, now));
            if said.wait > 0 {
                // As long as the memory will refuse from now on.
                let least = asked.want.cost.max(asked.want.lease / 4);
                let paid = Moment::from_nanos(now.as_nanos().saturating_add(said.debt));
                let told = wait(asked.want.pace, least, paid, now).max(said.wait);
                longest(&mut shortage, asked.want, Duration::from_nanos(told));
            }
        }
        if is_granted {
            self.taken.clear();
            return Verdict::Admitted(By::Store);
        }
        let soon = || {
            self.asked
                .first()
                .map(|asked| asked.want.shortage(Duration::ZERO))
        };
        match shortage.or_else(soon) {
            Some(shortage) => Verdict::Refused(shortage, By::Store),
            // Not reached: something was asked.
            None => Verdict::Admitted(By::Store),
        }
    }

    /// The store did not answer: those who wait for it will not ask it themselves.
    fn fails(&self, failure: Failure) {
        for flight in self.asked.iter().filter_map(|asked| asked.flight.as_ref()) {
            flight.fails(failure);
        }
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        for want in self.taken.drain(..) {
            self.memory.put_back(want);
        }
        for asked in self.asked.drain(..) {
            if let Some(flight) = &asked.flight {
                self.memory.landed(asked.want.bucket, flight);
            }
        }
    }
}

fn longest(shortage: &mut Option<Shortage>, want: &Want<'_>, wait: Duration) {
    if shortage.is_none_or(|longest| wait > longest.wait) {
        *shortage = Some(want.shortage(wait));
    }
}

/// A call that waits for another's question.
struct Waiting<'w> {
    memory: &'w Memory,
    want: &'w Want<'w>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.memory.waits_no_more(self.want);
    }
}
