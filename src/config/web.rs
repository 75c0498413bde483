//! Decides how places on the network are written: hosts, paths, upstream URLs, socket addresses.
//!
//! Follows RFC 3986, narrowed: one spelling for one place, so that two endpoints that would be the
//! same cannot look different. Must never decode or resolve anything.

mod keys;

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::config::read::{FromText, Wrong};
use crate::config::schema::Shape;

pub(crate) use keys::KeysAt;
pub use keys::KeysUrl;

/// The hosts an endpoint answers for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// Every host, after the exact ones and the patterns.
    Any,
    /// This host: lower case, no port, IPv6 in brackets.
    Exact(Box<str>),
    /// Exactly one more label in front of this suffix, which is lower case and begins without a dot:
    /// `*.example.com` is `example.com`.
    OneLabel(Box<str>),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any host"),
            Self::Exact(host) => f.write_str(host),
            Self::OneLabel(suffix) => write!(f, "*.{suffix}"),
        }
    }
}

impl FromText for Host {
    const EXPECTED: &'static str = "a host such as \"dealer.example.com\" or \"*.example.com\"";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        if text == "*" {
            return Err(Wrong::because("is not needed").hint("any host: leave `host` out"));
        }
        if let Some((_, rest)) = text.split_once("://") {
            let host = rest.split(['/', ':']).next().unwrap_or_default();
            return Err(Wrong::because("is a URL, not a host")
                .hint_showing(format!("write {host:?}; the path goes into `path`")));
        }
        if text.contains('/') {
            return Err(Wrong::because("contains a path").hint("the path goes into `path`"));
        }
        if let Some(name) = text.strip_suffix('.') {
            return Err(Wrong::because("ends in a dot").hint_showing(format!("write {name:?}")));
        }
        if let Some(address) = bracketed(text)? {
            return Ok(Self::Exact(address.into()));
        }
        if let Some((host, port)) = text.rsplit_once(':') {
            let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            return Err(if is_port && !host.contains(':') {
                Wrong::because("names a port")
                    .hint_showing(format!("ports are ignored in matching: write {host:?}"))
            } else {
                Wrong::because("contains a colon")
                    .hint("an IPv6 address stands in brackets: \"[2001:db8::1]\"")
            });
        }
        let lower = text.to_ascii_lowercase();
        match lower.strip_prefix("*.") {
            Some(suffix) => labels(suffix).map(|()| Self::OneLabel(suffix.into())),
            None => labels(&lower).map(|()| Self::Exact(lower.as_str().into())),
        }
    }

    fn shape() -> Shape {
        let label = "[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?";
        let pattern = format!("(\\*\\.)?{label}(\\.{label})*|\\[[0-9A-Fa-f:.]+\\]");
        Shape::like("host", <Self as FromText>::EXPECTED, &pattern)
    }
}

/// An IPv6 address in brackets, in its one spelling.
fn bracketed(text: &str) -> Result<Option<String>, Wrong> {
    let Some(rest) = text.strip_prefix('[') else {
        return Ok(None);
    };
    let Some((address, after)) = rest.split_once(']') else {
        return Err(Wrong::because("has an opening bracket only"));
    };
    if !after.is_empty() {
        return Err(Wrong::because("names a port").hint("ports are ignored in matching"));
    }
    match address.parse::<Ipv6Addr>() {
        Ok(address) => Ok(Some(format!("[{address}]"))),
        Err(_) => Err(Wrong::because("is no IPv6 address")),
    }
}

/// A host name as DNS knows it, underscores allowed.
fn labels(host: &str) -> Result<(), Wrong> {
    if host.is_empty() {
        return Err(Wrong::because("is empty").hint("any host: leave `host` out"));
    }
    if !host.is_ascii() {
        return Err(Wrong::because("contains a letter outside ASCII")
            .hint("write the name as DNS has it, with labels that begin with \"xn--\""));
    }
    if host.contains('*') {
        return Err(
            Wrong::because("has a `*` in a place where it means nothing")
                .hint("\"*.example.com\" stands for exactly one label in front"),
        );
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if host.len() > 253 || !host.split('.').all(is_label) {
        return Err(Wrong::because("is no host name")
            .hint("labels of 1 to 63 letters, digits and hyphens, with dots between them"));
    }
    Ok(())
}

/// The path of an endpoint: one spelling for one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Path(pub(crate) Box<str>);

impl FromText for Path {
    const EXPECTED: &'static str = "a path such as \"/a2a\"";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        if text.contains("://") {
            return Err(Wrong::because("is a URL, not a path").hint("the host goes into `host`"));
        }
        if !text.starts_with('/') {
            return Err(Wrong::because("does not begin with `/`")
                .hint_showing(format!("write \"/{}\"", text.escape_debug())));
        }
        if text.contains(['*', '{', '}']) {
            return Err(Wrong::because("contains a pattern").hint(
                "a path serves itself and everything below it, by whole segments; no patterns",
            ));
        }
        segments(text)?;
        let trimmed = text.strip_suffix('/').unwrap_or(text);
        Ok(Self(if trimmed.is_empty() { "/" } else { trimmed }.into()))
    }

    fn shape() -> Shape {
        let pattern = "/([A-Za-z0-9._~!$&'()+,;=:@%-]+/)*[A-Za-z0-9._~!$&'()+,;=:@%-]*";
        Shape::like("path", <Self as FromText>::EXPECTED, pattern)
    }
}

