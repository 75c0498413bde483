//! Decides where the words and lines of a head end, sixteen bytes at a time.
//!
//! Follows RFC 9112 sections 2 to 5 without leniency, but for line feeds without a carriage return,
//! which are noted. Each byte is looked at once; names are told from each other in the same pass.
//! Must never answer from a byte that was not received.

use std::ops::Range;

use wide::u8x16;

use crate::http1::fields::Line;
use crate::http1::known::Known;

/// Why a head is not read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The bytes end before it does, and fit so far.
    Short,
    /// No head has this.
    Malformed,
    /// No version of HTTP/1 that is spoken here.
    Version,
}

/// The result of one step.
pub(super) type Step<T> = Result<T, Stop>;

/// A place in the bytes of a head.
pub(super) struct Scan<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Whether a line so far ended in a bare line feed.
    pub(super) has_bare_line_feed: bool,
}

impl<'b> Scan<'b> {
    /// Starts at the first byte.
    pub(super) const fn new(bytes: &'b [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            has_bare_line_feed: false,
        }
    }

    /// How many bytes were read.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// The bytes of a place.
    pub(super) fn of(&self, place: Range<usize>) -> &'b [u8] {
        self.bytes.get(place).unwrap_or_default()
    }

    fn here(&self) -> Step<u8> {
        self.bytes.get(self.at).copied().ok_or(Stop::Short)
    }

    /// Goes past this byte.
    pub(super) fn expect(&mut self, byte: u8, otherwise: Stop) -> Step<()> {
        if self.here()? != byte {
            return Err(otherwise);
        }
        self.at += 1;
        Ok(())
    }

    /// A method and the space behind it.
    pub(super) fn method(&mut self) -> Step<Range<usize>> {
        let start = self.at;
        while is_token(self.here()?) {
            self.at += 1;
        }
        let end = self.at;
        if end == start {
            return Err(Stop::Malformed);
        }
        self.expect(b' ', Stop::Malformed)?;
        Ok(start..end)
    }

    /// A target and the space behind it.
    pub(super) fn target(&mut self) -> Step<Range<usize>> {
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        self.at += run(rest, |block| {
            let least = u8x16::splat(b' ');
            block.min(least).simd_eq(block) | block.simd_eq(DELETE)
        });
        let end = self.at;
        self.expect(b' ', Stop::Malformed)?;
        if end == start {
            return Err(Stop::Malformed);
        }
        Ok(start..end)
    }

    /// `HTTP/1.0` or `HTTP/1.1`; which of them.
    pub(super) fn version(&mut self) -> Step<u8> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let minor = match rest.first_chunk::<8>() {
            Some(b"HTTP/1.1") => 1,
            Some(b"HTTP/1.0") => 0,
            None if b"HTTP/1.".starts_with(rest.get(..7).unwrap_or(rest)) => {
                return Err(Stop::Short);
            }
            Some(_) | None => return Err(Stop::Version),
        };
        self.at += 8;
        Ok(minor)
    }

    /// A status: three digits.
    pub(super) fn status(&mut self) -> Step<Range<usize>> {
        let start = self.at;
        for _ in 0..3 {
            if !self.here()?.is_ascii_digit() {
                return Err(Stop::Malformed);
            }
            self.at += 1;
        }
        Ok(start..self.at)
    }

    /// What may stand behind a status: nothing, or a space and any text.
    pub(super) fn reason(&mut self) -> Step<()> {
        if self.here()? == b' ' {
            self.at += text(self.bytes.get(self.at..).unwrap_or_default());
        }
        self.line_end()
    }

    /// The end of a line, or of the head.
    pub(super) fn line_end(&mut self) -> Step<()> {
        match self.here()? {
            b'\r' => {
                self.at += 1;
                self.expect(b'\n', Stop::Malformed)
            }
            b'\n' => {
                self.at += 1;
                self.has_bare_line_feed = true;
                Ok(())
            }
            _ => Err(Stop::Malformed),
        }
    }

    /// Lines without anything on them.
    pub(super) fn empty_lines(&mut self) -> Step<()> {
        while matches!(self.here()?, b'\r' | b'\n') {
            self.line_end()?;
        }
        Ok(())
    }

    /// The next line; `None`: the head ends here.
    #[inline]
    pub(super) fn line(&mut self) -> Step<Option<Line>> {
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let (known, colon) = name(rest);
        // Most lines have one space, a value and CR LF.
        if let Some([b':', b' ', value @ ..]) = rest.get(colon..)
            && let length = text(value)
            && let Some((value, [b'\r', b'\n', ..])) = value.split_at_checked(length)
            && let ([b'!'..=0xff, ..], [.., b'!'..=0xff]) = (value, value)
            && colon > 0
        {
            let value = start + colon + 2;
            self.at = value + length + 2;
            let name = start..start + colon;
            return Ok(Some(Line::new(known, name, value..value + length, true)));
        }
        self.odd_line(known, colon)
    }

    /// The same for a line that is spelled in another way, or the end of the head.
    #[inline(never)]
    fn odd_line(&mut self, known: Known, length: usize) -> Step<Option<Line>> {
        if length == 0 {
            self.line_end()?;
            return Ok(None);
        }
        let start = self.at;
        let colon = start + length;
        self.at = colon;
        self.expect(b':', Stop::Malformed)?;
        while let Some(b' ' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
        let value = self.at;
        self.at += text(self.bytes.get(value..).unwrap_or_default());
        let mut end = self.at;
        self.line_end()?;
        while let Some([.., b' ' | b'\t']) = self.bytes.get(value..end) {
            end -= 1;
        }
        Ok(Some(Line::new(known, start..colon, value..end, false)))
    }
}

