//! A dealer on raw sockets that does exactly what a test tells it, however wrong.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use socket2::{Domain, SockRef, Socket, Type};

use super::head::{Head, Reader};
use super::wait::PATIENCE;

/// A request as it arrived, to the byte.
#[derive(Clone, Debug, Default)]
pub struct Arrival {
    pub head: Head,
    pub body: Vec<u8>,
}

impl Arrival {
    /// The request target.
    pub fn target(&self) -> &str {
        self.head.start.split(' ').nth(1).unwrap()
    }
}

/// A listening dealer.
pub struct Upstream {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepted: Mutex<Receiver<Peer>>,
}

#[derive(Default)]
struct Shared {
    arrivals: Mutex<Vec<Arrival>>,
    sockets: Mutex<Vec<TcpStream>>,
    connections: AtomicUsize,
    open: AtomicUsize,
    is_over: AtomicBool,
}

/// The dealer's end of one connection.
pub struct Peer {
    pub number: usize,
    reader: Reader<TcpStream>,
    shared: Arc<Shared>,
}

/// An address that is taken and at which nobody listens, as long as this lives.
pub struct Nobody {
    pub address: SocketAddr,
    _socket: Socket,
}

impl Nobody {
    pub fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        socket.bind(&any.into()).unwrap();
        Self {
            address: socket.local_addr().unwrap().as_socket().unwrap(),
            _socket: socket,
        }
    }
}

/// A plain JSON-RPC result.
pub const RESULT: &str = r#"{"jsonrpc":"2.0","id":"req_001","result":{"kind":"message"}}"#;

/// An answer with a length.
pub fn answer(status: &str, fields: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// What a well-behaved dealer answers.
pub fn ok() -> Vec<u8> {
    answer("200 OK", "Content-Type: application/json\r\n", RESULT)
}

impl Upstream {
    /// Runs a script on a thread of its own for each connection.
    pub fn scripted(script: impl Fn(Peer) + Send + Sync + 'static) -> Self {
        Self::listen(Some(Arc::new(script)))
    }

    /// Hands each connection to the test, which plays the dealer itself: see [`Upstream::accept`].
    pub fn manual() -> Self {
        Self::listen(None)
    }

    /// Answers every request with the same bytes and keeps its connections.
    pub fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::scripted(move |mut peer| {
            while peer.request().is_some() {
                if peer.try_send(&bytes).is_err() {
                    return;
                }
            }
        })
    }

    /// Records and answers every request well.
    pub fn recording() -> Self {
        Self::answering(ok())
    }

    fn listen(script: Option<Arc<dyn Fn(Peer) + Send + Sync>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let (sender, accepted) = mpsc::channel();
        let for_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                if for_thread.is_over.load(Ordering::SeqCst) {
                    return;
                }
                stream.set_nodelay(true).unwrap();
                for_thread.sockets.lock().push(stream.try_clone().unwrap());
                for_thread.open.fetch_add(1, Ordering::SeqCst);
                let peer = Peer {
                    number: for_thread.connections.fetch_add(1, Ordering::SeqCst),
                    reader: Reader::new(stream),
                    shared: Arc::clone(&for_thread),
                };
                match &script {
                    Some(script) => {
                        let script = Arc::clone(script);
                        thread::spawn(move || script(peer));
                    }
                    None => drop(sender.send(peer)),
                }
            }
        });
        Self {
            address,
            shared,
            accepted: Mutex::new(accepted),
        }
    }

    /// The next connection of a manual dealer.
    #[track_caller]
    pub fn accept(&self) -> Peer {
        let peer = self.accepted.lock().recv_timeout(PATIENCE);
        let peer = peer.expect("the gateway did not connect");
        let socket = &peer.reader.source;
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        peer
    }

    /// Everything that arrived, in order.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.shared.arrivals.lock().clone()
    }

    /// How many requests arrived.
    pub fn count(&self) -> usize {
        self.shared.arrivals.lock().len()
    }

    /// The last arrival.
    #[track_caller]
    pub fn last(&self) -> Arrival {
        let arrivals = self.shared.arrivals.lock();
        arrivals.last().expect("nothing arrived").clone()
    }

    /// Forgets what arrived and returns the only one of it.
    #[track_caller]
    pub fn take(&self) -> Arrival {
        let mut all = std::mem::take(&mut *self.shared.arrivals.lock());
        assert_eq!(all.len(), 1, "arrivals");
        all.pop().unwrap()
    }

    /// How many connections were ever accepted.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How many are open, as far as their scripts noticed.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, and every script that reads.
        drop(TcpStream::connect(self.address));
        for socket in self.shared.sockets.lock().drain(..) {
            drop(socket.shutdown(Shutdown::Both));
        }
    }
}

impl Peer {
    /// Reads a request whole and records it; `None` when the gateway closed.
    pub fn request(&mut self) -> Option<Arrival> {
        let head = self.head()?;
        self.body_of(head)
    }

    /// Reads a request's head alone; nothing is recorded.
    pub fn head(&mut self) -> Option<Head> {
        let head = self.reader.until(b"\r\n\r\n").ok()??;
        Some(Head::parse(&head))
    }

    /// Reads the body after its head, and records both.
    pub fn body_of(&mut self, head: Head) -> Option<Arrival> {
        let mut body = Vec::new();
        if head.is_chunked() {
            self.reader.chunks(&mut body).ok()?;
        } else if let Some(length) = head.length() {
            body = self.reader.exactly(length).ok()?;
        }
        let arrival = Arrival { head, body };
        self.shared.arrivals.lock().push(arrival.clone());
        Some(arrival)
    }

    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).unwrap();
    }

    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.reader.source.write_all(bytes.as_ref())
    }

    /// One chunk of a chunked body.
    #[track_caller]
    pub fn chunk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
        framed.extend_from_slice(bytes);
        framed.extend_from_slice(b"\r\n");
        self.send(framed);
    }

    /// Closes with a reset, whatever was received or sent.
    pub fn reset(self) {
        let socket = SockRef::from(&self.reader.source);
        socket.set_linger(Some(Duration::ZERO)).unwrap();
        self.forget();
    }

    /// Closes in the normal way.
    pub fn close(self) {
        drop(self.reader.source.shutdown(Shutdown::Both));
        self.forget();
    }

    /// The dealer keeps a copy of each socket, which would keep a connection open.
    fn forget(self) {
        let mine = self.reader.source.peer_addr();
        self.shared
            .sockets
            .lock()
            .retain(|socket| socket.peer_addr().ok() != mine.as_ref().ok().copied());
    }

    /// Waits until the gateway closes; `false` when it sent something instead or did not close
    /// within the time.
    pub fn is_closed_within(&mut self, time: Duration) -> bool {
        let socket = &mut self.reader.source;
        socket.set_read_timeout(Some(time)).unwrap();
        match socket.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    pub fn socket(&self) -> &TcpStream {
        &self.reader.source
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.shared.open.fetch_sub(1, Ordering::SeqCst);
        let mine = self.reader.source.peer_addr().ok();
        self.shared
            .sockets
            .lock()
            .retain(|socket| socket.peer_addr().ok() != mine);
    }
}
