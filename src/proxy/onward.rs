//! Decides how a request that may go on leaves: over the worker's pools.
//!
//! Whoever only wants to know what would be sent takes its place ([`super::explain`]), so that the way
//! there is one and the same.

use std::sync::Arc;

use tokio::time::Instant;

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
