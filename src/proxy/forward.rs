//! Decides what the upstream receives: the caller's request with the activation applied.
//!
//! The body is the bytes that were judged. Of the head, what belongs to one connection stays here,
//! framing is made anew, only absent A2A headers are filled in, and what identifies the client is
//! rebuilt rather than believed. Query parameters named like the A2A headers do not travel.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue, Method};

use super::client::Told;
use super::credential::Keeping;
use super::hop;
use super::request_id::RequestId;
use super::trace::Trace;
use crate::http1::{Field, Fields, Known, Lines};
use crate::protocol::judge::Activation;
use crate::protocol::query;
use crate::state::connection::Connection;
use crate::upstream::Upstream;

/// Where on the upstream a request goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'p> {
    /// The upstream's own path, followed by what follows the endpoint's path.
    Below(&'p str),
    /// A path at the upstream's root.
    Root(&'p str),
}

/// What is sent, but for the body.
#[derive(Debug)]
pub(super) struct Head<'r> {
    /// The method.
    pub(super) method: &'r Method,
    /// The caller's fields.
    pub(super) fields: &'r Fields,
    /// Where it goes.
    pub(super) place: Place<'r>,
    /// The query as received.
    pub(super) query: Option<&'r str>,
    /// What trusted proxies told of the client.
    pub(super) told: Option<&'r Told>,
    /// What becomes of the caller's credentials; none where nobody looked at them.
    pub(super) credentials: Option<Keeping<'r>>,
    /// Its place in a trace.
    pub(super) trace: Trace,
    /// The headers to fill in; none for what the policy does not apply to.
    pub(super) activation: Option<Activation<'r>>,
}

/// Where a request goes on the upstream.
#[derive(Debug)]
pub(super) struct Target<'r> {
    /// Path and query.
    pub(super) text: Cow<'r, str>,
    /// Whether the query lost parameters.
    pub(super) is_stripped: bool,
}

/// The target that the upstream is asked for.
pub(super) fn target<'r>(head: &Head<'r>, upstream: &'r Upstream) -> Target<'r> {
    let stripped = head.query.and_then(query::strip);
    let is_stripped = stripped.is_some();
    let query = stripped.as_deref().or(head.query);
    // An emptied query loses its question mark; one that came empty keeps it.
    let query = query.filter(|query| !(is_stripped && query.is_empty()));
    let path = match head.place {
        Place::Below(rest) => upstream.path_with(rest),
        Place::Root(path) => Cow::Borrowed(path),
    };
    let text = match query {
        None => path,
        Some(query) => Cow::Owned(format!("{path}?{query}")),
    };
    Target { text, is_stripped }
}

/// The fields that the upstream receives: the caller's, but for what must not travel, then ours.
pub(super) fn lines(
    head: &Head<'_>,
    client: &Connection,
    upstream: &Upstream,
    request_id: &RequestId,
) -> Lines {
    let caller = Caller {
        fields: head.fields,
        picks: head.credentials.is_some() || head.fields.has(Known::Connection),
        trace: head.trace,
        credentials: head.credentials,
    };
    // What the operator sets, nobody else does.
    let is_operators = |name: &[u8]| {
        let theirs = |(theirs, _): &(HeaderName, _)| is(theirs, name);
        upstream.headers.iter().any(theirs)
    };
    let mut lines = Lines::new();
    let asked = head.fields.first(Known::Host);
    if !is_operators(b"host") {
        let host = asked.filter(|_| upstream.preserve_host);
        lines.push(b"host", host.unwrap_or(upstream.authority.as_bytes()));
    }
    head.fields.copy(&mut lines, |field| {
        caller.sends(field) && !is_operators(field.name)
    });
    let mut ours = |name: &[u8], value: &[u8]| {
        if !is_operators(name) {
            lines.push(name, value);
        }
    };
    // Who is asking: what is certain of it, and what trusted proxies told.
    let told = head.told;
    let forwarded_for = told.map_or(&client.forwarded_for, |told| &told.forwarded_for);
    ours(b"x-forwarded-for", forwarded_for.as_bytes());
    let scheme = told.and_then(|told| told.scheme).unwrap_or(client.scheme);
    ours(b"x-forwarded-proto", scheme.as_bytes());
    let told_host = told.and_then(|told| told.host.as_ref());
    if let Some(host) = told_host.map(HeaderValue::as_bytes).or(asked) {
        ours(b"x-forwarded-host", host);
    }
    ours(b"x-request-id", request_id.as_bytes());
    if let Some(parent) = head.trace.parent_of_the_dealer() {
        ours(b"traceparent", &parent);
    }
    for (name, value) in head.activation.iter().flat_map(Activation::filled) {
        ours(name.as_str().as_bytes(), value.as_bytes());
    }
    for (name, value) in &upstream.headers {
        lines.push(name.as_str().as_bytes(), value.as_bytes());
    }
    lines
}

/// A caller's fields on their way to the upstream.
struct Caller<'r> {
    fields: &'r Fields,
    /// Whether one may stay here for another reason than what it is.
    picks: bool,
    credentials: Option<Keeping<'r>>,
    trace: Trace,
}

impl Caller<'_> {
    /// Whether a field reaches the upstream as it came: its framing and expectation are this hop's,
    /// its word on who it is is not believed, and look-alikes of the A2A headers are merged with the
    /// real ones by CGI-style servers.
    fn sends(&self, field: &Field<'_>) -> bool {
        let is_made_anew = matches!(
            field.known,
            Known::ContentLength
                | Known::Expect
                | Known::Forwarded
                | Known::Host
                | Known::LookAlike
                | Known::OwnWay
                | Known::XForwardedFor
                | Known::XForwardedHost
                | Known::XForwardedProto
                | Known::XRequestId
        );
        let stays_here = field.known.is_hop_by_hop() || (self.picks && self.picked(field));
        !is_made_anew && !stays_here && self.trace.passes(field.known)
    }

    /// Whether a `Connection` line lists it, or it is a credential that goes no further.
    fn picked(&self, field: &Field<'_>) -> bool {
        hop::lists(self.fields, field) || self.credentials.is_some_and(|it| it.keeps(field))
    }
}

fn is(ours: &HeaderName, name: &[u8]) -> bool {
    ours.as_str().as_bytes().eq_ignore_ascii_case(name)
}
