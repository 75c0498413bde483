//! Decides what is told of a request in a trace: a span for the call, and one for its way to the
//! dealer. Written in OTLP's protobuf at once, into a buffer that is used again: a traced request is
//! to cost little more than its line in the access log.
//!
//! The attributes have OpenTelemetry's names (semantic conventions for HTTP and RPC) where there is
//! one, else ours. Must never tell a body, a query or a credential; text from traffic is cut.

use std::borrow::Cow;
use std::time::Duration;

use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

use crate::observe::line::{Line, without_user};
use crate::observe::trace::Context;
use crate::protocol::Outcome;

/// The most bytes of a text from traffic.
const MOST: usize = 256;

/// `SpanKind`.
const SERVER: u64 = 2;
const CLIENT: u64 = 3;

/// `Status.code` of a failure.
const ERROR: u64 = 2;

/// Bits of `Span.flags` above the trace's: the parent is known to be here, or elsewhere.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// The places of a recorded request's spans in their trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The span of the call.
    pub call: Context,
    /// The caller's span.
    pub parent: Option<[u8; 8]>,
    /// The span of its way to the dealer, and how long after the call that began.
    pub exchange: Option<([u8; 8], Duration)>,
}

/// Appends a request's spans, each as a field of `ScopeSpans`. How many they are.
pub(super) fn append(
    out: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
    line: &Line<'_>,
    spans: &Recorded,
) -> usize {
    scratch.clear();
    call(scratch, line, spans);
    field(out, 2, scratch);
    let Some((id, after)) = spans.exchange else {
        return 1;
    };
    scratch.clear();
    exchange(scratch, line, spans, (id, after));
    field(out, 2, scratch);
    2
}

fn call(out: &mut Vec<u8>, line: &Line<'_>, spans: &Recorded) {
    let (method, _) = method(line);
    ids(
        out,
        &spans.call.trace,
        &spans.call.span,
        spans.parent.as_ref(),
    );
    match line.endpoint {
        Some(endpoint) => text(out, 5, &[method, " ", endpoint]),
        None => text(out, 5, &[method]),
    }
    number(out, 6, SERVER);
    let start = nanos(line);
    fixed64(out, 7, start);
    fixed64(out, 8, start.saturating_add(ns(line.duration)));
    both(out, line);
    word(out, "url.path", line.path.map(before_query));
    let host = line.host.map(|host| without_port(without_user(host)));
    raw(out, "server.address", host);
    word(out, "client.address", line.client_ip);
    word(out, "network.peer.address", line.peer_ip);
    word(out, "network.protocol.version", line.protocol.map(version));
    raw(out, "user_agent.original", line.user_agent);
    if let Some(code) = line.rpc_code {
        int(out, "rpc.jsonrpc.error_code", code);
    }
    word(out, "forecourt.caller", line.caller);
    word(out, "forecourt.quota", line.quota);
    raw(out, "forecourt.request_id", line.request_id);
    word(out, "forecourt.error_id", line.error_id);
    int(
        out,
        "forecourt.generation",
        i64::try_from(line.generation).unwrap_or(i64::MAX),
    );
    status(out, line, fails_here(line));
    // Where the caller's span stands, we do know: elsewhere.
    let remote = if spans.parent.is_some() { IS_REMOTE } else { 0 };
    flags(out, spans, HAS_IS_REMOTE | remote);
}

fn exchange(
    out: &mut Vec<u8>,
    line: &Line<'_>,
    spans: &Recorded,
    (id, after): ([u8; 8], Duration),
) {
    ids(out, &spans.call.trace, &id, Some(&spans.call.span));
    text(out, 5, &[method(line).0]);
    number(out, 6, CLIENT);
    let start = nanos(line);
    fixed64(out, 7, start.saturating_add(ns(after)));
    fixed64(out, 8, start.saturating_add(ns(line.duration.max(after))));
    both(out, line);
    word(out, "forecourt.upstream", line.upstream);
    if let Some(took) = line.upstream_duration {
        double(out, "forecourt.upstream_ms", took.as_secs_f64() * 1e3);
    }
    // Every error of the dealer's own is one on the way there.
    let failed = fails_here(line) || line.outcome == Outcome::UpstreamError;
    status(out, line, failed);
    flags(out, spans, HAS_IS_REMOTE);
}

