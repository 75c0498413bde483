//! Decides one exchange: a request out, a response head back, its body as it comes.
//!
//! Three waiting times: connection, response head, and silence between body bytes; there is no
//! total. A request is sent a second time only when the first connection was a pooled one that
//! closed before a byte was written.

use std::sync::Arc;

use http::StatusCode;
use tokio::time::Instant;

use super::Upstream;
use super::fault::{Cause, Fault};
use super::http1::{Answer, Body, Request, Sending};
use super::pool::{Held, Pools};
use crate::http1::Fields;

/// A response whose body is still to come.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The fields, as the upstream sent them.
    pub fields: Fields,
    /// The body.
    pub body: ReplyBody,
    /// When the head came.
    pub at: Instant,
}

/// The body of a response.
pub type ReplyBody = Body;

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
        let pool = self.of(upstream);
        let timeouts = &upstream.timeouts;
        if let Some(mut connection) = pool.take_idle(upstream, now) {
            let sent = connection
                .http1
                .send(request, now + timeouts.response)
                .await;
            match sent {
                Ok(answer) => return Ok(reply(Held { pool, connection }, answer, upstream)),
                Err(Sending::Failed(fault)) => return Err(fault),
                Err(Sending::NothingWritten) => {}
            }
        }
        let mut connection = pool.connect(upstream).await?;
        let due = Instant::now() + timeouts.response;
        match connection.http1.send(request, due).await {
            Ok(answer) => Ok(reply(Held { pool, connection }, answer, upstream)),
            Err(Sending::Failed(fault)) => Err(fault),
            Err(Sending::NothingWritten) => Err(Fault::unsent(Cause::Reset)),
        }
    }
}

fn reply(held: Held, answer: Answer, upstream: &Upstream) -> Reply {
    let at = Instant::now();
    let (head, body) = Body::new(held, answer, upstream.timeouts.idle, at);
    Reply {
        status: head.status,
        fields: head.fields,
        body,
        at,
    }
}
