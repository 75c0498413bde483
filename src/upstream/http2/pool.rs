//! Decides which HTTP/2 connection a request goes out on, and when another one is opened.
//!
//! Connections are filled one after the other; a further one is opened when all streams are taken,
//! up to the upstream's `max_connections` over all workers. Then requests wait in order, up to
//! `max_waiting`, for the connect timeout. Must never open more streams than the upstream takes.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use h2::client::SendRequest;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, timeout};

use super::session::Session;
use crate::upstream::Upstream;
use crate::upstream::fault::{Cause, Fault};
use crate::upstream::pool::Waiting;

/// Streams that a connection is thought to take before one has told.
const EXPECTED: usize = 100;

/// All HTTP/2 pools of one worker thread.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Pools {
    by_upstream: RefCell<HashMap<u64, Rc<Pool>>>,
}

/// The connections of one worker to one upstream.
#[derive(Debug)]
pub(super) struct Pool {
    upstream: Weak<Upstream>,
    sessions: RefCell<Vec<Rc<Session>>>,
    waiters: RefCell<VecDeque<oneshot::Sender<Result<Lease, Fault>>>>,
    /// Connections that are being opened.
    opening: Cell<usize>,
    /// Whether the one being opened waits for another worker to close one of its own.
    is_queued: Cell<bool>,
    /// How many streams the last one took.
    expected: Cell<usize>,
}

/// One stream's place on a connection, until dropped.
#[derive(Debug)]
pub(super) struct Lease {
    pool: Rc<Pool>,
    session: Rc<Session>,
}

impl Pools {
    /// The pool for an upstream, made when first needed.
    pub(super) fn of(&self, upstream: &Arc<Upstream>) -> Rc<Pool> {
        let mut pools = self.by_upstream.borrow_mut();
        let pool = pools.entry(upstream.id).or_insert_with(|| {
            Rc::new(Pool {
                upstream: Arc::downgrade(upstream),
                sessions: RefCell::default(),
                waiters: RefCell::default(),
                opening: Cell::new(0),
                is_queued: Cell::new(false),
                expected: Cell::new(EXPECTED),
            })
        });
        Rc::clone(pool)
    }

    /// Closes connections that are of no more use, and forgets upstreams that no configuration
    /// names any more.
    pub(in crate::upstream) fn sweep(&self, now: Instant) {
        self.by_upstream.borrow_mut().retain(|_, pool| {
            pool.prune(now);
            pool.upstream.strong_count() > 0
        });
    }
}

impl Pool {
    /// A place for one request.
    ///
    /// # Errors
    /// No connection, no capacity, or none in time; nothing was sent.
    pub(super) async fn lease(self: &Rc<Self>, upstream: &Arc<Upstream>) -> Result<Lease, Fault> {
        self.forget_gone();
        if self.waiters.borrow().is_empty()
            && let Some(lease) = self.take(Instant::now())
        {
            return Ok(lease);
        }
        let (sender, lease) = oneshot::channel();
        self.waiters.borrow_mut().push_back(sender);
        self.grow(upstream);
        // Who will have a place on a connection being opened does not wait for another's.
        let _waiting = if self.waiters.borrow().len() > self.coming() {
            Some(Waiting::join(upstream)?)
        } else {
            None
        };
        match timeout(upstream.timeouts.connect, lease).await {
            Ok(Ok(lease)) => lease,
            Ok(Err(_)) => Err(Fault::unsent(Cause::NoCapacity)),
            Err(_) if self.is_connecting() => Err(Fault::unsent(Cause::ConnectTimeout)),
            Err(_) => Err(Fault::unsent(Cause::NoCapacity)),
        }
    }

    /// Whether there is no connection yet, but one is on its way.
    fn is_connecting(&self) -> bool {
        self.opening.get() > 0 && !self.is_queued.get() && self.sessions.borrow().is_empty()
    }

    /// A place on an open connection.
    fn take(self: &Rc<Self>, now: Instant) -> Option<Lease> {
        let sessions = self.sessions.borrow();
        let session = sessions.iter().find(|session| session.has_room(now))?;
        session.enter();
        Some(Lease {
            pool: Rc::clone(self),
            session: Rc::clone(session),
        })
    }

    /// Streams of connections that are being opened.
    fn coming(&self) -> usize {
        self.opening.get().saturating_mul(self.expected.get())
    }

