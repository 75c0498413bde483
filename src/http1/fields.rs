//! Decides how the fields of a received head are kept: in the bytes they came in, each line known by
//! what it is.
//!
//! A line is looked at once, when it is read; whoever asks later compares one number. Values stand
//! without white space around them. Must never join, reorder or repair lines: what came twice
//! stands twice.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName};

use crate::protocol::headers::Supplies;

/// The fields of one message, in the order they came.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    bytes: Bytes,
    lines: Vec<Line>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    known: Known,
    name: Piece,
    value: Piece,
}

/// A place in the bytes: start and end.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    start: u32,
    end: u32,
}

/// The fields that something here asks for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the field of its name")]
pub enum Known {
    A2aExtensions,
    A2aVersion,
    Authorization,
    Connection,
    ContentEncoding,
    ContentLength,
    ContentType,
    Date,
    Expect,
    Forwarded,
    Host,
    Location,
    Te,
    TransferEncoding,
    UserAgent,
    XForwardedFor,
    XForwardedHost,
    XForwardedProto,
    XRequestId,
    /// What belongs to one connection besides those above: `Keep-Alive`, `Proxy-Authenticate`,
    /// `Proxy-Authorization`, `Proxy-Connection`, `Trailer`, `Upgrade`.
    OneConnection,
    /// What a client says of its own way here, besides those above: any other `X-Forwarded-` name and
    /// `X-Real-IP`.
    OwnWay,
    /// A name that CGI-style servers merge with one of the A2A headers.
    LookAlike,
    /// Any other.
    Other,
}

impl Known {
    /// What a name, in whatever case, is.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let candidates: &[(&[u8], Self)] = match name.len() {
            2 => &[(b"te", Self::Te)],
            4 => &[(b"host", Self::Host), (b"date", Self::Date)],
            6 => &[(b"expect", Self::Expect)],
            7 => &[
                (b"trailer", Self::OneConnection),
                (b"upgrade", Self::OneConnection),
            ],
            8 => &[(b"location", Self::Location)],
            9 => &[
                (b"forwarded", Self::Forwarded),
                (b"x-real-ip", Self::OwnWay),
            ],
            10 => &[
                (b"user-agent", Self::UserAgent),
                (b"connection", Self::Connection),
                (b"keep-alive", Self::OneConnection),
            ],
            11 => &[
                (b"a2a-version", Self::A2aVersion),
                (b"a2a_version", Self::LookAlike),
            ],
            12 => &[
                (b"content-type", Self::ContentType),
                (b"x-request-id", Self::XRequestId),
            ],
            13 => &[(b"authorization", Self::Authorization)],
            14 => &[
                (b"content-length", Self::ContentLength),
                (b"a2a-extensions", Self::A2aExtensions),
                (b"a2a_extensions", Self::LookAlike),
            ],
            15 => &[(b"x-forwarded-for", Self::XForwardedFor)],
            16 => &[
                (b"x-forwarded-host", Self::XForwardedHost),
                (b"content-encoding", Self::ContentEncoding),
                (b"proxy-connection", Self::OneConnection),
            ],
            17 => &[
                (b"x-forwarded-proto", Self::XForwardedProto),
                (b"transfer-encoding", Self::TransferEncoding),
            ],
            18 => &[(b"proxy-authenticate", Self::OneConnection)],
            19 => &[(b"proxy-authorization", Self::OneConnection)],
            _ => &[],
        };
        for (wanted, known) in candidates {
            if name.eq_ignore_ascii_case(wanted) {
                return *known;
            }
        }
        let prefix = b"x-forwarded-";
        match name.split_at_checked(prefix.len()) {
            Some((start, _)) if start.eq_ignore_ascii_case(prefix) => Self::OwnWay,
            _ => Self::Other,
        }
    }

    /// Whether the field belongs to one connection and stops at each (RFC 9110 section 7.6.1).
    #[must_use]
    pub const fn is_hop_by_hop(self) -> bool {
        matches!(
            self,
            Self::Connection | Self::OneConnection | Self::Te | Self::TransferEncoding
        )
    }
}

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'f> {
    /// What it is.
    pub known: Known,
    /// Its name, in the case it came in.
    pub name: &'f [u8],
    /// Its value, without white space around it.
    pub value: &'f [u8],
}

impl Fields {
    /// The fields of a head that was parsed out of these bytes.
    pub(super) fn of(head: Bytes, lines: Vec<Line>) -> Self {
        Self { bytes: head, lines }
    }