/// The rules for every path: no empty or dot segments, no query, nothing encoded that could be read
/// in two ways. A slash at the end is allowed.
fn segments(path: &str) -> Result<(), Wrong> {
    if path.contains(['?', '#']) {
        return Err(Wrong::because("contains a query or a fragment").hint("leave it out"));
    }
    if path.contains("//") {
        return Err(Wrong::because("contains an empty segment: `//`").hint("write one `/`"));
    }
    if path
        .split('/')
        .any(|segment| segment == "." || segment == "..")
    {
        return Err(Wrong::because("contains a `.` or `..` segment").hint("write the path itself"));
    }
    let mut rest = path;
    while let Some((_, after)) = rest.split_once('%') {
        let code = after
            .get(..2)
            .filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|code| u8::from_str_radix(code, 16).ok());
        match code {
            None => {
                return Err(
                    Wrong::because("contains a `%` without two hexadecimal digits")
                        .hint("a literal `%` is written `%25`"),
                );
            }
            Some(b'/' | b'\\') => {
                return Err(Wrong::because("contains an encoded slash")
                    .hint("some servers read it as `/`, others do not: choose another path"));
            }
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                return Err(Wrong::because("encodes a character that needs no encoding")
                    .hint_showing(format!("write `{}`", char::from(byte))));
            }
            Some(_) => {}
        }
        rest = after;
    }
    let is_path_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@%".contains(&byte);
    match path
        .chars()
        .find(|c| !u8::try_from(*c).is_ok_and(is_path_byte))
    {
        None => Ok(()),
        Some(' ') => Err(Wrong::because("contains a space").hint("a space is written `%20`")),
        Some(_) => Err(
            Wrong::because("contains a character that cannot stand in a path")
                .hint("such characters are written percent-encoded, in UTF-8"),
        ),
    }
}

/// Where an upstream is.
///
/// Its path replaces the endpoint's path; what follows the endpoint's path is appended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpstreamUrl {
    /// TLS to the upstream.
    pub https: bool,
    /// A host name in lower case, an IPv4 address, or an IPv6 address without brackets.
    pub host: Box<str>,
    /// 1 to 65535; 80 or 443 where the URL names none.
    pub port: u16,
    /// What `Host` carries: host and port as the URL has them, the port only where it names one.
    pub authority: Box<str>,
    /// The path without a slash at the end, so that what follows the endpoint's path (empty, or
    /// beginning with `/`) can be appended as it is. Empty for the root.
    pub path: Box<str>,
    /// The URL ends in a slash: a call to exactly the endpoint's path goes to `path` and `/`.
    pub trailing_slash: bool,
}

impl UpstreamUrl {
    /// The path to ask for, given what follows the endpoint's path: nothing, or `/` and more.
    #[must_use]
    pub fn target(&self, rest: &str) -> String {
        if rest.is_empty() && (self.trailing_slash || self.path.is_empty()) {
            return format!("{}/", self.path);
        }
        format!("{}{rest}", self.path)
    }
}

impl fmt::Display for UpstreamUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.https { "https" } else { "http" };
        let slash = if self.trailing_slash { "/" } else { "" };
        write!(f, "{scheme}://{}{}{slash}", self.authority, self.path)
    }
}

