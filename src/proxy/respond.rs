//! Decides every answer the gateway makes itself. The only place that turns a refusal into an HTTP
//! response.
//!
//! Where a contract is known the answer is JSON-RPC in its dialect with the caller's id; before
//! that it is plain HTTP. An answer given before the body was read closes the connection, because
//! what follows on it could be taken for another request; over HTTP/2 it ends the stream alone.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

use super::body::Body;
use super::record::{Made, Record};
use super::strict::Unfit;
use crate::http1::{Answer, Lines};
use crate::limit::Shortage;
use crate::protocol::refusal::{Lack, Media};
use crate::protocol::{Id, Outcome, Refusal, Stamp};
use crate::state::Endpoint;

/// Why a request did not go through, with what its answer needs.
#[derive(Debug)]
pub(super) enum Stop {
    /// It is not acceptable HTTP.
    Unfit(Unfit),
    /// Nothing is served at its host and path.
    NoRoute,
    /// Its HTTP method is not served there.
    MethodNotAllowed,
    /// A body whose framing broke, or whose client is gone.
    BrokenBody,
    /// An upstream failed on something that is no JSON-RPC call, such as an agent card.
    RelayFailed(Refusal),
    /// It was refused.
    Refused(Refused),
}

/// A refusal on its way to its answer.
#[derive(Debug)]
pub(super) struct Refused {
    /// Why.
    pub(super) refusal: Refusal,
    /// Which of the endpoint's contracts spells it.
    pub(super) pin: usize,
    /// The caller's id as JSON text; `None` where it was not read.
    pub(super) id: Option<Box<str>>,
    /// Which of the endpoint's quotas refused, and at what cost.
    pub(super) shortage: Option<Shortage>,
    /// Whether the body was read, so that the connection can go on.
    pub(super) body_was_read: bool,
}

impl Refused {
    /// A refusal decided before the body was read.
    pub(super) const fn unread(refusal: Refusal) -> Self {
        Self {
            refusal,
            pin: 0,
            id: None,
            shortage: None,
            body_was_read: false,
        }
    }

    /// A refusal of a request that was read.
    pub(super) fn read(refusal: Refusal, pin: usize, id: Id<'_>) -> Self {
        Self {
            refusal,
            pin,
            id: Some(id.as_str().into()),
            shortage: None,
            body_was_read: true,
        }
    }
}

impl Stop {
    /// Why, in words of ours.
    pub(super) fn why(&self) -> String {
        match self {
            Self::Unfit(unfit) => unfit.why.to_owned(),
            Self::BrokenBody => BROKEN_BODY.to_owned(),
            Self::NoRoute => NO_ROUTE.to_owned(),
            Self::MethodNotAllowed => ONLY_POST.to_owned(),
            Self::RelayFailed(refusal) | Self::Refused(Refused { refusal, .. }) => {
                refusal.message()
            }
        }
    }
}

/// What the plain answers say.
const BROKEN_BODY: &str = "the request body is broken";
const NO_ROUTE: &str = "nothing is served at this host and path";
const ONLY_POST: &str = "only POST is served here";

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<Unfit> for Stop {
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(unfit)
    }
}

/// Answers a request that did not go through.
pub(super) fn respond(stop: Stop, mut record: Box<Record>) -> Answer<Body> {
    match stop {
        Stop::Unfit(unfit) => {
            record.because(unfit.why);
            plain(unfit.status, unfit.why, Outcome::BadHttp, record)
        }
        Stop::BrokenBody => plain(
            StatusCode::BAD_REQUEST,
            BROKEN_BODY,
            Outcome::BadHttp,
            record,
        ),
        Stop::NoRoute => plain(StatusCode::NOT_FOUND, NO_ROUTE, Outcome::NoRoute, record),
        Stop::MethodNotAllowed => {
            let mut answer = plain(
                StatusCode::METHOD_NOT_ALLOWED,
                ONLY_POST,
                Outcome::NoRoute,
                record,
            );
            answer.lines.push(b"allow", b"POST");
            answer
        }
        Stop::RelayFailed(refusal) => {
            let status = refusal.mapped_status();
            let text = if refusal.outcome() == Outcome::Overloaded {
                "too much is being served"
            } else {
                "the dealer agent failed"
            };
            let mut answer = plain(status, text, refusal.outcome(), record);
            if let Some(seconds) = refusal.retry_after_seconds() {
                answer.lines.push_number(b"retry-after", seconds);
            }
            answer
        }
        Stop::Refused(refused) => match record.endpoint().cloned() {
            Some(endpoint) => {
                record.selected(refused.pin);
                refuse(refused, &endpoint, record)
            }
            // A refusal is only ever made at an endpoint.
            None => plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the gateway failed",
                Outcome::Internal,
                record,
            ),
        },
    }
}

