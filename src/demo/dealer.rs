//! The demo's dealer agent: a strict A2A server, embedded, on a port of its own.
//!
//! It does what a strict SDK server does: a request whose `A2A-Version` is not explicitly 1.0, or
//! whose `A2A-Extensions` do not list its contract's URI, is refused (A2A 1.0 sections 3.3.4 and
//! 3.6.2). It serves two contracts at two paths. It shares no code with the gateway's protocol room:
//! what it accepts must not depend on what is under show.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

use super::lot::Lot;
use super::speech::{self, Call, Contract, Refusal};

/// The time between two events of a stream.
const PACE: Duration = Duration::from_millis(150);

/// A call as it reached the dealer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The lines of `A2A-Version`.
    pub versions: Vec<String>,
    /// The lines of `A2A-Extensions`.
    pub extensions: Vec<String>,
    /// The body.
    pub body: Bytes,
}

/// A running dealer. Dropped, it stops.
#[derive(Debug)]
pub struct Dealer {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    held: watch::Sender<bool>,
    /// Dropped to stop the thread.
    stop: Option<watch::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Dealer {
    /// Opens for business on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// The system's, when there is no port or no thread.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let received = Arc::new(Mutex::new(Vec::new()));
        let (held, gate) = watch::channel(false);
        let (stop, stopped) = watch::channel(());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let notes = Arc::clone(&received);
        let thread = thread::Builder::new()
            .name("demo-dealer".into())
            .spawn(move || {
                let desk = Rc::new(Desk {
                    lot: Lot::default(),
                    received: notes,
                    gate,
                });
                // It ends when it is told to; an accept that fails for good ends it as well.
                let _ = LocalSet::new().block_on(&runtime, serve(listener, desk, stopped));
            })?;
        Ok(Self {
            address,
            received,
            held,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The calls that came since this was last asked.
    #[must_use]
    pub fn take_received(&self) -> Vec<Received> {
        std::mem::take(&mut *self.received.lock())
    }

    /// While held, a stream stops after its first event.
    pub fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }
}

impl Drop for Dealer {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed already.
            let _ = thread.join();
        }
    }
}

/// What the dealer's thread works with.
struct Desk {
    lot: Lot,
    received: Arc<Mutex<Vec<Received>>>,
    gate: watch::Receiver<bool>,
}

/// An answer's body: whole, or event by event.
type Reply = Either<Full<Bytes>, Events>;

async fn serve(
    listener: TcpListener,
    desk: Rc<Desk>,
    mut stopped: watch::Receiver<()>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (socket, _) = tokio::select! {
            accepted = listener.accept() => accepted?,
            // Only ever resolves because the sender is gone.
            _ = stopped.changed() => return Ok(()),
        };
        // An event is worth a packet of its own.
        let _ = socket.set_nodelay(true);
        let desk = Rc::clone(&desk);
        spawn_local(async move {
            let service = service_fn(move |request| {
                let desk = Rc::clone(&desk);
                async move { Ok::<_, Infallible>(desk.answer(request).await) }
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service);
            // How a connection ends is the gateway's business.
            let _ = connection.await;
        });
    }
}

impl Desk {
    async fn answer(&self, request: Request<Incoming>) -> Response<Reply> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        if path.ends_with("/.well-known/agent-card.json") {
            return whole(StatusCode::OK, speech::card(&parts.headers));
        }
        let Some(contract) = Contract::at(path) else {
            return whole(StatusCode::NOT_FOUND, "null".into());
        };
        if parts.method != Method::POST {
            let mut response = whole(StatusCode::METHOD_NOT_ALLOWED, "null".into());
            let post = HeaderValue::from_static("POST");
            response.headers_mut().insert(ALLOW, post);
            return response;
        }
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(_) => return whole(StatusCode::BAD_REQUEST, "null".into()),
        };
        let received = Received {
            versions: lines(&parts.headers, "a2a-version"),
            extensions: lines(&parts.headers, "a2a-extensions"),
            body,
        };
        let text = received.body.clone();
        let refusal = is_explicit(contract, &received);
        self.received.lock().push(received);
        let call = match Call::read(&text) {
            Ok(call) => call,
            Err(error) => return whole(StatusCode::OK, error),
        };
        if let Some(refusal) = refusal {
            return whole(StatusCode::OK, call.refused(contract, &refusal));
        }
        match (&*call.method, self.lot.serve(call.data())) {
            (_, Err(trouble)) => whole(
                StatusCode::OK,
                call.refused(contract, &Refusal::Trouble(trouble)),
            ),
            ("SendMessage", Ok(answer)) => whole(StatusCode::OK, call.answered(&answer)),
            ("SendStreamingMessage", Ok(answer)) => self.stream(call.events(&answer)),
            (_, Ok(_)) => whole(
                StatusCode::OK,
                call.refused(contract, &Refusal::UnknownMethod),
            ),
        }
    }

    /// Sends the events one by one.
    fn stream(&self, events: Vec<String>) -> Response<Reply> {
        let (sender, receiver) = mpsc::channel(1);
        let mut gate = self.gate.clone();
        spawn_local(async move {
            for (index, event) in events.into_iter().enumerate() {
                if index > 0 {
                    sleep(PACE).await;
                    if gate.wait_for(|held| !held).await.is_err() {
                        return;
                    }
                }
                let event = Bytes::from(format!("data: {event}\n\n"));
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        });
        let mut response = Response::new(Either::Right(Events(receiver)));
        let type_ = HeaderValue::from_static("text/event-stream");
        response.headers_mut().insert(CONTENT_TYPE, type_);
        response
    }
}

/// Whether both headers are there and right; the first that is not.
fn is_explicit(contract: &Contract, received: &Received) -> Option<Refusal> {
    let version = match &*received.versions {
        [version] => version.as_str(),
        _ => "",
    };
    if version != "1.0" && !version.starts_with("1.0.") {
        return Some(Refusal::Version);
    }
    let mut listed = received.extensions.iter().flat_map(|line| line.split(','));
    if listed.any(|uri| uri.trim() == contract.extension) {
        None
    } else {
        Some(Refusal::Extension)
    }
}

fn lines(headers: &HeaderMap, name: &str) -> Vec<String> {
    let values = headers.get_all(name).iter();
    values
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect()
}

fn whole(status: StatusCode, json: String) -> Response<Reply> {
    let mut response = Response::new(Either::Left(Full::from(json)));
    *response.status_mut() = status;
    let type_ = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, type_);
    response
}

/// A body whose pieces come from a task.
#[derive(Debug)]
struct Events(mpsc::Receiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}
