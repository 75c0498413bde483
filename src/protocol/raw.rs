//! Decides what the raw text of a JSON value is: kept as it stood, decoded on demand.
//!
//! Only a scanner that has read the whole text makes one, so every raw value is valid JSON. Must
//! never be turned into a number: 9007199254740993 would come out another.

use std::borrow::Cow;

/// The raw text of one JSON value, exactly as it stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// The text `null`.
    pub const NULL: Raw<'static> = Raw("null");

    /// A value whose text is known to be valid.
    pub(in crate::protocol) const fn of_text(text: &'a str) -> Self {
        Self(text)
    }

    /// The JSON text itself.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// The decoded text, when the value is a string that decodes to Unicode.
    #[must_use]
    pub fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        serde_json::from_str::<String>(self.0).ok().map(Cow::Owned)
    }

    /// The first byte, which tells the kind of a valid JSON value.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self.0.as_bytes() {
            [b'"', ..] => Kind::String,
            [b'{', ..] => Kind::Object,
            [b'[', ..] => Kind::Array,
            [b't' | b'f', ..] => Kind::Boolean,
            [b'n', ..] => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// Whether the value is this exact string.
    #[must_use]
    pub fn is(self, wanted: &str) -> bool {
        self.text().is_some_and(|text| text == wanted)
    }
}

/// The kinds of JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `null`.
    Null,
    /// An object.
    Object,
    /// An array.
    Array,
}
