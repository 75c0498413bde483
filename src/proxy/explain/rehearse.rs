//! Decides how a request is tried out: on the path of every request (`ingress`), up to where it would
//! leave for the dealer.
//!
//! A worker of its own stands in for the one that would serve it, on the configuration's twin: what it
//! counts, charges and writes down is nobody's. A request that may go on is held there and looked at;
//! it never comes back. Must never answer by itself: every answer is the path's.

use std::cell::RefCell;
use std::future::{pending, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::Method;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;

use super::Ground;
use super::step::Stage;
use crate::http1::{
    self, BadHead, Decoder, Length, Limits, Lines, Malformed, RequestHead, answer_head,
    read_request,
};
use crate::limit;
use crate::observe::{Decision, Decisions, Pen, http_date};
use crate::proxy::body::Body;
use crate::proxy::ingress;
use crate::proxy::onward::Onward;
use crate::proxy::probe;
use crate::proxy::record::Record;
use crate::proxy::respond::{Stop, respond};
use crate::proxy::worker::{Parts, Worker};
use crate::state::connection::Connection;
use crate::state::{Endpoint, Listener, Live, Shared, Snapshot};
use crate::upstream::{Fault, Reply, Request, Upstream};

/// What a request is tried out on.
pub(super) struct Rehearsal {
    pub(super) worker: Rc<Worker>,
    pub(super) connection: Rc<Connection>,
    pub(super) snapshot: Arc<Snapshot>,
    decisions: Decisions,
    date: String,
}

/// How it ended.
pub(super) struct Run {
    pub(super) ending: Ending,
    /// What would be remembered of it.
    pub(super) decision: Option<Decision>,
    /// Who was found to ask.
    pub(super) caller: Option<limit::Caller>,
    /// Where.
    pub(super) endpoint: Option<Arc<Endpoint>>,
}

pub(super) enum Ending {
    /// The bytes are no head.
    Unreadable(BadHead, Answered),
    /// A load balancer's probe.
    Probe(Answered),
    /// It stopped here, for a reason in words.
    Stopped(Stage, String, Answered),
    /// It would go on.
    Sent(Box<Sent>),
}

/// An answer to the byte.
pub(super) struct Answered {
    pub(super) head: String,
    pub(super) body: Bytes,
}

/// What would be sent.
pub(super) struct Sent {
    pub(super) upstream: Arc<Upstream>,
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) lines: Lines,
    pub(super) body: usize,
}

/// Holds what may go on.
#[derive(Default)]
struct Halt(RefCell<Option<Box<Sent>>>);

impl Onward for Halt {
    fn send(
        &self,
        upstream: &Arc<Upstream>,
        request: Request<'_>,
        _now: Instant,
    ) -> impl Future<Output = Result<Reply, Fault>> {
        *self.0.borrow_mut() = Some(Box::new(Sent {
            upstream: Arc::clone(upstream),
            method: request.method.clone(),
            target: request.target.to_owned(),
            lines: request.lines.clone(),
            body: request.body.len(),
        }));
        pending()
    }
}

impl Rehearsal {
    /// A worker at this listener (a place in the settings), whose client has this address.
    pub(super) fn new(
        ground: &Ground<'_>,
        live: &Live,
        shared: Arc<Shared>,
        (listener, client): (usize, IpAddr),
    ) -> Option<Self> {
        let decisions = Decisions::keeping(1, 1);
        let snapshot = live.load();
        let settings = snapshot.settings.listeners.get(listener)?;
        let meters = shared.metrics.listener(&settings.name);
        let is_secure = settings.tls.is_some();
        let connection = Connection::new(
            SocketAddr::new(client, 0),
            Rc::new(Listener::new(settings, meters)),
            if is_secure { "https" } else { "http" },
            Instant::now(),
        );
        let worker = Worker::new(Parts {
            shared,
            live: live.clone(),
            budget: Arc::default(),
            pen: Pen::nowhere(),
            ring: decisions.ring(0),
            tracer: None,
            wall: Arc::clone(ground.wall),
            readiness: Arc::clone(ground.readiness),
        });
        Some(Self {
            worker: Rc::new(worker),
            connection: Rc::new(connection),
            decisions,
            date: http_date(ground.wall.now()),
            snapshot,
        })
    }

    /// Reads a request's head out of the bytes; what is left is its body.
    ///
    /// # Errors
    /// Why it is none. `None`: it is not complete.
    pub(super) fn head(&self, raw: &mut BytesMut) -> Result<Option<RequestHead>, BadHead> {
        let limits = &self.snapshot.settings.limits;
        let limits = Limits {
            bytes: limits.header_bytes,
            lines: limits.header_count,
        };
        read_request(raw, limits)
    }

