//! Decides what an extension URI is and when a supplied `A2A-Extensions` list contains it.
//!
//! Follows A2A 1.0 sections 3.2.6 and 4.6: a comma-separated list over any number of lines,
//! compared byte for byte. Must never fold case, decode, normalize, or match a prefix.

use std::fmt;
use std::str::FromStr;

use http::HeaderValue;

use crate::protocol::version::trim;

/// The absolute URI of an extension, exactly as callers must name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExtensionUri {
    text: Box<str>,
    /// The same bytes, made once so that filling in the header copies nothing.
    value: HeaderValue,
}

/// Why a text cannot be pinned as an extension URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtensionError {
    /// No scheme and host.
    #[error("not an absolute URI")]
    NotAbsolute,
    /// A space, control, comma or non-ASCII byte: no member of a header list could ever equal it.
    #[error("contains a character that cannot stand in a header list")]
    Character,
    /// The host ends in `.invalid`: a draft's placeholder.
    #[error("the host ends in .invalid: drafts must not be deployed")]
    Invalid,
    /// The last path segment is `latest`: not a pinned version.
    #[error("the last segment is `latest`: pin a version")]
    Latest,
}

impl ExtensionUri {
    /// The URI as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The URI as the value of a header field.
    #[must_use]
    pub const fn value(&self) -> &HeaderValue {
        &self.value
    }

    /// Whether a member of any of the lines is exactly this URI.
    #[must_use]
    pub fn is_listed<'a>(&self, lines: impl IntoIterator<Item = &'a [u8]>) -> bool {
        lines
            .into_iter()
            .any(|line| members(line).any(|member| member == self.text.as_bytes()))
    }
}

/// The members of one list line: trimmed, empty ones skipped.
pub fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b',')
        .map(trim)
        .filter(|member| !member.is_empty())
}

impl FromStr for ExtensionUri {
    type Err = ExtensionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b',')
        {
            return Err(ExtensionError::Character);
        }
        let (scheme, rest) = text.split_once("://").ok_or(ExtensionError::NotAbsolute)?;
        let mut scheme_bytes = scheme.bytes();
        let scheme_is_valid = scheme_bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic())
            && scheme_bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host_and_port = authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host);
        let (host, port) = match host_and_port.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            Some(_) | None => (host_and_port, ""),
        };
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let port_is_valid = port.bytes().all(|byte| byte.is_ascii_digit());
        let host_is_valid = !host.is_empty() && (host.starts_with('[') || !host.contains(':'));
        if !scheme_is_valid || !host_is_valid || !port_is_valid {
            return Err(ExtensionError::NotAbsolute);
        }
        if host == "invalid" || host.ends_with(".invalid") {
            return Err(ExtensionError::Invalid);
        }
        let path = rest.get(authority.len()..).unwrap_or_default();
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let last = path.trim_end_matches('/').rsplit('/').next();
        if last.is_some_and(|segment| segment.eq_ignore_ascii_case("latest")) {
            return Err(ExtensionError::Latest);
        }
        let value = HeaderValue::from_str(text).map_err(|_| ExtensionError::Character)?;
        Ok(Self {
            text: text.into(),
            value,
        })
    }
}

