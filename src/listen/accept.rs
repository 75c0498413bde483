//! Decides which connections are taken.
//!
//! Over the connection limit a client gets 503 and is closed. An accept error that concerns the
//! process (no descriptors left) pauses accepting for a moment, so that it does not spin. What a
//! listener holds when it closes has been answered by the system and is still served: one that closes
//! alone first hears nobody new, for as long as a handshake takes, so that nothing comes between the
//! last look into its queue and the end.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::bind::{Bound, deafen, listen_again};
use super::drain::{Draining, Stage};
use super::http1::GRACE;
use super::proxy_protocol::{self, Flaw};
use super::reins::{Held, Manner, Reins, reins};
use super::serve::{Handler, Limits, either, one};
use super::served::Served;
use super::spread::{Arrival, Desk, Place};
use crate::observe::EndpointMeters;
use crate::state::connection::Connection;
use crate::state::{Listener, Networks};

/// How long accepting pauses when the process is out of descriptors or memory.
const BACKOFF: Duration = Duration::from_millis(100);

/// How long a listener that closes alone still takes those whose handshake had begun.
const LAST_CALL: Duration = Duration::from_millis(500);

/// One worker's listening socket with its counters.
#[derive(Debug)]
pub struct Acceptor {
    bound: Bound,
    held: Held,
    desk: Desk,
    unreadable: EndpointMeters,
}

impl Acceptor {
    /// A listening socket, the worker's place among the others at it, and where what was not even HTTP
    /// is counted. With it come the reins by which it is changed and closed.
    #[must_use]
    pub fn new(
        bound: Bound,
        manner: Manner,
        desk: Desk,
        unreadable: EndpointMeters,
    ) -> (Self, Reins) {
        let (reins, held) = reins(manner);
        let acceptor = Self {
            bound,
            held,
            desk,
            unreadable,
        };
        (acceptor, reins)
    }
}

/// Accepts and serves until drained; returns when the last connection has ended.
///
/// # Errors
/// When the socket cannot be used at all.
pub async fn serve<M, H>(
    acceptor: Acceptor,
    limits: impl Fn() -> Limits,
    make: M,
    gateway: Draining,
) -> io::Result<()>
where
    M: Fn(Rc<Connection>) -> H + 'static,
    H: Handler + 'static,
{
    let Acceptor {
        bound,
        mut held,
        mut desk,
        unreadable,
    } = acceptor;
    let is_inherited = bound.is_inherited;
    let socket = TcpListener::from_std(bound.socket)?;
    let mut draining = held.along(&gateway);
    let mut floor = Floor {
        manner: held.now(),
        limits,
        make: Rc::new(make),
        served: Rc::new(Served::default()),
        drain: draining.clone(),
        unreadable,
    };
    let served = Rc::clone(&floor.served);
    let mut following = pin!(served.follow(draining.clone()));
    let mut stop = draining.clone();
    let mut stopping = pin!(stop.reached(Stage::Draining));
    let mut paused_until = None;
    let mut closes_at: Option<Instant> = None;
    loop {
        let accepting = async {
            if let Some(until) = paused_until {
                tokio::time::sleep_until(until).await;
            }
            socket.accept().await
        };
        let closing = async {
            match closes_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let accepted = tokio::select! {
            biased;
            () = &mut stopping, if closes_at.is_none() => {
                if draining.gateway() >= Stage::Draining {
                    break;
                }
                // A socket that others hold as well must hear on.
                if !is_inherited && let Err(error) = deafen(SockRef::from(&socket)) {
                    tracing::debug!(%error, "a listener that closes hears on");
                }
                closes_at = Some(Instant::now() + LAST_CALL);
                continue;
            }
            never = &mut following => match never {},
            () = held.changed() => {
                floor.manner = held.now();
                if let Err(error) = listen_again(SockRef::from(&socket), floor.manner.backlog) {
                    tracing::warn!(%error, "the queue of a listener stays as long as it was");
                }
                continue;
            }
            Some(arrival) = desk.next() => {
                floor.welcome(arrival);
                continue;
            }
            () = closing => break,
            accepted = accepting => accepted,
        };
        paused_until = None;
        match accepted {
            Ok((socket, peer)) => floor.receive(&desk, socket, peer),
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                let listener = &*floor.manner.listener.name;
                tracing::warn!(%error, listener, "cannot accept connections");
                paused_until = Some(Instant::now() + BACKOFF);
            }
        }
    }
    desk.close_doors();
    // Whoever is in the queue has been answered by the system already. The queue of an inherited
    // socket outlives this process and is for the next, unless only this listener closes.
    if !is_inherited || closes_at.is_some() {
        // No more than the queue can have held: into a socket that hears on, more may come for ever.
        let most = usize::from(floor.manner.backlog) + 1;
        for (socket, peer) in queued(socket).take(most) {
            floor.receive(&desk, socket, peer);
        }
    }
    let finished = async {
        // Another worker may still hand over what it accepted before it stopped.
        while let Some(arrival) = desk.next().await {
            floor.welcome(arrival);
        }
        served.all_done().await;
    };
    tokio::select! {
        () = finished => {}
        never = &mut following => match never {},
        () = draining.reached(Stage::Stopped) => {}
    }
    Ok(())
}

