//! Decides how a TCP connection to an upstream is opened: every address its name resolves to, in
//! order, within one deadline.
//!
//! The name is resolved for each new connection, so a changed record is followed as soon as old
//! connections reach their age limit. Must never be called while a request byte is on the wire.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::fault::{Cause, Fault};

/// Opens a connection within `limit`, name resolution included.
///
/// # Errors
/// `Unreachable` or `ConnectTimeout`; nothing was sent.
pub(super) async fn connect(host: &str, port: u16, limit: Duration) -> Result<TcpStream, Fault> {
    match timeout(limit, open(host, port)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(Fault::unsent(Cause::Unreachable).because(error)),
        Err(_) => Err(Fault::unsent(Cause::ConnectTimeout)),
    }
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
