//! Decides how the fields of a received head are kept: in the bytes they came in, each line known by
//! what it is.
//!
//! A line is looked at once, when it is read; whoever asks later compares one number. Values stand
//! without white space around them. Must never join, reorder or repair lines: what came twice
//! stands twice.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

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

/// The names, by length.
const NAMES: [&[(&[u8], Known)]; 20] = {
    let mut names: [&[(&[u8], Known)]; 20] = [&[]; 20];
    names[2] = &[(b"te", Known::Te)];
    names[4] = &[(b"host", Known::Host), (b"date", Known::Date)];
    names[6] = &[(b"expect", Known::Expect)];
    names[7] = &[
        (b"trailer", Known::OneConnection),
        (b"upgrade", Known::OneConnection),
    ];
    names[8] = &[(b"location", Known::Location)];
    names[9] = &[
        (b"forwarded", Known::Forwarded),
        (b"x-real-ip", Known::OwnWay),
    ];
    names[10] = &[
        (b"user-agent", Known::UserAgent),
        (b"connection", Known::Connection),
        (b"keep-alive", Known::OneConnection),
    ];
    names[11] = &[
        (b"a2a-version", Known::A2aVersion),
        (b"a2a_version", Known::LookAlike),
    ];
    names[12] = &[
        (b"content-type", Known::ContentType),
        (b"x-request-id", Known::XRequestId),
    ];
    names[13] = &[(b"authorization", Known::Authorization)];
    names[14] = &[
        (b"content-length", Known::ContentLength),
        (b"a2a-extensions", Known::A2aExtensions),
        (b"a2a_extensions", Known::LookAlike),
    ];
    names[15] = &[(b"x-forwarded-for", Known::XForwardedFor)];
    names[16] = &[
        (b"x-forwarded-host", Known::XForwardedHost),
        (b"content-encoding", Known::ContentEncoding),
        (b"proxy-connection", Known::OneConnection),
    ];
    names[17] = &[
        (b"x-forwarded-proto", Known::XForwardedProto),
        (b"transfer-encoding", Known::TransferEncoding),
    ];
    names[18] = &[(b"proxy-authenticate", Known::OneConnection)];
    names[19] = &[(b"proxy-authorization", Known::OneConnection)];
    names
};

/// What the names begin with by which a client tells its own way here.
const OWN_WAY: &[u8] = b"x-forwarded-";

impl Known {
    /// What a name, in whatever case, is.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        // The last letter tells most strangers from their likes.
        let last = name.last().map_or(0, u8::to_ascii_lowercase);
        let likes = NAMES.get(name.len()).copied().unwrap_or_default();
        for (wanted, known) in likes {
            if wanted.last() == Some(&last) && is_alike(name, wanted) {
                return *known;
            }
        }
        match name.split_at_checked(OWN_WAY.len()) {
            Some((start @ [b'x' | b'X', b'-', b'f' | b'F', ..], _))
                if start.eq_ignore_ascii_case(OWN_WAY) =>
            {
                Self::OwnWay
            }
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
        let is_wanted = move |line: &&Line| {
            line.name.len() == name.len() && is_alike(line.name.of(&self.bytes), name)
        };
        let lines = self.lines.iter().filter(is_wanted);
        lines.map(|line| line.value.of(&self.bytes))
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
        let size = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len();
        let mut bytes = Vec::with_capacity(map.iter().map(size).sum());
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

    const fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    fn of(self, bytes: &[u8]) -> &[u8] {
        bytes
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// Whether a name is this one, which is as long and in lower case; eight letters are compared
/// together.
fn is_alike(name: &[u8], wanted: &[u8]) -> bool {
    let (Some(first), Some(last)) = (name.first_chunk::<8>(), name.last_chunk::<8>()) else {
        return name.eq_ignore_ascii_case(wanted);
    };
    let ends_alike = Some(&lower(*first)) == wanted.first_chunk::<8>()
        && Some(&lower(*last)) == wanted.last_chunk::<8>();
    ends_alike && (name.len() <= 16 || name.eq_ignore_ascii_case(wanted))
}

/// The bytes with ASCII letters in lower case.
const fn lower(bytes: [u8; 8]) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let word = u64::from_le_bytes(bytes);
    let low = word & !HIGHS;
    // The top bit where a byte is at least `A`, and where it is beyond `Z`.
    let from_a = low.wrapping_add(ONES * (0x80 - b'A' as u64));
    let beyond_z = low.wrapping_add(ONES * (0x80 - b'Z' as u64 - 1));
    let is_upper = from_a & !beyond_z & !word & HIGHS;
    (word | is_upper >> 2).to_le_bytes()
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
    fn letters_are_lowered_and_nothing_else() {
        for byte in 0..=u8::MAX {
            assert_eq!(lower([byte; 8]), [byte.to_ascii_lowercase(); 8], "{byte}");
            let pair = [byte, b'A', byte, 0xff, byte, b'[', 0, byte];
            assert_eq!(lower(pair), pair.map(|it| it.to_ascii_lowercase()));
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
