//! Decides one exchange over HTTP/1.1: a request out, a response head back, its body as it comes.
//!
//! The connection is read and written inside the request's own future: there is no task and no
//! channel between a request and its bytes. An answer that comes before the request is out is taken
//! while the rest of the request still goes out, and ends the connection. A body that is cut ends in an error, never in a clean end. Must never
//! leave a connection to the next request on which a byte is owed or unasked for.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::{Frame, SizeHint};
use tokio::time::Instant;

use super::fault::{Cause, Fault};
use super::pool::Held;
use super::stream::Stream;
use crate::http1::{
    Decoder, Length, Limits, Lines, ResponseHead, digits, ends_head, read_response, request_line,
};
use crate::wire::{Timer, Wire};

/// What an answer's head may use up.
const LIMITS: Limits = Limits {
    bytes: 128 * 1024,
    lines: 256,
};

/// Interim answers (1xx) that one request may get.
const MOST_INTERIM: usize = 16;

/// A body up to so many bytes is copied behind its head: one piece is sent faster than two.
const SMALL: usize = 4 * 1024;

/// A buffer larger than this is not kept for the next request, in bytes.
const KEPT: usize = 16 * 1024;

/// What is sent.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// The method.
    pub method: &'r Method,
    /// The target: path and query.
    pub target: &'r str,
    /// The fields, but for those that frame the body.
    pub lines: &'r Lines,
    /// The body, whole.
    pub body: &'r Bytes,
}

/// One upstream connection that speaks HTTP/1.1.
#[derive(Debug)]
pub(super) struct Http1 {
    wire: Wire<Stream>,
    /// The head being sent, and a small body.
    out: Vec<u8>,
    /// How much of that was sent.
    sent: usize,
    /// The rest of a large body.
    rest: Bytes,
    /// How far the request is.
    progress: Progress,
    timer: Timer,
}

/// Why no head came back.
pub(super) enum Sending {
    /// The connection closed before a byte of the request was written.
    NothingWritten,
    /// Something else.
    Failed(Fault),
}

impl From<Fault> for Sending {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

impl Http1 {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            wire: Wire::new(stream),
            out: Vec::new(),
            sent: 0,
            rest: Bytes::new(),
            progress: Progress::Sent,
            timer: Timer::default(),
        }
    }

    /// Whether the upstream has neither closed the connection nor sent what nobody asked for.
    pub(super) fn is_quiet(&mut self) -> bool {
        self.wire.is_quiet()
    }

    /// Sends a request and waits for the head of its answer, until `due`.
    pub(super) async fn send(
        &mut self,
        request: Request<'_>,
        due: Instant,
    ) -> Result<Answer, Sending> {
        self.write_down(request);
        let body = self.rest.len();
        let mut awaited = Awaited::default();
        let head = poll_fn(|context| {
            if self.progress == Progress::Sending
                && self.poll_request(context).is_err()
                && self.sent == 0
                && self.rest.len() == body
                && self.wire.stream().tells_what_left()
            {
                return Poll::Ready(Err(Sending::NothingWritten));
            }
            if let Poll::Ready(head) = self.poll_head(&mut awaited, context) {
                return Poll::Ready(head.map_err(Sending::Failed));
            }
            let late = Sending::Failed(Fault::sent(Cause::ResponseTimeout));
            self.timer.poll(due, context).map(|()| Err(late))
        })
        .await?;
        self.answer(head, request.method).map_err(Sending::Failed)
    }

    /// Writes the head down, with a small body behind it.
    fn write_down(&mut self, request: Request<'_>) {
        self.out.clear();
        self.sent = 0;
        self.progress = Progress::Sending;
        let out = &mut self.out;
        out.reserve(request.lines.as_bytes().len() + request.target.len() + 64);
        request_line(out, request.method, request.target);
        out.extend_from_slice(request.lines.as_bytes());
        let body = request.body;
        if !body.is_empty() || *request.method == Method::POST {
            out.extend_from_slice(b"content-length: ");
            digits(out, body.len() as u64);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        if body.len() <= SMALL {
            out.extend_from_slice(body);
        } else {
            self.rest = body.clone();
        }
    }

    /// Sends more of the request.
    ///
    /// # Errors
    /// The upstream takes no more of it. It may have answered without reading on: that answer counts.
    fn poll_request(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let mut start = self.out.get(self.sent..).unwrap_or_default();
        let polled = self.wire.poll_send(&mut start, &mut self.rest, context);
        self.sent = self.out.len() - start.len();
        let sent = match polled {
            Poll::Ready(Ok(())) => self.wire.poll_flush(context),
            Poll::Ready(Err(_)) | Poll::Pending => polled,
        };
        let Poll::Ready(sent) = sent else {
            return Ok(());
        };
        self.progress = match sent {
            Ok(()) => Progress::Sent,
            Err(_) => Progress::Cut,
        };
        if sent.is_ok() {
            // Nothing of the body is held any longer than it is needed.
            self.rest = Bytes::new();
        }
        sent
    }

    /// Receives until a final head is complete; interim ones are dropped.
    fn poll_head(
        &mut self,
        awaited: &mut Awaited,
        context: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, Fault>> {
        loop {
            let received = self.wire.received.len();
            let is_due = received >= awaited.enough;
            if received > 0 && (is_due || ends_head(&self.wire.received, awaited.seen)) {
                let read = read_response(&mut self.wire.received, LIMITS);
                match read.map_err(|error| Fault::sent(Cause::Invalid).because(error))? {
                    Some(head) if !head.status.is_informational() => {
                        return Poll::Ready(Ok(head));
                    }
                    Some(head) => {
                        let interim = awaited.interim + 1;
                        // An upgrade nobody asked for: what follows is not HTTP.
                        if head.status == StatusCode::SWITCHING_PROTOCOLS || interim > MOST_INTERIM
                        {
                            return Poll::Ready(Err(Fault::sent(Cause::Invalid)));
                        }
                        *awaited = Awaited {
                            interim,
                            ..Awaited::default()
                        };
                        continue;
                    }
                    None => awaited.enough = LIMITS.bytes.min(2 * received),
                }
            }
            awaited.seen = received;
            match ready!(self.wire.poll_receive(context)) {
                Ok(0) => return Poll::Ready(Err(Fault::sent(Cause::Reset))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(Fault::sent(Cause::Reset).because(error))),
            }
        }
    }

    fn answer(&mut self, head: ResponseHead, method: &Method) -> Result<Answer, Fault> {
        let length = head.length(*method == Method::HEAD);
        let length = length.ok_or_else(|| Fault::sent(Cause::Invalid))?;
        if let Length::Exact(length) = length {
            let received = self.wire.received.len() as u64;
            if length > received {
                self.wire.expect(length - received);
            }
        }
        Ok(Answer {
            is_reusable: self.progress == Progress::Sent
                && head.keeps_alive
                && length != Length::Close,
            body: Decoder::new(length),
            head,
        })
    }

    /// The answer has ended. Whether the connection can carry another exchange.
    fn rest(&mut self) -> bool {
        self.wire.rest();
        if self.out.capacity() > KEPT {
            self.out = Vec::new();
        }
        self.wire.received.is_empty()
    }
}

/// How far the request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Not all of it is out.
    Sending,
    /// All of it is out.
    Sent,
    /// The upstream takes no more of it.
    Cut,
}