/// What both spans say.
fn both(out: &mut Vec<u8>, line: &Line<'_>) {
    word(out, "forecourt.endpoint", line.endpoint);
    word(out, "forecourt.contract", line.contract);
    raw(out, "forecourt.skill", line.skill);
    word(out, "forecourt.outcome", Some(line.outcome.label()));
    if line.rpc_method.is_some() {
        word(out, "rpc.system", Some("jsonrpc"));
        raw(out, "rpc.method", line.rpc_method);
    }
    word(out, "http.request.method", method(line).1);
    if let Some(code) = line.status {
        int(out, "http.response.status_code", code.into());
    }
    if line.outcome != Outcome::Ok {
        word(out, "error.type", Some(line.outcome.label()));
    }
}

/// The method in a span's name, and as its attribute. A name that whoever calls made up is in neither.
fn method<'a>(line: &Line<'a>) -> (&'a str, Option<&'a str>) {
    const KNOWN: [&str; 9] = [
        "POST", "GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT",
    ];
    match line.method {
        Some(method) if KNOWN.contains(&method) => (method, Some(method)),
        Some(_) => ("HTTP", Some("_OTHER")),
        None => ("HTTP", None),
    }
}

/// `1.1` of `HTTP/1.1`, `2` of `HTTP/2.0`.
fn version(protocol: &str) -> &str {
    match protocol.strip_prefix("HTTP/").unwrap_or(protocol) {
        "2.0" => "2",
        other => other,
    }
}

/// A host without its port.
fn without_port(host: &[u8]) -> &[u8] {
    let digits = host.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let port = host.len() - digits.count();
    let before = port.checked_sub(1).and_then(|at| host.split_at_checked(at));
    match before {
        Some((name, [b':', ..])) => name,
        _ => host,
    }
}

/// A caller's mistake is no failure of a server's span; what came to nothing here or behind is.
fn fails_here(line: &Line<'_>) -> bool {
    match line.outcome {
        Outcome::UpstreamUnreachable
        | Outcome::UpstreamReset
        | Outcome::UpstreamTimeout
        | Outcome::UpstreamInvalid
        | Outcome::Overloaded
        | Outcome::Draining
        | Outcome::Internal => true,
        Outcome::UpstreamError => line.status.is_some_and(|status| status >= 500),
        Outcome::Ok
        | Outcome::ParseError
        | Outcome::InvalidRequest
        | Outcome::TenantRejected
        | Outcome::PushNotSupported
        | Outcome::UnsupportedOperation
        | Outcome::MethodNotFound
        | Outcome::ContentTypeNotSupported
        | Outcome::ExtensionRequired
        | Outcome::VersionNotSupported
        | Outcome::RateLimited
        | Outcome::PayloadInvalid
        | Outcome::UnsupportedSkill
        | Outcome::BodyTooLarge
        | Outcome::Unauthenticated
        | Outcome::PermissionDenied
        | Outcome::ClientGone
        | Outcome::NoRoute
        | Outcome::BadHttp => false,
    }
}

fn status(out: &mut Vec<u8>, line: &Line<'_>, failed: bool) {
    if failed {
        let why = cut(line.why.unwrap_or_default());
        let length = 2 + if why.is_empty() { 0 } else { framed(why.len()) };
        encode_key(15, WireType::LengthDelimited, out);
        encode_varint(length as u64, out);
        if !why.is_empty() {
            field(out, 2, why.as_bytes());
        }
        number(out, 3, ERROR);
    }
}

fn ids(out: &mut Vec<u8>, trace: &[u8], span: &[u8], parent: Option<&[u8; 8]>) {
    field(out, 1, trace);
    field(out, 2, span);
    if let Some(parent) = parent {
        field(out, 4, parent);
    }
}

