//! Decides how the fields of a received head are kept: in the bytes they came in, each line known by
//! what it is.
//!
//! A line is looked at once, when it is read; whoever asks later compares one number. Values stand
//! without white space around them. Must never join, reorder or repair lines: what came twice
//! stands twice.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName};

use super::lines::Lines;
use crate::protocol::headers::Supplies;

/// The fields of one message, in the order they came.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    bytes: Bytes,
    lines: Vec<Line>,
    /// One bit for each known field that there is.
    present: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    known: Known,
    /// Whether it stands in the bytes as it would be written: one space, CR LF.
    is_plain: bool,
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

/// The names of up to sixteen letters, by length.
const NAMES: [&[(u128, Known)]; 17] = {
    let mut names: [&[(u128, Known)]; 17] = [&[]; 17];
    names[2] = &[(named(b"te"), Known::Te)];
    names[4] = &[(named(b"host"), Known::Host), (named(b"date"), Known::Date)];
    names[6] = &[(named(b"expect"), Known::Expect)];
    names[7] = &[
        (named(b"trailer"), Known::OneConnection),
        (named(b"upgrade"), Known::OneConnection),
    ];
    names[8] = &[(named(b"location"), Known::Location)];
    names[9] = &[
        (named(b"forwarded"), Known::Forwarded),
        (named(b"x-real-ip"), Known::OwnWay),
    ];
    names[10] = &[
        (named(b"user-agent"), Known::UserAgent),
        (named(b"connection"), Known::Connection),
        (named(b"keep-alive"), Known::OneConnection),
    ];
    names[11] = &[
        (named(b"a2a-version"), Known::A2aVersion),
        (named(b"a2a_version"), Known::LookAlike),
    ];
    names[12] = &[
        (named(b"content-type"), Known::ContentType),
        (named(b"x-request-id"), Known::XRequestId),
    ];
    names[13] = &[(named(b"authorization"), Known::Authorization)];
    names[14] = &[
        (named(b"content-length"), Known::ContentLength),
        (named(b"a2a-extensions"), Known::A2aExtensions),
        (named(b"a2a_extensions"), Known::LookAlike),
    ];
    names[15] = &[(named(b"x-forwarded-for"), Known::XForwardedFor)];
    names[16] = &[
        (named(b"x-forwarded-host"), Known::XForwardedHost),
        (named(b"content-encoding"), Known::ContentEncoding),
        (named(b"proxy-connection"), Known::OneConnection),
    ];
    names
};

/// The longer ones.
const LONG_NAMES: [(&[u8], Known); 4] = [
    (b"x-forwarded-proto", Known::XForwardedProto),
    (b"transfer-encoding", Known::TransferEncoding),
    (b"proxy-authenticate", Known::OneConnection),
    (b"proxy-authorization", Known::OneConnection),
];

/// What the names begin with by which a client tells its own way here.
const OWN_WAY: &[u8] = b"x-forwarded-";

/// A name of ours, of up to sixteen letters, as one word.
const fn named(name: &[u8]) -> u128 {
    let mut word = 0;
    let mut at = name.len();
    while at > 0 {
        at -= 1;
        word = word << 8 | name[at] as u128;
    }
    word
}

impl Known {
    /// What a name, in whatever case, is.
    #[must_use]
    pub fn of(name: &[u8]) -> Self {
        let mut lower = [0; 16];
        if let Some(room) = lower.get_mut(..name.len()) {
            room.copy_from_slice(name);
            lower.make_ascii_lowercase();
            return Self::of_word(u128::from_le_bytes(lower), name.len());
        }
        let long = LONG_NAMES
            .iter()
            .find(|(wanted, _)| name.eq_ignore_ascii_case(wanted));
        match (long, name.get(..OWN_WAY.len())) {
            (Some((_, known)), _) => *known,
            (None, Some(start)) if start.eq_ignore_ascii_case(OWN_WAY) => Self::OwnWay,
            _ => Self::Other,
        }
    }

