//! Decides how one HTTP/2 stream is served: its request read, its answer sent piece by piece.
//!
//! What a client may send is released as its body is read; nothing is asked of an answer's body while
//! the client has no window for it, and a client that leaves it so for the idle timeout loses the
//! stream. A body that breaks ends in RST_STREAM, never in a clean end. Must never send trailers: none
//! were asked for.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONTENT_LENGTH, DATE, HeaderValue};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use crate::http1::{Answer, RequestHead};
use crate::listen::serve::Handler;
use crate::listen::served::Ticket;
use crate::listen::spelling::translate;
use crate::wire::Timer;

/// How many requests a client may take back unanswered at once, and how soon one more.
const TAKEN_BACK: u32 = 100;
const FORGIVEN: Duration = Duration::from_millis(100);

/// What the streams of one connection share.
pub(super) struct Streams {
    idle: Duration,
    taken_back: Cell<u32>,
    forgiven: Cell<Instant>,
}

impl Streams {
    /// Those of a new connection, whose client may take nothing of an answer for `idle`.
    pub(super) fn new(idle: Duration) -> Self {
        Self {
            idle,
            taken_back: Cell::new(0),
            forgiven: Cell::new(Instant::now()),
        }
    }

    /// Whether the client has taken back more requests than it may.
    pub(super) fn are_a_flood(&self) -> bool {
        self.taken_back.get() > TAKEN_BACK
    }

    /// A client took a request back before it was answered.
    fn takes_back(&self) {
        let now = Instant::now();
        let since = now.duration_since(self.forgiven.replace(now));
        let pardon = since.as_millis() / FORGIVEN.as_millis();
        let pardon = u32::try_from(pardon).unwrap_or(u32::MAX);
        if pardon == 0 {
            // Parts of a pardon are not lost.
            self.forgiven.set(now - since);
        }
        let count = self.taken_back.get().saturating_sub(pardon) + 1;
        self.taken_back.set(count);
    }
}

/// Serves one request. Dropped before its end, it resets the stream.
pub(super) async fn answer<H: Handler>(
    handler: &H,
    streams: &Streams,
    ticket: &Ticket,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) {
    let (mut parts, incoming) = request.into_parts();
    translate(&mut parts);
    let head = RequestHead::from(parts);
    let left = head.framing.announced();
    let mut handling = pin!(handler.handle(head, RequestBody { incoming, left }));
    let answered = poll_fn(|context| match handling.as_mut().poll(context) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending => respond.poll_reset(context).map(|_| None),
    });
    let Some(answer) = answered.await else {
        return streams.takes_back();
    };
    let response = head_of(&answer, ticket);
    let body = answer.body;
    let is_whole = body.is_end_stream();
    let Ok(stream) = respond.send_response(response, is_whole) else {
        return respond.send_reset(Reason::INTERNAL_ERROR);
    };
    if is_whole {
        return;
    }
    let mut sending = Sending {
        stream,
        body,
        piece: None,
        idle: streams.idle,
        stalled_since: None,
        timer: Timer::default(),
    };
    poll_fn(|context| sending.poll(context)).await;
}

fn head_of<B: Body>(answer: &Answer<B>, ticket: &Ticket) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = answer.status;
    let mut fields = answer.lines.to_map();
    if !answer.lines.has_date
        && let Ok(date) = HeaderValue::from_str(&ticket.date())
    {
        fields.insert(DATE, date);
    }
    if let Some(length) = answer.body.size_hint().exact()
        && !answer.body.is_end_stream()
    {
        fields.insert(CONTENT_LENGTH, length.into());
    }
    *response.headers_mut() = fields;
    response
}

/// An answer's body on its way out.
struct Sending<B> {
    stream: SendStream<Bytes>,
    body: B,
    /// What the client has no window for yet, and whether it is the last.
    piece: Option<(Bytes, bool)>,
    idle: Duration,
    /// Since when the client takes nothing.
    stalled_since: Option<Instant>,
    timer: Timer,
}

impl<B: Body<Data = Bytes> + Unpin> Sending<B> {
    /// Ready when nothing more is sent.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some((piece, is_last)) = self.piece.take() {
                let has_room = match self.poll_room(context) {
                    Poll::Ready(has_room) => has_room,
                    Poll::Pending => {
                        self.piece = Some((piece, is_last));
                        let since = *self.stalled_since.get_or_insert_with(Instant::now);
                        return self.timer.poll(since + self.idle, context);
                    }
                };
                self.stalled_since = None;
                if !has_room || self.stream.send_data(piece, is_last).is_err() || is_last {
                    return Poll::Ready(());
                }
            }
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(piece) = frame.into_data() else {
                        continue;
                    };
                    let is_last = self.body.is_end_stream();
                    if !piece.is_empty() {
                        // Waiting lays claim to the least of the connection's window.
                        self.stream.reserve_capacity(1);
                        self.piece = Some((piece, is_last));
                    } else if is_last {
                        return self.end();
                    }
                }
                Poll::Ready(Some(Err(_))) => {
                    self.stream.send_reset(Reason::INTERNAL_ERROR);
                    return Poll::Ready(());
                }
                Poll::Ready(None) => return self.end(),
                Poll::Pending => return self.stream.poll_reset(context).map(|_| ()),
            }
        }
    }

    fn end(&mut self) -> Poll<()> {
        // Where this fails, the client has left.
        let _ = self.stream.send_data(Bytes::new(), true);
        Poll::Ready(())
    }

    /// Ready when the client has a window for some of the piece; `false`: it takes no more.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        while self.stream.capacity() == 0 {
            match ready!(self.stream.poll_capacity(context)) {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Poll::Ready(false),
            }
        }
        Poll::Ready(true)
    }
}

/// The body of a request over HTTP/2.
struct RequestBody {
    incoming: RecvStream,
    /// What is still to come, where that was announced.
    left: Option<u64>,
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let polled = ready!(self.incoming.poll_data(context));
        Poll::Ready(match polled {
            Some(Ok(bytes)) => {
                let count = bytes.len();
                // The client may send as much again: this much was taken into account.
                let _ = self.incoming.flow_control().release_capacity(count);
                self.left = self.left.map(|left| left.saturating_sub(count as u64));
                Some(Ok(Frame::data(bytes)))
            }
            Some(Err(error)) => broken(error),
            None => match ready!(self.incoming.poll_trailers(context)) {
                // Not forwarded: nothing was promised about them.
                Ok(_) => None,
                Err(error) => broken(error),
            },
        })
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// A stream that was taken back without saying that anything is wrong just stops: whoever reads sees
/// that the end is missing.
fn broken<T>(error: h2::Error) -> Option<Result<T, h2::Error>> {
    (error.reason() != Some(Reason::NO_ERROR)).then_some(Err(error))
}
