//! The stub upstream: one thread that polls instead of sleeping, so that nobody who is measured
//! pays for waking it. Answers prepared bytes and looks at no more of a request than its target and
//! its length. Must never cost so much that it is what is measured.
//!
//! | target | answer |
//! |---|---|
//! | `/a2a` | 1 KB of JSON |
//! | `/a2a/large` | 100 KB of JSON |
//! | `/a2a/echo` | the request head as it arrived |
//! | `/a2a/events?every=MS&count=N` | N server-sent events, one each MS ms, with their time |

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::time::{Duration, Instant, SystemTime};

use memchr::memmem;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use super::head;
use super::payload::{EXTENSION, LARGE, SMALL, answer};

const LISTENER: Token = Token(usize::MAX);

/// One connection of a proxy.
struct Peer {
    stream: TcpStream,
    /// A head that came in pieces.
    head: Vec<u8>,
    /// What is left of the body.
    skip: usize,
    /// The answer to give after it.
    target: Target,
    /// Whether events go out here.
    streaming: bool,
    /// What the socket did not take yet.
    pending: Vec<u8>,
}

enum Target {
    Small,
    Large,
    Echo(Vec<u8>),
    Events(Stream),
}

/// Server-sent events on one connection.
#[derive(Clone, Copy)]
struct Stream {
    every: Duration,
    left: u64,
}

struct Stub {
    small: Vec<u8>,
    large: Vec<u8>,
    peers: Vec<Option<Peer>>,
    free: Vec<usize>,
    /// Due events, in order: every stream of a run has the same interval.
    due: VecDeque<(Instant, usize, Stream)>,
}

/// Serves for ever; tells its port on standard output.
pub(crate) fn serve() -> io::Result<()> {
    rlimit::increase_nofile_limit(u64::MAX)?;
    let mut listener = TcpListener::bind("127.0.0.1:0".parse().map_err(io::Error::other)?)?;
    let mut poll = Poll::new()?;
    poll.registry()
        .register(&mut listener, LISTENER, Interest::READABLE)?;
    println!("{}", listener.local_addr()?.port());

    let mut stub = Stub {
        small: response("application/json", &answer(SMALL)),
        large: response("application/json", &answer(LARGE)),
        peers: Vec::new(),
        free: Vec::new(),
        due: VecDeque::new(),
    };
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 128 * 1024];
    loop {
        poll.poll(&mut events, Some(Duration::ZERO))?;
        if events.is_empty() && stub.due.is_empty() {
            std::thread::yield_now();
        }
        for event in &events {
            if event.token() == LISTENER {
                stub.accept(&listener, &poll)?;
                continue;
            }
            let place = event.token().0;
            let Some(Some(peer)) = stub.peers.get_mut(place) else {
                continue;
            };
            let served = (!event.is_writable() || flush(peer).is_ok())
                && (!event.is_readable()
                    || stub.readable(place, event.is_read_closed(), &mut buffer));
            if !served {
                stub.peers[place] = None;
                stub.free.push(place);
            }
        }
        stub.tick();
    }
}

impl Stub {
    fn accept(&mut self, listener: &TcpListener, poll: &Poll) -> io::Result<()> {
        while let Ok((mut stream, _)) = listener.accept() {
            stream.set_nodelay(true)?;
            let place = self.free.pop().unwrap_or(self.peers.len());
            poll.registry().register(
                &mut stream,
                Token(place),
                Interest::READABLE | Interest::WRITABLE,
            )?;
            let peer = Some(Peer {
                stream,
                head: Vec::new(),
                skip: 0,
                target: Target::Small,
                streaming: false,
                pending: Vec::new(),
            });
            match self.peers.get_mut(place) {
                Some(slot) => *slot = peer,
                None => self.peers.push(peer),
            }
        }
        Ok(())
    }

