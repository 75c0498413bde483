//! Decides where an upstream's `Location` leads a client: back to the gateway, not past it.
//!
//! A redirect to the upstream's own authority would show an address nobody outside can reach, and a
//! path below the upstream's path is below the endpoint's out here. Both become a path of the
//! endpoint (RFC 9110 section 10.2.2 allows a relative reference). A redirect to anywhere else
//! passes unchanged, and none is ever followed: a followed POST would be sent twice.

use http::Uri;

use crate::upstream::Upstream;

/// What the client is told instead; `None` where the value can stay as it is.
pub(super) fn translate(
    location: &[u8],
    upstream: &Upstream,
    endpoint_path: &str,
) -> Option<String> {
    let uri: Uri = Uri::try_from(location).ok()?;
    if let Some(authority) = uri.authority() {
        let theirs = upstream.authority.to_str().ok()?;
        let bare = |text: &str| {
            text.strip_suffix(":80")
                .unwrap_or(text)
                .to_ascii_lowercase()
        };
        if bare(authority.as_str()) != bare(theirs) {
            return None;
        }
    } else if !uri.path().starts_with('/') {
        return None;
    }
    let path = match upstream.rest_of(uri.path()) {
        Some(rest) => format!("{}{rest}", endpoint_path.trim_end_matches('/')),
        None if uri.authority().is_some() => uri.path().to_owned(),
        None => return None,
    };
    let start = match path.as_bytes() {
        [] => "/",
        // Two slashes would begin another authority (RFC 3986 section 4.2).
        [b'/', b'/', ..] => "/.",
        _ => "",
    };
    Some(match uri.query() {
        Some(query) => format!("{start}{path}?{query}"),
        None => format!("{start}{path}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::Parts;

    fn upstream(path: &str) -> Upstream {
        Upstream::new(Parts {
            path: path.into(),
            ..Parts::bare("u", 9001)
        })
    }

    #[test]
    fn no_redirect_leads_past_the_gateway() {
        for (location, path, endpoint, told) in [
            (
                "http://127.0.0.1:9001/a2a/",
                "/a2a",
                "/dealers/lakeside",
                Some("/dealers/lakeside/"),
            ),
            (
                "http://127.0.0.1:9001/a2a?x=1",
                "/a2a",
                "/b",
                Some("/b?x=1"),
            ),
            ("HTTP://127.0.0.1:9001/a2a/x", "/a2a", "/", Some("/x")),
            ("http://127.0.0.1:9001/a2a", "/a2a", "/", Some("/")),
            ("/a2a/", "/a2a", "/b", Some("/b/")),
            ("/x", "", "/b", Some("/b/x")),
            // A path that begins with two slashes would lead to another host.
            (
                "http://127.0.0.1:9001//evil.example/",
                "",
                "/",
                Some("/.//evil.example/"),
            ),
            (
                "http://127.0.0.1:9001//evil.example",
                "/a2a",
                "/b",
                Some("/.//evil.example"),
            ),
            ("/a2a//evil.example", "/a2a", "/", Some("/.//evil.example")),
            // Outside of the upstream's path: at least the address stays inside.
            ("http://127.0.0.1:9001/login", "/a2a", "/b", Some("/login")),
            (
                "http://127.0.0.1:9001/a2a-old",
                "/a2a",
                "/b",
                Some("/a2a-old"),
            ),
            ("/login", "/a2a", "/b", None),
            ("http://127.0.0.1:9002/a2a", "/a2a", "/b", None),
            ("https://accounts.example/login", "/a2a", "/b", None),
            ("other", "/a2a", "/b", None),
            ("", "/a2a", "/b", None),
        ] {
            let translated = translate(location.as_bytes(), &upstream(path), endpoint);
            assert_eq!(translated.as_deref(), told, "{location}");
        }
    }
}
