//! Decides who the client of a request is where a trusted proxy stands in between.
//!
//! The configured header is read from right to left: each proxy adds the address of whom it was
//! asked by to the right of what it received, so the first address that is no trusted proxy's is the
//! client, and whatever stands left of it is its own invention. Must never believe a header on a
//! connection whose peer is not trusted, and never guess: where an entry tells no address, the
//! client is the last one that is certain.

use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use http::HeaderValue;

use super::strict::authority;
use crate::http1::{Fields, Known};
use crate::state::connection::{Connection, spelled};
use crate::state::listener::ClientHeader;

/// How many entries are looked at. No chain of proxies is as long.
const MOST: usize = 32;

/// What trusted proxies told of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// The client's address.
    pub(super) address: IpAddr,
    /// The same as `X-Forwarded-For` spells it.
    pub(super) forwarded_for: HeaderValue,
    /// What the client speaks, where it was told.
    pub(super) scheme: Option<&'static str>,
    /// The host that the client asked for, where it was told.
    pub(super) host: Option<HeaderValue>,
}

/// What trusted proxies told; `None` where nobody is believed, which costs one look.
pub(super) fn told(connection: &Connection, fields: &Fields) -> Option<Rc<Told>> {
    connection.is_told.then(|| {
        Rc::new(match connection.listener.client_header {
            ClientHeader::XForwardedFor => by_x_forwarded(connection, fields),
            ClientHeader::Forwarded => by_forwarded(connection, fields),
        })
    })
}

fn by_x_forwarded(connection: &Connection, fields: &Fields) -> Told {
    let entries = from_the_right(fields, Known::XForwardedFor, |line| {
        let cut = memchr::memrchr(b',', line);
        let (rest, entry) = cut.map_or((None, line), |at| {
            (line.get(..at), line.get(at + 1..).unwrap_or_default())
        });
        Some((rest, entry))
    });
    let found = walk(connection, entries, |entry| node(entry, true));
    let only = |known| {
        let mut lines = fields.all(known);
        lines.next().filter(|_| lines.next().is_none())
    };
    Told {
        address: found.address,
        forwarded_for: spelled(found.address),
        scheme: only(Known::XForwardedProto).and_then(scheme),
        host: only(Known::XForwardedHost).and_then(host),
    }
}

fn by_forwarded(connection: &Connection, fields: &Fields) -> Told {
    let entries = from_the_right(fields, Known::Forwarded, last_element);
    let found = walk(connection, entries, |entry| {
        node(unquoted(parameter(entry, b"for")?)?, false)
    });
    let told = |name: &[u8]| unquoted(parameter(found.entry?, name)?);
    Told {
        address: found.address,
        forwarded_for: spelled(found.address),
        scheme: told(b"proto").and_then(scheme),
        host: told(b"host").and_then(host),
    }
}

/// A host that is a valid authority.
fn host(text: &[u8]) -> Option<HeaderValue> {
    let is_host = authority(text).is_some_and(|host| !host.is_empty());
    is_host.then(|| HeaderValue::from_bytes(text).ok())?
}

/// Where a walk ended.
struct Found<'h> {
    address: IpAddr,
    /// The entry that has the address; `None` where the connection has it.
    entry: Option<&'h [u8]>,
}

/// Goes from proxy to proxy, as long as each is trusted.
fn walk<'h>(
    connection: &Connection,
    entries: impl Iterator<Item = &'h [u8]>,
    address: impl Fn(&'h [u8]) -> Option<IpAddr>,
) -> Found<'h> {
    let mut found = Found {
        address: connection.client(),
        entry: None,
    };
    for entry in entries.take(MOST) {
        // Empty members of a list count for nothing (RFC 9110 section 5.6.1).
        if entry.is_empty() {
            continue;
        }
        let Some(next) = address(entry) else { break };
        found = Found {
            address: next.to_canonical(),
            entry: Some(entry),
        };
        if !connection.listener.trusted_proxies.contain(next) {
            break;
        }
    }
    found
}

/// The entries of a list that may stand on several lines, last first, trimmed. It ends where `cut`
/// cannot tell the last entry of a line from what stands before it.
fn from_the_right<'h>(
    fields: &'h Fields,
    known: Known,
    cut: impl Fn(&'h [u8]) -> Option<(Option<&'h [u8]>, &'h [u8])>,
) -> impl Iterator<Item = &'h [u8]> {
    let mut lines = fields.all_from_the_last(known);
    let mut line: Option<&[u8]> = None;
    std::iter::from_fn(move || {
        let here = match line {
            Some(here) => here,
            None => lines.next()?,
        };
        let (rest, entry) = cut(here)?;
        line = rest;
        Some(entry.trim_ascii())
    })
}

/// The last element of a line of `Forwarded`, and what stands before its comma. A comma within
/// quotes separates nothing. Quotes are paired from the right: to the left of what a proxy added
/// stands what it received, which may leave one open. An escape in quotes is not read at all.
fn last_element(line: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let mut is_quoted = false;
    for (at, byte) in line.iter().enumerate().rev() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\\' => return None,
            b',' if !is_quoted => {
                return Some((line.get(..at), line.get(at + 1..).unwrap_or_default()));
            }
            _ => {}
        }
    }
    (!is_quoted).then_some((None, line))
}

/// The value of a parameter that stands once in an element of `Forwarded`.
fn parameter<'h>(element: &'h [u8], name: &[u8]) -> Option<&'h [u8]> {
    let mut found = None;
    let mut is_quoted = false;
    let pairs = element.split(|byte| {
        is_quoted ^= *byte == b'"';
        *byte == b';' && !is_quoted
    });
    for pair in pairs {
        let at = memchr::memchr(b'=', pair)?;
        let (key, value) = (pair.get(..at)?, pair.get(at + 1..)?);
        if key.trim_ascii().eq_ignore_ascii_case(name) && found.replace(value).is_some() {
            return None;
        }
    }
    found.map(<[u8]>::trim_ascii)
}

/// A token as it is, a quoted string without its quotes.
fn unquoted(value: &[u8]) -> Option<&[u8]> {
    let value = match value {
        [b'"', inner @ .., b'"'] => inner,
        token => token,
    };
    (!value.contains(&b'"')).then_some(value)
}

/// The address of a node: `192.0.2.7`, `192.0.2.7:4711`, `[2001:db8::7]`, `[2001:db8::7]:4711`, and
/// IPv6 without brackets where that is customary. `None`: `unknown`, a name, or nothing known.
fn node(text: &[u8], bare_ipv6: bool) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(rest) = text.strip_prefix('[') {
        let (address, port) = rest.split_once(']')?;
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        let address = address.parse::<Ipv6Addr>().ok()?;
        return is_port.then_some(IpAddr::V6(address));
    }
    match text.split_once(':') {
        Some((address, port)) if is_port(port) => address.parse().ok().map(IpAddr::V4),
        Some(_) if bare_ipv6 => text.parse().ok().map(IpAddr::V6),
        Some(_) => None,
        None => text.parse().ok().map(IpAddr::V4),
    }
}

/// A port, or a made-up name of one (RFC 7239 section 6.3).
fn is_port(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    match text.strip_prefix('_') {
        Some(name) => !name.is_empty() && name.bytes().all(plain),
        None => text.bytes().all(|it| it.is_ascii_digit()) && text.parse::<u16>().is_ok(),
    }
}

fn scheme(text: &[u8]) -> Option<&'static str> {
    ["http", "https"]
        .into_iter()
        .find(|known| text.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests;
