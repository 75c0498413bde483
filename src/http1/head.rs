//! Decides whether received bytes are a request's or a response's head, and what it says.
//!
//! Lines are read by `httparse` without any of its leniencies. How a head frames its body is read
//! from the lines themselves, all of them: a contradiction is never resolved. Must never take a
//! byte that is not the head's.

use std::mem::MaybeUninit;
use std::ops::Range;

use bytes::{Buf, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{Method, StatusCode, Uri, Version};

use super::body::Length;
use super::fields::{Fields, Known, Line};

/// The most header lines that any limit allows.
const MOST_LINES: usize = 1000;

/// So many lines are read without memory of their own.
const USUAL_LINES: usize = 256;

/// The most options on all `Connection` lines together: each is compared with each line.
const MOST_OPTIONS: usize = 64;

/// What a head may use up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes, from the first of the first line to the empty line.
    pub bytes: usize,
    /// Header lines.
    pub lines: usize,
}

/// Why bytes are not an acceptable head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHead {
    /// More bytes or lines than the limits allow.
    #[error("the head is too large")]
    TooLarge,
    /// Not HTTP/1.
    #[error("the head is not HTTP/1")]
    Malformed,
    /// A version other than 1.0 and 1.1.
    #[error("the version is not HTTP/1")]
    Version,
}

/// What the lines of a head say of its body, all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Lines named `Content-Length`; at most 255.
    pub lengths: u8,
    /// Lines named `Transfer-Encoding`; at most 255.
    pub encodings: u8,
    exact: Option<u64>,
    is_chunked: bool,
}

impl Framing {
    /// The length that a body was announced with, in the one line there is.
    #[must_use]
    pub const fn announced(self) -> Option<u64> {
        match self.lengths {
            1 => self.exact,
            _ => None,
        }
    }

    fn length(self, version: Version, otherwise: Length) -> Option<Length> {
        match (self.lengths, self.encodings) {
            (0, 0) => Some(otherwise),
            (1, 0) => self.exact.map(Length::Exact),
            (0, 1) if self.is_chunked && version == Version::HTTP_11 => Some(Length::Chunked),
            _ => None,
        }
    }
}

/// A request's head, as it came.
#[derive(Debug)]
pub struct RequestHead {
    /// The method.
    pub method: Method,
    /// The target.
    pub uri: Uri,
    /// 1.0 or 1.1.
    pub version: Version,
    /// The fields.
    pub fields: Fields,
    /// What it says of its body.
    pub framing: Framing,
    /// Whether a line ended in a bare line feed.
    pub has_bare_line_feed: bool,
    /// Whether the target has a fragment, which [`RequestHead::uri`] lacks.
    pub has_fragment: bool,
    /// Whether the client wants to send another request on this connection.
    pub keeps_alive: bool,
}

impl From<http::request::Parts> for RequestHead {
    /// A head that came in another protocol, which frames bodies by itself.
    fn from(parts: http::request::Parts) -> Self {
        let mut lengths = parts.headers.get_all(CONTENT_LENGTH).iter();
        let exact = lengths.next().and_then(|it| it.to_str().ok()?.parse().ok());
        let count = lengths.count() + usize::from(parts.headers.contains_key(CONTENT_LENGTH));
        let framing = Framing {
            lengths: u8::try_from(count).unwrap_or(u8::MAX),
            exact,
            ..Framing::default()
        };
        Self {
            method: parts.method,
            uri: parts.uri,
            version: parts.version,
            fields: Fields::from(&parts.headers),
            framing,
            has_bare_line_feed: false,
            has_fragment: false,
            keeps_alive: true,
        }
    }
}

impl RequestHead {
    /// How the body is framed; `None` where the head does not say in one way.
    #[must_use]
    pub fn length(&self) -> Option<Length> {
        self.framing.length(self.version, Length::Exact(0))
    }
}

/// A response's head, as it came.
#[derive(Debug)]
pub struct ResponseHead {
    /// The status.
    pub status: StatusCode,
    /// 1.0 or 1.1.
    pub version: Version,
    /// The fields.
    pub fields: Fields,
    /// Whether the upstream keeps the connection open.
    pub keeps_alive: bool,
    framing: Framing,
}