fn refuse(refused: Refused, endpoint: &Arc<Endpoint>, mut record: Box<Record>) -> Answer<Body> {
    let Refused {
        refusal, id, pin, ..
    } = &refused;
    let id = id.as_deref().map_or(Id::NULL, Id::of_text);
    let worker = record.worker();
    let mut error_id = None;
    let known = worker.repeated.answer(refusal, endpoint, *pin, id);
    let answer = known.unwrap_or_else(|| {
        let now = worker.now();
        let drawn = error_id.insert(worker.identifier(now));
        let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
        let stamp = Stamp {
            error_id: drawn.hyphenated().encode_lower(&mut buffer),
            created_at: &worker.spell(now),
        };
        worker.repeated.spell(refusal, endpoint, *pin, id, stamp)
    });
    let status = endpoint
        .http_status
        .choose(refusal.kind(), refusal.mapped_status());
    record.made(Made {
        code: answer.code,
        error_id: error_id.filter(|_| answer.is_stamped),
        retry_after_ms: refusal.retry_after_ms(),
        shortage: refused.shortage,
    });
    let body = Bytes::from(answer.body);
    let mut answer = made(status, body, refusal.outcome(), record);
    let lines = &mut answer.lines;
    lines.push(b"content-type", b"application/json");
    if let Some(seconds) = refusal.retry_after_seconds() {
        lines.push_number(b"retry-after", seconds);
    }
    if *refusal == Refusal::ContentTypeNotSupported(Media::ContentEncoding) {
        lines.push(b"accept-encoding", b"identity");
    }
    if let Refusal::Unauthenticated(lack) = refusal {
        lines.push(b"www-authenticate", challenge(*lack));
    }
    lines.closes = !refused.body_was_read;
    answer
}

/// What a caller is asked for (RFC 9110 section 11.6.1, RFC 6750 section 3). API keys have no scheme of
/// their own: as `Bearer` they are taken everywhere.
const fn challenge(lack: Lack) -> &'static [u8] {
    match lack {
        Lack::Absent | Lack::Bad => b"Bearer realm=\"forecourt\"",
        Lack::BadBearer => b"Bearer realm=\"forecourt\", error=\"invalid_token\"",
    }
}

/// A plain text answer, where no contract is known. The connection is closed.
fn plain(
    status: StatusCode,
    text: &'static str,
    outcome: Outcome,
    record: Box<Record>,
) -> Answer<Body> {
    let body = Bytes::from(format!("{text}\n"));
    let mut answer = made(status, body, outcome, record);
    answer
        .lines
        .push(b"content-type", b"text/plain; charset=utf-8");
    answer.lines.closes = true;
    answer
}

fn made(
    status: StatusCode,
    body: Bytes,
    outcome: Outcome,
    mut record: Box<Record>,
) -> Answer<Body> {
    record.sends(status);
    let mut lines = Lines::new();
    lines.push(b"cache-control", b"no-store");
    lines.push(b"x-request-id", record.request_id.as_bytes());
    if let Some(announced) = record.take_announced() {
        announced.write(&mut lines);
    }
    Answer {
        status,
        lines,
        body: Body::made(body, record, outcome),
    }
}
