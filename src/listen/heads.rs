//! Follows the raw bytes of a connection from head to head and notes how each frames its body.
//!
//! The HTTP parser drops a `Content-Length` beside `Transfer-Encoding` and equal repetitions of it;
//! whether they were there must still be known, for pipelined heads too. So bodies are skipped by
//! the same rules as the parser's (RFC 9112 sections 6 and 7.1). A body without one certain end is
//! never followed: its request is refused and its connection closed. Must never keep a body byte.

use crate::state::connection::Framing;

/// Where in the bytes of a connection we are, whatever pieces they come in.
#[derive(Debug)]
pub(super) struct Heads {
    place: Place,
    framing: Framing,
    /// The value of the one `Content-Length`, where it is a number.
    announced: Option<u64>,
    /// Whether the head has had a line: empty lines before it do not count.
    has_begun: bool,
    /// The first bytes of the line being read.
    start: [u8; Self::KEPT],
    /// How long that line is so far.
    length: usize,
    /// Its last byte so far.
    last: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Head,
    /// A body of a known length.
    Body(u64),
    /// The line that tells a chunk's size.
    Size,
    /// A chunk with its line end.
    Chunk(u64),
    Trailers,
    /// No certain end: the connection is closed before another head counts.
    Lost,
    /// A chunk larger than anything can be: there is no use in waiting for it.
    Absurd,
}

/// No chunk is this large. The parser takes any size of 64 bits and would wait for it.
const ABSURD: u64 = 1 << 60;

impl Default for Heads {
    fn default() -> Self {
        Self {
            place: Place::Head,
            framing: Framing::default(),
            announced: None,
            has_begun: false,
            start: [0; Self::KEPT],
            length: 0,
            last: 0,
        }
    }
}

impl Heads {
    /// Long enough for `Content-Length` with any number that fits 64 bits and some spaces.
    const KEPT: usize = 64;

    /// Whether the client announced what it cannot mean: the connection is to be closed.
    pub(super) fn is_absurd(&self) -> bool {
        self.place == Place::Absurd
    }

    /// Reads what came in; `note` is called at the end of each head.
    pub(super) fn read(&mut self, mut bytes: &[u8], mut note: impl FnMut(Framing)) {
        while !bytes.is_empty() {
            bytes = match self.place {
                Place::Lost | Place::Absurd => return,
                Place::Body(left) => self.skip(bytes, left, Place::Body, Place::Head),
                Place::Chunk(left) => self.skip(bytes, left, Place::Chunk, Place::Size),
                Place::Head | Place::Size | Place::Trailers => {
                    let Some(end) = memchr::memchr(b'\n', bytes) else {
                        self.keep(bytes);
                        return;
                    };
                    let (line, rest) = bytes.split_at(end);
                    self.keep(line);
                    self.end_line(&mut note);
                    rest.get(1..).unwrap_or_default()
                }
            };
        }
    }

    fn skip<'b>(
        &mut self,
        bytes: &'b [u8],
        left: u64,
        on: fn(u64) -> Place,
        then: Place,
    ) -> &'b [u8] {
        let here = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let left = left.saturating_sub(here as u64);
        self.place = if left == 0 { then } else { on(left) };
        bytes.get(here..).unwrap_or_default()
    }

    fn keep(&mut self, part: &[u8]) {
        if self.place == Place::Head && !self.has_begun {
            self.framing.has_fragment |= memchr::memchr(b'#', part).is_some();
        }
        let room = self.start.get_mut(self.length..).unwrap_or_default();
        for (slot, byte) in room.iter_mut().zip(part) {
            *slot = *byte;
        }
        self.length = self.length.saturating_add(part.len());
        self.last = part.last().copied().unwrap_or(self.last);
    }

    fn end_line(&mut self, note: &mut impl FnMut(Framing)) {
        let start = self.start;
        let line = start.get(..self.length.min(Self::KEPT)).unwrap_or_default();
        let is_empty = matches!(line, [] | [b'\r']);
        if self.place == Place::Head && self.last != b'\r' {
            self.framing.has_bare_line_feed = true;
        }
        match self.place {
            Place::Head if is_empty && self.has_begun => self.end_head(note),
            // Empty lines before a request do not count, however they end.
            Place::Head if is_empty => self.framing = Framing::default(),
            Place::Head => self.field(line),
            Place::Size => self.place = size(line).map_or(Place::Lost, chunk),
            // A bare line feed is part of a trailer, as it is to the parser.
            Place::Trailers if self.length > 0 && self.last != b'\r' => return self.keep(b"\n"),
            Place::Trailers if is_empty => self.place = Place::Head,
            Place::Trailers | Place::Body(_) | Place::Chunk(_) | Place::Lost | Place::Absurd => {}
        }
        self.length = 0;
        self.last = 0;
    }

    fn field(&mut self, line: &[u8]) {
        self.has_begun = true;
        match line {
            [b'c' | b'C', ..] => {
                if let Some(value) = value(line, b"content-length") {
                    // A line too long to be kept has no one number.
                    let times = if self.length > Self::KEPT { 2 } else { 1 };
                    self.framing.lengths = self.framing.lengths.saturating_add(times);
                    self.announced = number(value);
                }
            }
            [b't' | b'T', ..] if value(line, b"transfer-encoding").is_some() => {
                self.framing.encodings = self.framing.encodings.saturating_add(1);
            }
            _ => {}
        }
    }

    fn end_head(&mut self, note: &mut impl FnMut(Framing)) {
        note(self.framing);
        self.place = match (self.framing.lengths, self.framing.encodings) {
            (0, 0) => Place::Head,
            (0, 1) => Place::Size,
            (1, 0) => match self.announced {
                Some(0) => Place::Head,
                Some(length) => Place::Body(length),
                None => Place::Lost,
            },
            _ => Place::Lost,
        };
        self.framing = Framing::default();
        self.announced = None;
        self.has_begun = false;
    }
}

