//! Decides which query parameters travel: all but those named like the two A2A headers.
//!
//! A2A lets a server honour `A2A-Version` and `A2A-Extensions` as query parameters; the gateway
//! judged without them, so they must not reach the upstream (**our reading** of A2A 1.0 section
//! 3.6.1). Must never change any other byte of the query.

use crate::protocol::headers::{A2A_EXTENSIONS, A2A_VERSION};

/// The query without parameters named like the A2A headers.
///
/// `None`: nothing to strip. `Some("")`: nothing is left, so the `?` goes too. Names are compared
/// without regard to case and after percent-decoding, with or without `=`; one `&` goes with each.
#[must_use]
pub fn strip(query: &str) -> Option<String> {
    // Both names decode to at least one of these bytes in clear or begin with an escape.
    if !query.bytes().any(|byte| matches!(byte, b'a' | b'A' | b'%')) {
        return None;
    }
    if !query.split('&').any(names_a_header) {
        return None;
    }
    let mut kept = String::with_capacity(query.len());
    let mut first = true;
    for parameter in query
        .split('&')
        .filter(|parameter| !names_a_header(parameter))
    {
        if !first {
            kept.push('&');
        }
        first = false;
        kept.push_str(parameter);
    }
    Some(kept)
}

fn names_a_header(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or_default();
    decodes_to(name, A2A_VERSION.as_str()) || decodes_to(name, A2A_EXTENSIONS.as_str())
}

/// Whether the percent-encoded name decodes to the lower-case ASCII one, without regard to case.
fn decodes_to(encoded: &str, wanted: &str) -> bool {
    let mut wanted = wanted.bytes();
    let mut rest = encoded.as_bytes();
    loop {
        let (byte, after) = match rest {
            [] => return wanted.next().is_none(),
            [b'%', high, low, after @ ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, after),
                _ => return false,
            },
            [byte, after @ ..] => (*byte, after),
        };
        if wanted.next() != Some(byte.to_ascii_lowercase()) {
            return false;
        }
        rest = after;
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn strips_only_the_two_names() {
        for (query, left) in [
            ("A2A-Version=0.3", Some("")),
            ("a2a-version", Some("")),
            ("a2a-version=0.3&x=1", Some("x=1")),
            ("x=1&a2a-VERSION=0.3", Some("x=1")),
            ("x=1&A2A-Extensions=u&y=%2F", Some("x=1&y=%2F")),
            ("%41%32a%2dVersion=1&x", Some("x")),
            ("a2a-version=1&a2a-version=2", Some("")),
            ("&a2a-version=1&", Some("&")),
            ("x=a2a-version&a2a-versions=1", None),
            ("a2a_version=1", None),
            ("%4=1&%zz", None),
            ("x=1&&y=&=z", None),
            ("", None),
        ] {
            assert_eq!(strip(query).as_deref(), left, "{query:?}");
        }
    }

    /// One of the two names, any of its letters in upper case or percent-encoded.
    fn spelled() -> impl Strategy<Value = String> {
        let name = prop::sample::select(vec!["a2a-version", "a2a-extensions"]);
        (name, prop::collection::vec(0..4, 14)).prop_map(|(name, forms)| {
            let spell = |(byte, form): (u8, &i32)| match form {
                0 => format!("%{byte:02x}"),
                1 => format!("%{:02X}", byte.to_ascii_uppercase()),
                2 => char::from(byte.to_ascii_uppercase()).to_string(),
                _ => char::from(byte).to_string(),
            };
            name.bytes().zip(&forms).map(spell).collect()
        })
    }

    proptest! {
        #[test]
        fn what_is_added_under_the_names_is_removed_and_nothing_else(
            others in prop::collection::vec("[b-z%=é]{0,6}(=[a2V%&&[^&]]{0,6})?", 0..4),
            name in spelled(), value in "(=[ -%'-~]{0,8})?", at in 0usize..5,
        ) {
            let with = |added: &str| {
                let mut parameters: Vec<&str> = others.iter().map(String::as_str).collect();
                parameters.insert(at.min(others.len()), added);
                parameters.join("&")
            };
            let left = strip(&with(&format!("{name}{value}")));
            prop_assert_eq!(left.as_deref(), Some(&*others.join("&")));
            prop_assert_eq!(strip(&left.unwrap_or_default()), None);
            // A longer name is another name.
            prop_assert_eq!(strip(&with(&format!("{name}s{value}"))), None);
            prop_assert_eq!(strip(&with(&format!("x{name}{value}"))), None);
        }
    }
}
