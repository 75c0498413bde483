//! Decides how text from strangers becomes JSON: ASCII only, every other character escaped.
//!
//! What is written can be shown on any terminal: no control character, no change of direction, no
//! byte that is not UTF-8 gets through. A parser reads back the same text, with U+FFFD for what was
//! not text. Keys are ours and need no escaping.

use std::time::Duration;

/// A name with all that stands between the value before it and its own string's text. Names are
/// ours and need no escaping.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":\"")
    };
}
pub(super) use key;

/// One JSON object on one line, written field by field. Each name is a [`key`].
pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Object<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start }
    }

    /// A string of ours that has nothing to escape: a configured name, a constant, a token.
    #[inline(always)]
    pub(super) fn word(&mut self, key: &'static str, value: &str) {
        self.key(key);
        self.out.extend_from_slice(value.as_bytes());
        self.out.push(b'"');
    }

    /// A string; at most `most` bytes of it, whole characters.
    #[inline(always)]
    pub(super) fn text(&mut self, key: &'static str, value: &[u8], most: usize) {
        self.key(key);
        escape(self.out, cut(value, most));
        self.out.push(b'"');
    }

    /// A string that is written by the caller and needs no escaping.
    pub(super) fn plain(&mut self, key: &'static str, write: impl FnOnce(&mut Vec<u8>)) {
        self.key(key);
        write(self.out);
        self.out.push(b'"');
    }

    pub(super) fn flag(&mut self, key: &'static str) {
        self.bare_key(key);
        self.out.extend_from_slice(b"true");
    }

    #[inline(always)]
    pub(super) fn number(&mut self, key: &'static str, value: u64) {
        self.bare_key(key);
        digits(self.out, value);
    }

    pub(super) fn signed(&mut self, key: &'static str, value: i64) {
        self.bare_key(key);
        if value < 0 {
            self.out.push(b'-');
        }
        digits(self.out, value.unsigned_abs());
    }

    /// Milliseconds with three decimals, rounded down.
    pub(super) fn millis(&mut self, key: &'static str, value: Duration) {
        self.bare_key(key);
        let millis = value.as_secs().saturating_mul(1000);
        digits(
            self.out,
            millis.saturating_add(value.subsec_millis().into()),
        );
        let micros = value.subsec_micros() % 1000;
        let decimals = [100, 10, 1].map(|place| b'0' + (micros / place % 10) as u8);
        self.out.push(b'.');
        self.out.extend_from_slice(&decimals);
    }

    /// Millionths in percent, with as few decimals as it takes.
    pub(super) fn percent(&mut self, key: &'static str, millionths: u32) {
        self.bare_key(key);
        digits(self.out, (millionths / 10_000).into());
        let part = millionths % 10_000;
        if part > 0 {
            let decimals = [1000, 100, 10, 1].map(|place| b'0' + (part / place % 10) as u8);
            self.out.push(b'.');
            self.out.extend_from_slice(&decimals);
            while self.out.last() == Some(&b'0') {
                self.out.pop();
            }
        }
    }

    /// A list of strings of ours that have nothing to escape; left out when empty.
    #[inline(always)]
    pub(super) fn list<'b>(
        &mut self,
        key: &'static str,
        values: impl IntoIterator<Item = &'b str>,
    ) {
        let mut values = values.into_iter();
        let Some(first) = values.next() else {
            return;
        };
        self.bare_key(key);
        self.out.extend_from_slice(b"[\"");
        self.out.extend_from_slice(first.as_bytes());
        for value in values {
            self.out.extend_from_slice(b"\",\"");
            self.out.extend_from_slice(value.as_bytes());
        }
        self.out.extend_from_slice(b"\"]");
    }

    /// The same; there also when empty.
    pub(super) fn list_or_empty<'b>(
        &mut self,
        key: &'static str,
        values: impl IntoIterator<Item = &'b str>,
    ) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            self.bare_key(key);
            self.out.extend_from_slice(b"[]");
        } else {
            self.list(key, values);
        }
    }

    pub(super) fn close(self) {
        // Each name brings a comma along: the first one's place is the bracket's.
        match self.out.get_mut(self.start) {
            Some(first) => *first = b'{',
            None => self.out.push(b'{'),
        }
        self.out.extend_from_slice(b"}\n");
    }

    /// A name whose value is a string: its first quote is written too.
    #[inline(always)]
    fn key(&mut self, key: &'static str) {
        self.out.extend_from_slice(key.as_bytes());
    }

    /// A name whose value is no string.
    #[inline(always)]
    fn bare_key(&mut self, key: &'static str) {
        self.key(key.strip_suffix('"').unwrap_or(key));
    }
}

/// At most this many bytes, without half a character at the end.
fn cut(value: &[u8], most: usize) -> &[u8] {
    let Some((mut head, [next, ..])) = value.split_at_checked(most) else {
        return value;
    };
    // If the cut falls into a character, its first bytes go as well. None has more than three.
    if next & 0xc0 == 0x80 {
        for _ in 0..3 {
            match head {
                [rest @ .., last] if *last >= 0x80 => {
                    head = rest;
                    if *last >= 0xc0 {
                        break;
                    }
                }
                _ => break,
            }
        }
    }
    head
}

#[inline]
fn escape(out: &mut Vec<u8>, bytes: &[u8]) {
    if are_plain(bytes) {
        out.extend_from_slice(bytes);
    } else {
        spell(out, bytes);
    }
}

