//! Decides what the upstream receives: the caller's request with the activation applied.
//!
//! The body is the bytes that were judged. Of the head, what belongs to one connection stays here,
//! framing is made anew, only absent A2A headers are filled in, and what identifies the client is
//! rebuilt rather than believed. Query parameters named like the A2A headers do not travel.

use bytes::Bytes;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Uri};

use super::client::{Told, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO};
use super::hop;
use crate::protocol::headers::LOOK_ALIKES;
use crate::protocol::judge::Activation;
use crate::protocol::query;
use crate::state::connection::Connection;
use crate::upstream::{Fault, Outgoing, Upstream};

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
    pub(super) method: Method,
    /// The caller's headers, taken over.
    pub(super) headers: HeaderMap,
    /// Where it goes.
    pub(super) place: Place<'r>,
    /// The query as received.
    pub(super) query: Option<&'r str>,
    /// What trusted proxies told of the client.
    pub(super) told: Option<&'r Told>,
    /// The request's id.
    pub(super) request_id: HeaderValue,
    /// The headers to fill in; none for what the policy does not apply to.
    pub(super) activation: Option<Activation<'r>>,
}

/// A request ready to be sent, and whether the query lost something.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The request.
    pub(super) request: Request<Outgoing>,
    /// Whether query parameters were stripped.
    pub(super) stripped_query: bool,
}

/// Builds the outgoing request.
///
/// # Errors
/// When the target is no URI, which a request that was routed cannot cause.
pub(super) fn prepare(
    head: Head<'_>,
    body: Bytes,
    client: &Connection,
    upstream: &Upstream,
) -> Result<Prepared, Fault> {
    let stripped = head.query.and_then(query::strip);
    let stripped_query = stripped.is_some();
    let query = stripped.as_deref().or(head.query);
    let uri = target(upstream, head.place, query, stripped_query).map_err(Fault::unsendable)?;
    let mut request = Request::new(Outgoing::new(body));
    *request.method_mut() = head.method;
    *request.uri_mut() = uri;
    let mut headers = head.headers;
    hop::strip(&mut headers, is_unwanted);
    introduce(&mut headers, client, head.told, upstream);
    headers.insert(X_REQUEST_ID, head.request_id);
    if let Some(activation) = head.activation {
        activation.apply(&mut headers);
    }
    for (name, value) in &upstream.headers {
        headers.insert(name, value.clone());
    }
    *request.headers_mut() = headers;
    Ok(Prepared {
        request,
        stripped_query,
    })
}

fn target(
    upstream: &Upstream,
    place: Place<'_>,
    query: Option<&str>,
    stripped: bool,
) -> Result<Uri, http::uri::InvalidUri> {
    // An emptied query loses its question mark; one that came empty keeps it.
    let query = query.filter(|query| !(stripped && query.is_empty()));
    let path = match (place, query) {
        (Place::Below("" | "/"), None) => return Ok(upstream.uri.clone()),
        (Place::Below(rest), _) => upstream.path_with(rest),
        (Place::Root(path), _) => path.to_owned(),
    };
    let text = match query {
        None => path,
        Some(query) => format!("{path}?{query}"),
    };
    Uri::try_from(text)
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

/// Says who is asking whom: what is certain of it, and what trusted proxies told.
fn introduce(
    headers: &mut HeaderMap,
    client: &Connection,
    told: Option<&Told>,
    upstream: &Upstream,
) {
    let forwarded_for = told.map_or(&client.forwarded_for, |told| &told.forwarded_for);
    headers.insert(X_FORWARDED_FOR, forwarded_for.clone());
    let scheme = told.and_then(|told| told.scheme).unwrap_or(client.scheme);
    headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(scheme));
    let asked = headers.insert(HOST, upstream.authority.clone());
    if let Some(asked) = asked {
        if upstream.preserve_host {
            headers.insert(HOST, asked.clone());
        }
        let host = told.and_then(|told| told.host.clone());
        headers.insert(X_FORWARDED_HOST, host.unwrap_or(asked));
    }
}
