//! Decides how a connection to an upstream is opened: every address its name resolves to, in order,
//! and TLS on the first that accepts, within one deadline.
//!
//! The name is resolved for each new connection, so a changed record is followed as soon as old
//! connections reach their age limit. Must never be called while a request byte is on the wire.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Upstream;
use super::fault::{Cause, Fault};
use super::stream::Stream;

/// Opens a connection within the connect timeout, name resolution and TLS handshake included.
///
/// # Errors
/// `Unreachable`, `ConnectTimeout`, `Tls`, or `NoCapacity` where we ran out of descriptors, ports or
/// memory; nothing was sent.
pub(super) async fn connect(upstream: &Upstream) -> Result<Stream, Fault> {
    let limit = upstream.timeouts.connect;
    let opening = async {
        let socket = open(&upstream.host, upstream.port)
            .await
            .map_err(|error| Fault::unsent(cause(&error)).because(error))?;
        let Some(secure) = &upstream.secure else {
            return Ok(Stream::Clear(socket));
        };
        match secure.connect(socket, upstream.http2).await {
            Ok(stream) => Ok(Stream::Secure(Box::new(stream))),
            Err(error) => Err(Fault::unsent(Cause::Tls).because(error)),
        }
    };
    timeout(limit, opening)
        .await
        .unwrap_or_else(|_| Err(Fault::unsent(Cause::ConnectTimeout)))
}

async fn open(host: &str, port: u16) -> io::Result<TcpStream> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return open_address(SocketAddr::new(address, port)).await;
    }
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in tokio::net::lookup_host((host, port)).await? {
        match open_address(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn open_address(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(60));
    SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
    Ok(stream)
}

/// Whether a failed connection is the upstream's fault or our own want.
fn cause(error: &io::Error) -> Cause {
    // What `ErrorKind` does not tell apart; the same numbers on every Unix.
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    let is_want = matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
        // No local port is left, or no memory for a socket.
        || matches!(
            error.kind(),
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::OutOfMemory
        );
    if is_want {
        Cause::NoCapacity
    } else {
        Cause::Unreachable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn want_of_our_own_is_not_the_upstreams_fault() {
        let of_system = io::Error::from_raw_os_error;
        let of_kind = |kind: io::ErrorKind| io::Error::from(kind);
        for (error, expected) in [
            (of_system(23), Cause::NoCapacity),
            (of_system(24), Cause::NoCapacity),
            (of_kind(io::ErrorKind::AddrNotAvailable), Cause::NoCapacity),
            (of_kind(io::ErrorKind::OutOfMemory), Cause::NoCapacity),
            (
                of_kind(io::ErrorKind::ConnectionRefused),
                Cause::Unreachable,
            ),
            (of_kind(io::ErrorKind::HostUnreachable), Cause::Unreachable),
            (of_kind(io::ErrorKind::NotFound), Cause::Unreachable),
        ] {
            assert_eq!(cause(&error), expected, "{error}");
        }
    }
}
