//! Decides what an A2A version is and when a supplied `A2A-Version` names a pinned one.
//!
//! Follows A2A 1.0 section 3.6: `Major.Minor`, a patch is not considered, an empty value means
//! `0.3`. Must never guess: `1`, `v1.0`, `01.0` and lists are no versions.

use std::fmt;
use std::str::FromStr;

use http::HeaderValue;

/// What an empty `A2A-Version` means (A2A 1.0 section 3.6.2).
pub const EMPTY_MEANS: &str = "0.3";

/// A pinned A2A version, `Major.Minor`.
///
/// Kept as text: the grammar allows no leading zeros, so equal versions are equal bytes, and a
/// number of any length needs no integer type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version {
    text: Box<str>,
    /// The same bytes, made once so that filling in the header copies nothing.
    value: HeaderValue,
}

/// Why a text is not a version an endpoint can be pinned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// Not `Major.Minor` or `Major.Minor.Patch` in decimal without leading zeros.
    #[error("not of the form Major.Minor")]
    Malformed,
    /// Carries a patch number, which A2A never considers.
    #[error("carries a patch number; pin Major.Minor")]
    Patch,
}

impl Version {
    /// The version as `Major.Minor`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The version as the value of a header field.
    #[must_use]
    pub const fn value(&self) -> &HeaderValue {
        &self.value
    }

    /// Whether one supplied header value names this version.
    ///
    /// The value is trimmed of spaces and tabs; an empty one means `0.3`; a patch is ignored.
    #[must_use]
    pub fn is_named_by(&self, supplied: &[u8]) -> bool {
        let supplied = trim(supplied);
        if supplied.is_empty() {
            return self.text.as_bytes() == EMPTY_MEANS.as_bytes();
        }
        major_minor(supplied).is_some_and(|named| named == self.text.as_bytes())
    }

    /// Whether this version is older than 1.0, the first with today's method names.
    #[must_use]
    pub fn is_before_1_0(&self) -> bool {
        self.text.starts_with("0.")
    }
}

impl FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match major_minor(text.as_bytes()) {
            None => Err(VersionError::Malformed),
            Some(named) if named.len() != text.len() => Err(VersionError::Patch),
            Some(_) => Ok(Self {
                text: text.into(),
                value: HeaderValue::from_str(text).map_err(|_| VersionError::Malformed)?,
            }),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Removes spaces and tabs (HTTP's optional whitespace) from both ends.
#[must_use]
pub fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// The `Major.Minor` part of a well-formed version, or `None`.
pub(super) fn major_minor(text: &[u8]) -> Option<&[u8]> {
    let after_major = number(text)?;
    let [b'.', minor @ ..] = after_major else {
        return None;
    };
    let after_minor = number(minor)?;
    let named = text.get(..text.len() - after_minor.len())?;
    match after_minor {
        [] => Some(named),
        [b'.', patch @ ..] if number(patch)?.is_empty() => Some(named),
        _ => None,
    }
}

/// Consumes one decimal number without leading zeros; gives what follows it.
fn number(text: &[u8]) -> Option<&[u8]> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at_checked(digits)?;
    match number {
        [] | [b'0', _, ..] => None,
        _ => Some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_zero() -> Version {
        "1.0".parse().unwrap()
    }

    #[test]
    fn names_major_minor_and_ignores_a_patch() {
        for good in [
            "1.0",
            " 1.0\t",
            "1.0.0",
            "1.0.2",
            "1.0.99999999999999999999999",
        ] {
            assert!(one_zero().is_named_by(good.as_bytes()), "{good:?}");
        }
        for bad in [
            "1",
            "v1.0",
            "01.0",
            "1.00",
            "1.0.",
            "1.0.01",
            "1.0.1.1",
            "1.0, 1.0",
            "1.0;q=1",
            "1.1",
            "0.3",
            "",
            " ",
            "1.0\u{a0}",
            "+1.0",
            "1.-0",
            ".0",
            "1.",
            "1 .0",
            "１.0",
        ] {
            assert!(!one_zero().is_named_by(bad.as_bytes()), "{bad:?}");
        }
    }

    #[test]
    fn empty_means_0_3() {
        let old: Version = "0.3".parse().unwrap();
        assert!(old.is_named_by(b""));
        assert!(old.is_named_by(b" \t "));
        assert!(old.is_before_1_0());
        assert!(!one_zero().is_before_1_0());
    }

    #[test]
    fn only_major_minor_can_be_pinned() {
        assert_eq!("1.0.1".parse::<Version>(), Err(VersionError::Patch));
        assert_eq!("1".parse::<Version>(), Err(VersionError::Malformed));
        assert_eq!("".parse::<Version>(), Err(VersionError::Malformed));
        assert!("99999999999999999999.0".parse::<Version>().is_ok());
    }
}
