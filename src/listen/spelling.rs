//! Decides what an HTTP/2 request means in HTTP/1.1, which is what the rest of the path reads.
//!
//! `:authority` becomes `Host` (RFC 9113 section 8.3.1) and the crumbs of `Cookie` one line (section
//! 8.2.3). Framing is the protocol's own; the library refuses a malformed one and fields that belong
//! to one connection. Must never decide between two values.

use http::header::{COOKIE, HOST, HeaderValue};
use http::request;

/// Spells a request as HTTP/1.1 would. What contradicts itself stays, to be refused.
pub(super) fn translate(parts: &mut request::Parts) {
    if !parts.headers.contains_key(HOST)
        && let Some(authority) = parts.uri.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        parts.headers.insert(HOST, host);
    }
    let mut crumbs = parts.headers.get_all(COOKIE).iter();
    if let (Some(first), Some(second)) = (crumbs.next(), crumbs.next()) {
        let mut whole = first.as_bytes().to_vec();
        for crumb in std::iter::once(second).chain(crumbs) {
            whole.extend_from_slice(b"; ");
            whole.extend_from_slice(crumb.as_bytes());
        }
        // Made of values, it is a value.
        if let Ok(whole) = HeaderValue::from_maybe_shared(bytes::Bytes::from(whole)) {
            parts.headers.insert(COOKIE, whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Version};

    fn parts(target: &str, fields: &[(&'static str, &'static str)]) -> request::Parts {
        let mut request = Request::post(target).version(Version::HTTP_2);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn values<'p>(parts: &'p request::Parts, name: &str) -> Vec<&'p [u8]> {
        let values = parts.headers.get_all(name).iter();
        values.map(HeaderValue::as_bytes).collect()
    }

    #[test]
    fn the_authority_is_the_host_where_none_is_given() {
        let mut one = parts("http://dealer.example:81/a2a", &[]);
        translate(&mut one);
        assert_eq!(values(&one, "host"), [b"dealer.example:81"]);
        let mut two = parts("http://dealer.example/a2a", &[("host", "other.example")]);
        translate(&mut two);
        assert_eq!(values(&two, "host"), [b"other.example"]);
        let mut none = parts("/a2a", &[]);
        translate(&mut none);
        assert!(values(&none, "host").is_empty());
    }

    #[test]
    fn crumbs_become_one_line() {
        let mut parts = parts(
            "http://a/",
            &[
                ("cookie", "a=1"),
                ("x", "1"),
                ("cookie", "b=2"),
                ("cookie", "c=\u{e9}"),
            ],
        );
        translate(&mut parts);
        assert_eq!(values(&parts, "cookie"), ["a=1; b=2; c=\u{e9}".as_bytes()]);
    }
}
