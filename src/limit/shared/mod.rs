//! Decides on quotas that several processes count together, in a store that they share (Redis, Valkey).
//!
//! [`Group`] is all quotas of one endpoint that one store keeps: they are asked together, and admit
//! together or charge nothing. What is known here already (`memory`: leases and refusals that still
//! hold) is not asked again. While the store answers, a limit is never exceeded: whatever is handed out
//! was charged in the store before. When it does not answer, each quota says what holds instead.
//!
//! Must never wait longer than the store's configured time, never hold a lock while it waits, and never
//! send a key, a header or an address to the store in clear.

mod account;
mod breaker;
mod connect;
mod failure;
mod key;
mod memory;
mod round;
mod script;
mod store;
mod thread;

use std::num::NonZeroU32;
use std::sync::Arc;

pub use connect::{Link, Roots, Topology};
pub use failure::Failure;
pub use key::Digest;
pub(in crate::limit) use key::Meaning;
pub use store::{Meters, Parts, Store};
pub use thread::Thread;

pub use crate::config::OnStoreError;

use super::caller::Caller;
use super::limiter::{Admission, Decision, Limiter, Shortage};
use super::pace::{Pace, Standing};
use super::quota::{Kind, Quota, Rule};
use super::subject::Subject;
use super::{Allowance, Clock};
use crate::http1::Fields;
use memory::Want;
use round::Verdict;

/// A lease holds what the rate allows in this time.
const LEASE_NS: u128 = 20_000_000;

/// Who took a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// This process, which counts alone.
    Local,
    /// The store, asked for this call.
    Store,
    /// The store, asked before: it granted several.
    Lease,
    /// The store, asked before: it refused up to a moment that has not come.
    DenyCache,
    /// What is to hold while the store does not answer.
    Fallback,
}

impl By {
    /// Everyone.
    pub const ALL: [Self; 5] = [
        Self::Local,
        Self::Store,
        Self::Lease,
        Self::DenyCache,
        Self::Fallback,
    ];

    /// As metrics and log lines spell it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Store => "store",
            Self::Lease => "lease",
            Self::DenyCache => "deny_cache",
            Self::Fallback => "fallback",
        }
    }
}

/// What one store decided on a call.
#[derive(Debug)]
pub struct Decided {
    /// What became of the call.
    pub decision: Decision,
    /// Who decided. Among the quotas of a store nobody, where none looks at the call.
    pub by: Option<By>,
}

/// What names a caller in every process. For endpoints with quotas in a store.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'r> {
    /// Who is calling.
    pub caller: &'r Caller,
    /// The fields that it was identified by.
    pub fields: &'r Fields,
}

/// A quota that a store keeps, for [`Group::compile`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its place among the endpoint's quotas.
    pub place: usize,
    /// What it says.
    pub rule: Rule,
    /// What holds while the store does not answer.
    pub on_error: OnStoreError,
}

/// All quotas of one endpoint that one store keeps.
///
/// The quotas themselves stand among those of the endpoint, which each method is given whole.
#[derive(Debug)]
pub struct Group {
    store: Arc<Store>,
    replicas: NonZeroU32,
    /// Which of the endpoint's quotas.
    places: Box<[usize]>,
    /// Which of them let nothing through while the store does not answer.
    denying: Box<[usize]>,
    /// This process's part of those that it counts itself while the store does not answer.
    parts: Box<[Quota]>,
    /// Which those are.
    counted: Box<[usize]>,
}

/// How much is asked for at once: what the rate allows in 20 ms, and of the burst no more than leaves
/// half of it, whatever the replicas hold. 1 for less than 50 a second: such quotas are exact.
fn lease(pace: &Pace, replicas: NonZeroU32) -> u32 {
    let by_rate = LEASE_NS / pace.interval().as_nanos().max(1);
    let by_burst = u128::from(pace.burst().get()) / (2 * u128::from(replicas.get()));
    u32::try_from(by_rate.min(by_burst).max(1)).unwrap_or(u32::MAX)
}

/// What this process lets through of a quota while it cannot ask: a part, but at least one at once.
fn part(rule: &Rule, replicas: NonZeroU32) -> Rule {
    let less = |allowance: Allowance| match allowance {
        Allowance::Rate { interval, burst } => Allowance::Rate {
            interval: interval.saturating_mul(replicas.get()),
            burst: NonZeroU32::new(burst.get() / replicas).unwrap_or(NonZeroU32::MIN),
        },
        at_once @ Allowance::Concurrent(_) => at_once,
    };
    Rule {
        allowance: less(rule.allowance),
        plans: rule.plans.iter().map(|plan| plan.map(less)).collect(),
        is_local: true,
        ..rule.clone()
    }
}

