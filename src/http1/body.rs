//! Decides where a body ends, and takes it out of its framing piece by piece.
//!
//! Follows RFC 9112 sections 6 and 7. A chunk's size is hexadecimal digits and nothing else, every
//! line ends in CR LF, extensions and trailers are read past within a limit and dropped. Must never
//! take a byte that belongs to the next message.

use bytes::{Buf, Bytes, BytesMut};

/// A chunk larger than this is not waited for, in bytes.
const LARGEST_CHUNK: u64 = 1 << 48;

/// The most bytes of one chunk's size line with its extensions.
const LONGEST_LINE: usize = 4096;

/// The most bytes of all trailers together.
const LONGEST_TRAILERS: usize = 8 * 1024;

/// The most bytes of all chunk extensions together: they are work without content.
const MOST_EXTENSIONS: usize = 16 * 1024;

/// How a body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many bytes.
    Exact(u64),
    /// Chunks, until an empty one.
    Chunked,
    /// Until the connection ends.
    Close,
}

/// The framing of a body is broken; where it ends cannot be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("broken chunked framing")]
pub struct Malformed;

/// Takes one body out of its framing.
#[derive(Debug)]
pub struct Decoder {
    place: Place,
    extensions: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// So many bytes are left.
    Exact(u64),
    /// A chunk's size line is due.
    Size,
    /// Within a chunk: so many bytes are left.
    Chunk(u64),
    /// The line end after a chunk is due.
    ChunkEnd,
    /// After the last chunk: so many bytes of trailers came.
    Trailers(usize),
    /// Everything belongs to the body.
    Close,
    /// The body has ended.
    Done,
}

impl Decoder {
    /// Begins a body.
    #[must_use]
    pub const fn new(length: Length) -> Self {
        let place = match length {
            Length::Exact(0) => Place::Done,
            Length::Exact(bytes) => Place::Exact(bytes),
            Length::Chunked => Place::Size,
            Length::Close => Place::Close,
        };
        Self {
            place,
            extensions: 0,
        }
    }

