//! Decides what the upstream receives: the caller's request with the activation applied.
//!
//! The body is the bytes that were judged. Of the head, what belongs to one connection stays here,
//! framing is made anew, only absent A2A headers are filled in, and what identifies the client is
//! rebuilt rather than believed. Query parameters named like the A2A headers do not travel.

use std::borrow::Cow;

use http::Method;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};

use super::client::{Told, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO};
use super::hop;
use crate::protocol::headers::{A2A_EXTENSIONS, A2A_VERSION, LOOK_ALIKES};
use crate::protocol::judge::Activation;
use crate::protocol::query;
use crate::state::connection::Connection;
use crate::upstream::{Fields, Upstream};

/// The id of one request, ours or the caller's.
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

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
    /// The caller's headers.
    pub(super) headers: &'r HeaderMap,
    /// Where it goes.
    pub(super) place: Place<'r>,
    /// The query as received.
    pub(super) query: Option<&'r str>,
    /// What trusted proxies told of the client.
    pub(super) told: Option<&'r Told>,
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
#[derive(Debug)]
pub(super) struct Outgoing<'r> {
    head: &'r Head<'r>,
    client: &'r Connection,
    upstream: &'r Upstream,
    request_id: &'r HeaderValue,
    stay_here: Vec<HeaderName>,
}

impl<'r> Outgoing<'r> {
    pub(super) fn new(
        head: &'r Head<'r>,
        client: &'r Connection,
        upstream: &'r Upstream,
        request_id: &'r HeaderValue,
    ) -> Self {
        Self {
            head,
            client,
            upstream,
            request_id,
            stay_here: hop::listed(head.headers),
        }
    }

    /// Whether a field of the caller's reaches the upstream as it came.
    fn travels(&self, name: &HeaderName) -> bool {
        let is_ours = *name == HOST
            || *name == X_REQUEST_ID
            || (self.head.activation.is_some() && is_judged(name));
        let stays = hop::is_hop_by_hop(name.as_str()) || is_unwanted(name.as_str());
        !is_ours && !stays && !self.stay_here.contains(name) && !self.is_operators(name)
    }

    /// Whether the operator sets this field: then nobody else does.
    fn is_operators(&self, name: &HeaderName) -> bool {
        self.upstream
            .headers
            .iter()
            .any(|(theirs, _)| theirs == name)
    }

    /// Says who is asking: what is certain of it, and what trusted proxies told.
    fn introduce(
        &self,
        asked: Option<&HeaderValue>,
        tell: &mut dyn FnMut(&HeaderName, &HeaderValue),
    ) {
        let told = self.head.told;
        let forwarded_for = told.map_or(&self.client.forwarded_for, |told| &told.forwarded_for);
        tell(&X_FORWARDED_FOR, forwarded_for);
        let scheme = told.and_then(|told| told.scheme);
        let scheme = HeaderValue::from_static(scheme.unwrap_or(self.client.scheme));
        tell(&X_FORWARDED_PROTO, &scheme);
        if let Some(host) = told.and_then(|told| told.host.as_ref()).or(asked) {
            tell(&X_FORWARDED_HOST, host);
        }
    }
}

impl Fields for Outgoing<'_> {
    fn each(&self, tell: &mut dyn FnMut(&HeaderName, &HeaderValue)) {
        let asked = self.head.headers.get_all(HOST).iter().next();
        if !self.is_operators(&HOST) {
            let host = asked.filter(|_| self.upstream.preserve_host);
            tell(&HOST, host.unwrap_or(&self.upstream.authority));
        }
        for (name, value) in self.head.headers {
            if self.travels(name) {
                tell(name, value);
            }
        }
        let mut ours = |name: &HeaderName, value: &HeaderValue| {
            if !self.is_operators(name) {
                tell(name, value);
            }
        };
        self.introduce(asked, &mut ours);
        ours(&X_REQUEST_ID, self.request_id);
        if let Some(activation) = &self.head.activation {
            activation.lines(self.head.headers, &mut ours);
        }
        for (name, value) in &self.upstream.headers {
            tell(name, value);
        }
    }
}

/// Whether a field of the caller's must not reach the upstream: its framing and expectation are
/// this hop's, its word on who it is is not believed, and look-alikes of the A2A headers are
/// merged with the real ones by CGI-style servers.
fn is_unwanted(name: &str) -> bool {
    matches!(
        name,
        "content-length" | "expect" | "forwarded" | "x-real-ip"
    ) || name.starts_with("x-forwarded-")
        || LOOK_ALIKES.contains(&name)
}

/// Whether a field is one of the two that were judged.
fn is_judged(name: &HeaderName) -> bool {
    *name == A2A_VERSION || *name == A2A_EXTENSIONS
}