impl ResponseHead {
    /// How the body is framed (RFC 9112 section 6.3), in an answer to `HEAD` or not; `None` where
    /// the head does not say in one way.
    #[must_use]
    pub fn length(&self, answers_head: bool) -> Option<Length> {
        let length = self.framing.length(self.version, Length::Close)?;
        let has_none = answers_head
            || self.status.is_informational()
            || matches!(
                self.status,
                StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
            );
        Some(if has_none { Length::Exact(0) } else { length })
    }
}

/// Takes a request's head from what was received. `None`: it is not complete.
///
/// # Errors
/// Why these bytes will never be one.
pub fn read_request(
    received: &mut BytesMut,
    limits: Limits,
) -> Result<Option<RequestHead>, BadHead> {
    skip_empty_lines(received);
    let mut usual = [const { MaybeUninit::uninit() }; USUAL_LINES];
    let mut many = Vec::new();
    let lines = storage(&mut usual, &mut many, limits.lines);
    let mut parsed = httparse::Request::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let status = parser.parse_request_with_uninit_headers(&mut parsed, received, lines);
    let Some(length) = complete(status, received, limits)? else {
        return Ok(None);
    };
    let (Some(method), Some(target), Some(minor)) = (parsed.method, parsed.path, parsed.version)
    else {
        return Err(BadHead::Malformed);
    };
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| BadHead::Malformed)?;
    let base = received.as_ptr() as usize;
    let target = place(target.as_bytes(), base);
    let (lines, framing, closes) = fields(parsed.headers, base)?;

    let head = received.split_to(length).freeze();
    let target = head.slice(target);
    let has_fragment = memchr::memchr(b'#', &target).is_some();
    let uri = Uri::from_maybe_shared(target).map_err(|_| BadHead::Malformed)?;
    Ok(Some(RequestHead {
        method,
        uri,
        version: version(minor),
        keeps_alive: !closes.unwrap_or(minor == 0),
        has_bare_line_feed: has_bare_line_feed(&head),
        has_fragment,
        fields: Fields::of(head, lines),
        framing,
    }))
}

/// Takes a response's head from what was received. `None`: it is not complete.
///
/// # Errors
/// Why these bytes will never be one.
pub fn read_response(
    received: &mut BytesMut,
    limits: Limits,
) -> Result<Option<ResponseHead>, BadHead> {
    let mut usual = [const { MaybeUninit::uninit() }; USUAL_LINES];
    let mut many = Vec::new();
    let lines = storage(&mut usual, &mut many, limits.lines);
    let mut parsed = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let status = parser.parse_response_with_uninit_headers(&mut parsed, received, lines);
    let Some(length) = complete(status, received, limits)? else {
        return Ok(None);
    };
    let (Some(code), Some(minor)) = (parsed.code, parsed.version) else {
        return Err(BadHead::Malformed);
    };
    let status = StatusCode::from_u16(code).map_err(|_| BadHead::Malformed)?;
    let base = received.as_ptr() as usize;
    let (lines, framing, closes) = fields(parsed.headers, base)?;

    let head = received.split_to(length).freeze();
    Ok(Some(ResponseHead {
        status,
        version: version(minor),
        keeps_alive: !closes.unwrap_or(minor == 0),
        fields: Fields::of(head, lines),
        framing,
    }))
}

/// Whether an empty line came, so that a head may be complete, in bytes of which the first `seen`
/// were looked through before. Any line end counts, as it does where heads are read.
#[must_use]
pub fn ends_head(received: &[u8], seen: usize) -> bool {
    // A line end that came before may be followed by the empty line only now.
    let new = received.get(seen.saturating_sub(2)..).unwrap_or_default();
    memchr::memchr_iter(b'\n', new).any(|at| {
        let after = new.get(at + 1..).unwrap_or_default();
        matches!(after, [b'\n', ..] | [b'\r', b'\n', ..])
    })
}

/// Before a request line, empty lines do not count (RFC 9112 section 2.2).
fn skip_empty_lines(received: &mut BytesMut) {
    let empty = |byte: &&u8| matches!(**byte, b'\r' | b'\n');
    if received.first().as_ref().is_some_and(empty) {
        let count = received.iter().take_while(empty).count();
        received.advance(count);
    }
}

