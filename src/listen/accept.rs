//! Decides which connections are taken.
//!
//! Over the connection limit a client gets 503 and is closed. An accept error that concerns the
//! process (no descriptors left) pauses accepting for a moment, so that it does not spin. What a
//! listener holds when it closes has been answered by the system and is still served.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::drain::{Draining, Stage};
use super::serve::{Handler, Limits, either};
use super::served::Served;
use crate::observe::EndpointMeters;
use crate::state::connection::Connection;

/// How long accepting pauses when the process is out of descriptors or memory.
const BACKOFF: Duration = Duration::from_millis(100);

/// One worker's listening socket with its counters.
#[derive(Debug)]
pub struct Acceptor {
    /// The bound socket.
    pub listener: std::net::TcpListener,
    /// The listener's name in the configuration.
    pub name: Rc<str>,
    /// Open connections over all workers.
    pub open: Arc<AtomicUsize>,
    /// Open connections of this listener.
    pub connections: Gauge,
    /// Connections refused for the limit.
    pub refused: Counter,
    /// Counters of requests that found no endpoint: what was not even HTTP is counted there.
    pub unreadable: EndpointMeters,
}

/// Accepts and serves until drained; returns when the last connection has ended.
///
/// # Errors
/// When the socket cannot be used at all.
pub async fn serve<M, H>(
    acceptor: Acceptor,
    limits: impl Fn() -> Limits,
    make: M,
    mut draining: Draining,
) -> io::Result<()>
where
    M: Fn(Rc<Connection>) -> H,
    H: Handler + 'static,
{
    let Acceptor {
        listener,
        name,
        open,
        connections,
        refused,
        unreadable,
    } = acceptor;
    let listener = TcpListener::from_std(listener)?;
    let served = Rc::new(Served::default());
    let admit = |socket: TcpStream, peer: SocketAddr| {
        let limits = limits();
        let Some(place) = Place::take(&open, limits.connections, &connections) else {
            refused.inc();
            turn_away(&socket);
            return;
        };
        if let Err(error) = prepare(&socket) {
            tracing::debug!(%error, "client connection unusable");
            return;
        }
        let connection = Rc::new(Connection::new(
            peer,
            Rc::clone(&name),
            "http",
            Instant::now(),
        ));
        let handler = Rc::new(make(Rc::clone(&connection)));
        let unreadable = unreadable.clone();
        let ticket = served.enter();
        tokio::task::spawn_local(async move {
            either(socket, &connection, limits, &handler, &ticket, &unreadable).await;
            drop((place, ticket));
        });
    };
    let mut following = pin!(served.follow(draining.clone()));
    let mut stop = draining.clone();
    let mut stopping = pin!(stop.reached(Stage::Draining));
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stopping => break,
            never = &mut following => match never {},
            accepted = listener.accept() => accepted,
        };
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if concerns_one_connection(&error) => continue,
            Err(error) => {
                tracing::warn!(%error, listener = &*name, "cannot accept connections");
                tokio::time::sleep(BACKOFF).await;
                continue;
            }
        };
        admit(socket, peer);
    }
    // Whoever is in the queue has been answered by the system already.
    for (socket, peer) in queued(listener) {
        admit(socket, peer);
    }
    tokio::select! {
        () = served.all_done() => {}
        never = &mut following => match never {},
        () = draining.reached(Stage::Stopped) => {}
    }
    Ok(())
}

/// The connections that a listener has made and not given out; closes it.
fn queued(listener: TcpListener) -> impl Iterator<Item = (TcpStream, SocketAddr)> {
    let listener = listener.into_std().ok();
    std::iter::from_fn(move || {
        loop {
            match listener.as_ref()?.accept() {
                Ok((socket, peer)) => {
                    socket.set_nonblocking(true).ok()?;
                    return Some((TcpStream::from_std(socket).ok()?, peer));
                }
                Err(error) if concerns_one_connection(&error) => {}
                Err(_) => return None,
            }
        }
    })
}

/// Whether an accept error is about the connection that was to be accepted, not about us.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

fn prepare(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(Duration::from_secs(60));
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}

/// Tells a client over the limit so, as far as that goes without waiting.
fn turn_away(socket: &TcpStream) {
    const ANSWER: &[u8] =
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let _ = socket.try_write(ANSWER);
}

/// A counted place among the open connections; given back when dropped.
struct Place {
    open: Arc<AtomicUsize>,
    gauge: Gauge,
}

impl Place {
    fn take(open: &Arc<AtomicUsize>, limit: usize, gauge: &Gauge) -> Option<Self> {
        if open.fetch_add(1, Ordering::Relaxed) >= limit {
            open.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        gauge.inc();
        Some(Self {
            open: Arc::clone(open),
            gauge: gauge.clone(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        self.gauge.dec();
    }
}
