//! Decides what a line of a log file is: whatever stands between two line feeds, as far as it is not too
//! long to be one of ours. Never holds more than one.

use std::io::{self, BufRead};

/// The longest line that is looked at, in bytes. Ours have a tenth of that.
const LONGEST: usize = 1 << 16;

/// A file, line by line.
pub(super) struct Lines<R> {
    source: R,
    line: Vec<u8>,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'l> {
    /// Without its line feed.
    Line(&'l [u8]),
    /// Longer than any of ours.
    TooLong,
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(source: R) -> Self {
        Self {
            source,
            line: Vec::new(),
        }
    }

    /// Whether the file begins like this. Takes nothing of it.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn begin_with(&mut self, start: &[u8]) -> io::Result<bool> {
        Ok(self.source.fill_buf()?.starts_with(start))
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        self.line.clear();
        let mut is_too_long = false;
        let mut has_any = false;
        loop {
            let bytes = match self.source.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = memchr::memchr(b'\n', bytes);
            let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            let taken = part.len() + usize::from(end.is_some());
            has_any |= taken > 0;
            is_too_long |= self.line.len() + part.len() > LONGEST;
            if !is_too_long {
                self.line.extend_from_slice(part);
            }
            self.source.consume(taken);
            if end.is_some() || taken == 0 {
                break;
            }
        }
        Ok(has_any.then(|| match is_too_long {
            true => Piece::TooLong,
            false => Piece::Line(&self.line),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn pieces(text: &[u8], buffer: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(BufReader::with_capacity(buffer, text));
        let mut pieces = Vec::new();
        while let Some(piece) = lines.next().unwrap() {
            pieces.push(match piece {
                Piece::Line(line) => Some(line.to_vec()),
                Piece::TooLong => None,
            });
            assert!(lines.line.capacity() <= 2 * LONGEST);
        }
        pieces
    }

    #[test]
    fn lines_come_whole_whatever_the_pieces_they_are_read_in() {
        let some = |line: &str| Some(line.as_bytes().to_vec());
        for buffer in [1, 2, 3, 7, 1000] {
            assert_eq!(pieces(b"", buffer), []);
            assert_eq!(
                pieces(b"a\n\nbc", buffer),
                [some("a"), some(""), some("bc")]
            );
            assert_eq!(pieces(b"a\n", buffer), [some("a")]);
        }
    }

    #[test]
    fn a_line_without_an_end_costs_no_memory() {
        let mut text = b"first\n".to_vec();
        text.resize(20 * LONGEST, b'x');
        text.extend_from_slice(b"\nlast\n");
        let found = pieces(&text, 4096);
        assert_eq!(
            found,
            [Some(b"first".to_vec()), None, Some(b"last".to_vec())]
        );
        let exact = vec![b'x'; LONGEST];
        assert_eq!(pieces(&exact, 4096), [Some(exact.clone())]);
    }
}
