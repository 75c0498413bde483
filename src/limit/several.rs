//! Decides on several quotas together: the locks of all their buckets are held until all have said
//! yes and were charged, or one has said no.

use std::time::Duration;

use super::clock::{Clock, Moment};
use super::limiter::{Admission, Decision, Limiter, Shortage, debt, owing, seat};
use super::pace::Standing;
use super::quota::{Ask, Kind, Quota};
use super::seats::Seats;
use super::store::{Held, same_shard};
use super::subject::Subject;

impl<C: Clock> Limiter<C> {
    pub(super) fn check_several(
        &self,
        quotas: &[Quota],
        who: &Subject<'_>,
        now: Moment,
    ) -> Decision {
        let mut drafts: Vec<Draft<'_>> = quotas
            .iter()
            .enumerate()
            .filter(|(_, quota)| quota.is_local())
            .filter_map(|(place, quota)| Some(Draft::new(place, quota, quota.ask(who)?)))
            .collect();
        let mut held = self
            .store
            .lock_all(drafts.iter().map(|draft| draft.ask.bucket));
        self.place(&mut drafts, &mut held, now);
        let mut overflow = drafts
            .iter()
            .any(|draft| draft.place == Place::Overflow)
            .then(|| self.store.lock_overflow());

        let mut shortage: Option<Shortage> = None;
        let mut tightest: Option<Standing> = None;
        for draft in &mut drafts {
            if draft.place == Place::Overflow
                && let Some(overflow) = overflow.as_mut()
            {
                draft.ask.bucket = draft.quota.overflow();
                draft.ask.of = draft.ask.of.of_nobody();
                draft.debt = overflow
                    .tat(draft.ask.bucket)
                    .map_or(0, |tat| debt(*tat, now));
            }
            match draft.decide() {
                Ok(standing) => tightest = Some(tighter(tightest, standing)),
                Err(wait) if shortage.is_none_or(|longest| wait > longest.wait) => {
                    shortage = Some(Shortage {
                        quota: draft.index,
                        wait,
                        cost: draft.ask.cost,
                    });
                }
                Err(_) => {}
            }
        }
        if let Some(shortage) = shortage {
            return Decision::Refused(shortage);
        }
        let mut seats: Option<Seats> = None;
        for draft in &drafts {
            let Ask { bucket, of, .. } = draft.ask;
            let table = match draft.place {
                Place::Own => held.table(bucket),
                Place::Overflow => overflow.as_deref_mut(),
            };
            let Some(table) = table else { continue };
            match draft.ask.kind {
                Kind::Rate(_) => table.put(bucket, owing(draft.debt, now), of),
                Kind::AtOnce(_) => {
                    table.take(bucket, of);
                    match &mut seats {
                        Some(seats) => seats.add(bucket),
                        None => seats = Some(Seats::taken(&self.store, bucket)),
                    }
                }
            }
        }
        Decision::Admitted(Admission {
            tightest,
            seats,
            at: now,
        })
    }

    /// Finds out for each quota whether the subject has, or may have, a bucket of its own.
    fn place(&self, drafts: &mut [Draft<'_>], held: &mut Held<'_>, now: Moment) {
        for index in 0..drafts.len() {
            let (before, rest) = drafts.split_at_mut(index);
            let Some(draft) = rest.first_mut() else {
                continue;
            };
            let bucket = draft.ask.bucket;
            let Some(table) = held.table(bucket) else {
                continue;
            };
            if let Kind::AtOnce(_) = draft.ask.kind {
                // Bounded by the requests there are.
                draft.taken = table.taken(bucket);
                continue;
            }
            if let Some(tat) = table.tat(bucket) {
                draft.debt = debt(*tat, now);
                continue;
            }
            let entering = before
                .iter()
                .filter(|other| other.enters && same_shard(other.ask.bucket, bucket))
                .count();
            if self.fits(&draft.ask, table, entering, now) {
                draft.enters = draft.ask.floods;
            } else {
                draft.place = Place::Overflow;
                self.store.count_overflow();
            }
        }
    }
}

/// One quota's part of a decision on several.
struct Draft<'q> {
    index: usize,
    quota: &'q Quota,
    ask: Ask<'q>,
    place: Place,
    enters: bool,
    debt: u64,
    taken: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Own,
    Overflow,
}

impl<'q> Draft<'q> {
    const fn new(index: usize, quota: &'q Quota, ask: Ask<'q>) -> Self {
        Self {
            index,
            quota,
            ask,
            place: Place::Own,
            enters: false,
            debt: 0,
            taken: 0,
        }
    }

    /// How the bucket stands once this is charged, or how long that has to wait.
    fn decide(&mut self) -> Result<Standing, Duration> {
        match self.ask.kind {
            Kind::AtOnce(most) => seat(*most, self.taken),
            Kind::Rate(pace) => {
                self.debt = pace
                    .decide(self.debt, self.ask.cost)
                    .map_err(Duration::from_nanos)?;
                Ok(pace.standing(self.debt))
            }
        }
    }
}

fn tighter(one: Option<Standing>, other: Standing) -> Standing {
    match one {
        Some(one) if one.remaining() <= other.remaining() => one,
        Some(_) | None => other,
    }
}

#[cfg(test)]
mod tests;
