//! Decides what a panic inside a request becomes: it is counted, logged by where it happened and by the
//! request's id, and answered as any failure of ours is. Whatever else the worker serves goes on.
//!
//! Must never tell what a panic said, to anybody: it may be made of what a caller sent.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt as _;
use futures_util::future::CatchUnwind;

use super::intake::Held;
use super::record::Record;
use super::respond::{Refused, Stop};
use super::worker::Worker;
use crate::observe::{Caught, panics};
use crate::protocol::{Failure, Refusal, peek};

/// What a panic left: nothing of it is looked at.
pub(super) type Left = Box<dyn Any + Send>;

/// Lets a panic in a future end that future alone.
///
/// What it worked on is either dropped with it or made for being left at any point: a request's future
/// is dropped wherever it stands when its client goes.
pub(super) fn guarded<F: Future>(future: F) -> CatchUnwind<AssertUnwindSafe<F>> {
    AssertUnwindSafe(future).catch_unwind()
}

/// The same for what does not wait.
pub(super) fn guarded_call<T>(call: impl FnOnce() -> T) -> Result<T, Left> {
    catch_unwind(AssertUnwindSafe(call))
}

/// Counts and logs a panic of a request. No id: it came to nothing that would have one.
pub(super) fn note(worker: &Worker, request_id: Option<&str>) {
    worker.shared.metrics.panics(Caught::Request).inc();
    let at = panics::place();
    tracing::error!(request_id, at, "a request panicked");
}

/// What a request is stopped with that panicked on its way, with all that is known of it.
pub(super) fn stop(held: Option<&Held>, record: &mut Record) -> Stop {
    note(record.worker(), Some(record.request_id.as_str()));
    record.because("a panic");
    let was_sent = record.was_forwarded();
    let Some(held) = held else {
        let refusal = failed(!was_sent);
        return match record.is_a_call() {
            true => Refused::unread(refusal).into(),
            false => Stop::RelayFailed(refusal),
        };
    };
    let (id, is_safe) = match peek(&held.bytes) {
        Ok(envelope) => (envelope.id, envelope.is_safe_to_repeat()),
        Err(unreadable) => (unreadable.id, false),
    };
    Refused::read(failed(!was_sent || is_safe), record.pin(), id).into()
}

const fn failed(retryable: bool) -> Refusal {
    Refusal::Failed {
        failure: Failure::Internal,
        retryable,
        retry_after_ms: None,
    }
}
