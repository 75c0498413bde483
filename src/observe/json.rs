//! Decides how text from strangers becomes JSON: ASCII only, every other character escaped.
//!
//! What is written can be shown on any terminal: no control character, no change of direction, no
//! byte that is not UTF-8 gets through. A parser reads back the same text, with U+FFFD for what was
//! not text. Keys are ours and need no escaping.

use std::time::Duration;

/// One JSON object on one line, written field by field.
pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
    open: bool,
}

impl<'a> Object<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, open: true }
    }

    /// A string of ours that has nothing to escape: a configured name, a constant, a token.
    pub(super) fn word(&mut self, key: &'static str, value: &str) {
        self.key(key);
        self.out.push(b'"');
        self.out.extend_from_slice(value.as_bytes());
        self.out.push(b'"');
    }

    /// A string; at most `most` bytes of it, whole characters.
    pub(super) fn text(&mut self, key: &'static str, value: &[u8], most: usize) {
        self.key(key);
        self.out.push(b'"');
        escape(self.out, cut(value, most));
        self.out.push(b'"');
    }

    /// A string that is written by the caller and needs no escaping.
    pub(super) fn plain(&mut self, key: &'static str, write: impl FnOnce(&mut Vec<u8>)) {
        self.key(key);
        self.out.push(b'"');
        write(self.out);
        self.out.push(b'"');
    }

    pub(super) fn flag(&mut self, key: &'static str) {
        self.key(key);
        self.out.extend_from_slice(b"true");
    }

    pub(super) fn number(&mut self, key: &'static str, value: u64) {
        self.key(key);
        digits(self.out, value);
    }

    pub(super) fn signed(&mut self, key: &'static str, value: i64) {
        self.key(key);
        if value < 0 {
            self.out.push(b'-');
        }
        digits(self.out, value.unsigned_abs());
    }

    /// Milliseconds with three decimals, rounded down.
    pub(super) fn millis(&mut self, key: &'static str, value: Duration) {
        self.key(key);
        let micros = u64::try_from(value.as_micros()).unwrap_or(u64::MAX);
        digits(self.out, micros / 1000);
        self.out.push(b'.');
        for place in [100, 10, 1] {
            self.out.push(b'0' + (micros / place % 10) as u8);
        }
    }

    /// A list of strings; left out when empty.
    pub(super) fn list<'b>(
        &mut self,
        key: &'static str,
        values: impl IntoIterator<Item = &'b str>,
    ) {
        let mut values = values.into_iter();
        let Some(first) = values.next() else {
            return;
        };
        self.key(key);
        self.out.extend_from_slice(b"[\"");
        escape(self.out, first.as_bytes());
        for value in values {
            self.out.extend_from_slice(b"\",\"");
            escape(self.out, value.as_bytes());
        }
        self.out.extend_from_slice(b"\"]");
    }

    pub(super) fn close(self) {
        self.out.extend_from_slice(b"}\n");
    }

    fn key(&mut self, key: &'static str) {
        if !std::mem::take(&mut self.open) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
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

fn escape(out: &mut Vec<u8>, bytes: &[u8]) {
    // Without an early end the compiler looks at many bytes at once.
    if bytes.iter().fold(true, |all, byte| all & plain(byte)) {
        out.extend_from_slice(bytes);
        return;
    }
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

fn plain(byte: &u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')
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
    if value >= 10 {
        digits(out, value / 10);
    }
    out.push(b'0' + (value % 10) as u8);
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
                object.text("bytes", &bytes, usize::MAX);
                object.text("text", text.as_bytes(), usize::MAX);
                object.list("list", [text.as_str(), ""]);
            });
            let lossy = String::from_utf8_lossy(&bytes);
            prop_assert_eq!(&value["bytes"], &*lossy);
            prop_assert_eq!(&value["text"], &*text);
            prop_assert_eq!(&value["list"][0], &*text);
            prop_assert_eq!(&value["list"][1], "");
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
                object.number("u", unsigned);
                object.signed("i", signed);
                object.millis("ms", Duration::from_micros(unsigned));
            });
            prop_assert_eq!(value["u"].as_u64(), Some(unsigned));
            prop_assert_eq!(value["i"].as_i64(), Some(signed));
            let ms = unsigned as f64 / 1000.0;
            prop_assert!((value["ms"].as_f64().unwrap() - ms).abs() <= ms * 1e-15 + 1e-9);
        }
    }

    #[test]
    fn an_empty_object_and_an_empty_list() {
        let value = written(|object| object.list("none", []));
        assert_eq!(value, serde_json::json!({}));
    }

    #[test]
    fn a_cut_within_stray_bytes_stays_within_the_limit() {
        assert_eq!(cut(&[0x80; 10], 5).len(), 2);
        assert_eq!(cut(b"abc", 0), b"");
        assert_eq!(cut("a\u{20ac}b".as_bytes(), 3), b"a");
    }
}