#[inline(never)]
fn spell(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                '\t' => out.extend_from_slice(b"\\t"),
                ' '..='~' => out.push(character as u8),
                _ => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        unicode(out, *unit);
                    }
                }
            }
        }
        if !chunk.invalid().is_empty() {
            unicode(out, 0xfffd);
        }
    }
}

/// One in each byte of a word.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The top bit of each byte of a word.
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Whether every byte is printable ASCII that JSON leaves as it is; eight are looked at together.
#[inline]
fn are_plain(bytes: &[u8]) -> bool {
    let odd = |word: &[u8; 8]| odd_bytes(u64::from_le_bytes(*word));
    let (words, rest) = bytes.as_chunks::<8>();
    // The last eight bytes, some of them a second time.
    let last = match bytes.last_chunk() {
        Some(last) => odd(last),
        None => {
            let mut last = [b' '; 8];
            for (slot, byte) in last.iter_mut().zip(rest) {
                *slot = *byte;
            }
            odd(&last)
        }
    };
    words.iter().fold(last, |all, word| all | odd(word)) == 0
}

/// Not zero where a byte of the word is not plain.
const fn odd_bytes(word: u64) -> u64 {
    const fn is(word: u64, byte: u8) -> u64 {
        let zero = word ^ (ONES * byte as u64);
        zero.wrapping_sub(ONES) & !zero
    }
    let control = word.wrapping_sub(ONES * b' ' as u64) & !word;
    (word | control | is(word, 0x7f) | is(word, b'"') | is(word, b'\\')) & HIGHS
}

fn unicode(out: &mut Vec<u8>, unit: u16) {
    out.extend_from_slice(b"\\u");
    for shift in [12, 8, 4, 0] {
        let digit = (unit >> shift & 0xf) as u8;
        out.push(if digit < 10 {
            b'0' + digit
        } else {
            b'a' + digit - 10
        });
    }
}

fn digits(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn written(write: impl FnOnce(&mut Object<'_>)) -> Value {
        let mut out = Vec::new();
        let mut object = Object::new(&mut out);
        write(&mut object);
        object.close();
        assert!(out.is_ascii());
        assert_eq!(out.iter().filter(|byte| **byte < b' ').count(), 1);
        serde_json::from_slice(&out).unwrap()
    }

    proptest! {
        #[test]
        fn any_bytes_read_back_lossily(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            text in any::<String>(),
        ) {
            let value = written(|object| {
                object.text(key!("bytes"), &bytes, usize::MAX);
                object.text(key!("text"), text.as_bytes(), usize::MAX);
                object.list(key!("list"), ["one", ""]);
            });
            let lossy = String::from_utf8_lossy(&bytes);
            prop_assert_eq!(&value["bytes"], &*lossy);
            prop_assert_eq!(&value["text"], &*text);
            prop_assert_eq!(&value["list"][0], "one");
            prop_assert_eq!(&value["list"][1], "");
        }

        #[test]
        fn plain_is_what_needs_no_escape(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
            prop_assert_eq!(are_plain(&bytes), bytes.iter().all(plain));
        }

        #[test]
        fn a_cut_leaves_whole_characters(text in any::<String>(), most in 0..40_usize) {
            let kept = cut(text.as_bytes(), most);
            prop_assert!(kept.len() <= most);
            prop_assert!(text.starts_with(std::str::from_utf8(kept).unwrap()));
            prop_assert!(kept.len() == text.len() || kept.len() + 3 >= most);
        }

        #[test]
        fn numbers_read_back(unsigned in any::<u64>(), signed in any::<i64>()) {
            let value = written(|object| {
                object.number(key!("u"), unsigned);
                object.signed(key!("i"), signed);
                object.millis(key!("ms"), Duration::from_micros(unsigned));
            });
            prop_assert_eq!(value["u"].as_u64(), Some(unsigned));
            prop_assert_eq!(value["i"].as_i64(), Some(signed));
            let ms = unsigned as f64 / 1000.0;
            prop_assert!((value["ms"].as_f64().unwrap() - ms).abs() <= ms * 1e-15 + 1e-9);
        }
    }

    #[test]
    fn percentages_are_numbers_with_as_few_decimals_as_it_takes() {
        for (millionths, text) in [
            (0, "0"),
            (1, "0.0001"),
            (5_000, "0.5"),
            (100_000, "10"),
            (123_400, "12.34"),
            (1_000_000, "100"),
        ] {
            let mut out = Vec::new();
            let mut object = Object::new(&mut out);
            object.percent(key!("p"), millionths);
            object.close();
            let expected = format!("{{\"p\":{text}}}\n");
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn an_empty_object_and_an_empty_list() {
        let value = written(|object| object.list(key!("none"), []));
        assert_eq!(value, serde_json::json!({}));
        let value = written(|object| {
            object.list_or_empty(key!("none"), []);
            object.list_or_empty(key!("two"), ["a", "b"]);
        });
        assert_eq!(value, serde_json::json!({ "none": [], "two": ["a", "b"] }));
    }

    #[test]
    fn a_cut_within_stray_bytes_stays_within_the_limit() {
        assert_eq!(cut(&[0x80; 10], 5).len(), 2);
        assert_eq!(cut(b"abc", 0), b"");
        assert_eq!(cut("a\u{20ac}b".as_bytes(), 3), b"a");
    }
}
