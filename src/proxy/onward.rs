//! Decides how a request that may go on leaves: over the worker's pools.
//!
//! Whoever only wants to know what would be sent takes its place ([`super::explain`]), so that the way
//! there is one and the same.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use super::forward::{Head, lines, target};
use super::record::Record;
use crate::state::connection::Connection;
use crate::upstream::{Fault, Pools, Reply, Request, Upstream};

/// What takes requests that may go on.
pub(super) trait Onward {
    /// Sends a request and waits for the head of its answer. `now` is the time.
    fn send(
        &self,
        upstream: &Arc<Upstream>,
        request: Request<'_>,
        now: Instant,
    ) -> impl Future<Output = Result<Reply, Fault>>;
}

impl Onward for Pools {
    #[inline]
    fn send(
        &self,
        upstream: &Arc<Upstream>,
        request: Request<'_>,
        now: Instant,
    ) -> impl Future<Output = Result<Reply, Fault>> {
        self.exchange(upstream, request, now)
    }
}

/// Sends a request and waits for the head of its answer.
pub(super) async fn send(
    onward: &impl Onward,
    connection: &Connection,
    upstream: &Arc<Upstream>,
    head: &Head<'_>,
    body: &Bytes,
    record: &mut Record,
) -> Result<Reply, Fault> {
    let target = target(head, upstream);
    if target.is_stripped {
        record.stripped_query();
    }
    let since = record.forwarding();
    let request = Request {
        method: head.method,
        target: &target.text,
        lines: &lines(head, connection, upstream, &record.request_id),
        body,
    };
    let answer = match upstream.enter() {
        Ok(place) => {
            record.holds(place);
            onward.send(upstream, request, since).await
        }
        Err(fault) => Err(fault),
    };
    match answer {
        Ok(reply) => {
            record.answered(reply.at.duration_since(since), reply.attempts);
            Ok(reply)
        }
        Err(fault) => {
            upstream.health.failed(fault.cause);
            tracing::warn!(
                upstream = &*upstream.name,
                request_id = record.request_id.as_str(),
                %fault,
                "upstream failed"
            );
            record.because(fault.to_string());
            Err(fault)
        }
    }
}