/// The value of a field of this name.
fn value<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (start, rest) = line.split_at_checked(name.len())?;
    let rest = rest.strip_prefix(b":")?;
    start.eq_ignore_ascii_case(name).then_some(rest)
}

fn number(value: &[u8]) -> Option<u64> {
    let digits = value.trim_ascii();
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let digits = line.get(..digits.count())?;
    // What overflows is refused by the parser, with an answer.
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn chunk(size: u64) -> Place {
    match size {
        0 => Place::Trailers,
        ABSURD.. => Place::Absurd,
        size => Place::Chunk(size.saturating_add(2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Framing = Framing {
        lengths: 0,
        encodings: 0,
        has_bare_line_feed: false,
        has_fragment: false,
    };
    const LENGTH: Framing = Framing {
        lengths: 1,
        encodings: 0,
        has_bare_line_feed: false,
        has_fragment: false,
    };
    const CHUNKED: Framing = Framing {
        lengths: 0,
        encodings: 1,
        has_bare_line_feed: false,
        has_fragment: false,
    };
    const BOTH: Framing = Framing {
        lengths: 1,
        encodings: 1,
        has_bare_line_feed: false,
        has_fragment: false,
    };

    /// What is noted of these bytes, which must be the same whatever pieces they come in.
    fn noted(bytes: &str) -> Vec<Framing> {
        let read = |size: usize| {
            let mut heads = Heads::default();
            let mut noted = Vec::new();
            for piece in bytes.as_bytes().chunks(size) {
                heads.read(piece, |framing| noted.push(framing));
            }
            noted
        };
        let whole = read(bytes.len());
        for size in 1..bytes.len() {
            assert_eq!(read(size), whole, "pieces of {size}");
        }
        whole
    }

    #[test]
    fn every_head_is_noted_whatever_stands_between() {
        let pipelined = "GET / HTTP/1.1\r\nX: content-length:\r\n\r\n\
             \r\nPOST / HTTP/1.1\r\ncontent-LENGTH: \t 12 \r\n\r\nTransfer-Enc\
             POST / HTTP/1.1\r\nTransfer-Encoding: chunked\n\r\n\
             A;x=\"1\"\r\n\r\n\r\nGET / \r\n\
             0\r\nContent-Length: 1\r\nX: \n\nGET\r\n\r\n\
             POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n\
             POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n\
             0\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        let bare = Framing {
            has_bare_line_feed: true,
            ..CHUNKED
        };
        let expected = [NONE, LENGTH, bare, LENGTH, BOTH];
        assert_eq!(noted(pipelined), expected);
    }

    #[test]
    fn what_has_no_certain_end_is_not_followed() {
        for (fields, lengths, encodings) in [
            ("Content-Length: 0\r\nContent-Length: 0\r\n", 2, 0),
            ("Content-Length: +0\r\n", 1, 0),
            ("Content-Length: 99999999999999999999\r\n", 1, 0),
            (
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                0,
                2,
            ),
        ] {
            let bytes = format!("POST / HTTP/1.1\r\n{fields}\r\nGET / HTTP/1.1\r\n\r\n");
            let framing = Framing {
                lengths,
                encodings,
                has_bare_line_feed: false,
                has_fragment: false,
            };
            assert_eq!(noted(&bytes), [framing], "{fields}");
        }
        let spaces = " ".repeat(80);
        let bytes = format!("POST / HTTP/1.1\r\nContent-Length:{spaces}0\r\n\r\nGET /\r\n\r\n");
        assert_eq!(noted(&bytes).first().map(|it| it.lengths), Some(2));
        let broken = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nz\r\nGET /\r\n\r\n";
        assert_eq!(noted(broken), [CHUNKED]);
    }
}
