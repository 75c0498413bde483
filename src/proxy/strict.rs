//! Decides whether a request is HTTP with exactly one meaning, before anything else looks at it.
//!
//! Follows RFC 9110 sections 7.2, 7.6.1 and 10.1.1 and RFC 9112 sections 3.2 and 6. What could be
//! read in two ways by two servers is refused here: framing, `Host`, the target, and a
//! `Connection` that names what must not be taken away. Must never repair a request.

use std::borrow::Cow;

use http::uri::Authority;
use http::{Method, StatusCode, Uri, Version};

use crate::http1::{Fields, Framing, Known, RequestHead};

/// Where a request wants to go: read once, used for routing and logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target<'h> {
    /// Lower-case host without port; `None` only for HTTP/1.0 without `Host`.
    pub(super) host: Option<Cow<'h, str>>,
    /// The path as received.
    pub(super) path: &'h str,
    /// The query as received.
    pub(super) query: Option<&'h str>,
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
pub(super) fn inspect(head: &RequestHead) -> Result<Target<'_>, Unfit> {
    if head.method == Method::CONNECT {
        return Err(bad("CONNECT is not served"));
    }
    framing_is_single(head)?;
    connection_takes_nothing_vital(&head.fields)?;
    expectation_can_be_met(&head.fields)?;
    credential_is_single(&head.fields)?;
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

/// More header lines than are read in HTTP/1.1. Over HTTP/2 only their bytes are counted before.
pub(super) const TOO_MANY_LINES: Unfit = Unfit {
    status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    why: "too many header lines",
};

/// `Authorization` is one value (RFC 9110 section 11.6.2), whether or not it names the caller here.
fn credential_is_single(fields: &Fields) -> Result<(), Unfit> {
    match fields.all(Known::Authorization).nth(1) {
        None => Ok(()),
        Some(_) => Err(bad("more than one Authorization")),
    }
}

fn framing_is_single(head: &RequestHead) -> Result<(), Unfit> {
    if head.has_bare_line_feed {
        return Err(bad("a line that does not end in CR LF"));
    }
    if head.has_fragment {
        return Err(bad("a fragment in the target"));
    }
    if head.length().is_some() {
        return Ok(());
    }
    Err(bad(match head.framing {
        Framing {
            lengths: 1..,
            encodings: 1..,
            ..
        } => "Content-Length beside Transfer-Encoding",
        Framing { encodings: 1.., .. } => "Transfer-Encoding must be one \"chunked\"",
        Framing { lengths: 2.., .. } => "more than one Content-Length",
        Framing { .. } => "Content-Length is not a number of bytes",
    }))
}

fn connection_takes_nothing_vital(fields: &Fields) -> Result<(), Unfit> {
    for line in fields.all(Known::Connection) {
        for option in line.split(|byte| *byte == b',') {
            if let Known::Authorization
            | Known::ContentLength
            | Known::Host
            | Known::TransferEncoding = Known::of(option.trim_ascii())
            {
                return Err(bad("Connection names a header that must travel"));
            }
        }
    }
    Ok(())
}

fn expectation_can_be_met(fields: &Fields) -> Result<(), Unfit> {
    let mut lines = fields.all(Known::Expect);
    if lines.any(|line| !line.eq_ignore_ascii_case(b"100-continue")) {
        return Err(Unfit {
            status: StatusCode::EXPECTATION_FAILED,
            why: "only 100-continue can be expected",
        });
    }
    Ok(())
}

fn host(head: &RequestHead) -> Result<Option<Cow<'_, str>>, Unfit> {
    let mut lines = head.fields.all(Known::Host);
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
    if !agrees(&head.uri, authority) {
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
pub(super) fn authority(line: &[u8]) -> Option<&str> {
    let (host, port) = split_port(line);
    let is_port = port
        .unwrap_or_default()
        .iter()
        .try_fold(0_u32, |port, byte| {
            let digit = char::from(*byte).to_digit(10)?;
            Some(port * 10 + digit).filter(|port| *port <= u16::MAX.into())
        });
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let is_host = host.iter().all(plain) || is_literal(host);
    (is_port.is_some() && is_host).then(|| std::str::from_utf8(line).ok())?
}

/// Whether a host is an IPv6 address in brackets.
fn is_literal(host: &[u8]) -> bool {
    let inner = host.strip_prefix(b"[").and_then(|it| it.strip_suffix(b"]"));
    let text = inner.and_then(|inner| std::str::from_utf8(inner).ok());
    text.is_some_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok())
}

/// The host of an authority, and its port where there is a colon for one.
fn split_port(authority: &[u8]) -> (&[u8], Option<&[u8]>) {
    let colon = authority.iter().rposition(|byte| *byte == b':');
    match colon.and_then(|at| authority.split_at_checked(at)) {
        Some((host, port)) if !port.ends_with(b"]") => (host, port.get(1..)),
        _ => (authority, None),
    }
}

fn without_port(authority: &str) -> &str {
    let (host, _) = split_port(authority.as_bytes());
    authority.get(..host.len()).unwrap_or(authority)
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
    use crate::http1::{Limits, read_request};

    fn head(target: &str, fields: &[(&str, &[u8])]) -> RequestHead {
        let mut bytes = bytes::BytesMut::from(format!("POST {target} HTTP/1.1\r\n").as_str());
        for (name, value) in fields {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(value);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        let limits = Limits {
            bytes: 8192,
            lines: 100,
        };
        read_request(&mut bytes, limits).unwrap().unwrap()
    }

    fn why(target: &str, fields: &[(&str, &[u8])]) -> Option<&'static str> {
        inspect(&head(target, fields)).err().map(|unfit| unfit.why)
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
            let head = head("/a2a", &[("host", host.as_bytes())]);
            let found = inspect(&head).ok().and_then(|target| target.host);
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
        let length = |text: &'static [u8]| ("content-length", text);
        assert_eq!(why("/", &[host, length(b"3")]), None);
        assert!(why("/", &[host, length(b"3"), length(b"3")]).is_some());
        assert!(why("/", &[host, length(b"+3")]).is_some());
        let mut bare = head("/", &[host]);
        bare.has_bare_line_feed = true;
        assert!(inspect(&bare).is_err());
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
        let unmet = head("/", &[host, ("expect", b"something")]);
        let unfit = inspect(&unmet).unwrap_err();
        assert_eq!(unfit.status, StatusCode::EXPECTATION_FAILED);
    }
}