fn flags(out: &mut Vec<u8>, spans: &Recorded, of_parent: u32) {
    encode_key(16, WireType::ThirtyTwoBit, out);
    out.extend_from_slice(&(u32::from(spans.call.flags) | of_parent).to_le_bytes());
}

fn nanos(line: &Line<'_>) -> u64 {
    u64::try_from(line.ts.as_nanosecond()).unwrap_or(0)
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn before_query(path: &str) -> &str {
    path.split_once('?').map_or(path, |(path, _)| path)
}

/// At most so many bytes, not in the middle of a character.
fn cut(text: &str) -> &str {
    let boundary = (0..=MOST.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    text.get(..boundary.unwrap_or(0)).unwrap_or_default()
}

/// The length of a field with a tag below 16 and so many bytes.
pub(super) const fn framed(length: usize) -> usize {
    1 + encoded_len_varint(length as u64) + length
}

/// The beginning of a field of so many bytes, which follow.
pub(super) fn open(out: &mut Vec<u8>, tag: u32, length: usize) {
    encode_key(tag, WireType::LengthDelimited, out);
    encode_varint(length as u64, out);
}

/// A field of bytes.
pub(super) fn field(out: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    open(out, tag, bytes.len());
    out.extend_from_slice(bytes);
}

/// A field of text in pieces.
fn text(out: &mut Vec<u8>, tag: u32, pieces: &[&str]) {
    encode_key(tag, WireType::LengthDelimited, out);
    encode_varint(pieces.iter().map(|it| it.len() as u64).sum(), out);
    for piece in pieces {
        out.extend_from_slice(piece.as_bytes());
    }
}

fn number(out: &mut Vec<u8>, tag: u32, number: u64) {
    encode_key(tag, WireType::Varint, out);
    encode_varint(number, out);
}

fn fixed64(out: &mut Vec<u8>, tag: u32, number: u64) {
    encode_key(tag, WireType::SixtyFourBit, out);
    out.extend_from_slice(&number.to_le_bytes());
}

/// An attribute: a key, and a value of so many bytes that follows.
fn attribute(out: &mut Vec<u8>, key: &str, value: usize) {
    encode_key(9, WireType::LengthDelimited, out);
    encode_varint((framed(key.len()) + framed(value)) as u64, out);
    field(out, 1, key.as_bytes());
    encode_key(2, WireType::LengthDelimited, out);
    encode_varint(value as u64, out);
}

fn word(out: &mut Vec<u8>, key: &str, value: Option<&str>) {
    let Some(value) = value.map(cut) else {
        return;
    };
    // Nearly all: every length is one byte.
    let lengths = [
        key.len(),
        2 + value.len(),
        value.len(),
        6 + key.len() + value.len(),
    ];
    if let [Ok(key_length), Ok(any), Ok(length), Ok(all @ ..128)] = lengths.map(u8::try_from) {
        out.extend_from_slice(&[9 << 3 | 2, all, 1 << 3 | 2, key_length]);
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(&[2 << 3 | 2, any, 1 << 3 | 2, length]);
        out.extend_from_slice(value.as_bytes());
        return;
    }
    attribute(out, key, framed(value.len()));
    field(out, 1, value.as_bytes());
}

/// Text from traffic, which may be no text.
fn raw(out: &mut Vec<u8>, key: &str, value: Option<&[u8]>) {
    if let Some(value) = value {
        // Letters have four bytes at most: what is cut below is whole up to there.
        let enough = value.get(..MOST + 4).unwrap_or(value);
        let value: Cow<'_, str> = String::from_utf8_lossy(enough);
        word(out, key, Some(&value));
    }
}

fn int(out: &mut Vec<u8>, key: &str, value: i64) {
    let value = value.cast_unsigned();
    attribute(out, key, 1 + encoded_len_varint(value));
    number(out, 3, value);
}

fn double(out: &mut Vec<u8>, key: &str, value: f64) {
    attribute(out, key, 9);
    fixed64(out, 4, value.to_bits());
}

#[cfg(test)]
mod tests;
