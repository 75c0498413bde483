//! Decides when an error was spelled before: the last one of this worker, asked for again.
//!
//! A client that is refused tends to come back with the same mistake. The text of its error depends
//! on the refusal and the contract alone, unless it is stamped; the id goes around it. Must never
//! give one contract's text for another's, nor one that carries a stamp.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use crate::protocol::{Answer, ErrorText, Id, Refusal, Stamp};
use crate::state::Endpoint;

/// The last error that a worker spelled.
#[derive(Debug, Default)]
pub(super) struct Repeated(RefCell<Option<Last>>);

#[derive(Debug)]
struct Last {
    /// Keeps the place in memory, not the endpoint: no other can be taken for it.
    endpoint: Weak<Endpoint>,
    pin: usize,
    refusal: Refusal,
    error: ErrorText,
}

impl Repeated {
    /// The answer to a refusal at an endpoint under one of its contracts, if it is the last one again.
    pub(super) fn answer(
        &self,
        refusal: &Refusal,
        endpoint: &Arc<Endpoint>,
        pin: usize,
        id: Id<'_>,
    ) -> Option<Answer> {
        let last = self.0.borrow();
        let last = last.as_ref()?;
        let is_same = std::ptr::eq(last.endpoint.as_ptr(), Arc::as_ptr(endpoint))
            && last.pin == pin
            && last.refusal == *refusal;
        is_same.then(|| last.error.answer(id))
    }

    /// Spells an error, and remembers it.
    pub(super) fn spell(
        &self,
        refusal: &Refusal,
        endpoint: &Arc<Endpoint>,
        pin: usize,
        id: Id<'_>,
        stamp: Stamp<'_>,
    ) -> Answer {
        let error = ErrorText::of(refusal, &endpoint.pin(pin).contract, stamp);
        let answer = error.answer(id);
        if !error.is_stamped {
            *self.0.borrow_mut() = Some(Last {
                endpoint: Arc::downgrade(endpoint),
                pin,
                refusal: refusal.clone(),
                error,
            });
        }
        answer
    }
}