/// What connections are taken with.
struct Floor<L, M> {
    manner: Manner,
    limits: L,
    make: Rc<M>,
    served: Rc<Served>,
    drain: Draining,
    unreadable: EndpointMeters,
}

impl<L, M, H> Floor<L, M>
where
    L: Fn() -> Limits,
    M: Fn(Rc<Connection>) -> H + 'static,
    H: Handler + 'static,
{
    /// Takes what was accepted: here, or at the worker that is to have it.
    fn receive(&self, desk: &Desk, socket: TcpStream, peer: SocketAddr) {
        let Manner {
            listener,
            open,
            doorman,
            ..
        } = &self.manner;
        let may_connect = |peers: &Networks| peers.contain(peer.ip());
        if !listener.proxy_protocol.as_ref().is_none_or(may_connect) {
            listener.meters.untrusted.inc();
            return;
        }
        let limits = (self.limits)();
        let Some((place, door)) = desk.seat(open, limits.connections) else {
            listener.meters.refused.inc();
            if doorman.is_none() {
                turn_away(&socket);
            }
            return;
        };
        let Some(door) = door else {
            return self.admit(socket, peer, place, limits);
        };
        match socket.into_std() {
            Ok(socket) => {
                let arrival = Arrival {
                    socket,
                    peer,
                    place,
                };
                if let Err(mut arrival) = door.hand(arrival) {
                    desk.keep(&mut arrival.place);
                    self.welcome(arrival);
                }
            }
            Err(error) => tracing::warn!(%error, "a connection cannot be handed over"),
        }
    }

    /// Takes what another worker accepted.
    fn welcome(&self, arrival: Arrival) {
        match TcpStream::from_std(arrival.socket) {
            Ok(socket) => self.admit(socket, arrival.peer, arrival.place, (self.limits)()),
            Err(error) => tracing::warn!(%error, "a connection that was handed over is unusable"),
        }
    }

    /// Serves a connection in a task of its own.
    fn admit(&self, mut socket: TcpStream, peer: SocketAddr, place: Place, limits: Limits) {
        let listener = Rc::clone(&self.manner.listener);
        let doorman = self.manner.doorman.clone();
        let (make, drain) = (Rc::clone(&self.make), self.drain.clone());
        let (unreadable, ticket) = (self.unreadable.clone(), self.served.enter());
        tokio::task::spawn_local(async move {
            let client = match &listener.proxy_protocol {
                None => peer,
                // Boxed, so that it takes no memory of connections that have no header.
                Some(_) => match Box::pin(introduced(&mut socket, &listener, limits, &drain)).await
                {
                    Some(Some(client)) => client,
                    Some(None) => peer,
                    None => return drop((place, ticket)),
                },
            };
            let scheme = if doorman.is_some() { "https" } else { "http" };
            let connection = Connection::on_behalf(client, peer, listener, scheme, Instant::now());
            let connection = Rc::new(connection);
            let handler = Rc::new(make(Rc::clone(&connection)));
            let Some(doorman) = doorman else {
                either(socket, &connection, limits, &handler, &ticket, &unreadable).await;
                return drop((place, ticket));
            };
            // Boxed, so that it takes no memory of connections in clear, and nothing of a handshake
            // stays while its connection is served.
            let shaking = doorman.shake(socket, &connection, limits.header_timeout, drain);
            if let Some((stream, protocol)) = Box::pin(shaking).await {
                let serving = one(
                    protocol,
                    stream,
                    &connection,
                    limits,
                    &handler,
                    &ticket,
                    &unreadable,
                );
                Box::pin(serving).await;
            }
            drop((place, ticket));
        });
    }
}

