//! Decides how a listening socket is opened: shared by address, with a deep queue.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// How many connections the kernel may hold before they are accepted; it caps this at
/// `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Opens one listening socket per worker on the same address. Port 0 is chosen once for all.
///
/// # Errors
/// The system's, for instance when the address is in use.
pub fn bind(address: SocketAddr, workers: usize) -> io::Result<Vec<TcpListener>> {
    let first = open(address)?;
    let chosen = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..workers {
        listeners.push(open(chosen)?);
    }
    Ok(listeners)
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
