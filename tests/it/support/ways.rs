//! Every way a call can take: a caller over HTTP/1.1 or HTTP/2, in clear or over TLS, a gateway, and
//! a dealer over either in either. A test plays both ends and need not know which it is.

use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use h2::RecvStream;
use h2::client::ResponseFuture;
use rustls::pki_types::ServerName;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::call::Post;
use super::client::Client;
use super::frames::{DATA, END_STREAM, Frames, RST_STREAM};
use super::gateway::{Gateway, PRELUDE, dealer_at};
use super::head::Head;
use super::http2::{Http2, piece};
use super::tls::{Ending, Front, Place, Speaker, put};
use super::upstream::{Peer, Upstream};
use super::wait::PATIENCE;

/// The setting by which a dealer says how many streams it takes on a connection: each call of a test
/// gets one of its own.
const MAX_CONCURRENT_STREAMS: u16 = 3;

/// How one side speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speech {
    pub http2: bool,
    pub tls: bool,
}

/// All of them.
pub const SPEECHES: [Speech; 4] = [
    speech(false, false),
    speech(false, true),
    speech(true, false),
    speech(true, true),
];

const fn speech(http2: bool, tls: bool) -> Speech {
    Speech { http2, tls }
}

/// A gateway with a listener in clear and one over TLS, before one dealer.
pub struct Ways {
    pub gateway: Gateway,
    pub upstream: Upstream,
    dealer: Speech,
    place: Place,
    front: Option<Front>,
}

/// Carries a caller's bytes to a gateway over TLS.
pub struct Tunnel {
    pub address: SocketAddr,
    _runtime: Runtime,
}

/// One caller with one call.
pub struct Caller {
    end: CallersEnd,
    _tunnel: Option<Tunnel>,
}

enum CallersEnd {
    One(Client),
    Two {
        runtime: Runtime,
        http2: Http2,
        answer: Option<ResponseFuture>,
        body: Option<RecvStream>,
    },
}

/// How a caller goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It closes its connection.
    Hanging,
    /// It takes its stream back; over HTTP/1.1 the same as hanging up.
    Resetting,
}

/// The dealer's end of one call.
pub enum Dealing {
    One(Peer),
    Two(Frames, u32),
}

impl Ways {
    /// With further lines of the configuration, and of its upstream.
    #[track_caller]
    pub fn to(dealer: Speech, rest: &str, of_upstream: &str) -> Self {
        Self::ending(dealer, rest, of_upstream, Ending::Politely)
    }

    /// The same before a dealer whose TLS ends like this.
    #[track_caller]
    pub fn ending(dealer: Speech, rest: &str, of_upstream: &str, ending: Ending) -> Self {
        let upstream = Upstream::manual();
        let place = Place::new();
        place.issue("own", &["gw.example"]);
        put(
            &place.directory.path().join("ca.pem"),
            &place.authority.pem(),
        );
        let front = dealer.tls.then(|| {
            let own = place.authority.issue(&["127.0.0.1"]);
            Front::ending(upstream.address, &own, ending)
        });
        let mut lines = format!(
            "http2 = {}\nkeep_alive = \"0s\"\n{of_upstream}",
            dealer.http2
        );
        if dealer.tls {
            lines.push_str(&format!("\nca = \"{}\"", place.at("ca.pem")));
        }
        let address = front.as_ref().map_or(upstream.address, |it| it.address);
        let mut own = dealer_at(address, &lines, "");
        if dealer.tls {
            own = own.replace("http://", "https://");
        }
        let gateway = Gateway::start_whole(&format!(
            "{PRELUDE}[listener.secure]\naddress = \"127.0.0.1:0\"\ntls = {{ {} }}\n{rest}\n{own}",
            place.pair("own")
        ));
        Self {
            gateway,
            upstream,
            dealer,
            place,
            front,
        }
    }

    /// The protocol that each connection to a dealer over TLS agreed on.
    pub fn agreed(&self) -> Vec<Option<Vec<u8>>> {
        let front = self.front.as_ref().unwrap();
        front.seen().into_iter().map(|it| it.protocol).collect()
    }

    /// A caller that is connected.
    #[track_caller]
    pub fn caller(&self, speech: Speech) -> Caller {
        let addresses = ["public", "secure"].map(|it| self.gateway.inner.address(it).unwrap());
        Caller::connect(speech, addresses, &self.place)
    }

    /// To the listener over TLS, offering these protocols, of which the first must be chosen.
    #[track_caller]
    pub fn tunnel(&self, protocols: &[&str]) -> Tunnel {
        let speaker = Speaker::trusting(&self.place.authority).offering(protocols);
        Tunnel::to(self.gateway.inner.address("secure").unwrap(), &speaker)
    }

