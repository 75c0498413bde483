//! Decides whether a request is HTTP with exactly one meaning, before anything else looks at it.
//!
//! Follows RFC 9110 sections 7.2, 7.6.1 and 10.1.1 and RFC 9112 sections 3.2 and 6. What could be
//! read in two ways by two servers is refused here: framing, `Host`, the target, and a
//! `Connection` that names what must not be taken away. Must never repair a request.

use std::borrow::Cow;

use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderValue,
    TRANSFER_ENCODING,
};
use http::uri::Authority;
use http::{Method, StatusCode, Uri, Version};

use crate::state::connection::Framing;

/// Where a request wants to go: read once, used for routing and logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target<'h, 'u> {
    /// Lower-case host without port; `None` only for HTTP/1.0 without `Host`.
    pub(super) host: Option<Cow<'h, str>>,
    /// The path as received.
    pub(super) path: &'u str,
    /// The query as received.
    pub(super) query: Option<&'u str>,
}

/// A request's head, as it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'h, 'u> {
    /// The method.
    pub(super) method: &'h Method,
    /// The version of the message.
    pub(super) version: Version,
    /// The target.
    pub(super) uri: &'u Uri,
    /// The fields.
    pub(super) headers: &'h HeaderMap,
}

/// Why a request is not acceptable HTTP. The text is for the log and the plain answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unfit {
    /// What to answer.
    pub(super) status: StatusCode,
    /// Why.
    pub(super) why: &'static str,
}

const fn bad(why: &'static str) -> Unfit {
    Unfit {
        status: StatusCode::BAD_REQUEST,
        why,
    }
}

/// Reads a request's target, or says why the request has no single meaning.
///
/// # Errors
/// 400, or 417 for an expectation that cannot be met. The connection is to be closed.
pub(super) fn inspect<'h, 'u>(
    head: &Head<'h, 'u>,
    framing: Framing,
) -> Result<Target<'h, 'u>, Unfit> {
    if *head.method == Method::CONNECT {
        return Err(bad("CONNECT is not served"));
    }
    framing_is_single(head.headers, framing)?;
    connection_takes_nothing_vital(head.headers)?;
    expectation_can_be_met(head.headers)?;
    credential_is_single(head.headers)?;
    let host = host(head)?;
    let path = head.uri.path();
    path_is_plain(path)?;
    Ok(Target {
        host,
        path,
        query: head.uri.query(),
    })
}

/// The header that names the caller stands twice: two servers could read two callers.
pub(super) const REPEATED_CALLER: Unfit = bad("the header that names the caller stands twice");

/// `Authorization` is one value (RFC 9110 section 11.6.2), whether or not it names the caller here.
fn credential_is_single(headers: &HeaderMap) -> Result<(), Unfit> {
    match headers.get_all(AUTHORIZATION).iter().nth(1) {
        None => Ok(()),
        Some(_) => Err(bad("more than one Authorization")),
    }
}

fn framing_is_single(headers: &HeaderMap, framing: Framing) -> Result<(), Unfit> {
    if framing.has_bare_line_feed {
        return Err(bad("a line that does not end in CR LF"));
    }
    if framing.has_fragment {
        return Err(bad("a fragment in the target"));
    }
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    if let Some(encoding) = encodings.next() {
        if encodings.next().is_some() || !encoding.as_bytes().eq_ignore_ascii_case(b"chunked") {
            return Err(bad("Transfer-Encoding must be one \"chunked\""));
        }
        if framing.lengths > 0 || headers.contains_key(CONTENT_LENGTH) {
            return Err(bad("Content-Length beside Transfer-Encoding"));
        }
    }
    if framing.lengths > 1 {
        return Err(bad("more than one Content-Length"));
    }
    if framing.is_uncertain {
        return Err(bad("it cannot be told where the body ends"));
    }
    Ok(())
}

fn connection_takes_nothing_vital(headers: &HeaderMap) -> Result<(), Unfit> {
    let vital = [HOST, CONTENT_LENGTH, AUTHORIZATION, TRANSFER_ENCODING];
    for line in headers.get_all(CONNECTION) {
        for option in line.as_bytes().split(|byte| *byte == b',') {
            let option = option.trim_ascii();
            if vital
                .iter()
                .any(|name| option.eq_ignore_ascii_case(name.as_str().as_bytes()))
            {
                return Err(bad("Connection names a header that must travel"));
            }
        }
    }
    Ok(())
}

