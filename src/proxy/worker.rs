//! Decides what the requests of one worker thread share: its view of the configuration, its
//! connection pools, its pen for the access log, its source of identifiers.
//!
//! Everything here stays on its thread. What crosses threads (limiter, metrics, byte budget) comes
//! in behind an `Arc` and is written without locks of ours.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use uuid::Uuid;

use super::intake::Budget;
use super::repeated::Repeated;
use super::token::{Believed, KNOWN};
use crate::credential::token::Cache;
use crate::limit::SAMPLED;
use crate::observe::otlp::Tracer;
use crate::observe::{EndpointMeters, Pen, Rfc3339, Ring, Timestamp, WallClock};
use crate::state::live::View;
use crate::state::{Live, Readiness, Shared, Snapshot};
use crate::upstream::Pools;

/// One worker thread's belongings.
#[derive(Debug)]
pub struct Worker {
    /// Buckets and counters of the process.
    pub shared: Arc<Shared>,
    /// Connections to upstreams.
    pub pools: Pools,
    /// Bytes of request bodies held by the process.
    pub budget: Arc<Budget>,
    /// Counters of requests that found no endpoint.
    pub nowhere: EndpointMeters,
    pub(super) pen: Pen,
    pub(super) ring: Ring,
    pub(super) tracer: Option<Tracer>,
    pub(super) readiness: Arc<Readiness>,
    /// The last error that was spelled.
    pub(super) repeated: Repeated,
    wall: Arc<dyn WallClock>,
    view: RefCell<View>,
    random: RefCell<fastrand::Rng>,
    spelled: RefCell<Rfc3339>,
    /// Tokens that were believed.
    pub(super) tokens: RefCell<Cache<Rc<Believed>>>,
    /// Calls that quotas admitted.
    admitted: Cell<u32>,
}

/// What a [`Worker`] is made of.
#[derive(Debug)]
pub struct Parts {
    /// Buckets and counters of the process.
    pub shared: Arc<Shared>,
    /// What is served.
    pub live: Live,
    /// Bytes of request bodies held by the process.
    pub budget: Arc<Budget>,
    /// The worker's own pen.
    pub pen: Pen,
    /// Where it remembers what it decided.
    pub ring: Ring,
    /// The worker's own way to record requests, where they are exported.
    pub tracer: Option<Tracer>,
    /// The time of day.
    pub wall: Arc<dyn WallClock>,
    /// Whether new calls are welcome.
    pub readiness: Arc<Readiness>,
}

impl Worker {
    /// Makes a worker's belongings, on its thread.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            nowhere: parts.shared.metrics.endpoint(""),
            shared: parts.shared,
            pools: Pools::default(),
            budget: parts.budget,
            pen: parts.pen,
            ring: parts.ring,
            tracer: parts.tracer,
            wall: parts.wall,
            readiness: parts.readiness,
            repeated: Repeated::default(),
            view: RefCell::new(parts.live.view()),
            random: RefCell::new(fastrand::Rng::new()),
            spelled: RefCell::default(),
            tokens: RefCell::new(Cache::new(KNOWN)),
            admitted: Cell::default(),
        }
    }

    /// The snapshot served now. A request calls this once.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(self.view.borrow_mut().load())
    }

    /// The time of day.
    pub(super) fn now(&self) -> Timestamp {
        self.wall.now()
    }

    /// A new identifier (UUID version 7), for a request or an answer of this time. Unique, not
    /// unguessable.
    pub(super) fn identifier(&self, at: Timestamp) -> Uuid {
        let millis = u64::try_from(at.as_millisecond()).unwrap_or(0);
        let mut bytes = [0; 10];
        self.random.borrow_mut().fill(&mut bytes);
        uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid()
    }

    /// New ids of a trace and of two spans in it. None is zero, which is no id.
    pub(super) fn spans(&self) -> ([u8; 16], [u8; 8], [u8; 8]) {
        let mut random = self.random.borrow_mut();
        (
            random.u128(1..).to_be_bytes(),
            random.u64(1..).to_be_bytes(),
            random.u64(1..).to_be_bytes(),
        )
    }

    /// Whether an admitted call is the one of so many that is noted for operators.
    pub(super) fn samples(&self) -> bool {
        let admitted = self.admitted.get().wrapping_add(1);
        self.admitted.set(admitted);
        // The middle one, so that a worker is as likely to tell too many as too few.
        admitted % SAMPLED == SAMPLED / 2
    }

    /// A time as RFC 3339 in UTC.
    pub(super) fn spell(&self, at: Timestamp) -> String {
        let mut out = Vec::with_capacity(24);
        self.spelled.borrow_mut().append(&mut out, at);
        String::from_utf8(out).unwrap_or_default()
    }
}
