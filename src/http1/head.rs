//! Decides whether received bytes are a request's or a response's head, and what it says.
//!
//! Lines are read by [`scan`]. How a head frames its body is read from the lines themselves, all of
//! them: a contradiction is never resolved. Must never take a byte that is not the head's.

mod scan;

use std::ops::Range;

use bytes::{Buf, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{Method, StatusCode, Uri, Version};

use super::body::Length;
use super::fields::{Fields, Line};
use super::known::Known;
use scan::{Scan, Step, Stop};

/// The most header lines that any limit allows.
const MOST_LINES: usize = 1000;

/// So many lines have room from the start.
const USUAL_LINES: usize = 16;

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

impl BadHead {
    /// What a client is answered that sent one, at this time of day as `Date` has it.
    #[must_use]
    pub fn answer(self, date: &str) -> String {
        let status = match self {
            Self::TooLarge => "431 Request Header Fields Too Large",
            Self::Malformed => "400 Bad Request",
            Self::Version => "505 HTTP Version Not Supported",
        };
        format!(
            "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\ndate: {date}\r\n\r\n"
        )
    }
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
    let mut scan = Scan::new(received);
    let read = request(&mut scan, limits.lines);
    let Some((method, target, minor, told)) = complete(read, &scan, received, limits)? else {
        return Ok(None);
    };
    let method = Method::from_bytes(scan.of(method)).map_err(|_| BadHead::Malformed)?;
    let (length, has_bare_line_feed) = (scan.at(), scan.has_bare_line_feed);

    let head = received.split_to(length).freeze();
    let target = head.slice(target);
    let has_fragment = memchr::memchr(b'#', &target).is_some();
    let uri = Uri::from_maybe_shared(target).map_err(|_| BadHead::Malformed)?;
    Ok(Some(RequestHead {
        method,
        uri,
        version: version(minor),
        keeps_alive: !told.closes.unwrap_or(minor == 0),
        has_bare_line_feed,
        has_fragment,
        fields: Fields::of(head, told.lines),
        framing: told.framing,
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
    let mut scan = Scan::new(received);
    let read = response(&mut scan, limits.lines);
    let Some((minor, status, told)) = complete(read, &scan, received, limits)? else {
        return Ok(None);
    };
    let status = StatusCode::from_bytes(scan.of(status)).map_err(|_| BadHead::Malformed)?;
    let length = scan.at();

    let head = received.split_to(length).freeze();
    Ok(Some(ResponseHead {
        status,
        version: version(minor),
        keeps_alive: !told.closes.unwrap_or(minor == 0),
        fields: Fields::of(head, told.lines),
        framing: told.framing,
    }))
}

/// Method, target, minor version and lines.
type Request = (Range<usize>, Range<usize>, u8, Told);

fn request(scan: &mut Scan<'_>, most: usize) -> Step<Option<Request>> {
    let method = scan.method()?;
    let target = scan.target()?;
    // A target of any encoding but this one is none.
    if std::str::from_utf8(scan.of(target.clone())).is_err() {
        return Err(Stop::Malformed);
    }
    let minor = scan.version()?;
    scan.line_end()?;
    let told = Told::read(scan, most)?;
    Ok(told.map(|told| (method, target, minor, told)))
}

/// Minor version, status and lines.
type Response = (u8, Range<usize>, Told);

fn response(scan: &mut Scan<'_>, most: usize) -> Step<Option<Response>> {
    scan.empty_lines()?;
    let minor = scan.version()?;
    scan.expect(b' ', Stop::Version)?;
    let status = scan.status()?;
    scan.reason()?;
    let told = Told::read(scan, most)?;
    Ok(told.map(|told| (minor, status, told)))
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

/// What was read of a complete head.
fn complete<T>(
    read: Step<Option<T>>,
    scan: &Scan<'_>,
    received: &[u8],
    limits: Limits,
) -> Result<Option<T>, BadHead> {
    match read {
        Ok(Some(read)) if scan.at() <= limits.bytes => Ok(Some(read)),
        Ok(_) => Err(BadHead::TooLarge),
        Err(Stop::Short) if received.len() >= limits.bytes => Err(BadHead::TooLarge),
        Err(Stop::Short) => Ok(None),
        Err(Stop::Version) if names_a_version(received) => Err(BadHead::Version),
        Err(Stop::Version | Stop::Malformed) => Err(BadHead::Malformed),
    }
}

/// Whether a first line is a request line but for its version, or a status line but for its.
fn names_a_version(received: &[u8]) -> bool {
    let line = received.split(|byte| matches!(byte, b'\r' | b'\n')).next();
    let mut words = line.unwrap_or_default().split(|byte| *byte == b' ');
    let last = words.nth(2);
    last.is_some_and(|word| word.starts_with(b"HTTP/")) && words.next().is_none()
}

/// The lines of a head, and what they say together.
struct Told {
    lines: Vec<Line>,
    framing: Framing,
    /// Whether the connection ends after the message, where they say.
    closes: Option<bool>,
    /// How many options stand on `Connection` lines.
    options: usize,
}

impl Told {
    /// Reads lines to the end of the head; `None`: there is more than may be.
    fn read(scan: &mut Scan<'_>, most: usize) -> Step<Option<Self>> {
        let mut told = Self {
            lines: Vec::with_capacity(USUAL_LINES),
            framing: Framing::default(),
            closes: None,
            options: 0,
        };
        let most = most.min(MOST_LINES);
        while let Some(line) = scan.line()? {
            if told.lines.len() == most {
                return Ok(None);
            }
            let known = line.known();
            if let Known::Connection | Known::ContentLength | Known::TransferEncoding = known {
                told.note(known, scan.of(line.value()));
            }
            told.lines.push(line);
        }
        Ok((told.options <= MOST_OPTIONS).then_some(told))
    }

    /// Notes a line that frames the message or the connection.
    #[inline(never)]
    fn note(&mut self, known: Known, value: &[u8]) {
        let framing = &mut self.framing;
        if known == Known::ContentLength {
            framing.lengths = framing.lengths.saturating_add(1);
            framing.exact = exact(value);
        } else if known == Known::TransferEncoding {
            framing.encodings = framing.encodings.saturating_add(1);
            framing.is_chunked = value.eq_ignore_ascii_case(b"chunked");
        } else {
            self.options += memchr::memchr_iter(b',', value).count() + 1;
            self.closes = said_of_connection(value, self.closes);
        }
    }
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

#[cfg(test)]
mod tests;