fn expectation_can_be_met(headers: &HeaderMap) -> Result<(), Unfit> {
    let unmet = headers
        .get_all(EXPECT)
        .iter()
        .any(|line| !line.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    if unmet {
        return Err(Unfit {
            status: StatusCode::EXPECTATION_FAILED,
            why: "only 100-continue can be expected",
        });
    }
    Ok(())
}

fn host<'h>(head: &Head<'h, '_>) -> Result<Option<Cow<'h, str>>, Unfit> {
    let mut lines = head.headers.get_all(HOST).iter();
    let line = lines.next();
    if lines.next().is_some() {
        return Err(bad("more than one Host"));
    }
    let Some(line) = line else {
        return match head.version {
            Version::HTTP_10 if head.uri.authority().is_none() => Ok(None),
            _ => Err(bad("no Host")),
        };
    };
    let authority = authority(line).ok_or(bad("bad Host"))?;
    if !agrees(head.uri, authority) {
        return Err(bad("the target's host and Host disagree"));
    }
    let host = without_port(authority);
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.is_empty() {
        return Err(bad("bad Host"));
    }
    Ok(Some(
        if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(host.to_ascii_lowercase())
        } else {
            Cow::Borrowed(host)
        },
    ))
}

/// A `Host` value that is a valid authority without user info.
pub(super) fn authority(line: &HeaderValue) -> Option<&str> {
    let text = line.to_str().ok()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (text, ""),
    };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    if !port.is_empty() && !is_port {
        return None;
    }
    if host.bytes().all(plain) {
        return Some(text);
    }
    let literal = host.strip_prefix('[')?.strip_suffix(']')?;
    literal.parse::<std::net::Ipv6Addr>().ok().map(|_| text)
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => host,
        _ => authority,
    }
}

/// Whether an absolute-form target names the same authority as `Host` (RFC 9112 section 3.2.2).
fn agrees(uri: &Uri, host: &str) -> bool {
    let Some(target) = uri.authority() else {
        return true;
    };
    let default = match uri.scheme_str() {
        Some("http") => ":80",
        Some("https") => ":443",
        _ => return false,
    };
    let bare = |text: &str| {
        text.strip_suffix(default)
            .unwrap_or(text)
            .to_ascii_lowercase()
    };
    bare(Authority::as_str(target)) == bare(host)
}

