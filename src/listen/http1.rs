//! Decides how HTTP/1.1 is served on one connection: heads in, answers out, one after the other.
//!
//! Reading, serving and writing happen in one future: there is no task and no channel between a
//! client's bytes and its request. Deadlines follow what the connection is doing: a head is due
//! within the header timeout, a quiet connection is closed after the idle timeout, a client that
//! takes none of an answer for the idle timeout is cut. A request being served has no deadline here.
//! A client that goes takes its request along. Must never look at what a request asks.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Version;
use http_body::Body;
use tokio::time::Instant;

use super::answer::Sending;
use super::drain::Stage;
use super::request_body::{Reading, RequestBody};
use super::serve::{Handler, Limits, Transport};
use super::served::Ticket;
use crate::http1::{self, BadHead, Fields, Known, Length, RequestHead, ends_head, read_request};
use crate::state::connection::{Connection, Phase};
use crate::wire::Timer;

/// How long a new connection has for its first request although the gateway drains: its client
/// could not know.
pub(super) const GRACE: Duration = Duration::from_millis(250);

/// How long, and how many bytes, a client that was refused may go on sending before its connection
/// is cut: a cut while it sends would take the answer away from it.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// As it should.
    Well,
    /// The client sent what is not HTTP, or not in time.
    Unreadable,
    /// It broke, or was cut.
    Broken,
}

/// One connection and what it needs.
pub(super) struct Http1<'c, T> {
    reading: Rc<RefCell<Reading<T>>>,
    connection: &'c Connection,
    ticket: &'c Ticket,
    limits: Limits,
    accepted: Instant,
    timer: Timer,
    /// What is being sent; kept from answer to answer.
    out: Vec<u8>,
}

/// Serves a connection to its end.
pub(super) async fn serve<T: Transport, H: Handler>(
    socket: T,
    connection: &Connection,
    limits: Limits,
    handler: &H,
    ticket: &Ticket,
) -> Ended {
    let mut http1 = Http1 {
        reading: Rc::new(RefCell::new(Reading::new(socket))),
        connection,
        ticket,
        limits,
        accepted: connection.since(),
        timer: Timer::default(),
        out: Vec::new(),
    };
    poll_fn(|context| {
        ticket.watch(context.waker());
        Poll::Ready(())
    })
    .await;
    loop {
        let head = match http1.head().await {
            Ok(Some(head)) => head,
            Ok(None) => {
                http1.reading.borrow_mut().wire.stream().farewell();
                return Ended::Well;
            }
            Err(Unread::Bad(bad)) => return http1.refuse(bad).await,
            Err(Unread::Late) => return Ended::Unreadable,
            Err(Unread::Broken) => return Ended::Broken,
        };
        match http1.exchange(head, handler).await {
            Next::Request => {}
            Next::End => return http1.end().await,
            Next::Cut => return Ended::Broken,
        }
    }
}

/// Why there is no head.
enum Unread {
    Bad(BadHead),
    /// It was begun and not complete in time.
    Late,
    /// The connection ended within it, or was cut.
    Broken,
}

/// What follows an exchange.
enum Next {
    Request,
    /// The connection ends in order.
    End,
    /// The connection ends here and now.
    Cut,
}

