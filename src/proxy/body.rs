//! Decides what an answer's body is, and when a request has ended: with the last byte of its
//! answer.
//!
//! The record travels with the body. A body dropped before its end is a client that went away,
//! unless an upstream fault cut it: then the client sees a cut too, never a clean end.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::panicked::{self, guarded_call};
use super::record::Record;
use crate::protocol::Outcome;
use crate::protocol::envelope::is_error_response;
use crate::upstream::{Cause, Fault, ReplyBody};

/// The body of any answer.
#[derive(Debug)]
pub struct Body {
    source: Source,
    /// `None` once the request has ended.
    record: Option<Box<Record>>,
    outcome: Outcome,
    /// Whether the first bytes are still to be looked at.
    tells: bool,
}

#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "the larger variant is the common one, and stays where it is made"
)]
enum Source {
    /// Whole, made here; empty once taken.
    Made(Bytes),
    /// As it comes from the upstream.
    Relayed(ReplyBody),
}

impl Body {
    /// A body made by the gateway, which ends the request this way.
    pub(super) fn made(bytes: Bytes, mut record: Box<Record>, outcome: Outcome) -> Self {
        // Until the bytes are taken, the client may still go away.
        record.ends(Outcome::ClientGone);
        Self {
            source: Source::Made(bytes),
            record: Some(record),
            outcome,
            tells: false,
        }
        .ended_if_empty()
    }

    /// A body made by the gateway for what is no request, such as a probe.
    pub(super) const fn apart(bytes: Bytes) -> Self {
        Self {
            source: Source::Made(bytes),
            record: None,
            outcome: Outcome::Ok,
            tells: false,
        }
    }

    /// The upstream's body, passed on as it comes. `tells`: whether it is JSON whose first bytes
    /// tell an error from a result.
    pub(super) fn relayed(
        body: ReplyBody,
        record: Box<Record>,
        outcome: Outcome,
        tells: bool,
    ) -> Self {
        Self {
            source: Source::Relayed(body),
            record: Some(record),
            outcome,
            tells,
        }
        .ended_if_empty()
    }

    fn ended_if_empty(mut self) -> Self {
        if self.is_end_stream() {
            self.end(self.outcome);
        }
        self
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(mut record) = self.record.take() {
            record.ends(outcome);
        }
    }

    fn passes(&mut self, bytes: &Bytes) {
        if std::mem::take(&mut self.tells) && is_error_response(bytes) == Some(true) {
            self.outcome = Outcome::UpstreamError;
        }
        if let Some(record) = &mut self.record {
            record.bytes_out += bytes.len() as u64;
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let polled = guarded_call(|| self.as_mut().poll_source(context));
        polled.unwrap_or_else(|_| Poll::Ready(Some(Err(self.broken()))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Made(bytes) => bytes.is_empty(),
            Source::Relayed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Made(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Source::Relayed(body) => body.size_hint(),
        }
    }
}

impl Body {
    /// A panic while the answer was passed on: what came of it is all there will be, and it looks cut.
    #[cold]
    fn broken(&mut self) -> Fault {
        self.source = Source::Made(Bytes::new());
        if let Some(record) = &mut self.record {
            panicked::note(record.worker(), Some(record.request_id.as_str()));
            record.because("a panic");
        }
        self.end(Outcome::Internal);
        Fault::unsendable("a panic")
    }

    fn poll_source(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let polled = match &mut self.source {
            Source::Made(bytes) if bytes.is_empty() => Poll::Ready(None),
            Source::Made(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Source::Relayed(body) => Pin::new(body).poll_frame(context),
        };
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(bytes) = frame.data_ref() {
                    self.passes(bytes);
                }
                if self.is_end_stream() {
                    let outcome = self.outcome;
                    self.end(outcome);
                }
            }
            Poll::Ready(None) => {
                let outcome = self.outcome;
                self.end(outcome);
            }
            Poll::Ready(Some(Err(fault))) => {
                if let Some(record) = &mut self.record {
                    let request_id = record.request_id.as_str();
                    tracing::warn!(request_id, %fault, "answer cut");
                    record.because(fault.to_string());
                }
                self.end(match fault.cause {
                    Cause::IdleTimeout => Outcome::UpstreamTimeout,
                    Cause::Invalid => Outcome::UpstreamInvalid,
                    Cause::Unreachable
                    | Cause::ConnectTimeout
                    | Cause::Tls
                    | Cause::Reset
                    | Cause::ResponseTimeout
                    | Cause::NoCapacity
                    | Cause::Full
                    | Cause::Unsendable => Outcome::UpstreamReset,
                });
            }
        }
        polled
    }
}
