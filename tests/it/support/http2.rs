//! A well-behaved HTTP/2 client and dealer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{Request, Response, request, response};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};

/// One connection to a gateway, as many requests as wanted.
#[derive(Clone)]
pub struct Http2 {
    sender: SendRequest<Bytes>,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answered {
    pub head: response::Parts,
    pub body: Vec<u8>,
}

impl Answered {
    pub fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The only line of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.headers.get_all(name).iter();
        let line = lines.next()?.to_str().unwrap();
        assert!(lines.next().is_none(), "{name} stands twice");
        Some(line)
    }
}

impl Http2 {
    pub async fn connect(address: SocketAddr) -> Self {
        let mut builder = h2::client::Builder::new();
        // As every client does until it has been told.
        builder.initial_max_send_streams(100);
        let (http2, driver) = Self::with(address, &builder).await;
        tokio::spawn(driver);
        http2
    }

    /// With room for many streams that are not read, each as wide as usual.
    pub async fn wide(address: SocketAddr) -> Self {
        let mut builder = h2::client::Builder::new();
        builder.initial_connection_window_size(4 << 20);
        let (http2, driver) = Self::with(address, &builder).await;
        tokio::spawn(driver);
        http2
    }

    /// Also what drives the connection, to be spawned: it ends with it.
    pub async fn with(
        address: SocketAddr,
        builder: &h2::client::Builder,
    ) -> (Self, impl Future<Output = Result<(), h2::Error>> + use<>) {
        let socket = TcpStream::connect(address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        let (sender, connection) = builder.handshake(socket).await.unwrap();
        (Self { sender }, connection)
    }

    /// A POST of JSON to the usual endpoint.
    pub fn call() -> request::Builder {
        Request::post("http://gw.example/a2a").header("content-type", "application/json")
    }

    /// Begins a request whose body is still to come.
    pub async fn begin(
        &self,
        request: request::Builder,
        ends: bool,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
        let mut sender = self.sender.clone().ready().await?;
        sender.send_request(request.body(()).unwrap(), ends)
    }

    /// Sends a whole request.
    pub async fn send(
        &self,
        request: request::Builder,
        body: &str,
    ) -> Result<ResponseFuture, h2::Error> {
        let (answer, mut stream) = self.begin(request, body.is_empty()).await?;
        if !body.is_empty() {
            // Who is answered before the body goes out, and reset, has nothing more to send: whether it
            // was that, or no answer at all, the answer tells.
            let _ = stream.send_data(Bytes::from(body.to_owned()), true);
        }
        Ok(answer)
    }

    /// Sends a whole request and reads its answer.
    pub async fn ask(&self, request: request::Builder, body: &str) -> Answered {
        let answer = self.send(request, body).await.unwrap();
        whole(answer.await.unwrap()).await.unwrap()
    }

    /// A JSON body to the usual endpoint.
    pub async fn post(&self, body: &str) -> Answered {
        self.ask(Self::call(), body).await
    }
}

/// The next piece of a body; `None` at its end.
pub async fn piece(body: &mut RecvStream) -> Option<Result<Bytes, h2::Error>> {
    loop {
        let piece = body.data().await?;
        if let Ok(piece) = &piece {
            body.flow_control().release_capacity(piece.len()).unwrap();
            // An end may come in a frame of its own.
            if piece.is_empty() {
                continue;
            }
        }
        return Some(piece);
    }
}

/// Reads an answer to its end.
pub async fn whole(answer: Response<RecvStream>) -> Result<Answered, h2::Error> {
    let (head, mut stream) = answer.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = piece(&mut stream).await {
        body.extend_from_slice(&piece?);
    }
    Ok(Answered { head, body })
}

/// A request as it arrived at a dealer.
#[derive(Clone, Debug)]
pub struct Arrived {
    pub head: Arc<request::Parts>,
    pub body: Bytes,
}

/// A dealer that speaks HTTP/2 and answers each request with its own id.
pub struct Dealer {
    pub address: SocketAddr,
    pub seen: Arc<Seen>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What a dealer has seen.
pub struct Seen {
    pub arrived: Mutex<Vec<Arrived>>,
    pub connections: AtomicUsize,
    pub open: AtomicUsize,
    /// Most requests at once on one connection.
    pub most: AtomicUsize,
    /// Answers that may be given; closed: all.
    pub permits: Semaphore,
}

impl Dealer {
    /// Answers at once.
    pub fn start() -> Self {
        let dealer = Self::holding(h2::server::Builder::new());
        dealer.seen.permits.close();
        dealer
    }

    /// Answers as `seen.permits` are added.
    pub fn holding(builder: h2::server::Builder) -> Self {
        let seen = Arc::new(Seen {
            arrived: Mutex::default(),
            connections: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            permits: Semaphore::new(0),
        });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let for_thread = Arc::clone(&seen);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = listen(listener, builder, for_thread) => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            address,
            seen,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn count(&self) -> usize {
        self.seen.arrived.lock().len()
    }

    #[track_caller]
    pub fn last(&self) -> Arrived {
        self.seen
            .arrived
            .lock()
            .last()
            .expect("nothing arrived")
            .clone()
    }

    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Dealer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

async fn listen(listener: std::net::TcpListener, builder: h2::server::Builder, seen: Arc<Seen>) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        seen.connections.fetch_add(1, Ordering::SeqCst);
        seen.open.fetch_add(1, Ordering::SeqCst);
        let (builder, seen) = (builder.clone(), Arc::clone(&seen));
        tokio::spawn(async move {
            if let Ok(mut connection) = builder.handshake::<_, Bytes>(socket).await {
                let here = Arc::new(AtomicUsize::new(0));
                while let Some(Ok((request, respond))) = connection.accept().await {
                    let (seen, here) = (Arc::clone(&seen), Arc::clone(&here));
                    let now = here.fetch_add(1, Ordering::SeqCst) + 1;
                    seen.most.fetch_max(now, Ordering::SeqCst);
                    tokio::spawn(async move {
                        serve(request, respond, &seen).await;
                        here.fetch_sub(1, Ordering::SeqCst);
                    });
                }
            }
            seen.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

async fn serve(
    request: Request<RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    seen: &Seen,
) {
    let (head, mut stream) = request.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = piece(&mut stream).await {
        match piece {
            Ok(piece) => body.extend_from_slice(&piece),
            Err(_) => return,
        }
    }
    let id = serde_json::from_slice::<Value>(&body).unwrap_or_default()["id"].clone();
    seen.arrived.lock().push(Arrived {
        head: Arc::new(head),
        body: body.into(),
    });
    if let Ok(permit) = seen.permits.acquire().await {
        permit.forget();
    }
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    let head = Response::builder()
        .header("content-type", "application/json")
        .body(())
        .unwrap();
    if let Ok(mut stream) = respond.send_response(head, false) {
        let _ = stream.send_data(Bytes::from(answer), true);
    }
}