impl FromText for UpstreamUrl {
    const EXPECTED: &'static str = "a URL such as \"http://127.0.0.1:9001/a2a\"";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(Wrong::because("has no scheme")
                .hint_showing(format!("write \"http://{}\"", text.escape_debug())));
        };
        let https = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(Wrong::because("is neither http nor https")),
        };
        let (authority, path) = match rest.find(['/', '?', '#']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err(Wrong::because("contains a user name or password")
                .hint("send credentials in a header: headers = { authorization = \"${TOKEN}\" }"));
        }
        segments(path)?;
        let (host, port) = host_and_port(authority, if https { 443 } else { 80 })?;
        Ok(Self {
            https,
            host: host.into(),
            port,
            authority: authority.to_ascii_lowercase().into(),
            path: path.strip_suffix('/').unwrap_or(path).into(),
            trailing_slash: path.ends_with('/'),
        })
    }

    fn shape() -> Shape {
        let pattern = "[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\\s]+(/[^?#\\s]*)?";
        Shape::like("url", <Self as FromText>::EXPECTED, pattern)
    }
}

/// Host (IPv6 without brackets, lower case) and port of an authority without user information.
pub(crate) fn host_and_port(authority: &str, default: u16) -> Result<(String, u16), Wrong> {
    let (host, port) = match authority.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(None) => return Err(Wrong::because("has an opening bracket only")),
        Some(Some((host, after))) => {
            let host = host
                .parse::<Ipv6Addr>()
                .map_err(|_| Wrong::because("names no IPv6 address between its brackets"))?;
            let port = match after.strip_prefix(':') {
                None if after.is_empty() => None,
                None => return Err(Wrong::because("goes on after the bracket")),
                Some(port) => Some(port),
            };
            (host.to_string(), port)
        }
        None => {
            let (host, port) = match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            };
            let host = host.to_ascii_lowercase();
            if host.is_empty() {
                return Err(Wrong::because("names no host"));
            }
            labels(host.strip_suffix('.').unwrap_or(&host))
                .map_err(|_| Wrong::because("names something that is no host"))?;
            (host, port)
        }
    };
    let port = match port {
        None => default,
        Some(port) => {
            let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
            match port.parse() {
                Ok(port) if is_number && port != 0 => port,
                Ok(_) | Err(_) => {
                    return Err(Wrong::because("names something that is no port")
                        .hint("a port is a number from 1 to 65535"));
                }
            }
        }
    };
    Ok((host, port))
}

/// The name that a certificate must carry: a host name in lower case, or an address without
/// brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerName(pub(crate) Box<str>);

impl FromText for ServerName {
    const EXPECTED: &'static str = "a host name such as \"agent.example.com\", or an address";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Ok(Self(address.to_string().into()));
        }
        let lower = text.to_ascii_lowercase();
        let is_name = !lower.contains(':') && labels(&lower).is_ok();
        if is_name {
            Ok(Self(lower.into()))
        } else {
            Err(Wrong::because("is neither a host name nor an address")
                .hint("no port, no path, no `*`: the one name that is in the certificate"))
        }
    }

    fn shape() -> Shape {
        let pattern = "[A-Za-z0-9_.-]+|\\[?[0-9A-Fa-f:.]+\\]?";
        Shape::like("server_name", <Self as FromText>::EXPECTED, pattern)
    }
}

impl FromText for SocketAddr {
    const EXPECTED: &'static str =
        "an address and port such as \"127.0.0.1:8080\" or \"[::]:8080\"";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        let port = text.rsplit_once(':').map_or(text, |(_, port)| port);
        let port = port.parse::<u16>().ok();
        Err(match (text.parse::<IpAddr>(), port) {
            (Ok(IpAddr::V4(address)), _) => {
                Wrong::because("has no port").hint_showing(format!("write \"{address}:8080\""))
            }
            (Ok(IpAddr::V6(address)), _) => {
                Wrong::because("has no port").hint_showing(format!("write \"[{address}]:8080\""))
            }
            (Err(_), Some(port)) if text.starts_with("localhost:") => {
                Wrong::because("is a name, not an address")
                    .hint_showing(format!("write \"127.0.0.1:{port}\""))
            }
            (Err(_), Some(port)) if text.starts_with([':', '*']) || !text.contains(':') => {
                Wrong::because("has no address").hint_showing(format!(
                    "write \"0.0.0.0:{port}\" for all IPv4 addresses, \"[::]:{port}\" for all there are"
                ))
            }
            (Err(_), _) => Wrong::kind(),
        })
    }

    fn shape() -> Shape {
        let pattern = "([0-9]{1,3}(\\.[0-9]{1,3}){3}|\\[[0-9A-Fa-f:.]+(%[0-9]+)?\\]):[0-9]{1,5}";
        Shape::like("address", <Self as FromText>::EXPECTED, pattern)
    }
}