/// A path is routed and forwarded as it was received, so it must not mean another one to a server
/// that normalizes: no dot segment, no encoded slash, dot or backslash, no backslash.
fn path_is_plain(path: &str) -> Result<(), Unfit> {
    if !path.starts_with('/') {
        return Err(bad("the target is not a path"));
    }
    let bytes = path.as_bytes();
    if memchr::memchr2(b'%', b'\\', bytes).is_none() && memchr::memmem::find(bytes, b"/.").is_none()
    {
        return Ok(());
    }
    if bytes.contains(&b'\\') {
        return Err(bad("a backslash in the path"));
    }
    for (index, _) in path.match_indices('%') {
        let escape = path.get(index + 1..index + 3).unwrap_or_default();
        let is_hex = escape.len() == 2 && escape.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex
            || ["2f", "2e", "5c", "00"]
                .iter()
                .any(|it| escape.eq_ignore_ascii_case(it))
        {
            return Err(bad("an encoded slash, dot, backslash or zero in the path"));
        }
    }
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(bad("a dot segment in the path"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, request};

    fn parts(target: &str, headers: &[(&str, &[u8])]) -> request::Parts {
        let mut request = Request::post(target).body(()).unwrap();
        for (name, value) in headers {
            request.headers_mut().append(
                http::HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_bytes(value).unwrap(),
            );
        }
        request.into_parts().0
    }

    fn look(parts: &request::Parts, framing: Framing) -> Result<Target<'_, '_>, Unfit> {
        let head = Head {
            method: &parts.method,
            version: parts.version,
            uri: &parts.uri,
            headers: &parts.headers,
        };
        inspect(&head, framing)
    }

    fn why(target: &str, headers: &[(&str, &[u8])]) -> Option<&'static str> {
        look(&parts(target, headers), Framing::default())
            .err()
            .map(|unfit| unfit.why)
    }

    #[test]
    fn exactly_one_valid_host() {
        for (host, read) in [
            ("dealer.example", Some("dealer.example")),
            ("Dealer.Example:8080", Some("dealer.example")),
            ("dealer.example.", Some("dealer.example")),
            ("127.0.0.1:1", Some("127.0.0.1")),
            ("[::1]:8080", Some("[::1]")),
            ("[::1]", Some("[::1]")),
            ("", None),
            (":80", None),
            (".", None),
            ("a b", None),
            ("user@dealer.example", None),
            ("dealer.example/", None),
            ("dealer.example:80a", None),
            ("dealer.example:99999", None),
            ("dealer.example:+80", None),
            ("dealer.example:", Some("dealer.example")),
            ("[::1", None),
            ("[::g]", None),
            ("a,b", None),
            ("é.example", None),
        ] {
            let parts = parts("/a2a", &[("host", host.as_bytes())]);
            let found = look(&parts, Framing::default())
                .ok()
                .and_then(|target| target.host);
            assert_eq!(found.as_deref(), read, "{host}");
        }
        assert_eq!(why("/a2a", &[]), Some("no Host"));
        assert_eq!(
            why("/a2a", &[("host", b"a"), ("host", b"a")]),
            Some("more than one Host")
        );
    }

    #[test]
    fn absolute_form_agrees_with_host() {
        assert_eq!(
            why("http://a.example/x", &[("host", b"A.example:80")]),
            None
        );
        assert!(why("http://b.example/x", &[("host", b"a.example")]).is_some());
        assert!(why("ftp://a.example/x", &[("host", b"a.example")]).is_some());
    }

    #[test]
    fn framing_has_one_meaning() {
        let chunked: (&str, &[u8]) = ("transfer-encoding", b"Chunked");
        let host: (&str, &[u8]) = ("host", b"a");
        assert_eq!(why("/", &[host, chunked]), None);
        assert!(why("/", &[host, chunked, chunked]).is_some());
        assert!(why("/", &[host, ("transfer-encoding", b"gzip, chunked")]).is_some());
        assert!(why("/", &[host, chunked, ("content-length", b"3")]).is_some());
        let parts = parts("/", &[host, chunked]);
        let both = Framing {
            lengths: 1,
            encodings: 1,
            ..Framing::default()
        };
        let bare = Framing {
            has_bare_line_feed: true,
            ..Framing::default()
        };
        assert!(look(&parts, bare).is_err());
        assert!(look(&parts, both).is_err());
    }

    #[test]
    fn connection_cannot_take_vital_headers() {
        let host: (&str, &[u8]) = ("host", b"a");
        for line in [
            "Host",
            "close, content-length",
            "x,AUTHORIZATION ",
            "transfer-encoding",
        ] {
            assert!(
                why(
                    "/",
                    &[host, ("connection", b"x"), ("connection", line.as_bytes())]
                )
                .is_some()
            );
        }
        assert_eq!(
            why("/", &[host, ("connection", b"keep-alive, A2A-Version")]),
            None
        );
    }

    #[test]
    fn only_plain_paths() {
        let host: (&str, &[u8]) = ("host", b"a");
        for fine in [
            "/",
            "/a2a",
            "/a2a/",
            "/.well-known/agent-card.json",
            "/a%20b",
            "/a..b/c.",
            "/...",
        ] {
            assert_eq!(why(fine, &[host]), None, "{fine}");
        }
        for ambiguous in [
            "/a/../b",
            "/a/.",
            "/..",
            "/a/%2e%2E/b",
            "/a%2Fb",
            "/a%5cb",
            "/a%00",
            "/a%",
            "/a%zz",
        ] {
            assert!(why(ambiguous, &[host]).is_some(), "{ambiguous}");
        }
    }

    #[test]
    fn expectations() {
        let host: (&str, &[u8]) = ("host", b"a");
        assert_eq!(why("/", &[host, ("expect", b"100-Continue")]), None);
        let parts = parts("/", &[host, ("expect", b"something")]);
        let unfit = look(&parts, Framing::default()).unwrap_err();
        assert_eq!(unfit.status, StatusCode::EXPECTATION_FAILED);
    }
}