/// Reads the PROXY protocol header of a new connection. `None`: it is not to be served.
async fn introduced(
    socket: &mut TcpStream,
    listener: &Listener,
    limits: Limits,
    draining: &Draining,
) -> Option<Option<SocketAddr>> {
    let mut draining = draining.clone();
    let closing = async {
        draining.reached(Stage::Draining).await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        biased;
        read = proxy_protocol::read(socket) => match read {
            Ok(client) => return Some(client),
            Err(Flaw::Nothing) => {}
            Err(Flaw::Malformed(why)) => {
                listener.meters.malformed.inc();
                tracing::debug!(listener = &*listener.name, why, "no PROXY header");
            }
        },
        () = tokio::time::sleep(limits.header_timeout) => {
            listener.meters.late.inc();
        }
        () = closing => {}
    }
    None
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

/// Tells a client over the limit so, as far as that goes without waiting.
fn turn_away(socket: &TcpStream) {
    const ANSWER: &[u8] =
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let _ = socket.try_write(ANSWER);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use bytes::Bytes;
    use http_body_util::Full;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::task::{JoinHandle, LocalSet};

    use crate::http1::{Answer, Lines, RequestHead};
    use crate::listen::{Drain, Open, bind, desks};
    use crate::observe::Metrics;

    /// Answers anything with this.
    struct Says(String);

    impl Handler for Says {
        type Body = Full<Bytes>;

        async fn handle<B>(&self, _: RequestHead, _: B) -> Answer<Full<Bytes>> {
            Answer {
                status: http::StatusCode::OK,
                lines: Lines::new(),
                body: Full::from(self.0.clone()),
            }
        }
    }

    /// One worker's acceptor that says which worker answers.
    struct Running {
        address: SocketAddr,
        drain: Drain,
        reins: Reins,
        task: JoinHandle<io::Result<()>>,
    }

    fn start(metrics: &Metrics, index: usize, desk: Desk, open: &Open) -> Running {
        let mut sockets = bind(([127, 0, 0, 1], 0).into(), 1, 16, None).unwrap();
        let bound = sockets.pop().unwrap();
        let address = bound.socket.local_addr().unwrap();
        let manner = Manner {
            listener: Rc::new(Listener::bare("public", metrics.listener("public"))),
            open: open.clone(),
            doorman: None,
            backlog: 16,
        };
        let (acceptor, reins) = Acceptor::new(bound, manner, desk, metrics.endpoint(""));
        let limits = || Limits {
            connections: 100,
            header_bytes: 8192,
            header_count: 100,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            concurrent_streams: 100,
        };
        let make = move |_| Says(index.to_string());
        let drain = Drain::default();
        let draining = drain.subscribe();
        let task = tokio::task::spawn_local(serve(acceptor, limits, make, draining));
        Running {
            address,
            drain,
            reins,
            task,
        }
    }

    /// The worker that answers, by the last byte of its answer.
    async fn ask(client: &mut TcpStream) -> u8 {
        let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        client.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        *answer.last().expect("dropped")
    }

    #[tokio::test]
    async fn a_worker_that_drains_still_serves_what_is_handed_to_it() {
        let serving = async {
            let metrics = Metrics::new("0");
            let open = Open {
                all: Arc::default(),
                here: metrics.listener("public").connections,
            };
            let mut desks = desks(&[metrics.worker(0), metrics.worker(1)]).into_iter();
            let first = start(&metrics, 0, desks.next().unwrap(), &open);
            let second = start(&metrics, 1, desks.next().unwrap(), &open);

            // The second worker's listener closes while the first accepts.
            second.drain.advance(Stage::Draining);
            while TcpStream::connect(second.address).await.is_ok() {}
            let mut kept = TcpStream::connect(first.address).await.unwrap();
            let mut handed = TcpStream::connect(first.address).await.unwrap();
            assert_eq!(ask(&mut handed).await, b'1');
            assert_eq!(ask(&mut kept).await, b'0');
            assert!(!second.task.is_finished());

            // With the last listener closed there is nothing to wait for.
            first.drain.advance(Stage::Draining);
            first.task.await.unwrap().unwrap();
            second.task.await.unwrap().unwrap();
            assert_eq!(open.all.load(std::sync::atomic::Ordering::Relaxed), 0);
        };
        LocalSet::new().run_until(serving).await;
    }

    #[tokio::test]
    async fn a_worker_that_is_gone_is_done_without() {
        let serving = async {
            let metrics = Metrics::new("0");
            let open = Open {
                all: Arc::default(),
                here: metrics.listener("public").connections,
            };
            let mut desks = desks(&[metrics.worker(0), metrics.worker(1)]).into_iter();
            let first = start(&metrics, 0, desks.next().unwrap(), &open);
            drop(desks.next());
            let mut clients = Vec::new();
            for _ in 0..4 {
                clients.push(TcpStream::connect(first.address).await.unwrap());
            }
            for client in &mut clients {
                assert_eq!(ask(client).await, b'0');
            }
            first.drain.advance(Stage::Draining);
            first.task.await.unwrap().unwrap();
        };
        LocalSet::new().run_until(serving).await;
    }

    /// Connected, with nobody having accepted it yet.
    fn queued_client(address: SocketAddr) -> TcpStream {
        let client = std::net::TcpStream::connect(address).unwrap();
        client.set_nonblocking(true).unwrap();
        TcpStream::from_std(client).unwrap()
    }

    #[tokio::test]
    async fn a_listener_that_closes_alone_serves_its_queue_and_nobody_else() {
        let serving = async {
            let metrics = Metrics::new("0");
            let open = Open {
                all: Arc::default(),
                here: metrics.listener("public").connections,
            };
            let loads = [metrics.worker(0)];
            let desk = || desks(&loads).pop().unwrap();
            let closing = start(&metrics, 0, desk(), &open);
            let other = start(&metrics, 1, desk(), &open);
            let mut clients: Vec<_> = (0..5).map(|_| queued_client(closing.address)).collect();
            closing.reins.close(Stage::Draining);
            for client in &mut clients {
                assert_eq!(ask(client).await, b'0');
            }
            closing.task.await.unwrap().unwrap();
            assert!(TcpStream::connect(closing.address).await.is_err());
            let mut client = TcpStream::connect(other.address).await.unwrap();
            assert_eq!(ask(&mut client).await, b'1');
            other.drain.advance(Stage::Draining);
            other.task.await.unwrap().unwrap();
            closing.reins.slack().await;
        };
        LocalSet::new().run_until(serving).await;
    }

    #[tokio::test]
    async fn a_change_is_for_connections_that_come_after_it() {
        let serving = async {
            let metrics = Metrics::new("0");
            let open = |name| Open {
                all: Arc::default(),
                here: metrics.listener(name).connections,
            };
            let desk = desks(&[metrics.worker(0)]).pop().unwrap();
            let running = start(&metrics, 0, desk, &open("public"));
            let mut old = TcpStream::connect(running.address).await.unwrap();
            while open("public").here.get() == 0 {
                tokio::task::yield_now().await;
            }
            running.reins.change(Manner {
                listener: Rc::new(Listener::bare("renamed", metrics.listener("renamed"))),
                open: open("renamed"),
                doorman: None,
                backlog: 1,
            });
            let mut new = TcpStream::connect(running.address).await.unwrap();
            while open("renamed").here.get() == 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(open("public").here.get(), 1);
            assert_eq!((ask(&mut old).await, ask(&mut new).await), (b'0', b'0'));
            running.drain.advance(Stage::Draining);
            running.task.await.unwrap().unwrap();
        };
        LocalSet::new().run_until(serving).await;
    }
}
