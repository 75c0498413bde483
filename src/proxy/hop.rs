//! Decides which header fields belong to one connection only and stop here, both ways.
//!
//! Follows RFC 9110 section 7.6.1: the fixed hop-by-hop names and every name on any `Connection`
//! line. `A2A-Version` and `A2A-Extensions` are never removed: they were just judged (**our
//! reading**; RFC 9110 would remove them when listed).

use http::header::{
    CONNECTION, HeaderMap, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};

use crate::protocol::headers::{A2A_EXTENSIONS, A2A_VERSION};

const FIXED: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Removes what must not travel past this hop.
pub(super) fn strip(headers: &mut HeaderMap) {
    for name in listed(headers) {
        headers.remove(name);
    }
    for name in &FIXED {
        headers.remove(name);
    }
}

/// The names listed on any `Connection` line, but never ours and never mere options.
fn listed(headers: &HeaderMap) -> Vec<HeaderName> {
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
        strip(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["a2a-extensions", "a2a-version", "x-kept"]);
    }
}
