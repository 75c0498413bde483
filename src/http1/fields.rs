//! Decides how the fields of a received head are kept: in the bytes they came in, each line known by
//! what it is.
//!
//! A line is looked at once, when it is read; whoever asks later compares one number. Values stand
//! without white space around them. Must never join, reorder or repair lines: what came twice
//! stands twice.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::known::Known;
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
    pub fn copy<'f>(&'f self, to: &mut Lines, mut travels: impl FnMut(&Field<'f>) -> bool) {
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
    fn letters_are_lowered_and_nothing_else() {
        for byte in 0..=u8::MAX {
            assert_eq!(lower([byte; 8]), [byte.to_ascii_lowercase(); 8], "{byte}");
            let pair = [byte, b'A', byte, 0xff, byte, b'[', 0, byte];
            assert_eq!(lower(pair), pair.map(|it| it.to_ascii_lowercase()));
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