    /// Opens as many connections as those who wait need and the upstream is allowed.
    fn grow(self: &Rc<Self>, upstream: &Arc<Upstream>) {
        while self.waiters.borrow().len() > self.coming() {
            match Arc::clone(&upstream.permits).try_acquire_owned() {
                Ok(permit) => self.open(upstream, Some(permit)),
                // Other workers have all of them: wait for one.
                Err(_) if self.is_barren() => self.open(upstream, None),
                Err(_) => return,
            }
        }
    }

    /// Opens a connection, off the requests' path: whoever asked for it may go away.
    fn open(self: &Rc<Self>, upstream: &Arc<Upstream>, permit: Option<OwnedSemaphorePermit>) {
        self.opening.set(self.opening.get() + 1);
        let pool = Rc::clone(self);
        let upstream = Arc::clone(upstream);
        tokio::task::spawn_local(async move {
            let opened = match permit {
                Some(permit) => Session::open(Arc::clone(&upstream), permit).await,
                None => pool.open_later(&upstream).await,
            };
            pool.opening.set(pool.opening.get() - 1);
            match opened {
                Ok(session) => {
                    pool.expected.set(session.most().max(1));
                    pool.sessions.borrow_mut().push(session);
                    pool.serve();
                    pool.grow(&upstream);
                }
                Err(fault) => pool.fail(&fault),
            }
        });
    }

    /// Opens a connection once another worker has closed one.
    async fn open_later(&self, upstream: &Arc<Upstream>) -> Result<Rc<Session>, Fault> {
        self.is_queued.set(true);
        let permit = Arc::clone(&upstream.permits).acquire_owned();
        let permit = timeout(upstream.timeouts.connect, permit).await;
        self.is_queued.set(false);
        match permit {
            Ok(Ok(permit)) => Session::open(Arc::clone(upstream), permit).await,
            Ok(Err(_)) | Err(_) => Err(Fault::unsent(Cause::NoCapacity)),
        }
    }

    /// Gives places to those who wait, in order.
    fn serve(self: &Rc<Self>) {
        let now = Instant::now();
        loop {
            self.forget_gone();
            if self.waiters.borrow().is_empty() {
                return;
            }
            let Some(lease) = self.take(now) else {
                return;
            };
            let waiter = self.waiters.borrow_mut().pop_front();
            // It is there: nothing else has run on this thread.
            if let Some(waiter) = waiter {
                let _ = waiter.send(Ok(lease));
            }
        }
    }

    /// Forgets those in front who do not wait any more.
    fn forget_gone(&self) {
        let mut waiters = self.waiters.borrow_mut();
        while waiters.front().is_some_and(oneshot::Sender::is_closed) {
            waiters.pop_front();
        }
    }

    /// Whether no connection will ever give a place.
    fn is_barren(&self) -> bool {
        let now = Instant::now();
        self.opening.get() == 0
            && self
                .sessions
                .borrow()
                .iter()
                .all(|session| session.is_over(now))
    }

    /// A connection could not be opened: those who wait are told, unless another may serve them.
    fn fail(&self, fault: &Fault) {
        if !self.is_barren() {
            return;
        }
        for waiter in self.waiters.take() {
            let _ = waiter.send(Err(Fault::unsent(fault.cause).because(fault.to_string())));
        }
    }

    fn prune(&self, now: Instant) {
        // Dropped when the borrow has ended.
        let _done: Vec<_> = self
            .sessions
            .borrow_mut()
            .extract_if(.., |session| session.is_done(now))
            .collect();
    }
}

impl Lease {
    /// Puts a request on the connection.
    pub(super) fn sender(&self) -> SendRequest<Bytes> {
        self.session.sender()
    }

    /// The connection takes no new stream from now on.
    pub(super) fn retire(&self) {
        self.session.retire();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let now = Instant::now();
        self.session.leave(now);
        if self.session.is_done(now) {
            let session = &self.session;
            let mut sessions = self.pool.sessions.borrow_mut();
            sessions.retain(|other| !Rc::ptr_eq(other, session));
        }
        self.pool.serve();
        if !self.pool.waiters.borrow().is_empty()
            && let Some(upstream) = self.pool.upstream.upgrade()
        {
            self.pool.grow(&upstream);
        }
    }
}
