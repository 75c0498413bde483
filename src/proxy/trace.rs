//! Decides where a request stands in a trace, and what of that the dealer is told.
//!
//! A context that is valid always travels on: as it came where nothing is exported, else with our own
//! span as its parent. One that is not valid never does (W3C Trace Context). Nothing is invented
//! where nothing is exported.

use super::worker::Worker;
use crate::http1::{Fields, Known};
use crate::observe::trace::{Context, LENGTH, RANDOM, SAMPLED, is_state};

/// A request's place in a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trace {
    /// What the caller sent, where that is valid.
    given: Option<Context>,
    /// Whether the caller's `tracestate` belongs to it.
    keeps_state: bool,
    /// Our spans, where spans are exported.
    own: Option<Own>,
}

/// The spans of a request.
#[derive(Clone, Copy, Debug)]
struct Own {
    call: Context,
    exchange: [u8; 8],
}

impl Trace {
    /// No place at all.
    const NONE: Self = Self {
        given: None,
        keeps_state: false,
        own: None,
    };

    /// The place of a request with these fields.
    pub(super) fn of(worker: &Worker, fields: &Fields) -> Self {
        let is_told = fields.has(Known::Traceparent);
        if !is_told && worker.tracer.is_none() {
            return Self::NONE;
        }
        let given = is_told.then(|| given(fields)).flatten();
        let states = fields.all(Known::Tracestate);
        let has_state = given.is_some() && fields.has(Known::Tracestate);
        Self {
            given,
            keeps_state: has_state && is_state(states),
            own: worker.tracer.as_ref().map(|tracer| {
                let (trace, call, exchange) = worker.spans();
                let trace = given.map_or(trace, |it| it.trace);
                let random = given.map_or(RANDOM, |it| it.flags & RANDOM);
                let is_recorded = tracer.sampler().records(trace, given.as_ref());
                Own {
                    call: Context {
                        trace,
                        span: call,
                        flags: random | if is_recorded { SAMPLED } else { 0 },
                    },
                    exchange,
                }
            }),
        }
    }

    /// Whether one of the caller's fields travels on as it came.
    pub(super) const fn passes(&self, known: Known) -> bool {
        if matches!(known, Known::Traceparent) {
            self.given.is_some() && self.own.is_none()
        } else {
            self.keeps_state || !matches!(known, Known::Tracestate)
        }
    }

    /// The `traceparent` that the dealer gets instead of the caller's.
    pub(super) fn parent_of_the_dealer(&self) -> Option<[u8; LENGTH]> {
        let own = self.own?;
        Some(
            Context {
                span: own.exchange,
                ..own.call
            }
            .spell(),
        )
    }

    /// The trace and the span under which the request can be found: ours, else the caller's. One that begins
    /// here and is not recorded is nowhere to be found.
    pub(super) fn shown(&self) -> Option<Context> {
        let own = self.own.map(|own| own.call);
        own.filter(|own| own.is_sampled() || self.given.is_some())
            .or(self.given)
    }

    /// The spans to be exported: the call's, the caller's, that of its way to the dealer.
    pub(super) fn recorded(&self) -> Option<(Context, Option<[u8; 8]>, [u8; 8])> {
        let own = self.own.filter(|own| own.call.is_sampled())?;
        Some((own.call, self.given.map(|it| it.span), own.exchange))
    }
}

/// The context of the one `traceparent` line.
fn given(fields: &Fields) -> Option<Context> {
    let mut lines = fields.all(Known::Traceparent);
    match (lines.next(), lines.next()) {
        (Some(line), None) => Context::read(line),
        _ => None,
    }
}