    /// Whether the connection lives on.
    fn readable(&mut self, place: usize, closed: bool, buffer: &mut [u8]) -> bool {
        loop {
            let Some(Some(peer)) = self.peers.get_mut(place) else {
                return false;
            };
            match peer.stream.read(buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    if self.take(place, &buffer[..count]).is_err() {
                        return false;
                    }
                    // Less than asked for: nothing more is there, unless the end is.
                    if count < buffer.len() && !closed {
                        return true;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }

    fn take(&mut self, place: usize, mut data: &[u8]) -> io::Result<()> {
        while !data.is_empty() {
            let Some(Some(peer)) = self.peers.get_mut(place) else {
                return Ok(());
            };
            if peer.skip > 0 {
                let skipped = peer.skip.min(data.len());
                peer.skip -= skipped;
                data = &data[skipped..];
            } else if peer.head.is_empty()
                && let Some(end) = memmem::find(data, b"\r\n\r\n")
            {
                (peer.target, peer.skip) = read(&data[..end + 4])?;
                data = &data[end + 4..];
            } else {
                // In pieces: byte by byte is slow, and rare.
                peer.head.push(data[0]);
                data = &data[1..];
                if !peer.head.ends_with(b"\r\n\r\n") {
                    continue;
                }
                (peer.target, peer.skip) = read(&peer.head)?;
                peer.head.clear();
            }
            if peer.skip == 0 {
                self.respond(place)?;
            }
        }
        Ok(())
    }

    fn respond(&mut self, place: usize) -> io::Result<()> {
        let Some(Some(peer)) = self.peers.get_mut(place) else {
            return Ok(());
        };
        match std::mem::replace(&mut peer.target, Target::Small) {
            Target::Small => send(peer, &self.small),
            Target::Large => send(peer, &self.large),
            Target::Echo(head) => send(peer, &response("text/plain", &head)),
            Target::Events(stream) => {
                peer.streaming = true;
                // Spread over the interval by the place, so that they do not come in one burst.
                let spread = stream.every * u32::try_from(place % 1000).unwrap_or(0) / 1000;
                let at = Instant::now() + spread;
                let behind = self.due.partition_point(|(due, _, _)| *due <= at);
                self.due.insert(behind, (at, place, stream));
                send(
                    peer,
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
                      Transfer-Encoding: chunked\r\n\r\n",
                )
            }
        }
    }

    /// Sends what is due.
    fn tick(&mut self) {
        while let Some(&(at, place, stream)) = self.due.front()
            && at <= Instant::now()
        {
            self.due.pop_front();
            let Some(Some(peer)) = self.peers.get_mut(place) else {
                continue;
            };
            if !peer.streaming {
                continue;
            }
            let left = stream.left - 1;
            let mut piece = event();
            if left == 0 {
                piece.extend_from_slice(b"0\r\n\r\n");
            }
            peer.streaming = left > 0;
            if send(peer, &piece).is_err() {
                self.peers[place] = None;
                self.free.push(place);
            } else if left > 0 {
                self.due
                    .push_back((at + stream.every, place, Stream { left, ..stream }));
            }
        }
    }
}

/// Nanoseconds since 1970: what the stub writes into an event and the load generator compares.
pub(crate) fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(0))
}

/// One chunk with one event.
fn event() -> Vec<u8> {
    let data = format!(
        "data: {{\"at\":{},\"jsonrpc\":\"2.0\",\"id\":\"req_7f3a9c21\",\"result\":{{\"statusUpdate\":{{\"taskId\":\"t-1\",\"contextId\":\"ctx-51d0\",\"status\":{{\"state\":\"TASK_STATE_WORKING\",\"message\":{{\"parts\":[{{\"text\":\"Searching the inventory of Lakeside Motors\"}}]}}}}}}}}}}\n\n",
        nanoseconds()
    );
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

fn response(kind: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nA2A-Extensions: {EXTENSION}\r\n\
         Date: Mon, 30 Nov 2026 14:00:00 GMT\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// What a request head asks for, and how long its body is.
fn read(head: &[u8]) -> io::Result<(Target, usize)> {
    let fields = head::fields(head);
    if fields.chunked {
        return Err(io::Error::other("the proxy sends chunks"));
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let target = if memmem::find(line, b"/a2a/large").is_some() {
        Target::Large
    } else if memmem::find(line, b"/a2a/echo").is_some() {
        Target::Echo(head.to_vec())
    } else if memmem::find(line, b"/a2a/events?").is_some() {
        let number = |name: &str| {
            let line = String::from_utf8_lossy(line);
            let after = line.split_once(name).map(|(_, after)| after.to_owned());
            let after = after.unwrap_or_default();
            let digits = after.split(|it: char| !it.is_ascii_digit()).next();
            digits.unwrap_or_default().parse().unwrap_or(1)
        };
        Target::Events(Stream {
            every: Duration::from_millis(number("every=")),
            left: number("count="),
        })
    } else {
        Target::Small
    };
    Ok((target, fields.length.unwrap_or(0)))
}

fn send(peer: &mut Peer, bytes: &[u8]) -> io::Result<()> {
    if !peer.pending.is_empty() {
        peer.pending.extend_from_slice(bytes);
        return flush(peer);
    }
    let sent = write(&mut peer.stream, bytes)?;
    peer.pending.extend_from_slice(&bytes[sent..]);
    Ok(())
}

fn flush(peer: &mut Peer) -> io::Result<()> {
    if !peer.pending.is_empty() {
        let sent = write(&mut peer.stream, &peer.pending)?;
        peer.pending.drain(..sent);
    }
    Ok(())
}

/// How much the socket took.
fn write(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}