    /// Takes a request along its way. `None`: its head is not complete.
    pub(super) async fn run(&self, raw: &Bytes) -> Option<Run> {
        let mut received = BytesMut::from(&**raw);
        let head = match self.head(&mut received) {
            Ok(head) => head?,
            Err(bad) => {
                let answered = Answered {
                    head: bad.answer(&self.date),
                    body: Bytes::new(),
                };
                return Some(Run {
                    ending: Ending::Unreadable(bad, answered),
                    decision: None,
                    caller: None,
                    endpoint: None,
                });
            }
        };
        let body = Given::new(&head, received);
        let asked = Asked::of(&head);
        if let Some(answer) = probe::answer(&self.worker, &self.connection, &head, &body) {
            let ending = Ending::Probe(self.written(answer, asked, &body).await);
            return Some(Run {
                ending,
                decision: None,
                caller: None,
                endpoint: None,
            });
        }
        let mut record = Record::begin(&self.worker, &self.connection, &head, &self.snapshot);
        let halt = Halt::default();
        let stop = self.walk(&halt, head, body.clone(), &mut record).await;
        let caller = record.caller().cloned();
        let endpoint = record.endpoint().cloned();
        let ending = match (stop, halt.0.take()) {
            (Some(stop), None) => {
                let (stage, why) = (Stage::of(&stop), stop.why());
                let answer = respond(stop, record);
                Ending::Stopped(stage, why, self.written(answer, asked, &body).await)
            }
            (_, sent) => {
                drop(record);
                Ending::Sent(sent?)
            }
        };
        Some(Run {
            ending,
            decision: self.decisions.find(1, |_| true).pop(),
            caller,
            endpoint,
        })
    }

    /// Where it stops; `None`: it may go on.
    async fn walk(
        &self,
        halt: &Halt,
        head: RequestHead,
        body: Given,
        record: &mut Record,
    ) -> Option<Stop> {
        let (worker, connection) = (&self.worker, &self.connection);
        let passing = ingress::pass(worker, connection, &self.snapshot, halt, head, body, record);
        let mut passing = pin!(passing);
        poll_fn(|context| match passing.as_mut().poll(context) {
            Poll::Ready(ended) => Poll::Ready(ended.err()),
            Poll::Pending if halt.0.borrow().is_some() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// An answer as it is written on the wire.
    async fn written(&self, answer: http1::Answer<Body>, asked: Asked, given: &Given) -> Answered {
        let http1::Answer {
            status,
            lines,
            mut body,
        } = answer;
        let length = body.size_hint().exact().unwrap_or(0);
        let frame = http1::Frame {
            length: Length::Exact(length),
            version: asked.version,
            is_head: asked.is_head,
            keeps: asked.keeps_alive && given.is_end_stream(),
            date: &self.date,
        };
        let mut head = Vec::new();
        let headed = answer_head(&mut head, status, &lines, frame);
        let mut whole = BytesMut::new();
        // Answers that are made here have no other end.
        while let Some(Ok(frame)) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
        {
            whole.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
        }
        if !headed.has_body {
            whole.clear();
        }
        Answered {
            head: String::from_utf8_lossy(&head).into_owned(),
            body: whole.freeze(),
        }
    }
}

/// What the head of an answer depends on.
#[derive(Clone, Copy)]
struct Asked {
    version: http::Version,
    is_head: bool,
    keeps_alive: bool,
}

impl Asked {
    fn of(head: &RequestHead) -> Self {
        Self {
            version: head.version,
            is_head: head.method == Method::HEAD,
            keeps_alive: head.keeps_alive && head.length().is_some(),
        }
    }
}

/// The body that was given. What is missing of it does not come.
#[derive(Clone)]
pub(super) struct Given(Rc<RefCell<(Decoder, BytesMut)>>);

impl Given {
    pub(super) fn new(head: &RequestHead, received: BytesMut) -> Self {
        let length = head.length().unwrap_or(Length::Exact(0));
        Self(Rc::new(RefCell::new((Decoder::new(length), received))))
    }

    /// All there is of it.
    pub(super) fn rest(&self) -> BytesMut {
        let (decoder, received) = &mut *self.0.borrow_mut();
        let mut whole = BytesMut::new();
        while let Ok(Some(piece)) = decoder.next(received) {
            whole.extend_from_slice(&piece);
        }
        whole
    }
}

impl HttpBody for Given {
    type Data = Bytes;
    type Error = Malformed;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Malformed>>> {
        let (decoder, received) = &mut *self.0.borrow_mut();
        match decoder.next(received) {
            Ok(Some(piece)) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            Ok(None) if decoder.is_done() => Poll::Ready(None),
            // Nobody wakes: the body's time is over at once.
            Ok(None) => Poll::Pending,
            Err(malformed) => Poll::Ready(Some(Err(malformed))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.borrow().0.is_done()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::default();
        if let Some(left) = self.0.borrow().0.left() {
            hint.set_upper(left);
        }
        hint
    }
}