    /// What a name is that stands in lower case in one word; so many letters.
    #[inline]
    pub(super) fn of_word(name: u128, length: usize) -> Self {
        let likes = NAMES.get(length).copied().unwrap_or_default();
        for (wanted, known) in likes {
            if *wanted == name {
                return *known;
            }
        }
        const START: u128 = u128::MAX >> (128 - 8 * OWN_WAY.len());
        if name & START == named(OWN_WAY) {
            return Self::OwnWay;
        }
        Self::Other
    }

    /// A bit of its own.
    const fn bit(self) -> u32 {
        1 << self as u32
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
        let present = lines.iter().fold(0, |all, line| all | line.known.bit());
        Self {
            bytes: head,
            lines,
            present,
        }
    }

    /// Each field, in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.lines.iter().map(|line| self.field(line))
    }

    #[inline]
    fn field(&self, line: &Line) -> Field<'_> {
        Field {
            known: line.known,
            name: line.name.of(&self.bytes),
            value: line.value.of(&self.bytes),
        }
    }

    /// Writes the fields down that travel, in the order they came; neighbours in one piece.
    pub fn copy(&self, to: &mut Lines, mut travels: impl FnMut(&Field<'_>) -> bool) {
        let mut run = Piece::default();
        for line in &self.lines {
            let field = self.field(line);
            if !travels(&field) {
                continue;
            }
            if line.is_plain && line.name.start == run.end {
                run.end = line.end();
                continue;
            }
            to.append(run.of(&self.bytes));
            if line.is_plain {
                run = Piece {
                    start: line.name.start,
                    end: line.end(),
                };
            } else {
                run = Piece::default();
                to.push(field.name, field.value);
            }
        }
        to.append(run.of(&self.bytes));
    }

    /// The values of the lines of a known field, in the order they came.
    pub fn all(&self, known: Known) -> impl Iterator<Item = &[u8]> {
        self.lines_of(known)
            .iter()
            .filter(move |line| line.known == known)
            .map(|line| line.value.of(&self.bytes))
    }

    /// The same, the last one first.
    pub fn all_from_the_last(&self, known: Known) -> impl Iterator<Item = &[u8]> {
        self.lines_of(known)
            .iter()
            .rev()
            .filter(move |line| line.known == known)
            .map(|line| line.value.of(&self.bytes))
    }

    /// All lines, if one of them is of a known field.
    #[inline]
    fn lines_of(&self, known: Known) -> &[Line] {
        if self.has(known) { &self.lines } else { &[] }
    }

    /// The value of the first line of a known field.
    #[must_use]
    pub fn first(&self, known: Known) -> Option<&[u8]> {
        self.all(known).next()
    }

    /// The same, as bytes that outlive the head.
    #[must_use]
    pub fn keep_first(&self, known: Known) -> Option<Bytes> {
        let mut lines = self.lines_of(known).iter();
        let line = lines.find(|line| line.known == known)?;
        Some(
            self.bytes
                .slice(line.value.start as usize..line.value.end as usize),
        )
    }

    /// Whether there is a line of a known field.
    #[must_use]
    #[inline]
    pub const fn has(&self, known: Known) -> bool {
        self.present & known.bit() != 0
    }

    /// The values of the lines of this name, in the order they came.
    pub fn named<'f>(&'f self, name: &'f HeaderName) -> impl Iterator<Item = &'f [u8]> {
        let name = name.as_str().as_bytes();
        let is_wanted = move |line: &&Line| {
            line.name.len() == name.len() && line.name.of(&self.bytes).eq_ignore_ascii_case(name)
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
                false,
            ));
        }
        Self::of(bytes.into(), lines)
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
    #[inline]
    pub(super) fn new(
        known: Known,
        name: Range<usize>,
        value: Range<usize>,
        is_plain: bool,
    ) -> Self {
        Self {
            known,
            is_plain,
            name: Piece::of_range(name),
            value: Piece::of_range(value),
        }
    }

    pub(super) const fn known(&self) -> Known {
        self.known
    }

    pub(super) const fn value(&self) -> Range<usize> {
        self.value.start as usize..self.value.end as usize
    }

    /// Where a plain line ends.
    const fn end(&self) -> u32 {
        self.value.end + 2
    }
}

impl Piece {
    fn of_range(range: Range<usize>) -> Self {
        Self {
            start: range.start as u32,
            end: range.end as u32,
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