    /// Whether the body has ended.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self.place, Place::Done)
    }

    /// How many bytes are still to come, where that is known.
    #[must_use]
    pub const fn left(&self) -> Option<u64> {
        match self.place {
            Place::Exact(left) => Some(left),
            Place::Done => Some(0),
            Place::Size | Place::Chunk(_) | Place::ChunkEnd | Place::Trailers(_) | Place::Close => {
                None
            }
        }
    }

    /// Whether the body may end where the connection ends; then it has ended.
    pub fn connection_ends(&mut self) -> bool {
        if self.place == Place::Close {
            self.place = Place::Done;
        }
        self.is_done()
    }

    /// Takes the next piece of the body out of what was received. `None`: more must be received
    /// first, or the body has ended ([`Decoder::is_done`]).
    ///
    /// # Errors
    /// The framing is broken.
    pub fn next(&mut self, received: &mut BytesMut) -> Result<Option<Bytes>, Malformed> {
        loop {
            match self.place {
                Place::Done => return Ok(None),
                _ if received.is_empty() => return Ok(None),
                Place::Exact(left) => {
                    let piece = take(received, left);
                    self.place = match left - piece.len() as u64 {
                        0 => Place::Done,
                        left => Place::Exact(left),
                    };
                    return Ok(Some(piece));
                }
                Place::Chunk(left) => {
                    let piece = take(received, left);
                    self.place = match left - piece.len() as u64 {
                        0 => Place::ChunkEnd,
                        left => Place::Chunk(left),
                    };
                    // The end of the body often came along: then the last piece is known to be it.
                    self.pass_framing(received)?;
                    return Ok(Some(piece));
                }
                Place::Close => return Ok(Some(received.split().freeze())),
                Place::Size | Place::ChunkEnd | Place::Trailers(_) => {
                    if !self.pass_framing(received)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Reads past what is no content. Whether content or the end of the body is next.
    fn pass_framing(&mut self, received: &mut BytesMut) -> Result<bool, Malformed> {
        loop {
            match self.place {
                Place::Exact(_) | Place::Chunk(_) | Place::Close | Place::Done => return Ok(true),
                Place::ChunkEnd => match **received {
                    [b'\r', b'\n', ..] => {
                        received.advance(2);
                        self.place = Place::Size;
                    }
                    [] | [b'\r'] => return Ok(false),
                    _ => return Err(Malformed),
                },
                Place::Size => {
                    let Some(length) = line(received, LONGEST_LINE)? else {
                        return Ok(false);
                    };
                    let size = self.size(received.get(..length).unwrap_or_default())?;
                    received.advance(length + 2);
                    self.place = match size {
                        0 => Place::Trailers(0),
                        size => Place::Chunk(size),
                    };
                }
                Place::Trailers(so_far) => {
                    let Some(length) = line(received, LONGEST_TRAILERS)? else {
                        return Ok(false);
                    };
                    received.advance(length + 2);
                    let so_far = so_far + length + 2;
                    self.place = match length {
                        0 => Place::Done,
                        _ if so_far > LONGEST_TRAILERS => return Err(Malformed),
                        _ => Place::Trailers(so_far),
                    };
                }
            }
        }
    }

    /// The size that a line tells: hexadecimal digits, then nothing or extensions.
    fn size(&mut self, line: &[u8]) -> Result<u64, Malformed> {
        let mut size = 0_u64;
        let mut digits = 0;
        for byte in line {
            let Some(digit) = char::from(*byte).to_digit(16) else {
                break;
            };
            digits += 1;
            size = size << 4 | u64::from(digit);
            if size > LARGEST_CHUNK {
                return Err(Malformed);
            }
        }
        let extensions = line.get(digits..).unwrap_or_default();
        self.extensions = self.extensions.saturating_add(extensions.len());
        let are_fine = match extensions {
            [] => true,
            [b';' | b' ' | b'\t', ..] => {
                extensions.trim_ascii_start().first() == Some(&b';')
                    && !extensions.iter().any(|byte| *byte < b' ' && *byte != b'\t')
                    && self.extensions <= MOST_EXTENSIONS
            }
            _ => false,
        };
        if digits == 0 || !are_fine {
            return Err(Malformed);
        }
        Ok(size)
    }
}

/// Up to so many bytes of what was received.
fn take(received: &mut BytesMut, most: u64) -> Bytes {
    let count = usize::try_from(most).map_or(received.len(), |most| most.min(received.len()));
    received.split_to(count).freeze()
}

/// The length of the line that begins here, without its CR LF. `None`: it is not complete.
fn line(received: &[u8], most: usize) -> Result<Option<usize>, Malformed> {
    let start = received.get(..most).unwrap_or(received);
    match memchr::memchr(b'\n', start) {
        Some(end) => match end.checked_sub(1) {
            Some(length) if received.get(length) == Some(&b'\r') => Ok(Some(length)),
            _ => Err(Malformed),
        },
        None if received.len() >= most => Err(Malformed),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of these bytes, and what is left of them, whatever pieces they come in.
    fn decoded(length: Length, bytes: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Malformed> {
        let read = |size: usize| {
            let mut decoder = Decoder::new(length);
            let mut received = BytesMut::new();
            let mut content = Vec::new();
            for piece in bytes.chunks(size) {
                received.extend_from_slice(piece);
                while let Some(piece) = decoder.next(&mut received)? {
                    assert!(!piece.is_empty());
                    content.extend_from_slice(&piece);
                }
            }
            assert!(decoder.is_done() || length == Length::Close, "{bytes:?}");
            Ok((content, received.to_vec()))
        };
        let whole = read(bytes.len().max(1));
        for size in 1..bytes.len() {
            assert_eq!(read(size), whole, "pieces of {size}");
        }
        whole
    }

    #[test]
    fn a_body_ends_where_its_framing_says() {
        for (length, bytes, content, left) in [
            (Length::Exact(3), "abcGET", "abc", "GET"),
            (Length::Exact(0), "GET", "", "GET"),
            (Length::Chunked, "3\r\nabc\r\n0\r\n\r\nGET", "abc", "GET"),
            (
                Length::Chunked,
                "00A;x=\"1\"\r\n0123456789\r\n1 ;y\r\n!\r\n0\r\nX: 1\r\nY: 2\r\n\r\nHTTP",
                "0123456789!",
                "HTTP",
            ),
            (Length::Close, "abc\r\n0\r\n\r\n", "abc\r\n0\r\n\r\n", ""),
        ] {
            let read = decoded(length, bytes.as_bytes()).unwrap();
            assert_eq!(read, (content.into(), left.into()), "{bytes}");
        }
    }

    #[test]
    fn framing_that_two_could_read_in_two_ways_is_broken() {
        let long = format!("1;{}\r\n", "x".repeat(LONGEST_LINE));
        let trailers = format!("0\r\n{}\r\n", "X: 1\r\n".repeat(3000));
        for bytes in [
            "\r\n",
            "x\r\n",
            "+3\r\nabc\r\n",
            "0x3\r\nabc\r\n",
            " 3\r\nabc\r\n",
            "3\nabc\r\n",
            "3\r\nabcd\r\n",
            "3\r\nabc\n",
            "3\r\nabc\r\r\n",
            "3 4\r\nabc",
            "3;\u{1}\r\nabc",
            "FFFFFFFFFFFFFFFFF\r\n",
            "1000000000001\r\n",
            "0\r\nX: 1\n\r\n",
            &long,
            &trailers,
        ] {
            let mut received = BytesMut::from(bytes);
            let mut decoder = Decoder::new(Length::Chunked);
            let ended = loop {
                match decoder.next(&mut received) {
                    Ok(Some(_)) => {}
                    other => break other,
                }
            };
            assert_eq!(ended, Err(Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn extensions_are_bounded_over_all_chunks() {
        let chunk = format!("1;{}\r\nx\r\n", "e".repeat(1000));
        let mut received = BytesMut::from(chunk.repeat(20).as_str());
        let mut decoder = Decoder::new(Length::Chunked);
        let mut taken = 0;
        while let Ok(Some(_)) = decoder.next(&mut received) {
            taken += 1;
        }
        assert!((10..=17).contains(&taken), "{taken}");
        assert_eq!(decoder.next(&mut received), Err(Malformed));
    }

    #[test]
    fn the_last_piece_is_known_to_be_the_last() {
        let mut received = BytesMut::from("3\r\nabc\r\n0\r\n\r\n");
        let mut decoder = Decoder::new(Length::Chunked);
        assert_eq!(decoder.next(&mut received).unwrap().unwrap(), "abc");
        assert!(decoder.is_done());
        assert!(received.is_empty());
    }

    #[test]
    fn only_a_body_without_framing_ends_with_its_connection() {
        assert!(Decoder::new(Length::Close).connection_ends());
        assert!(!Decoder::new(Length::Chunked).connection_ends());
        assert!(!Decoder::new(Length::Exact(1)).connection_ends());
        assert!(Decoder::new(Length::Exact(0)).connection_ends());
    }
}