    /// The dealer's end of the next call, which has arrived whole with this body.
    #[track_caller]
    pub fn arrived(&self, body: &str) -> Dealing {
        let mut peer = self.upstream.accept();
        if self.dealer.http2 {
            let mut frames = Frames::dealer(&peer, &[(MAX_CONCURRENT_STREAMS, 1)]);
            let (stream, arrived) = frames.request().unwrap();
            assert_eq!(arrived, body.as_bytes());
            return Dealing::Two(frames, stream);
        }
        assert_eq!(peer.request().unwrap().body, body.as_bytes());
        Dealing::One(peer)
    }

    /// How the last call ended; waits until `count` have.
    #[track_caller]
    pub fn outcome(&self, count: usize) -> String {
        let mut last = None;
        super::wait_until("the call is logged", || {
            let mut log = self.gateway.access_log();
            assert!(log.len() <= count, "{log:#?}");
            last = (log.len() == count).then(|| log.pop()).flatten();
            last.is_some()
        });
        last.unwrap()["outcome"].as_str().unwrap().to_owned()
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

impl Tunnel {
    fn to(gateway: SocketAddr, speaker: &Speaker) -> Self {
        let runtime = runtime();
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let connector = TlsConnector::from(Arc::clone(&speaker.config));
        runtime.spawn(async move {
            while let Ok((mut caller, _)) = listener.accept().await {
                let connector = connector.clone();
                tokio::spawn(async move {
                    caller.set_nodelay(true).unwrap();
                    let socket = tokio::net::TcpStream::connect(gateway).await.unwrap();
                    socket.set_nodelay(true).unwrap();
                    let name = ServerName::try_from("gw.example").unwrap();
                    let mut secure = connector.connect(name, socket).await.unwrap();
                    let offered = connector.config().alpn_protocols.first();
                    assert_eq!(
                        secure.get_ref().1.alpn_protocol(),
                        offered.map(Vec::as_slice)
                    );
                    // A cut at one end is a cut at the other, not an end in order.
                    if tokio::io::copy_bidirectional(&mut caller, &mut secure)
                        .await
                        .is_err()
                    {
                        let _ = socket2::SockRef::from(&caller).set_linger(Some(Duration::ZERO));
                    }
                });
            }
        });
        Self {
            address,
            _runtime: runtime,
        }
    }
}

impl Caller {
    /// Connects to the listener in clear, or to the one over TLS.
    #[track_caller]
    pub fn connect(speech: Speech, [clear, secure]: [SocketAddr; 2], place: &Place) -> Self {
        let tunnel = speech.tls.then(|| {
            let protocol = if speech.http2 { "h2" } else { "http/1.1" };
            let speaker = Speaker::trusting(&place.authority).offering(&[protocol]);
            Tunnel::to(secure, &speaker)
        });
        let address = tunnel.as_ref().map_or(clear, |it| it.address);
        let end = match speech.http2 {
            false => CallersEnd::One(Client::connect(address)),
            true => {
                let runtime = runtime();
                let http2 = runtime.block_on(Http2::connect(address));
                CallersEnd::Two {
                    runtime,
                    http2,
                    answer: None,
                    body: None,
                }
            }
        };
        Self {
            end,
            _tunnel: tunnel,
        }
    }

    /// Sends a call, ready for a stream and for compression.
    #[track_caller]
    pub fn send(&mut self, body: &str) {
        let fields = [
            ("accept", "text/event-stream"),
            ("accept-encoding", "gzip, br"),
        ];
        self.send_to("/a2a", &fields, body);
    }

    /// Sends a call to this path with further fields.
    #[track_caller]
    pub fn send_to(&mut self, path: &str, fields: &[(&str, &str)], body: &str) {
        match &mut self.end {
            CallersEnd::One(client) => {
                let mut post = Post::to(path);
                for (name, value) in fields {
                    post = post.field(name, value);
                }
                client.send(post.body(body).bytes());
            }
            CallersEnd::Two {
                runtime,
                http2,
                answer,
                ..
            } => {
                let mut request = Http2::call().uri(format!("http://gw.example{path}"));
                for (name, value) in fields {
                    request = request.header(*name, *value);
                }
                *answer = Some(runtime.block_on(http2.send(request, body)).unwrap());
            }
        }
    }

    /// The answer's status and fields.
    #[track_caller]
    pub fn head(&mut self) -> (u16, Head) {
        match &mut self.end {
            CallersEnd::One(client) => {
                let head = client.head();
                (head.start[9..12].parse().unwrap(), head)
            }
            CallersEnd::Two {
                runtime,
                answer,
                body,
                ..
            } => {
                let answer = answer.take().unwrap();
                let answer = runtime.block_on(async { timeout(PATIENCE, answer).await });
                let (head, stream) = answer.unwrap().unwrap().into_parts();
                *body = Some(stream);
                let fields = head.headers.iter();
                let fields = fields
                    .map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
                    .collect();
                let start = head.status.to_string();
                (head.status.as_u16(), Head { start, fields })
            }
        }
    }

    /// The next piece of a body without a length; `Ok(None)`: its end in order.
    #[track_caller]
    pub fn piece(&mut self) -> Result<Option<Vec<u8>>, String> {
        match &mut self.end {
            CallersEnd::One(client) => client.chunk().map_err(|error| error.to_string()),
            CallersEnd::Two { runtime, body, .. } => {
                let body = body.as_mut().unwrap();
                let next = runtime.block_on(async { timeout(PATIENCE, piece(body)).await });
                let next = next.expect("nothing came").transpose();
                next.map(|piece| piece.map(|it| it.to_vec()))
                    .map_err(|error| error.to_string())
            }
        }
    }

    /// Exactly so many bytes of it.
    #[track_caller]
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            bytes.extend(self.piece().unwrap().expect("the body ended early"));
        }
        assert_eq!(bytes.len(), count, "more came than was sent");
        bytes
    }