/// Where the parser puts lines: on the stack, unless a limit allows uncommonly many.
fn storage<'s, 'b>(
    usual: &'s mut [MaybeUninit<httparse::Header<'b>>],
    many: &'s mut Vec<MaybeUninit<httparse::Header<'b>>>,
    limit: usize,
) -> &'s mut [MaybeUninit<httparse::Header<'b>>] {
    match usual.get_mut(..limit) {
        Some(_) => usual.get_mut(..limit).unwrap_or_default(),
        None => {
            many.resize_with(limit.min(MOST_LINES), MaybeUninit::uninit);
            many
        }
    }
}

/// The length of a complete head.
fn complete(
    status: httparse::Result<usize>,
    received: &[u8],
    limits: Limits,
) -> Result<Option<usize>, BadHead> {
    match status {
        Ok(httparse::Status::Complete(length)) if length <= limits.bytes => Ok(Some(length)),
        Ok(httparse::Status::Complete(_)) | Err(httparse::Error::TooManyHeaders) => {
            Err(BadHead::TooLarge)
        }
        Ok(httparse::Status::Partial) if received.len() >= limits.bytes => Err(BadHead::TooLarge),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(error) => Err(
            if error == httparse::Error::Version && names_a_version(received) {
                BadHead::Version
            } else {
                BadHead::Malformed
            },
        ),
    }
}

/// Whether a first line is a request line but for its version, or a status line but for its.
fn names_a_version(received: &[u8]) -> bool {
    let line = received.split(|byte| matches!(byte, b'\r' | b'\n')).next();
    let mut words = line.unwrap_or_default().split(|byte| *byte == b' ');
    let last = words.nth(2);
    last.is_some_and(|word| word.starts_with(b"HTTP/")) && words.next().is_none()
}

/// The fields of a head that `httparse` read, and what they say of the body. `base` is where the
/// head begins.
fn fields(
    parsed: &[httparse::Header<'_>],
    base: usize,
) -> Result<(Vec<Line>, Framing, Option<bool>), BadHead> {
    let mut options = 0;
    let mut lines = Vec::with_capacity(parsed.len());
    let mut framing = Framing::default();
    let mut closes = None;
    for line in parsed {
        let known = Known::of(line.name.as_bytes());
        if known == Known::ContentLength {
            framing.lengths = framing.lengths.saturating_add(1);
            framing.exact = exact(line.value);
        } else if known == Known::TransferEncoding {
            framing.encodings = framing.encodings.saturating_add(1);
            framing.is_chunked = line.value.eq_ignore_ascii_case(b"chunked");
        } else if known == Known::Connection {
            options += memchr::memchr_iter(b',', line.value).count() + 1;
            closes = said_of_connection(line.value, closes);
        }
        let name = place(line.name.as_bytes(), base);
        // An empty value may stand anywhere.
        let value = match line.value {
            [] => 0..0,
            value => place(value, base),
        };
        lines.push(Line::new(known, name, value));
    }
    if options > MOST_OPTIONS {
        return Err(BadHead::TooLarge);
    }
    Ok((lines, framing, closes))
}

/// Where bytes of a head stand in it.
fn place(bytes: &[u8], base: usize) -> Range<usize> {
    let start = (bytes.as_ptr() as usize).saturating_sub(base);
    start..start + bytes.len()
}

/// Whether a `Connection` line says to close (RFC 9112 section 9.3), given what others said: closing
/// outweighs keeping.
fn said_of_connection(line: &[u8], before: Option<bool>) -> Option<bool> {
    let mut said = before;
    for option in line.split(|byte| *byte == b',') {
        let option = option.trim_ascii();
        if option.eq_ignore_ascii_case(b"close") {
            return Some(true);
        }
        if option.eq_ignore_ascii_case(b"keep-alive") {
            said = said.or(Some(false));
        }
    }
    said
}

const fn version(minor: u8) -> Version {
    match minor {
        0 => Version::HTTP_10,
        _ => Version::HTTP_11,
    }
}

/// The value of a `Content-Length`: digits and nothing else.
fn exact(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = char::from(*byte).to_digit(10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

fn has_bare_line_feed(head: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', head).any(|at| {
        let before = at.checked_sub(1).and_then(|at| head.get(at));
        before != Some(&b'\r')
    })
}

#[cfg(test)]
mod tests;
