//! Decides how a listening socket is opened, or taken over from a service manager, and which socket
//! options its connections have: the system gives those of the listening socket to each of them.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

/// A quiet client is asked whether it is still there: after the first of these, then at each of the
/// second. A client that vanished is given up after the third of unanswered questions.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(60), Duration::from_secs(15), 4);

/// A listening socket of one worker.
#[derive(Debug)]
pub struct Bound {
    /// The socket.
    pub socket: TcpListener,
    /// Whether all workers share it, and it lives on when they have gone: a service manager's.
    pub is_inherited: bool,
}

/// Opens one listening socket per worker on the same address, or shares the one that was inherited
/// among them. Port 0 is chosen once for all. `backlog` connections, as far as [`somaxconn`] allows,
/// may wait for being accepted.
///
/// Data is sent at once (`TCP_NODELAY`), and dead peers are found by keepalive. `TCP_USER_TIMEOUT` is
/// not set: a client that takes nothing of its answer is cut by its own deadline. Nor is
/// `TCP_DEFER_ACCEPT`: it would keep connections that send nothing out of our count and our
/// deadlines, delay whoever waits for the server to speak first, and hide the queue from a drain.
///
/// # Errors
/// The system's, for instance when the address is in use.
pub fn bind(
    address: SocketAddr,
    workers: usize,
    backlog: i32,
    inherited: Option<TcpListener>,
) -> io::Result<Vec<Bound>> {
    let is_inherited = inherited.is_some();
    let first = match inherited {
        Some(socket) => take_over(socket, backlog)?,
        None => open(address, backlog)?,
    };
    let chosen = first.local_addr()?;
    let mut sockets = Vec::with_capacity(workers);
    for _ in 1..workers {
        sockets.push(if is_inherited {
            first.try_clone()?
        } else {
            open(chosen, backlog)?
        });
    }
    sockets.push(first);
    let bound = |socket| Bound {
        socket,
        is_inherited,
    };
    Ok(sockets.into_iter().map(bound).collect())
}

/// Lets so many connections wait for being accepted at a socket that listens already.
///
/// # Errors
/// The system's.
pub(super) fn listen_again(socket: SockRef<'_>, backlog: u16) -> io::Result<()> {
    socket.listen(i32::from(backlog))
}

/// Makes a listening socket deaf to those who want to connect, and to nobody else: a handshake that has
/// begun is finished, and comes into the queue. So after the time of a handshake the queue can be
/// emptied and the socket be closed, which resets whatever is in it or on the way to it. Who was not
/// heard asks again a second later, and is told then how things are.
///
/// # Errors
/// The system's, where it has no filters.
#[cfg(target_os = "linux")]
pub(super) fn deafen(socket: SockRef<'_>) -> io::Result<()> {
    use socket2::SockFilter;
    // The flags of the TCP header, SYN and ACK of them: is it SYN alone? Then nothing of the packet is
    // kept, else all of it.
    const FLAGS: u32 = 13;
    const SYN: u32 = 0x02;
    const ACK: u32 = 0x10;
    socket.attach_filter(&[
        SockFilter::new(0x30, 0, 0, FLAGS),
        SockFilter::new(0x54, 0, 0, SYN | ACK),
        SockFilter::new(0x15, 0, 1, SYN),
        SockFilter::new(0x06, 0, 0, 0),
        SockFilter::new(0x06, 0, 0, u32::MAX),
    ])
}

/// Nothing like it is known here.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub(super) fn deafen(_: SockRef<'_>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The most connections that the system lets wait for being accepted, where it says so.
#[must_use]
pub fn somaxconn() -> Option<u32> {
    let text = fs::read_to_string("/proc/sys/net/core/somaxconn").ok()?;
    text.trim().parse().ok()
}

fn open(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    prepare(SockRef::from(&socket))?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(socket.into())
}

fn take_over(socket: TcpListener, backlog: i32) -> io::Result<TcpListener> {
    socket.set_nonblocking(true)?;
    prepare(SockRef::from(&socket))?;
    SockRef::from(&socket).listen(backlog)?;
    Ok(socket)
}

fn prepare(socket: SockRef<'_>) -> io::Result<()> {
    let (time, interval, retries) = KEEPALIVE;
    let keepalive = TcpKeepalive::new()
        .with_time(time)
        .with_interval(interval)
        .with_retries(retries);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_nodelay(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    fn local() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    /// One connection, as a worker accepts it.
    fn accepted(bound: &Bound) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(bound.socket.local_addr().unwrap()).unwrap();
        bound.socket.set_nonblocking(false).unwrap();
        let (server, _) = bound.socket.accept().unwrap();
        (client, server)
    }

    fn is_prepared(server: &TcpStream) {
        let socket = SockRef::from(server);
        assert!(socket.tcp_nodelay().unwrap());
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE.0);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEPALIVE.1);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE.2);
    }

    #[test]
    fn a_connection_has_the_options_of_its_listener() {
        let bound = bind(local(), 1, 16, None).unwrap();
        let (_client, server) = accepted(&bound[0]);
        is_prepared(&server);
    }

    #[test]
    fn each_worker_has_a_socket_on_one_port() {
        let bound = bind(local(), 3, 16, None).unwrap();
        let ports: Vec<_> = bound
            .iter()
            .map(|it| it.socket.local_addr().unwrap().port())
            .collect();
        assert_eq!(ports, [ports[0]; 3]);
        assert!(bound.iter().all(|it| !it.is_inherited));
    }

    #[test]
    fn an_inherited_socket_is_shared_by_all() {
        let inherited = TcpListener::bind(local()).unwrap();
        let address = inherited.local_addr().unwrap();
        let bound = bind(address, 2, 16, Some(inherited)).unwrap();
        assert_eq!(bound.len(), 2);
        // Whichever asks gets the connection, and has it as of our own.
        for one in &bound {
            assert!(one.is_inherited);
            assert_eq!(one.socket.local_addr().unwrap(), address);
            let (_client, server) = accepted(one);
            is_prepared(&server);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_deaf_socket_hears_nobody_and_finishes_what_it_began() {
        let bound = bind(local(), 1, 16, None).unwrap().pop().unwrap();
        let address = bound.socket.local_addr().unwrap();
        let mut queued = TcpStream::connect(address).unwrap();
        deafen(SockRef::from(&bound.socket)).unwrap();
        let patience = Duration::from_millis(50);
        let unheard = TcpStream::connect_timeout(&address, patience).unwrap_err();
        assert_eq!(unheard.kind(), io::ErrorKind::TimedOut);
        bound.socket.set_nonblocking(false).unwrap();
        let (mut server, _) = bound.socket.accept().unwrap();
        std::io::Write::write_all(&mut server, b"x").unwrap();
        drop(bound);
        let mut byte = [0];
        std::io::Read::read_exact(&mut queued, &mut byte).unwrap();
        std::io::Write::write_all(&mut queued, b"x").unwrap();
        std::io::Read::read_exact(&mut server, &mut byte).unwrap();
        let refused = TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn the_system_says_how_long_its_queues_are() {
        assert!(somaxconn().is_none_or(|most| most > 0));
    }
}