impl Group {
    /// Compiles those quotas of an endpoint that this store keeps, for so many processes that share it.
    #[must_use]
    pub fn compile(
        store: Arc<Store>,
        replicas: NonZeroU32,
        members: &[Member],
        endpoint: &str,
    ) -> Self {
        let with = |on_error| {
            let members = members.iter();
            members.filter(move |member| member.on_error == on_error)
        };
        let local = || with(OnStoreError::Local);
        Self {
            store,
            replicas,
            places: members.iter().map(|member| member.place).collect(),
            denying: with(OnStoreError::Deny).map(|it| it.place).collect(),
            parts: local()
                .map(|member| Quota::compile(&part(&member.rule, replicas), endpoint))
                .collect(),
            counted: local().map(|member| member.place).collect(),
        }
    }

    /// Whether it keeps the quota at this place among the endpoint's.
    #[must_use]
    pub fn has(&self, place: usize) -> bool {
        self.places.contains(&place)
    }

    fn wants<'q>(&self, quotas: &'q [Quota], who: &Subject<'_>) -> Vec<Want<'q>> {
        let want = |place: &usize| {
            let ask = quotas.get(*place)?.ask(who)?;
            let Kind::Rate(pace) = ask.kind else {
                return None;
            };
            Some(Want {
                place: *place,
                pace,
                bucket: ask.bucket,
                of: ask.of,
                cost: ask.cost.min(pace.burst()).get(),
                lease: lease(pace, self.replicas),
            })
        };
        self.places.iter().filter_map(want).collect()
    }

    /// Checks a call against all of its quotas that look at it together, within the store's time.
    pub async fn check<C: Clock>(
        &self,
        limiter: &Limiter<C>,
        quotas: &[Quota],
        who: &Subject<'_>,
        identity: &Identity<'_>,
    ) -> Decided {
        let wants = self.wants(quotas, who);
        if wants.is_empty() {
            return Decided {
                decision: Decision::Admitted(Admission::default()),
                by: None,
            };
        }
        let store = self.store.inner();
        let digest = |place: usize| {
            let quota = quotas.get(place);
            quota.map_or_else(Digest::nothing, |it| it.digest(who, identity))
        };
        let (decision, by) = match round::decide(store, &wants, digest).await {
            Ok(Verdict::Admitted(by)) => (Decision::Admitted(Admission::default()), by),
            Ok(Verdict::Refused(shortage, by)) => (Decision::Refused(shortage), by),
            Err(failure) => {
                store.count(failure);
                (self.without(limiter, quotas, who), By::Fallback)
            }
        };
        Decided {
            decision,
            by: Some(by),
        }
    }

    /// Decides without the store.
    fn without<C: Clock>(
        &self,
        limiter: &Limiter<C>,
        quotas: &[Quota],
        who: &Subject<'_>,
    ) -> Decision {
        let asked = |place: &usize| {
            let ask = quotas.get(*place)?.ask(who)?;
            Some((*place, ask.cost))
        };
        if let Some((quota, cost)) = self.denying.iter().find_map(asked) {
            // When the store is asked again at the latest.
            return Decision::Refused(Shortage {
                quota,
                wait: breaker::OPEN,
                cost,
            });
        }
        match limiter.check(&self.parts, who) {
            Decision::Refused(shortage) => Decision::Refused(Shortage {
                quota: self.counted.get(shortage.quota).copied().unwrap_or(0),
                ..shortage
            }),
            admitted @ Decision::Admitted(_) => admitted,
        }
    }

    /// Takes back what this group charged for a call that another refused.
    pub fn undo<C: Clock>(
        &self,
        limiter: &Limiter<C>,
        quotas: &[Quota],
        who: &Subject<'_>,
        identity: &Identity<'_>,
        (by, admission): (By, &Admission),
    ) {
        if by == By::Fallback {
            limiter.refund(&self.parts, who, admission);
            return;
        }
        let store = self.store.inner();
        for want in self.wants(quotas, who) {
            if want.lease > 1 {
                store.memory.put_back(&want);
                continue;
            }
            let Some(quota) = quotas.get(want.place) else {
                continue;
            };
            let known = store.memory.digest(want.bucket);
            let digest = known.unwrap_or_else(|| quota.digest(who, identity));
            let cost = NonZeroU32::new(want.cost).unwrap_or(NonZeroU32::MIN);
            let ns = want.pace.price(cost);
            store.memory.lower(want.bucket, ns);
            store.refund(digest, ns);
        }
    }

    /// How this subject stands with one of its quotas, as far as is known here; `None` where it does
    /// not look at the call, or is no quota of this group.
    pub fn standing<C: Clock>(
        &self,
        limiter: &Limiter<C>,
        (place, quota): (usize, &Quota),
        who: &Subject<'_>,
        by: Option<By>,
    ) -> Option<Standing> {
        if !self.has(place) {
            return None;
        }
        let counted = self.counted.iter().position(|it| *it == place);
        if by == Some(By::Fallback)
            && let Some(part) = counted.and_then(|at| self.parts.get(at))
        {
            return limiter.standing(part, who);
        }
        let ask = quota.ask(who)?;
        let Kind::Rate(pace) = ask.kind else {
            return None;
        };
        let store = self.store.inner();
        Some(store.memory.standing(pace, ask.bucket, store.now()))
    }
}

#[cfg(test)]
mod tests;
