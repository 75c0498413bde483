//! Decides how the fields of a head to be sent are written down: once, as lines of text.
//!
//! HTTP/1.1 sends the text as it is; another protocol reads the lines back out of it. Names are
//! written as they are given. Must never be given a name or value that was not read as one: no line
//! end can stand in what a parser let through.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::write::digits;

/// The fields of a head to be sent, but for those that frame the body.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    text: Vec<u8>,
    /// Whether a `Date` is among them.
    pub has_date: bool,
    /// Whether the connection is to be closed after the message.
    pub closes: bool,
}

/// An answer on its way to a client.
#[derive(Debug)]
pub struct Answer<B> {
    /// The status.
    pub status: StatusCode,
    /// The fields, but for those that frame the body.
    pub lines: Lines,
    /// The body, which tells its length where that is known.
    pub body: B,
}

/// How much text is expected.
const USUAL: usize = 768;

/// How many lines are expected, and some to be added.
const USUAL_LINES: usize = 24;

impl Lines {
    /// No line yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            text: Vec::with_capacity(USUAL),
            ..Self::default()
        }
    }

    /// Adds lines that are written already, ends and all.
    pub(super) fn append(&mut self, lines: &[u8]) {
        self.text.extend_from_slice(lines);
    }

    /// Adds a line. Its name is mostly known here, and written as one with the colon.
    #[inline(always)]
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        let text = &mut self.text;
        text.reserve(name.len() + value.len() + 4);
        text.extend_from_slice(name);
        text.extend_from_slice(b": ");
        text.extend_from_slice(value);
        text.extend_from_slice(b"\r\n");
    }

    /// Adds a line with a number.
    pub fn push_number(&mut self, name: &[u8], number: u64) {
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(b": ");
        digits(&mut self.text, number);
        self.text.extend_from_slice(b"\r\n");
    }

    /// The lines as they are sent.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// The lines as a map, for protocols that have other heads.
    #[must_use]
    pub fn to_map(&self) -> HeaderMap {
        // Its values share one copy of the text.
        let text = Bytes::copy_from_slice(&self.text);
        let mut map = HeaderMap::with_capacity(USUAL_LINES);
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &text) {
            let line = text.get(start..end).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            start = end + 1;
            let Some(at) = memchr::memchr(b':', line) else {
                continue;
            };
            let name = HeaderName::from_bytes(line.get(..at).unwrap_or_default());
            let value = line.get(at + 1..).unwrap_or_default().trim_ascii_start();
            let value = HeaderValue::from_maybe_shared(text.slice_ref(value));
            if let (Ok(name), Ok(value)) = (name, value) {
                map.append(name, value);
            }
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_text_and_read_back() {
        let mut lines = Lines::new();
        lines.push(b"X-One", b"1: a");
        lines.push(b"x-two", b"");
        lines.push(b"x-one", b"2");
        assert_eq!(lines.as_bytes(), b"X-One: 1: a\r\nx-two: \r\nx-one: 2\r\n");
        let map = lines.to_map();
        let ones: Vec<_> = map.get_all("x-one").iter().collect();
        assert_eq!(ones, ["1: a", "2"]);
        assert_eq!(map["x-two"], "");
        assert_eq!(map.len(), 3);
    }
}
