//! Decides who may see inside and drive the gateway: whoever reached the socket by its address.
//!
//! A browser on an operator's machine reaches loopback, too. A page of a stranger can send it
//! requests, and can have its own host name resolve to 127.0.0.1 to read the answers (DNS
//! rebinding). Neither can leave out `Origin` on a POST, or put an address into `Host`.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{HOST, ORIGIN};

/// Whether no browser page of a stranger can have sent this: it has no `Origin`, and its one `Host`
/// is an address or `localhost`, which no foreign name can be rebound to.
pub(super) fn is_from_an_operator(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default(),
        _ => return false,
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    let literal = name.trim_start_matches('[').trim_end_matches(']');
    let is_address = literal.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost");
    is_address && !headers.contains_key(ORIGIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn no_page_can_drive_the_admin_socket() {
        for (host, origin, fine) in [
            ("127.0.0.1:9901", None, true),
            ("[::1]:9901", None, true),
            ("localhost:9901", None, true),
            ("10.0.0.7", None, true),
            ("evil.example:9901", None, false),
            ("127.0.0.1.evil.example", None, false),
            ("", None, false),
            ("127.0.0.1:9901", Some("http://127.0.0.1:9901"), false),
            ("127.0.0.1:9901", Some("null"), false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_static(origin));
            }
            assert_eq!(is_from_an_operator(&headers), fine, "{host} {origin:?}");
        }
        assert!(!is_from_an_operator(&HeaderMap::new()));
    }
}