impl fmt::Display for ExtensionUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const V3: &str = "https://autoagentprotocol.org/extensions/aap/v3.0";

    fn listed(lines: &[&str]) -> bool {
        let uri: ExtensionUri = V3.parse().unwrap();
        uri.is_listed(lines.iter().map(|line| line.as_bytes()))
    }

    #[test]
    fn finds_the_exact_member_on_any_line() {
        assert!(listed(&[V3]));
        assert!(listed(&["https://ext.example/other/v1", V3]));
        assert!(listed(&[&format!(",, \thttps://é.example ,{V3}\t,")]));
    }

    #[test]
    fn near_misses_are_no_match() {
        for miss in [
            "",
            ",",
            "https://autoagentprotocol.org/extensions/aap/v3.0/",
            "https://AutoAgentProtocol.org/extensions/aap/v3.0",
            "https://autoagentprotocol.org/extensions/aap/v3.01",
            "https://autoagentprotocol.org/extensions/aap/v3%2E0",
            "\"https://autoagentprotocol.org/extensions/aap/v3.0\"",
            "https://autoagentprotocol.org/extensions/aap/v3.0;q=1",
        ] {
            assert!(!listed(&[miss]), "{miss:?}");
        }
    }

    #[test]
    fn drafts_and_relative_uris_cannot_be_pinned() {
        use ExtensionError::{Character, Invalid, Latest, NotAbsolute};
        for (text, why) in [
            ("https://aap.invalid/v2", Invalid),
            ("https://AAP.INVALID:8443/v2", Invalid),
            ("https://aap.invalid./v2", Invalid),
            ("https://user@aap.invalid/v2", Invalid),
            ("https://aap.example/extensions/latest", Latest),
            ("https://aap.example/extensions/latest/", Latest),
            ("https://aap.example/extensions/Latest?x=1", Latest),
            ("extensions/aap/v3.0", NotAbsolute),
            ("https:///v3", NotAbsolute),
            ("https://./v3", NotAbsolute),
            ("https://..:443/v3", NotAbsolute),
            ("", NotAbsolute),
            ("1http://a/b", NotAbsolute),
            ("https://aap.invalid:80x/v2", NotAbsolute),
            ("https://aap.invalid:80:80/v2", NotAbsolute),
            ("https://a.example/v1,v2", Character),
            ("https://a.example/ v1", Character),
            ("https://é.example/v1", Character),
        ] {
            assert_eq!(text.parse::<ExtensionUri>(), Err(why), "{text}");
        }
        for good in [
            "https://invalid.example/v1",
            "https://a.example/latest/v1",
            "https://a.example",
            "http://[::1]:8080/v1",
            "http://[::1]/v1",
            "https://a.example:/v1",
            "https://latest/v1",
            "https://latest",
            "https://a.example/v1#/latest",
        ] {
            assert!(good.parse::<ExtensionUri>().is_ok(), "{good}");
        }
    }

    proptest! {
        /// How a list is cut into lines and padded decides nothing; whether the member is there does.
        #[test]
        fn lines_are_one_list_and_other_members_do_not_matter(
            others in prop::collection::vec(r"[a-z:/.0-9\x80-\xff]{0,12}", 0..5),
            pads in prop::collection::vec("[ \t]{0,2}", 6),
            breaks in prop::collection::vec(any::<bool>(), 6),
            at in prop::option::of(0usize..6),
        ) {
            let mut members: Vec<&str> = others.iter().map(String::as_str).collect();
            if let Some(at) = at {
                members.insert(at.min(others.len()), V3);
            }
            let mut lines = vec![String::new()];
            for ((member, pad), breaks) in members.iter().zip(&pads).zip(&breaks) {
                match lines.last_mut() {
                    Some(line) if !breaks => line.push_str(&format!(",{pad}{member}{pad}")),
                    _ => lines.push(format!("{pad}{member}{pad}")),
                }
            }
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            prop_assert_eq!(listed(&lines), at.is_some(), "{:?}", lines);
            prop_assert_eq!(listed(&[&lines.join(",")]), at.is_some());
        }

        /// No byte of the URI can be changed, dropped or doubled.
        #[test]
        fn one_byte_makes_another_uri(at in 0..V3.len(), byte in "[!-+\\--~]") {
            let (before, after) = V3.split_at(at);
            let (old, rest) = after.split_at(1);
            let (dropped, doubled) = (format!("{before}{rest}"), format!("{before}{byte}{after}"));
            let changed = format!("{before}{byte}{rest}");
            prop_assert!(!listed(&[&dropped]) && !listed(&[&doubled]));
            prop_assert_eq!(listed(&[&changed]), byte == old);
        }

        /// What can be pinned is what a list can hold.
        #[test]
        fn what_is_pinned_lists_itself(text in "https://[a-z0-9.]{1,9}(:[0-9]{0,5})?(/[!-~]{0,9}){0,2}|\\PC{0,20}") {
            if let Ok(uri) = text.parse::<ExtensionUri>() {
                prop_assert!(uri.is_listed([text.as_bytes()]));
                prop_assert_eq!(uri.value().as_bytes(), text.as_bytes());
            }
        }
    }
}
