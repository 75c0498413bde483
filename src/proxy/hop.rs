//! Decides which header fields belong to one connection only and stop here, both ways.
//!
//! Follows RFC 9110 section 7.6.1: the fixed hop-by-hop names and every name on any `Connection`
//! line. `A2A-Version` and `A2A-Extensions` are never removed: they were just judged (**our
//! reading**; RFC 9110 would remove them when listed).

use http::header::{CONNECTION, HeaderMap, HeaderName};

use crate::protocol::headers::{A2A_EXTENSIONS, A2A_VERSION};

/// Whether a field belongs to one connection by its name.
pub(super) fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "proxy-connection"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
    )
}

/// Removes what must not travel past this hop, and what else `is_unwanted` says. One pass over the
/// names, because most requests carry next to nothing of it.
pub(super) fn strip(headers: &mut HeaderMap, is_unwanted: impl Fn(&str) -> bool) {
    let mut stay_here = listed(headers);
    stay_here.extend(
        headers
            .keys()
            .filter(|name| is_hop_by_hop(name.as_str()) || is_unwanted(name.as_str()))
            .cloned(),
    );
    for name in stay_here {
        headers.remove(name);
    }
}

/// The names listed on any `Connection` line, but never ours and never mere options.
pub(super) fn listed(headers: &HeaderMap) -> Vec<HeaderName> {
    let mut names = Vec::new();
    for line in headers.get_all(CONNECTION) {
        for option in line.as_bytes().split(|byte| *byte == b',') {
            let option = option.trim_ascii();
            if option.is_empty()
                || option.eq_ignore_ascii_case(b"close")
                || option.eq_ignore_ascii_case(b"keep-alive")
            {
                continue;
            }
            match HeaderName::from_bytes(option) {
                Ok(name) if name != A2A_VERSION && name != A2A_EXTENSIONS => names.push(name),
                _ => {}
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn every_connection_line_counts_and_ours_stay() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-One"),
            ("connection", " x-two ,A2A-Version,, é"),
            ("keep-alive", "timeout=5"),
            ("x-one", "1"),
            ("x-one", "2"),
            ("x-two", "1"),
            ("a2a-version", "1.0"),
            ("a2a-extensions", "u"),
            ("te", "trailers"),
            ("trailer", "x"),
            ("upgrade", "h2c"),
            ("proxy-authorization", "secret"),
            ("x-kept", "1"),
        ] {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        headers.insert("x-unwanted", HeaderValue::from_static("1"));
        strip(&mut headers, |name| name == "x-unwanted");
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["a2a-extensions", "a2a-version", "x-kept"]);
    }
}
