//! Decides whom a signed token proves on this worker: what was decided before, as long as nothing has
//! changed that decided it, or what its issuer's keys say now.
//!
//! A token that was believed is known again by its digest, so that a caller who calls often costs no
//! signature. One that was not is never remembered. Must never wait: what is to be waited for is said.

use std::rc::Rc;
use std::sync::Arc;

use super::worker::Worker;
use crate::credential::Who;
use crate::credential::token::{self, Bad, Print, Verified};
use crate::limit::Caller;
use crate::state::{Issuer, Snapshot};

/// How many tokens a worker knows again.
pub(super) const KNOWN: usize = 4096;

/// A token that was believed, and what that hung on.
#[derive(Debug)]
pub(super) struct Believed {
    issuer: Arc<Issuer>,
    place: usize,
    caller: Caller,
    verified: Verified,
    keyset: u64,
    generation: u64,
}

/// One look at a request's token.
#[derive(Debug)]
pub(super) struct Judge<'w> {
    worker: &'w Worker,
    snapshot: &'w Snapshot,
    /// Whose token it is, where it was believed.
    pub(super) caller: Option<Caller>,
    /// Whether there was a token to judge.
    pub(super) was_asked: bool,
    /// Whose keys are to be read anew before it is judged for good.
    pub(super) unknown: Option<Arc<Issuer>>,
    is_last: bool,
}

impl<'w> Judge<'w> {
    /// A first look, or the last one: after it nothing is waited for.
    pub(super) fn new(worker: &'w Worker, snapshot: &'w Snapshot, is_last: bool) -> Self {
        Self {
            worker,
            snapshot,
            caller: None,
            was_asked: false,
            unknown: None,
            is_last,
        }
    }

    /// Whom a bearer token proves, or why nobody. `None`: it is no token of an issuer's.
    pub(super) fn judge(&mut self, token: &[u8]) -> Option<Result<Who, &'static str>> {
        if self.snapshot.issuers.is_empty() || !token::has_shape(token) {
            return None;
        }
        self.was_asked = true;
        let now = self.worker.now().as_second();
        let print = Print::of(token);
        let generation = self.snapshot.generation;
        let mut known = self.worker.tokens.borrow_mut();
        let found = known.find(&print, |it| it.holds(generation, now));
        if let Some(believed) = found {
            believed.issuer.meters.cached.inc();
            self.caller = Some(believed.caller.clone());
            return Some(Ok(Who::Token {
                issuer: believed.place,
            }));
        }
        Some(match self.verify(token, now) {
            Ok(believed) => {
                self.caller = Some(believed.caller.clone());
                let issuer = believed.place;
                known.keep(print, Rc::new(believed));
                Ok(Who::Token { issuer })
            }
            Err(bad) => Err(bad.text()),
        })
    }

    fn verify(&mut self, token: &[u8], now: i64) -> Result<Believed, Bad> {
        let issuers = &self.snapshot.issuers;
        let named = token::issuer(token);
        let named = named.and_then(|iss| issuers.find(&iss).ok_or(Bad::UnknownIssuer));
        let (place, issuer) = named.inspect_err(|bad| issuers.strays.refused(*bad as usize))?;
        let keyset = issuer.keys.current();
        let verified = token::verify(token, &keyset, &issuer.rules, now);
        let verified = verified.inspect_err(|bad| {
            if *bad == Bad::UnknownKey && !self.is_last {
                self.unknown = Some(Arc::clone(issuer));
            } else {
                issuer.meters.refused(*bad as usize);
            }
        })?;
        issuer.meters.ok.inc();
        let name = [&*issuer.name, "/", &*verified.caller].concat();
        Ok(Believed {
            caller: Caller::proven(name.into(), self.plan(issuer, &verified)),
            issuer: Arc::clone(issuer),
            place,
            keyset: keyset.serial(),
            generation: self.snapshot.generation,
            verified,
        })
    }

    /// The plan that a token names, or its issuer's.
    fn plan(&self, issuer: &Issuer, verified: &Verified) -> Option<usize> {
        let Some(name) = &verified.plan else {
            return issuer.plan;
        };
        let mut plans = self.snapshot.settings.plans.iter();
        let named = plans.position(|plan| plan.name == *name);
        if named.is_none() {
            issuer.meters.unknown_plans.inc();
        }
        named.or(issuer.plan)
    }
}

impl Believed {
    /// Whether it would be believed again.
    fn holds(&self, generation: u64, now: i64) -> bool {
        self.generation == generation
            && self.keyset == self.issuer.keys.serial()
            && self.verified.is_valid(now)
    }
}
