//! Decides one exchange: a request out, a response head back, its body as it comes.
//!
//! Three waiting times: connection, response head, and silence between body bytes; there is no
//! total. A request is sent a second time only when the first connection was a pooled one that
//! closed before a byte was written.

use std::sync::Arc;

use tokio::time::Instant;

use super::fault::{Cause, Fault};
use super::http1::{Answer, Body, Request, Sending};
use super::pool::{Held, Pools};
use super::reply::Reply;
use super::{Upstream, http2};

impl Pools {
    /// Sends one request and waits for the response head. `now` is the time.
    ///
    /// Dropping the future closes the upstream connection.
    ///
    /// # Errors
    /// The fault, which tells whether the request may have been sent.
    pub async fn exchange(
        &self,
        upstream: &Arc<Upstream>,
        request: Request<'_>,
        now: Instant,
    ) -> Result<Reply, Fault> {
        if upstream.http2 {
            // In memory of its own: an exchange over HTTP/1.1 does not pay for its size.
            return Box::pin(http2::exchange(&self.http2, upstream, request)).await;
        }
        let pool = self.of(upstream);
        let mut attempts = 1;
        let timeouts = &upstream.timeouts;
        if let Some(mut connection) = pool.take_idle(upstream, now) {
            let sent = connection
                .http1
                .send(request, now + timeouts.response)
                .await;
            match sent {
                Ok(answer) => {
                    return Ok(reply(Held { pool, connection }, answer, upstream, attempts));
                }
                Err(Sending::Failed(fault)) => return Err(fault),
                Err(Sending::NothingWritten) => attempts += 1,
            }
        }
        let mut connection = pool.connect(upstream).await?;
        let due = Instant::now() + timeouts.response;
        match connection.http1.send(request, due).await {
            Ok(answer) => Ok(reply(Held { pool, connection }, answer, upstream, attempts)),
            Err(Sending::Failed(fault)) => Err(fault),
            Err(Sending::NothingWritten) => Err(Fault::unsent(Cause::Reset)),
        }
    }
}

fn reply(held: Held, answer: Answer, upstream: &Upstream, attempts: u8) -> Reply {
    let at = Instant::now();
    let (head, body) = Body::new(held, answer, upstream.timeouts.idle, at);
    Reply {
        status: head.status,
        fields: head.fields,
        body: body.into(),
        at,
        attempts,
    }
}