    /// A whole answer with a length.
    #[track_caller]
    pub fn answer(&mut self) -> (u16, String) {
        if let CallersEnd::One(client) = &mut self.end {
            let answer = client.answer();
            return (answer.status, answer.text());
        }
        let (status, _) = self.head();
        let mut text = Vec::new();
        while let Some(piece) = self.piece().unwrap() {
            text.extend(piece);
        }
        (status, String::from_utf8(text).unwrap())
    }

    /// Reads on to the end of a body with or without a length, which must be a cut.
    #[track_caller]
    pub fn assert_cut(&mut self, head: &Head) {
        if let CallersEnd::One(client) = &mut self.end
            && let Some(length) = head.length()
        {
            let mut rest = Vec::new();
            // Closed or reset before all of it is there.
            let _ = std::io::Read::read_to_end(client.stream(), &mut rest);
            assert!(rest.len() < length, "all of it came");
            return;
        }
        loop {
            match self.piece() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("a clean end"),
                Err(_) => return,
            }
        }
    }

    /// Goes.
    pub fn leave(self, how: Leaving) -> Option<Self> {
        match (self.end, how) {
            (
                CallersEnd::Two {
                    runtime,
                    http2,
                    answer,
                    body,
                },
                Leaving::Resetting,
            ) => {
                runtime.block_on(async { drop((answer, body)) });
                // The connection stays.
                Some(Self {
                    end: CallersEnd::Two {
                        runtime,
                        http2,
                        answer: None,
                        body: None,
                    },
                    _tunnel: self._tunnel,
                })
            }
            (end, _) => {
                drop(end);
                // Only now what carries it, which says so in order.
                self._tunnel.map(|tunnel| {
                    let end = CallersEnd::One(Client::connect(tunnel.address));
                    Self {
                        end,
                        _tunnel: Some(tunnel),
                    }
                })
            }
        }
    }
}

impl Dealing {
    /// The head of an answer without a length.
    #[track_caller]
    pub fn head(&mut self, fields: &[(&str, &str)]) {
        match self {
            Self::One(peer) => {
                let mut head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n".to_owned();
                for (name, value) in fields {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                peer.send(head + "\r\n");
            }
            Self::Two(frames, stream) => {
                let all = [&[(":status", "200")], fields].concat();
                frames.fields(*stream, &all, false);
            }
        }
    }

    /// A piece of its body.
    #[track_caller]
    pub fn piece(&mut self, bytes: &[u8]) {
        match self {
            Self::One(peer) => peer.chunk(bytes),
            Self::Two(frames, stream) => {
                for part in bytes.chunks(16 * 1024) {
                    frames.send(DATA, 0, *stream, part);
                }
            }
        }
    }

    /// Its end.
    #[track_caller]
    pub fn end(&mut self) {
        match self {
            Self::One(peer) => peer.send("0\r\n\r\n"),
            Self::Two(frames, stream) => frames.send(DATA, END_STREAM, *stream, b""),
        }
    }

    /// Closes the connection, without a word or with a reset.
    pub fn cut(self, resets: bool) {
        match self {
            Self::One(peer) if resets => peer.reset(),
            Self::One(peer) => peer.close(),
            Self::Two(frames, _) => {
                if resets {
                    let socket = socket2::SockRef::from(&frames.stream);
                    socket.set_linger(Some(Duration::ZERO)).unwrap();
                }
                drop(frames.stream.shutdown(Shutdown::Both));
            }
        }
    }

    /// Bytes that are no answer.
    #[track_caller]
    pub fn raw(&mut self, bytes: &[u8]) {
        match self {
            Self::One(peer) => peer.send(bytes),
            Self::Two(frames, _) => std::io::Write::write_all(&mut frames.stream, bytes).unwrap(),
        }
    }

    /// Whether the gateway gives the call up: it closes the connection, or resets the stream.
    pub fn is_given_up_within(&mut self, time: Duration) -> bool {
        match self {
            Self::One(peer) => peer.is_closed_within(time),
            Self::Two(frames, stream) => {
                frames.stream.set_read_timeout(Some(time)).unwrap();
                match frames.next() {
                    Some(frame) => frame.kind == RST_STREAM && frame.stream == *stream,
                    // Closed, unless nothing came in time.
                    None => match std::io::Read::read(&mut frames.stream, &mut [0]) {
                        Ok(count) => count == 0,
                        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
                    },
                }
            }
        }
    }
}
