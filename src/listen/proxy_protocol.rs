//! Decides whom a connection is from when a load balancer says so in a PROXY protocol header
//! (version 1 or 2, haproxy.org/download/3.0/doc/proxy-protocol.txt).
//!
//! The header must be there and must be whole: nothing is guessed, and who may not send one is not
//! served at all. Must never read a byte behind the header, which belongs to TLS or HTTP.

use std::io;
use std::net::SocketAddr;

use proxy_header::{ParseConfig, Protocol, ProxyHeader};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// No header of either version is shorter: `PROXY UNKNOWN` and a line's end, or a signature with
/// its four bytes.
const LEAST: usize = 15;

/// The longest header of version 1, its line's end included.
const LONGEST_LINE: usize = 107;

/// Version 2 up to the length of what follows.
const FIXED: usize = 16;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Version 2, and the sender speaks for itself.
const LOCAL: u8 = 0x20;

/// Why there is no header.
#[derive(Debug)]
pub(super) enum Flaw {
    /// The peer said nothing at all: a probe that only connects.
    Nothing,
    /// What came is no header.
    Malformed(&'static str),
}

/// Reads the header. `None`: the peer speaks for itself.
///
/// # Errors
/// When there is no whole header, or it is not one.
pub(super) async fn read(socket: &mut TcpStream) -> Result<Option<SocketAddr>, Flaw> {
    let mut start = [0; LEAST];
    let mut filled = 0;
    while filled < LEAST {
        let rest = start.get_mut(filled..).unwrap_or_default();
        match socket.read(rest).await.map_err(cut)? {
            0 if filled == 0 => return Err(Flaw::Nothing),
            0 => return Err(Flaw::Malformed("cut short")),
            more => filled += more,
        }
    }
    if start.starts_with(b"PROXY ") {
        let line = rest_of_line(socket, &start).await?;
        version_1(&line)
    } else if start.starts_with(SIGNATURE) {
        let header = rest_of_block(socket, &start).await?;
        version_2(&header)
    } else {
        Err(Flaw::Malformed("neither version's beginning"))
    }
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err takes"
)]
fn cut(_: io::Error) -> Flaw {
    Flaw::Malformed("cut short")
}

/// Looks ahead for the line's end, so that nothing behind it is taken.
async fn rest_of_line(socket: &mut TcpStream, start: &[u8]) -> Result<Vec<u8>, Flaw> {
    let mut line = Vec::with_capacity(LONGEST_LINE);
    line.extend_from_slice(start);
    let mut ahead = [0; LONGEST_LINE];
    while !line.ends_with(b"\n") {
        let room = ahead.get_mut(line.len()..).unwrap_or_default();
        if room.is_empty() {
            return Err(Flaw::Malformed("a line too long"));
        }
        let seen = socket.peek(room).await.map_err(cut)?;
        let seen = room.get_mut(..seen).unwrap_or_default();
        let end = memchr::memchr(b'\n', seen).map_or(seen.len(), |at| at + 1);
        let taken = seen.get_mut(..end).unwrap_or_default();
        if taken.is_empty() {
            return Err(Flaw::Malformed("cut short"));
        }
        socket.read_exact(taken).await.map_err(cut)?;
        line.extend_from_slice(taken);
    }
    Ok(line)
}

async fn rest_of_block(socket: &mut TcpStream, start: &[u8]) -> Result<Vec<u8>, Flaw> {
    let mut header = start.to_vec();
    header.resize(FIXED, 0);
    let fixed = header.get_mut(LEAST..).unwrap_or_default();
    socket.read_exact(fixed).await.map_err(cut)?;
    let length = match header.as_slice() {
        [.., high, low] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    };
    header.resize(FIXED + length, 0);
    let rest = header.get_mut(FIXED..).unwrap_or_default();
    socket.read_exact(rest).await.map_err(cut)?;
    Ok(header)
}

fn version_1(line: &[u8]) -> Result<Option<SocketAddr>, Flaw> {
    let words = line.strip_prefix(b"PROXY ").unwrap_or_default();
    let is_unknown = words.starts_with(b"UNKNOWN ") || words.starts_with(b"UNKNOWN\r");
    // The library takes `UNKNOWNS`, and `+80` for a port.
    if (words.starts_with(b"UNKNOWN") && !is_unknown) || words.contains(&b'+') {
        return Err(Flaw::Malformed("not version 1"));
    }
    parse(line, "not version 1")
}

fn version_2(header: &[u8]) -> Result<Option<SocketAddr>, Flaw> {
    // What follows does not count then, and may be anything.
    if header.get(SIGNATURE.len()) == Some(&LOCAL) {
        return Ok(None);
    }
    parse(header, "not version 2")
}

fn parse(header: &[u8], what: &'static str) -> Result<Option<SocketAddr>, Flaw> {
    let config = ParseConfig {
        include_tlvs: false,
        ..ParseConfig::default()
    };
    let (parsed, length) = ProxyHeader::parse(header, config).map_err(|_| Flaw::Malformed(what))?;
    if length != header.len() {
        return Err(Flaw::Malformed(what));
    }
    match parsed.proxied_address() {
        None => Ok(None),
        Some(address) if address.protocol == Protocol::Stream => Ok(Some(address.source)),
        Some(_) => Err(Flaw::Malformed("not about TCP")),
    }
}

#[cfg(test)]
mod tests;