const DELETE: u8x16 = u8x16::new([0x7f; 16]);

/// How long the name is that begins here, and what it is.
#[inline]
fn name(rest: &[u8]) -> (Known, usize) {
    let block = u8x16::new(rest.first_chunk().copied().unwrap_or_else(|| padded(rest)));
    // Lower case, of what most names are made of.
    let lower = block | u8x16::splat(0x20);
    let letter = lower - u8x16::splat(b'a');
    let digit = block - u8x16::splat(b'0');
    let plain = letter.min(u8x16::splat(25)).simd_eq(letter)
        | digit.min(u8x16::splat(9)).simd_eq(digit)
        | block.simd_eq(u8x16::splat(b'-'));
    let length = plain.to_bitmask().trailing_ones() as usize;
    match (rest.get(length), FIRST.get(length)) {
        (Some(b':'), Some(first)) => {
            let word = (lower & u8x16::new(*first)).to_array();
            (Known::of_word(u128::from_le_bytes(word), length), length)
        }
        _ => odd_name(rest, length),
    }
}

/// So many first bytes of sixteen.
#[allow(
    clippy::indexing_slicing,
    reason = "this is computed when it is compiled"
)]
const FIRST: [[u8; 16]; 17] = {
    let mut masks = [[0; 16]; 17];
    let mut length = 0;
    while length <= 16 {
        let mut at = 0;
        while at < length {
            masks[length][at] = 0xff;
            at += 1;
        }
        length += 1;
    }
    masks
};

/// The same for a name that is long, or has other characters.
#[inline(never)]
fn odd_name(rest: &[u8], from: usize) -> (Known, usize) {
    let more = rest.get(from..).unwrap_or_default().iter();
    let length = from + more.take_while(|byte| is_token(**byte)).count();
    (Known::of(rest.get(..length).unwrap_or_default()), length)
}

/// How long the text is that begins here: up to a byte that no value and no reason has.
#[inline]
fn text(rest: &[u8]) -> usize {
    run(rest, |block| {
        let control = block.min(u8x16::splat(0x1f)).simd_eq(block);
        let tab = block.simd_eq(u8x16::splat(b'\t'));
        (control ^ tab) | block.simd_eq(DELETE)
    })
}

/// How many bytes stand here before the first that is marked.
#[inline]
fn run(rest: &[u8], marked: impl Fn(u8x16) -> u8x16) -> usize {
    let (blocks, last) = rest.as_chunks::<16>();
    let mut length = 0;
    for block in blocks {
        let marks = marked(u8x16::new(*block)).to_bitmask();
        if marks != 0 {
            return length + marks.trailing_zeros() as usize;
        }
        length += 16;
    }
    let marks = marked(u8x16::new(padded(last))).to_bitmask();
    length + (marks.trailing_zeros() as usize).min(last.len())
}

/// Less than sixteen bytes, and zeros behind them.
#[inline(never)]
fn padded(rest: &[u8]) -> [u8; 16] {
    let mut block = [0; 16];
    for (slot, byte) in block.iter_mut().zip(rest) {
        *slot = *byte;
    }
    block
}

/// Whether a byte may stand in a token (RFC 9110 section 5.6.2).
const fn is_token(byte: u8) -> bool {
    matches!(
        byte,
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9'
        | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`'
        | b'|' | b'~'
    )
}

#[cfg(test)]
mod tests;