impl<T: Transport> Http1<'_, T> {
    /// The next request's head; `None`: there will be none.
    async fn head(&mut self) -> Result<Option<RequestHead>, Unread> {
        let limits = http1::Limits {
            bytes: self.limits.header_bytes,
            lines: self.limits.header_count,
        };
        // A head that drips in is read again only when it may be complete, has doubled, or is too long;
        // what was looked through for its end is not looked through again.
        let (mut enough, mut seen) = (0, 0);
        poll_fn(|context| {
            loop {
                let reading = &mut *self.reading.borrow_mut();
                let received = &mut reading.wire.received;
                if received.is_empty() {
                    (enough, seen) = (0, 0);
                } else {
                    if received.len() >= enough || ends_head(received, seen) {
                        match read_request(received, limits) {
                            Ok(Some(head)) => return Poll::Ready(Ok(Some(head))),
                            Ok(None) => enough = limits.bytes.min(2 * received.len()),
                            Err(bad) => return Poll::Ready(Err(Unread::Bad(bad))),
                        }
                    }
                    seen = received.len();
                    // Most heads come at once: only one that is waited for has a deadline.
                    if self.connection.phase() == Phase::Idle {
                        self.connection.enter(Phase::Head, Instant::now());
                    }
                }
                match reading.wire.poll_receive(context) {
                    Poll::Ready(Ok(0)) if reading.wire.received.is_empty() => {
                        return Poll::Ready(Ok(None));
                    }
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(Unread::Broken)),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending => break,
                }
            }
            self.poll_quiet(context)
        })
        .await
    }

    /// What ends a connection that waits for a head.
    fn poll_quiet<R>(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<R>, Unread>> {
        let phase = self.connection.phase();
        let since = self.connection.since();
        let is_new = phase == Phase::Head && self.reading.borrow().wire.received.is_empty();
        let stage = self.ticket.stage();
        if stage == Stage::Stopped {
            return Poll::Ready(Err(Unread::Broken));
        }
        let leaves_at = match (stage, phase) {
            (Stage::Draining, Phase::Idle) => return Poll::Ready(Ok(None)),
            (Stage::Draining, _) if is_new => Some(self.accepted + GRACE),
            _ => None,
        };
        let limit = match phase {
            Phase::Idle => self.limits.idle_timeout,
            Phase::Head | Phase::Busy => self.limits.header_timeout,
        };
        let due = since + limit;
        let due = leaves_at.map_or(due, |at| at.min(due));
        self.timer.poll(due, context).map(|()| match phase {
            Phase::Idle => Ok(None),
            // Nothing was begun: nobody's fault.
            _ if is_new => Ok(None),
            Phase::Head | Phase::Busy => Err(Unread::Late),
        })
    }

    /// Serves one request and sends its answer.
    async fn exchange<H: Handler>(&mut self, head: RequestHead, handler: &H) -> Next {
        let length = head.length();
        let waits = head.version == Version::HTTP_11 && expects_continue(&head.fields);
        self.reading
            .borrow_mut()
            .begin(length.unwrap_or(Length::Exact(0)), waits);
        let asked = Asked {
            version: head.version,
            is_head: head.method == http::Method::HEAD,
            keeps_alive: head.keeps_alive && length.is_some(),
        };
        let body = RequestBody(Rc::clone(&self.reading));
        let mut handling = pin!(handler.handle(head, body));
        let answered = poll_fn(|context| match handling.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => self.poll_gone(context).map(|()| None),
        });
        match answered.await {
            Some(answer) => self.answer(answer, asked).await,
            None => Next::Cut,
        }
    }

    /// Ready when the client is gone or the gateway stops: then nobody waits for the answer. What a
    /// client sends ahead is kept, within the limit of a head.
    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.ticket.stage() == Stage::Stopped {
            return Poll::Ready(());
        }
        let reading = &mut *self.reading.borrow_mut();
        while reading.decoder.is_done() && reading.wire.received.len() < self.limits.header_bytes {
            match reading.wire.poll_receive(context) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => break,
            }
        }
        Poll::Pending
    }

    /// Sends an answer to its end.
    async fn answer<B>(&mut self, answer: http1::Answer<B>, asked: Asked) -> Next
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let is_read = self.reading.borrow().decoder.is_done();
        let keeps = asked.keeps_alive && is_read && self.ticket.stage() == Stage::Serving;
        let date = self.ticket.date();
        let mut answer = Sending::begin(answer, asked, keeps, &date, &mut self.out);
        let idle = self.limits.idle_timeout;
        let mut stalled_since = None;
        let sent = poll_fn(|context| {
            let polled = {
                let wire = &mut self.reading.borrow_mut().wire;
                answer.poll_send(wire, &mut self.out, context)
            };
            if polled.is_ready() {
                return polled;
            }
            if self.poll_gone(context).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            if answer.was_taken() || !answer.is_stalled() {
                stalled_since = None;
            }
            if !answer.is_stalled() {
                return Poll::Pending;
            }
            let since = *stalled_since.get_or_insert_with(Instant::now);
            let stalled = self.timer.poll(since + idle, context);
            stalled.map(|()| Err(io::ErrorKind::TimedOut.into()))
        })
        .await;
        match sent {
            Ok(()) if answer.keeps() => {
                self.reading.borrow_mut().wire.rest();
                Next::Request
            }
            Ok(()) => Next::End,
            Err(_) => {
                if answer.ends_with_connection() {
                    // A plain close would look like the end of the answer.
                    self.reading.borrow_mut().wire.stream().reset_on_close();
                }
                Next::Cut
            }
        }
    }

    /// Answers what is not HTTP, as far as that goes.
    async fn refuse(&mut self, bad: BadHead) -> Ended {
        let text = bad.answer(&self.ticket.date());
        let mut left = text.as_bytes();
        let sent = poll_fn(|context| {
            let wire = &mut self.reading.borrow_mut().wire;
            wire.poll_send(&mut left, &mut Bytes::new(), context)
        });
        if tokio::time::timeout(LINGER, sent)
            .await
            .is_ok_and(|sent| sent.is_ok())
        {
            self.end().await;
        }
        Ended::Unreadable
    }

    /// Ends the connection in order: nothing more is sent, and what the client still sends is read
    /// past for a moment, so that it gets to read its answer.
    async fn end(&mut self) -> Ended {
        let mut left = LINGER_BYTES;
        let mut is_shut = false;
        let over = poll_fn(|context| {
            let wire = &mut self.reading.borrow_mut().wire;
            if !is_shut {
                match wire.poll_shutdown(context) {
                    Poll::Ready(Ok(())) => is_shut = true,
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => {}
                }
            }
            wire.received.clear();
            while left > 0 && self.ticket.stage() != Stage::Stopped {
                match wire.poll_receive(context) {
                    Poll::Ready(Ok(0) | Err(_)) => break,
                    Poll::Ready(Ok(count)) => {
                        left = left.saturating_sub(count);
                        wire.received.clear();
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
            Poll::Ready(())
        });
        // Late or not, it ends.
        let _ = tokio::time::timeout(LINGER, over).await;
        Ended::Well
    }
}

/// What an answer depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) version: Version,
    pub(super) is_head: bool,
    pub(super) keeps_alive: bool,
}

fn expects_continue(fields: &Fields) -> bool {
    let mut lines = fields.all(Known::Expect);
    lines.any(|line| line.eq_ignore_ascii_case(b"100-continue"))
}
