//! Decides what of the upstream's answer the client receives: all of it, but for what belongs to
//! one connection.
//!
//! Status, headers and body pass as they come; a stream passes each piece as it comes. Added are
//! the request's id, how the caller stands with its quotas, `A2A-Extensions` with the activated URI
//! where the request was activated and the upstream named none, and `X-Accel-Buffering: no` on event
//! streams that say nothing of it; a redirect to the upstream itself leads to the endpoint. Must
//! never read more of a body than its first bytes.

use http::StatusCode;

use super::body::Body;
use super::hop;
use super::location::translate;
use super::record::Record;
use crate::http1::{Answer, Fields, Known, Lines};
use crate::protocol::{Activation, Outcome};
use crate::state::Endpoint;
use crate::upstream::{Reply, Upstream};

/// What tells proxies whether to buffer an answer.
const ACCEL: &[u8] = b"x-accel-buffering";

/// A request that was forwarded and answered.
pub(super) struct Passed<'s> {
    /// The upstream's answer.
    pub(super) reply: Reply,
    /// What was activated; `None` where the policy does not apply.
    pub(super) activation: Option<Activation<'s>>,
    /// Where it was asked.
    pub(super) endpoint: &'s Endpoint,
    /// Who answered.
    pub(super) upstream: &'s Upstream,
}

/// Passes an upstream's answer on.
pub(super) fn relay(passed: Passed<'_>, mut record: Box<Record>) -> Answer<Body> {
    let Passed {
        reply,
        activation,
        endpoint,
        upstream,
    } = passed;
    let Reply {
        status,
        fields,
        body,
        ..
    } = reply;
    let announced = record.take_announced();
    let is_listing = fields.has(Known::Connection);
    let is_framed = !record.asks_head() && status != StatusCode::NOT_MODIFIED;
    let mut lines = Lines::new();
    let mut has_date = false;
    let mut redirects = Vec::new();
    fields.copy(&mut lines, |field| {
        let known = field.known;
        let stays_there = known.is_hop_by_hop() || (is_listing && hop::lists(&fields, field));
        let is_made_anew = known == Known::XRequestId
            // Where there is a body to count.
            || (known == Known::ContentLength && is_framed)
            || announced.as_ref().is_some_and(|it| it.replaces(field.name));
        if stays_there || is_made_anew {
            return false;
        }
        has_date |= known == Known::Date;
        if known == Known::Location
            && let Some(told) = translate(field.value, upstream, &endpoint.path)
        {
            redirects.push((field.name, told));
            return false;
        }
        true
    });
    lines.has_date = has_date;
    for (name, told) in redirects {
        lines.push(name, told.as_bytes());
    }
    if let Some(activation) = activation
        && activation.is_activated()
        && !fields.has(Known::A2aExtensions)
    {
        let uri = activation.contract().extension.value();
        lines.push(b"a2a-extensions", uri.as_bytes());
    }
    let streams = is_of_type(&fields, b"text/event-stream");
    if streams
        && !fields
            .iter()
            .any(|field| field.name.eq_ignore_ascii_case(ACCEL))
    {
        // Proxies in front of us hold a stream's events back unless they are told.
        lines.push(ACCEL, b"no");
    }
    lines.push(b"x-request-id", record.request_id.as_bytes());
    if let Some(announced) = announced {
        announced.write(&mut lines);
    }
    record.sends(status);
    let outcome = if status.is_client_error() || status.is_server_error() {
        Outcome::UpstreamError
    } else {
        Outcome::Ok
    };
    let tells = activation.is_some() && is_plain_json(&fields);
    Answer {
        status,
        lines,
        body: Body::relayed(body, record, outcome, tells),
    }
}

fn is_plain_json(fields: &Fields) -> bool {
    is_of_type(fields, b"application/json") && !fields.has(Known::ContentEncoding)
}

/// Whether the answer's media type begins like this.
fn is_of_type(fields: &Fields, start: &[u8]) -> bool {
    let type_ = fields.first(Known::ContentType);
    type_
        .and_then(|type_| type_.get(..start.len()))
        .is_some_and(|type_| type_.eq_ignore_ascii_case(start))
}