    /// Each field, in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.lines.iter().map(|line| Field {
            known: line.known,
            name: line.name.of(&self.bytes),
            value: line.value.of(&self.bytes),
        })
    }

    /// The values of the lines of a known field, in the order they came.
    pub fn all(&self, known: Known) -> impl Iterator<Item = &[u8]> {
        self.lines
            .iter()
            .filter(move |line| line.known == known)
            .map(|line| line.value.of(&self.bytes))
    }

    /// The same, the last one first.
    pub fn all_from_the_last(&self, known: Known) -> impl Iterator<Item = &[u8]> {
        self.lines
            .iter()
            .rev()
            .filter(move |line| line.known == known)
            .map(|line| line.value.of(&self.bytes))
    }

    /// The value of the first line of a known field.
    #[must_use]
    pub fn first(&self, known: Known) -> Option<&[u8]> {
        self.all(known).next()
    }

    /// The same, as bytes that outlive the head.
    #[must_use]
    pub fn keep_first(&self, known: Known) -> Option<Bytes> {
        let line = self.lines.iter().find(|line| line.known == known)?;
        Some(
            self.bytes
                .slice(line.value.start as usize..line.value.end as usize),
        )
    }

    /// Whether there is a line of a known field.
    #[must_use]
    pub fn has(&self, known: Known) -> bool {
        self.lines.iter().any(|line| line.known == known)
    }

    /// The values of the lines of this name, in the order they came.
    pub fn named<'f>(&'f self, name: &'f HeaderName) -> impl Iterator<Item = &'f [u8]> {
        let name = name.as_str().as_bytes();
        let is_wanted = move |it: &Field<'_>| it.name.eq_ignore_ascii_case(name);
        self.iter().filter(is_wanted).map(|field| field.value)
    }

    /// How many lines there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

impl From<&HeaderMap> for Fields {
    /// The fields of a message that came in another protocol's head.
    fn from(map: &HeaderMap) -> Self {
        let mut bytes = Vec::new();
        let mut lines = Vec::with_capacity(map.len());
        for (name, value) in map {
            let start = bytes.len();
            bytes.extend_from_slice(name.as_str().as_bytes());
            let end = bytes.len();
            bytes.extend_from_slice(trim(value.as_bytes()));
            lines.push(Line::new(
                Known::of(name.as_str().as_bytes()),
                start..end,
                end..bytes.len(),
            ));
        }
        Self {
            bytes: bytes.into(),
            lines,
        }
    }
}

impl From<HeaderMap> for Fields {
    fn from(map: HeaderMap) -> Self {
        Self::from(&map)
    }
}

impl Supplies for Fields {
    fn versions(&self) -> impl Iterator<Item = &[u8]> {
        self.all(Known::A2aVersion)
    }

    fn extensions(&self) -> impl Iterator<Item = &[u8]> {
        self.all(Known::A2aExtensions)
    }
}

impl Line {
    /// A line by the places of its name and value; both within 4 GiB, as every head is.
    pub(super) fn new(known: Known, name: Range<usize>, value: Range<usize>) -> Self {
        Self {
            known,
            name: Piece::of_range(name),
            value: Piece::of_range(value),
        }
    }
}

impl Piece {
    fn of_range(range: Range<usize>) -> Self {
        let place = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self {
            start: place(range.start),
            end: place(range.end),
        }
    }

    fn of(self, bytes: &[u8]) -> &[u8] {
        bytes
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// Without spaces and tabs around it: HTTP/1.1 parsers trim values, HTTP/2 does not.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn fields(lines: &[(&'static str, &'static str)]) -> Fields {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, HeaderValue::from_static(value));
        }
        Fields::from(&map)
    }

    #[test]
    fn a_name_is_known_in_any_case_and_nothing_else_is() {
        for (name, known) in [
            ("Host", Known::Host),
            ("A2A-VERSION", Known::A2aVersion),
            ("a2a_version", Known::LookAlike),
            ("A2A_Extensions", Known::LookAlike),
            ("x-a2a-extensions", Known::Other),
            ("content-length", Known::ContentLength),
            ("content-lengtH ", Known::Other),
            ("x-forwarded-for", Known::XForwardedFor),
            ("X-Forwarded-", Known::OwnWay),
            ("X-Forwarded-Port", Known::OwnWay),
            ("x-forwarded-prefix", Known::OwnWay),
            ("x-forwarder", Known::Other),
            ("X-Real-IP", Known::OwnWay),
            ("Proxy-Connection", Known::OneConnection),
            ("transfer-encoding", Known::TransferEncoding),
            ("", Known::Other),
        ] {
            assert_eq!(Known::of(name.as_bytes()), known, "{name}");
        }
    }

    #[test]
    fn what_stops_at_each_hop() {
        for name in [
            "connection",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "proxy-connection",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ] {
            assert!(Known::of(name.as_bytes()).is_hop_by_hop(), "{name}");
        }
        for name in [
            "content-length",
            "host",
            "a2a-version",
            "x-api-key",
            "expect",
        ] {
            assert!(!Known::of(name.as_bytes()).is_hop_by_hop(), "{name}");
        }
    }

    #[test]
    fn lines_are_kept_apart_and_trimmed() {
        let fields = fields(&[
            ("a2a-version", " 1.0\t"),
            ("x-api-key", "k"),
            ("a2a-version", ""),
        ]);
        assert_eq!(fields.len(), 3);
        assert!(fields.all(Known::A2aVersion).eq([&b"1.0"[..], b""]));
        assert_eq!(fields.keep_first(Known::A2aVersion).unwrap(), "1.0");
        let name = HeaderName::from_static("x-api-key");
        assert!(fields.named(&name).eq([b"k"]));
        assert!(!fields.has(Known::Host));
    }
}
