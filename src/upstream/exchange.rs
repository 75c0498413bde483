//! Decides one exchange: a request out, a response head back, its body as it comes.
//!
//! Three waiting times: connection, response head, and silence between body bytes; there is no
//! total. A request is sent a second time only when the first connection was a pooled one that
//! closed before a byte was written. A body that is cut ends in an error, never in a clean end.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Request, StatusCode, Version, response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::fault::{Cause, Fault};
use super::pool::{Connection, Pool, Pools};
use super::reply::Reply;
use super::{Outgoing, Upstream, http2};

impl Pools {
    /// Sends one request and waits for the response head.
    ///
    /// Dropping the future closes the upstream connection.
    ///
    /// # Errors
    /// The fault, which tells whether the request may have been sent.
    pub async fn exchange(
        &self,
        upstream: &Arc<Upstream>,
        request: Request<Outgoing>,
    ) -> Result<Reply, Fault> {
        if upstream.http2 {
            // In memory of its own: an exchange over HTTP/1.1 does not pay for its size.
            let exchange = http2::exchange(&self.http2, upstream, request);
            let (head, body) = Box::pin(exchange).await?;
            let body = body.into();
            return Ok(Reply { head, body });
        }
        let pool = self.of(upstream);
        let connection = pool.checkout(upstream).await?;
        let is_reused = connection.is_reused;
        let attempt = match send(connection, upstream, request).await {
            Err(Sending::NothingWritten(request)) if is_reused => {
                let connection = pool.renew(upstream).await?;
                send(connection, upstream, *request).await
            }
            other => other,
        };
        match attempt {
            // An upgrade nobody asked for: what follows the head is not HTTP.
            Ok((response, _)) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Err(Fault::sent(Cause::Invalid))
            }
            // The parser would pick one of several framings, and the client's might pick another.
            Ok((response, _)) if !has_one_framing(&response) => Err(Fault::sent(Cause::Invalid)),
            Ok((response, connection)) => Ok(reply(pool, upstream, response, connection)),
            Err(Sending::NothingWritten(_)) => Err(Fault::unsent(Cause::Reset)),
            Err(Sending::Failed(fault)) => Err(fault),
        }
    }
}

enum Sending {
    /// A pooled connection closed before the request was begun: here it is back.
    NothingWritten(Box<Request<Outgoing>>),
    Failed(Fault),
}

async fn send(
    mut connection: Connection,
    upstream: &Upstream,
    request: Request<Outgoing>,
) -> Result<(response::Response<Incoming>, Connection), Sending> {
    let answer = connection.sender.try_send_request(request);
    match timeout(upstream.timeouts.response, answer).await {
        Ok(Ok(response)) => Ok((response, connection)),
        Ok(Err(mut error)) => match error.take_message() {
            Some(request) => Err(Sending::NothingWritten(Box::new(request))),
            None => Err(Sending::Failed(Fault::of_exchange(error.into_error()))),
        },
        Err(_) => Err(Sending::Failed(Fault::sent(Cause::ResponseTimeout))),
    }
}

/// Whether a response says in one way where its body ends (RFC 9112 section 6.3).
fn has_one_framing(response: &response::Response<Incoming>) -> bool {
    let headers = response.headers();
    let lengths = headers.get_all(CONTENT_LENGTH).iter().count();
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    match (encodings.next(), encodings.next()) {
        (None, _) => lengths <= 1,
        (Some(encoding), None) => {
            lengths == 0
                && response.version() == Version::HTTP_11
                && encoding.as_bytes().eq_ignore_ascii_case(b"chunked")
        }
        (Some(_), Some(_)) => false,
    }
}

fn reply(
    pool: Rc<Pool>,
    upstream: &Upstream,
    response: response::Response<Incoming>,
    connection: Connection,
) -> Reply {
    let (head, incoming) = response.into_parts();
    let mut body = Body {
        incoming,
        held: Some((pool, connection)),
        idle: upstream.timeouts.idle,
        deadline: None,
        last: Instant::now(),
    };
    if body.incoming.is_end_stream() {
        body.release();
    }
    Reply {
        head,
        body: body.into(),
    }
}

/// The body of a response. Gives the connection back when it has ended, closes it when dropped
/// before.
#[derive(Debug)]
pub(super) struct Body {
    incoming: Incoming,
    held: Option<(Rc<Pool>, Connection)>,
    idle: std::time::Duration,
    /// Set up only when the body makes us wait; moved only when it fires too early.
    deadline: Option<Pin<Box<Sleep>>>,
    last: Instant,
}

impl Body {
    fn release(&mut self) {
        if let Some((pool, connection)) = self.held.take() {
            pool.give_back(connection);
        }
    }

    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<Fault> {
        let due = self.last + self.idle;
        let deadline = self
            .deadline
            .get_or_insert_with(|| Box::pin(sleep_until(due)));
        loop {
            if deadline.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            if deadline.deadline() >= due {
                return Poll::Ready(Fault::sent(Cause::IdleTimeout));
            }
            deadline.as_mut().reset(due);
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        loop {
            match Pin::new(&mut self.incoming).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    self.last = Instant::now();
                    if self.incoming.is_end_stream() {
                        self.release();
                    }
                    if frame.is_data() {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                    // Trailers were not asked for (`TE` does not travel): not passed on.
                }
                Poll::Ready(Some(Err(error))) => {
                    self.held = None;
                    return Poll::Ready(Some(Err(Fault::of_exchange(error))));
                }
                Poll::Ready(None) => {
                    self.release();
                    return Poll::Ready(None);
                }
                Poll::Pending => {
                    return self.poll_silence(context).map(|fault| {
                        self.held = None;
                        Some(Err(fault))
                    });
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
