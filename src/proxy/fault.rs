//! Decides what a failure on our side becomes: an outcome, and an answer that tells nothing of how.
//!
//! The fault itself is for the log. `retryable` is truthful: true only when nothing of the request
//! can have reached the dealer, or when doing the call twice is the same as doing it once.

use crate::protocol::{Failure, Refusal};
use crate::upstream::{Cause, Fault};

/// How long a caller waits after the gateway shed its call, in ms.
const SHED_FOR_MS: u64 = 1000;

/// What an upstream fault says to the caller.
#[must_use]
pub(super) fn refusal(fault: &Fault, is_safe_to_repeat: bool) -> Refusal {
    let failure = match fault.cause {
        Cause::Unreachable | Cause::Tls => Failure::Unreachable,
        Cause::ConnectTimeout | Cause::ResponseTimeout | Cause::IdleTimeout => Failure::Timeout,
        Cause::Reset => Failure::Reset,
        Cause::Invalid => Failure::Invalid,
        Cause::NoCapacity | Cause::Full => return shed(),
        Cause::Unsendable => Failure::Internal,
    };
    Refusal::Failed {
        failure,
        retryable: !fault.may_have_been_sent || is_safe_to_repeat,
        retry_after_ms: None,
    }
}

/// What a used-up budget says: nothing was sent, come back.
#[must_use]
pub(super) const fn shed() -> Refusal {
    Refusal::Failed {
        failure: Failure::Overloaded,
        retryable: true,
        retry_after_ms: Some(SHED_FOR_MS),
    }
}
