//! Decides what of the upstream's answer the client receives: all of it, but for what belongs to
//! one connection.
//!
//! Status, headers and body pass as they come; a stream passes each piece as it comes. Added are
//! the request's id, how the caller stands with its quotas, and `A2A-Extensions` with the activated URI where the request was activated
//! and the upstream named none; a redirect to the upstream itself leads to the endpoint. Must never read more of a body than its first bytes.

use http::Response;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION};

use super::body::Body;
use super::forward::X_REQUEST_ID;
use super::hop;
use super::location::translate;
use super::record::Record;
use crate::protocol::headers::A2A_EXTENSIONS;
use crate::protocol::{Activation, Outcome};
use crate::state::Endpoint;
use crate::upstream::{Reply, Upstream};

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
pub(super) fn relay(passed: Passed<'_>, mut record: Record) -> Response<Body> {
    let Passed {
        reply: Reply { mut head, body, .. },
        activation,
        endpoint,
        upstream,
    } = passed;
    hop::strip(&mut head.headers, |_| false);
    if let http::header::Entry::Occupied(mut location) = head.headers.entry(LOCATION)
        && let Some(told) = translate(location.get(), upstream, &endpoint.path)
    {
        location.insert(told);
    }
    if let Some(activation) = activation
        && activation.is_activated()
        && !head.headers.contains_key(A2A_EXTENSIONS)
    {
        let uri = activation.contract().extension.value().clone();
        head.headers.insert(A2A_EXTENSIONS, uri);
    }
    head.headers.insert(X_REQUEST_ID, record.request_id.clone());
    if let Some(announced) = record.take_announced() {
        announced.write(&mut head.headers);
    }
    head.version = http::Version::HTTP_11;
    record.sends(head.status);
    let outcome = if head.status.is_client_error() || head.status.is_server_error() {
        Outcome::UpstreamError
    } else {
        Outcome::Ok
    };
    let tells = activation.is_some() && is_plain_json(&head.headers);
    Response::from_parts(head, Body::relayed(body, record, outcome, tells))
}

fn is_plain_json(headers: &HeaderMap) -> bool {
    let type_ = headers.get_all(CONTENT_TYPE).iter().next();
    type_.is_some_and(|type_| {
        let json = b"application/json";
        type_
            .as_bytes()
            .split_at_checked(json.len())
            .is_some_and(|(start, _)| start.eq_ignore_ascii_case(json))
    }) && !headers.contains_key(CONTENT_ENCODING)
}
