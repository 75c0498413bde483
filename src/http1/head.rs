//! Decides whether received bytes are a request's or a response's head, and what it says.
//!
//! Lines are read by `httparse` without any of its leniencies. How a head frames its body is read
//! from the lines themselves, all of them: a contradiction is never resolved. Must never take a
//! byte that is not the head's.

use std::mem::MaybeUninit;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use smallvec::SmallVec;

use super::body::Length;

/// The most header lines that any limit allows.
const MOST_LINES: usize = 1000;

/// Room for fields that are added on the way.
const SPARE: usize = 4;

/// So many lines are read without memory of their own.
const USUAL_LINES: usize = 100;

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
    /// The fields, names in lower case.
    pub headers: HeaderMap,
    /// What it says of its body.
    pub framing: Framing,
    /// Whether a line ended in a bare line feed.
    pub has_bare_line_feed: bool,
    /// Whether the target has a fragment, which [`RequestHead::uri`] lacks.
    pub has_fragment: bool,
    /// Whether the client wants to send another request on this connection.
    pub keeps_alive: bool,
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
    /// The fields, names in lower case.
    pub headers: HeaderMap,
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
    let target = Piece::of(target.as_bytes(), base);
    let lines: Lines = parsed.headers.iter().map(|it| Line::of(it, base)).collect();

    let head = received.split_to(length).freeze();
    let target = target.cut(&head);
    let has_fragment = memchr::memchr(b'#', &target).is_some();
    let uri = Uri::from_maybe_shared(target).map_err(|_| BadHead::Malformed)?;
    let fields = Fields::read(&head, &lines)?;
    Ok(Some(RequestHead {
        method,
        uri,
        version: version(minor),
        keeps_alive: keeps_alive(minor, &fields.headers),
        has_bare_line_feed: has_bare_line_feed(&head),
        has_fragment,
        headers: fields.headers,
        framing: fields.framing,
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
    let lines: Lines = parsed.headers.iter().map(|it| Line::of(it, base)).collect();

    let head = received.split_to(length).freeze();
    let fields = Fields::read(&head, &lines)?;
    Ok(Some(ResponseHead {
        status,
        version: version(minor),
        keeps_alive: keeps_alive(minor, &fields.headers),
        headers: fields.headers,
        framing: fields.framing,
    }))
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

/// A place in a head: start and end, in bytes from its beginning.
#[derive(Clone, Copy, Debug)]
struct Piece(usize, usize);

impl Piece {
    fn of(bytes: &[u8], base: usize) -> Self {
        let start = (bytes.as_ptr() as usize).saturating_sub(base);
        Self(start, start + bytes.len())
    }

    fn cut(self, head: &Bytes) -> Bytes {
        head.slice(self.0..self.1)
    }
}

#[derive(Clone, Copy, Debug)]
struct Line {
    name: Piece,
    value: Piece,
}

type Lines = SmallVec<[Line; 24]>;

impl Line {
    fn of(line: &httparse::Header<'_>, base: usize) -> Self {
        Self {
            name: Piece::of(line.name.as_bytes(), base),
            value: match line.value {
                // An empty value may stand anywhere.
                [] => Piece(0, 0),
                value => Piece::of(value, base),
            },
        }
    }
}

/// The fields of a head, and how often they speak of the body's framing.
struct Fields {
    headers: HeaderMap,
    framing: Framing,
}

impl Fields {
    fn read(head: &Bytes, lines: &[Line]) -> Result<Self, BadHead> {
        let mut headers = HeaderMap::with_capacity(lines.len() + SPARE);
        let mut framing = Framing::default();
        for line in lines {
            let name = head.get(line.name.0..line.name.1).unwrap_or_default();
            let name = HeaderName::from_bytes(name).map_err(|_| BadHead::Malformed)?;
            let value = HeaderValue::from_maybe_shared(line.value.cut(head))
                .map_err(|_| BadHead::Malformed)?;
            if name == CONTENT_LENGTH {
                framing.lengths = framing.lengths.saturating_add(1);
                framing.exact = exact(value.as_bytes());
            } else if name == TRANSFER_ENCODING {
                framing.encodings = framing.encodings.saturating_add(1);
                framing.is_chunked = value.as_bytes().eq_ignore_ascii_case(b"chunked");
            }
            headers
                .try_append(name, value)
                .map_err(|_| BadHead::TooLarge)?;
        }
        Ok(Self { headers, framing })
    }
}

const fn version(minor: u8) -> Version {
    match minor {
        0 => Version::HTTP_10,
        _ => Version::HTTP_11,
    }
}

/// Whether a message leaves its connection open (RFC 9112 section 9.3).
fn keeps_alive(minor: u8, headers: &HeaderMap) -> bool {
    let mut keeps = minor > 0;
    for line in headers.get_all(CONNECTION) {
        for option in line.as_bytes().split(|byte| *byte == b',') {
            let option = option.trim_ascii();
            if option.eq_ignore_ascii_case(b"close") {
                return false;
            }
            keeps |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
    keeps
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
