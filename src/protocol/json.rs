//! Decides whether bytes are one JSON text (RFC 8259), and walks it once without building a tree.
//!
//! The whole text is checked: what this scanner accepts, `serde_json` accepts, and the other way
//! round (a property test holds them together). Nesting is bounded by [`MAX_DEPTH`]; skipping a
//! value uses no recursion. Must never answer from a text it has not read to its end.

mod runs;

use crate::protocol::raw::Raw;
use runs::{blank_until, plain_until};

/// The deepest nesting accepted; the top level is 1 (**our reading**).
pub const MAX_DEPTH: u32 = 128;

/// The text is not JSON, or is nested too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The result of a scanning step.
pub type Scan<T> = Result<T, Malformed>;

/// A place in a JSON text.
#[derive(Debug)]
pub struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> Scanner<'a> {
    /// Starts at the beginning of a text.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            depth: 0,
        }
    }

    /// The first byte of the next value; nothing is consumed but white space.
    ///
    /// # Errors
    /// The text ends here.
    #[inline]
    pub fn peek(&mut self) -> Scan<u8> {
        match self.here() {
            // Most values follow what was before them at once.
            Some(byte) if byte > b' ' => Ok(byte),
            _ => {
                self.white_space();
                self.here().ok_or(Malformed)
            }
        }
    }

    /// Requires that nothing but white space follows.
    ///
    /// # Errors
    /// Something follows.
    pub fn end(&mut self) -> Scan<()> {
        self.white_space();
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    /// Walks the members of the object that starts here. `each` gets every name, decoded, as UTF-8,
    /// and must consume the value. A name that decodes to no Unicode text comes as the empty one.
    ///
    /// # Errors
    /// Not an object, or malformed.
    pub fn object(&mut self, mut each: impl FnMut(&mut Self, &[u8]) -> Scan<()>) -> Scan<()> {
        self.open(b'{')?;
        let mut next = self.peek()?;
        if next == b'}' {
            return self.close();
        }
        loop {
            if next != b'"' {
                return Err(Malformed);
            }
            let start = self.at;
            let is_escaped = self.string()?;
            let end = self.at;
            self.expect(b':')?;
            if is_escaped {
                let name = self.slice(start, end)?.text().unwrap_or_default();
                each(self, name.as_bytes())?;
            } else {
                let name = self.bytes.get(start + 1..end - 1).ok_or(Malformed)?;
                each(self, name)?;
            }
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => return self.close(),
                _ => return Err(Malformed),
            }
            next = self.peek()?;
        }
    }

    /// Walks the elements of the array that starts here. `each` gets every index and must consume
    /// the value.
    ///
    /// # Errors
    /// Not an array, or malformed.
    pub fn array(&mut self, mut each: impl FnMut(&mut Self, usize) -> Scan<()>) -> Scan<()> {
        self.open(b'[')?;
        if self.peek()? == b']' {
            return self.close();
        }
        let mut index = 0;
        loop {
            each(self, index)?;
            index += 1;
            match self.peek()? {
                b',' => self.at += 1,
                b']' => return self.close(),
                _ => return Err(Malformed),
            }
        }
    }

    /// Reads one whole value of any kind and gives its text.
    ///
    /// # Errors
    /// Malformed or nested too deep.
    pub fn value(&mut self) -> Scan<Raw<'a>> {
        self.white_space();
        let start = self.at;
        self.pass()?;
        self.slice(start, self.at)
    }

    /// Reads past one whole value of any kind.
    ///
    /// # Errors
    /// Malformed or nested too deep.
    #[inline]
    pub fn pass(&mut self) -> Scan<()> {
        match self.peek()? {
            b'{' | b'[' => self.container(),
            first => self.scalar(first),
        }
    }

    #[inline(always)]
    fn scalar(&mut self, first: u8) -> Scan<()> {
        if first == b'"' {
            return self.string().map(|_| ());
        }
        self.bare(first)
    }

    #[inline(never)]
    fn bare(&mut self, first: u8) -> Scan<()> {
        match first {
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.number(),
        }
    }

    fn container(&mut self) -> Scan<()> {
        // One bit for each container opened here: 1 for an object, 0 for an array.
        let mut objects: u128 = 0;
        let outer = self.depth;
        loop {
            // A value is due.
            match self.peek()? {
                b'{' => {
                    self.enter()?;
                    objects = objects << 1 | 1;
                    if self.peek()? != b'}' {
                        self.name()?;
                        continue;
                    }
                }
                b'[' => {
                    self.enter()?;
                    objects <<= 1;
                    if self.peek()? != b']' {
                        continue;
                    }
                }
                first => self.scalar(first)?,
            }
            // A value, or an empty container's opening, is done: what follows it?
            loop {
                let in_object = objects & 1 == 1;
                match (self.peek()?, in_object) {
                    (b'}', true) | (b']', false) => {
                        self.close()?;
                        objects >>= 1;
                        if self.depth == outer {
                            return Ok(());
                        }
                    }
                    (b',', true) => {
                        self.at += 1;
                        self.name()?;
                        break;
                    }
                    (b',', false) => {
                        self.at += 1;
                        break;
                    }
                    _ => return Err(Malformed),
                }
            }
        }
    }

    #[inline(always)]
    fn name(&mut self) -> Scan<()> {
        if self.peek()? != b'"' {
            return Err(Malformed);
        }
        self.string()?;
        self.expect(b':')
    }

    fn literal(&mut self, word: &[u8]) -> Scan<()> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    fn number(&mut self) -> Scan<()> {
        if self.here() == Some(b'-') {
            self.at += 1;
        }
        match self.here() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(Malformed),
        }
        if self.here() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.here() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.here() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Scan<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.here() {
            self.at += 1;
        }
        if self.at == start {
            Err(Malformed)
        } else {
            Ok(())
        }
    }

    /// Reads the string that starts here, quotes included. Whether it has an escape.
    #[inline(always)]
    fn string(&mut self) -> Scan<bool> {
        self.at = plain_until(self.bytes, self.at + 1);
        if self.here() == Some(b'"') {
            self.at += 1;
            return Ok(false);
        }
        self.escaped_string()
    }

    /// Goes on in a string at what is neither plain nor its end.
    #[cold]
    fn escaped_string(&mut self) -> Scan<bool> {
        loop {
            match self.here().ok_or(Malformed)? {
                b'"' => {
                    self.at += 1;
                    return Ok(true);
                }
                b'\\' => self.escape()?,
                _ => return Err(Malformed),
            }
            self.at = plain_until(self.bytes, self.at);
        }
    }

    fn escape(&mut self) -> Scan<()> {
        let escape = self.bytes.get(self.at + 1).ok_or(Malformed)?;
        self.at += 2;
        match escape {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                let digits = self.bytes.get(self.at..self.at + 4).ok_or(Malformed)?;
                self.at += 4;
                let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
                is_hex.then_some(()).ok_or(Malformed)
            }
            _ => Err(Malformed),
        }
    }

    fn open(&mut self, bracket: u8) -> Scan<()> {
        if self.peek()? != bracket {
            return Err(Malformed);
        }
        self.enter()
    }

    /// Goes past the bracket that stands here.
    fn enter(&mut self) -> Scan<()> {
        self.at += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            Err(Malformed)
        } else {
            Ok(())
        }
    }

    fn close(&mut self) -> Scan<()> {
        self.at += 1;
        self.depth -= 1;
        Ok(())
    }

    fn expect(&mut self, byte: u8) -> Scan<()> {
        if self.peek()? == byte {
            self.at += 1;
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    #[inline]
    fn here(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn white_space(&mut self) {
        // Compact texts have none, indented ones a line break and a run of spaces.
        if let Some(b' ' | b'\n' | b'\r' | b'\t') = self.here() {
            self.at = blank_until(self.bytes, self.at + 1);
        }
    }

    fn slice(&self, start: usize, end: usize) -> Scan<Raw<'a>> {
        self.text.get(start..end).map(Raw::of_text).ok_or(Malformed)
    }
}

#[cfg(test)]
mod tests;
