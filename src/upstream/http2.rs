//! Decides one exchange over HTTP/2: a stream taken, the request out, the response head back, its
//! body as it comes.
//!
//! The same waiting times as over HTTP/1.1. A request is sent a second time, once, only when the
//! upstream has said that it did nothing with it: GOAWAY with a lower last stream, or REFUSED_STREAM
//! (RFC 9113 section 8.7). It is driven in the request's own future; dropping it resets the stream
//! alone. A body that is cut ends in an error, never in a clean end.

mod pool;
mod session;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONTENT_LENGTH, HOST, HeaderValue};
use http::{Method, Response, StatusCode, Uri, Version};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, timeout};

use super::fault::{Cause, Fault};
use super::reply::Reply;
use super::{Request, Upstream};
use crate::http1::Fields;
use crate::wire::Timer;
use pool::Lease;
pub(super) use pool::Pools;

/// Connections on which a request may turn out impossible to begin before we give up.
const ATTEMPTS: u8 = 4;

/// Sends one request and waits for the response head.
///
/// # Errors
/// The fault, which tells whether the request may have been seen.
pub(super) async fn exchange(
    pools: &Pools,
    upstream: &Arc<Upstream>,
    request: Request<'_>,
) -> Result<Reply, Fault> {
    let pool = pools.of(upstream);
    let mut may_resend = true;
    let mut last = Fault::unsent(Cause::Reset);
    for attempt in 1..=ATTEMPTS {
        let lease = pool.lease(upstream).await?;
        let (answer, sending) = match begin(&lease, head(request, upstream)?, request.body) {
            Ok(begun) => begun,
            Err(error) if !error.is_io() && !error.is_go_away() => {
                return Err(Fault::unsendable(error));
            }
            Err(error) => {
                // The connection takes no more requests: this one was not begun.
                lease.retire();
                last = Fault::unsent(Cause::Reset).because(error);
                continue;
            }
        };
        match timeout(upstream.timeouts.response, answer).await {
            Ok(Ok(response)) => {
                let reply = accept(response, sending, lease, upstream.timeouts.idle)?;
                return Ok(Reply {
                    attempts: attempt,
                    ..reply
                });
            }
            Ok(Err(error)) if was_not_processed(&error) && may_resend => {
                may_resend = false;
                lease.retire();
                last = of_stream(error);
            }
            Ok(Err(error)) => return Err(of_stream(error)),
            Err(_) => return Err(Fault::sent(Cause::ResponseTimeout)),
        }
    }
    Err(last)
}

/// Spells a request's head as HTTP/2 does: the authority in its target, no `Host`.
fn head(request: Request<'_>, upstream: &Upstream) -> Result<http::Request<()>, Fault> {
    let mut headers = request.lines.to_map();
    let authority = headers.remove(HOST);
    let body = request.body;
    if !body.is_empty() || *request.method == Method::POST {
        headers.insert(CONTENT_LENGTH, body.len().into());
    }
    let authority = authority.unwrap_or_else(|| HeaderValue::from_static(""));
    let target = Uri::builder()
        .scheme(if upstream.secure.is_some() {
            "https"
        } else {
            "http"
        })
        .authority(authority.as_bytes())
        .path_and_query(request.target)
        .build()
        .map_err(Fault::unsendable)?;
    let mut head = http::Request::new(());
    *head.method_mut() = request.method.clone();
    *head.uri_mut() = target;
    *head.version_mut() = Version::HTTP_2;
    *head.headers_mut() = headers;
    Ok(head)
}

/// Puts a request on a stream of its own. Nothing is sent where this fails.
fn begin(
    lease: &Lease,
    head: http::Request<()>,
    body: &Bytes,
) -> Result<(ResponseFuture, SendStream<Bytes>), h2::Error> {
    let mut sender = lease.sender();
    let (answer, mut stream) = sender.send_request(head, body.is_empty())?;
    if !body.is_empty() {
        // What goes wrong from here on, the answer tells.
        let _ = stream.send_data(body.clone(), true);
    }
    Ok((answer, stream))
}

fn accept(
    response: Response<RecvStream>,
    sending: SendStream<Bytes>,
    lease: Lease,
    idle: Duration,
) -> Result<Reply, Fault> {
    let at = Instant::now();
    let (head, incoming) = response.into_parts();
    let mut lengths = head.headers.get_all(CONTENT_LENGTH).iter();
    let length = lengths.next().and_then(|it| it.to_str().ok()?.parse().ok());
    if head.status == StatusCode::SWITCHING_PROTOCOLS || lengths.next().is_some() {
        return Err(Fault::sent(Cause::Invalid));
    }
    let mut body = Body {
        incoming,
        sending,
        lease: Some(lease),
        left: length,
        idle,
        silent_since: None,
        timer: Timer::default(),
    };
    if body.incoming.is_end_stream() {
        body.release();
    }
    Ok(Reply {
        status: head.status,
        fields: Fields::from(head.headers),
        body: body.into(),
        at,
        attempts: 1,
    })
}

/// Whether the upstream has said that it did nothing with a request.
fn was_not_processed(error: &h2::Error) -> bool {
    error.is_remote() && (error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM))
}

/// Tells the failures of a stream apart.
fn of_stream(error: h2::Error) -> Fault {
    let is_theirs = error.is_library() || error.reason() == Some(Reason::HTTP_1_1_REQUIRED);
    let cause = if is_theirs {
        Cause::Invalid
    } else {
        Cause::Reset
    };
    if was_not_processed(&error) {
        Fault::unsent(cause).because(error)
    } else {
        Fault::sent(cause).because(error)
    }
}

/// The body of a response. Gives its stream back when it has ended, resets it when dropped before.
#[derive(Debug)]
pub(super) struct Body {
    incoming: RecvStream,
    sending: SendStream<Bytes>,
    lease: Option<Lease>,
    /// What is still to come, where that was announced.
    left: Option<u64>,
    idle: Duration,
    /// Since when the upstream is silent, once it made us wait.
    silent_since: Option<Instant>,
    timer: Timer,
}

impl Body {
    /// The exchange has ended. What is left of a request that was answered early is not sent.
    fn release(&mut self) {
        self.sending.send_reset(Reason::CANCEL);
        self.lease = None;
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        if self.lease.is_none() {
            return Poll::Ready(None);
        }
        let Poll::Ready(polled) = self.incoming.poll_data(context) else {
            let since = *self.silent_since.get_or_insert_with(Instant::now);
            let due = since + self.idle;
            ready!(self.timer.poll(due, context));
            self.release();
            return Poll::Ready(Some(Err(Fault::sent(Cause::IdleTimeout))));
        };
        Poll::Ready(match polled {
            Some(Ok(bytes)) => {
                self.silent_since = None;
                self.left = self
                    .left
                    .map(|left| left.saturating_sub(bytes.len() as u64));
                // The upstream may send as much again: this much is on its way to the client.
                let _ = self.incoming.flow_control().release_capacity(bytes.len());
                if self.incoming.is_end_stream() {
                    self.release();
                }
                Some(Ok(Frame::data(bytes)))
            }
            Some(Err(error)) => {
                self.release();
                Some(Err(of_stream(error).after_head()))
            }
            // Trailers were not asked for: not passed on.
            None => {
                self.release();
                None
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.lease.is_none() || self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_end_stream() {
            SizeHint::with_exact(0)
        } else {
            self.left
                .map_or_else(SizeHint::default, SizeHint::with_exact)
        }
    }
}