/// The head that is waited for. One that drips in is read again only when it may be complete, has
/// doubled, or is too long.
#[derive(Default)]
struct Awaited {
    /// Interim answers that came.
    interim: usize,
    /// From so many bytes on it is read in any case.
    enough: usize,
    /// So many bytes were looked through for its end.
    seen: usize,
}

/// A head that came back, and how its body is to be read.
pub(super) struct Answer {
    pub(super) head: ResponseHead,
    body: Decoder,
    is_reusable: bool,
}

/// The body of an answer. Gives the connection back when it has ended, closes it when dropped
/// before.
#[derive(Debug)]
pub struct Body {
    held: Option<Held>,
    decoder: Decoder,
    is_reusable: bool,
    idle: Duration,
    /// Since when the upstream is silent, once it made us wait.
    silent_since: Option<Instant>,
    /// When the last of it came; a piece that came along with another counts as one.
    came: Instant,
}

impl Body {
    /// The body of an answer that came on this connection at `now`.
    pub(super) fn new(
        held: Held,
        answer: Answer,
        idle: Duration,
        now: Instant,
    ) -> (ResponseHead, Self) {
        let mut body = Self {
            held: Some(held),
            decoder: answer.body,
            is_reusable: answer.is_reusable,
            idle,
            silent_since: None,
            came: now,
        };
        if body.decoder.is_done() {
            body.release();
        }
        (answer.head, body)
    }

    fn release(&mut self) {
        if let Some(mut held) = self.held.take()
            && self.is_reusable
            && held.connection.http1.rest()
        {
            held.give_back(self.came);
        }
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Fault>> {
        let Some(held) = &mut self.held else {
            return Poll::Ready(Ok(None));
        };
        let http1 = &mut held.connection.http1;
        if http1.progress == Progress::Sending {
            // What the upstream says of it, it says in its answer.
            let _ = http1.poll_request(context);
        }
        let Http1 { wire, timer, .. } = http1;
        loop {
            let piece = self.decoder.next(&mut wire.received);
            match piece.map_err(|error| Fault::sent(Cause::Invalid).because(error))? {
                Some(piece) => {
                    if self.silent_since.take().is_some() {
                        self.came = Instant::now();
                    }
                    return Poll::Ready(Ok(Some(piece)));
                }
                None if self.decoder.is_done() => return Poll::Ready(Ok(None)),
                None => {}
            }
            match wire.poll_receive(context) {
                Poll::Ready(Ok(0)) if self.decoder.connection_ends() => {}
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(Fault::sent(Cause::Reset))),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(Fault::sent(Cause::Reset).because(error)));
                }
                Poll::Pending => {
                    let since = *self.silent_since.get_or_insert_with(Instant::now);
                    let late = timer.poll(since + self.idle, context);
                    return late.map(|()| Err(Fault::sent(Cause::IdleTimeout)));
                }
            }
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let piece = ready!(self.poll_piece(context));
        if piece.is_err() {
            self.held = None;
        } else if self.decoder.is_done() {
            self.release();
        }
        Poll::Ready(piece.transpose().map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.decoder.is_done()
    }

    fn size_hint(&self) -> SizeHint {
        self.decoder
            .left()
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
