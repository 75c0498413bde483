//! Decides which connection a request goes out on: an idle one of this worker, a new one, or none.
//!
//! Newest idle connection first; an idle one is dropped after `keep_alive`, any one at its age
//! limit. Connections are counted over all workers; at the limit requests wait in order, up to
//! `max_waiting`, for the connect timeout. Must never hand out a connection on which an earlier
//! exchange is unfinished.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Instant, timeout_at};

use super::connect::connect;
use super::fault::{Cause, Fault};
use super::http1::Http1;
use super::{Upstream, http2};

/// How long a connection may live, so that a changed address is followed under steady load; up to
/// a fifth is taken off at random, so that not all are renewed at once.
const MAX_AGE: Duration = Duration::from_secs(300);

/// All pools of one worker thread.
#[derive(Debug, Default)]
pub struct Pools {
    pub(super) http2: http2::Pools,
    by_upstream: RefCell<HashMap<u64, Rc<Pool>, BuildHasherDefault<ById>>>,
}

/// The idle connections of one worker to one upstream.
#[derive(Debug)]
pub(super) struct Pool {
    upstream: Weak<Upstream>,
    idle: RefCell<Vec<Idle>>,
    waiters: RefCell<VecDeque<oneshot::Sender<Box<Connection>>>>,
}

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    since: Instant,
}

/// One open connection. Dropping it closes the socket at once.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) http1: Http1,
    expires: Instant,
    state: Cell<State>,
    upstream: Arc<Upstream>,
    _permit: OwnedSemaphorePermit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active,
    Idle,
}

impl Connection {
    fn enter(&self, state: State) {
        let meters = &self.upstream.meters;
        match (self.state.replace(state), state) {
            (State::Active, State::Idle) => {
                meters.active.dec();
                meters.idle.inc();
            }
            (State::Idle, State::Active) => {
                meters.idle.dec();
                meters.active.inc();
            }
            (State::Active, State::Active) | (State::Idle, State::Idle) => {}
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        match self.state.get() {
            State::Active => self.upstream.meters.active.dec(),
            State::Idle => self.upstream.meters.idle.dec(),
        };
    }
}

impl Pools {
    /// The pool for an upstream, made when first needed.
    pub(super) fn of(&self, upstream: &Arc<Upstream>) -> Rc<Pool> {
        if let Some(pool) = self.by_upstream.borrow().get(&upstream.id) {
            return Rc::clone(pool);
        }
        let pool = Rc::new(Pool {
            upstream: Arc::downgrade(upstream),
            idle: RefCell::default(),
            waiters: RefCell::default(),
        });
        self.by_upstream
            .borrow_mut()
            .insert(upstream.id, Rc::clone(&pool));
        pool
    }

    /// Closes idle connections whose time is up, and forgets upstreams that no configuration
    /// names any more. Call it a few times within the shortest `keep_alive`.
    pub fn sweep(&self) {
        let now = Instant::now();
        self.http2.sweep(now);
        self.by_upstream.borrow_mut().retain(|_, pool| {
            let Some(upstream) = pool.upstream.upgrade() else {
                return false;
            };
            pool.idle
                .borrow_mut()
                .retain_mut(|kept| kept.is_usable(now, &upstream));
            true
        });
    }
}

impl Idle {
    fn is_usable(&mut self, now: Instant, upstream: &Upstream) -> bool {
        now < self.connection.expires
            && now.duration_since(self.since) < upstream.timeouts.keep_alive
            && self.connection.http1.is_quiet()
    }
}

impl Pool {
    /// An idle connection.
    pub(super) fn take_idle(&self, upstream: &Upstream, now: Instant) -> Option<Box<Connection>> {
        let mut idle = self.idle.borrow_mut();
        while let Some(mut kept) = idle.pop() {
            if kept.is_usable(now, upstream) {
                kept.connection.enter(State::Active);
                return Some(kept.connection);
            }
        }
        None
    }

    /// A new connection, or one handed over by an earlier request.
    ///
    /// # Errors
    /// `NoCapacity`, `Unreachable` or `ConnectTimeout`; nothing was sent.
    pub(super) async fn connect(&self, upstream: &Arc<Upstream>) -> Result<Box<Connection>, Fault> {
        match Arc::clone(&upstream.permits).try_acquire_owned() {
            Ok(permit) => open(upstream, permit).await,
            Err(_) => self.wait(upstream).await,
        }
    }

    async fn wait(&self, upstream: &Arc<Upstream>) -> Result<Box<Connection>, Fault> {
        let _waiting = Waiting::join(upstream)?;
        let deadline = Instant::now() + upstream.timeouts.connect;
        let next = async {
            loop {
                let handed_over = self.queue();
                let permit = Arc::clone(&upstream.permits).acquire_owned();
                tokio::select! {
                    biased;
                    Ok(mut connection) = handed_over => {
                        // It may have been closed meanwhile, or told what nobody asked for.
                        if connection.http1.is_quiet() {
                            return Ok(connection);
                        }
                    }
                    Ok(permit) = permit => return open(upstream, permit).await,
                    else => return Err(Fault::unsent(Cause::NoCapacity)),
                }
            }
        };
        timeout_at(deadline, next)
            .await
            .unwrap_or_else(|_| Err(Fault::unsent(Cause::NoCapacity)))
    }

    /// A place among those that wait for a connection to be handed over.
    fn queue(&self) -> oneshot::Receiver<Box<Connection>> {
        let (sender, handed_over) = oneshot::channel();
        let mut waiters = self.waiters.borrow_mut();
        // Whoever got another one, or went away: an upstream that closes each connection would
        // never have them asked.
        while waiters.front().is_some_and(oneshot::Sender::is_closed) {
            waiters.pop_front();
        }
        waiters.push_back(sender);
        handed_over
    }

    /// Takes a connection back after its answer ended.
    fn give_back(&self, mut connection: Box<Connection>, now: Instant) {
        if now >= connection.expires {
            return;
        }
        while let Some(waiter) = self.waiters.borrow_mut().pop_front() {
            match waiter.send(connection) {
                Ok(()) => return,
                Err(returned) => connection = returned,
            }
        }
        if connection.upstream.waiting.load(Ordering::Relaxed) > 0 {
            // Requests of other workers wait for a connection to be closed.
            return;
        }
        connection.enter(State::Idle);
        self.idle.borrow_mut().push(Idle {
            connection,
            since: now,
        });
    }
}

/// A connection that carries an exchange, with the pool it belongs to.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) pool: Rc<Pool>,
    pub(super) connection: Box<Connection>,
}

impl Held {
    /// The exchange has ended and left the connection usable.
    pub(super) fn give_back(self, now: Instant) {
        self.pool.give_back(self.connection, now);
    }
}

/// Hashes an upstream's number, which is no stranger's.
#[derive(Debug, Default)]
struct ById(u64);

impl Hasher for ById {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // A table takes its place from the lowest bits and its tag from the highest.
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }
}

/// How long the next connection may live.
pub(super) fn lifetime() -> Duration {
    let fifth = u64::try_from(MAX_AGE.as_millis() / 5).unwrap_or(0);
    MAX_AGE - Duration::from_millis(fastrand::u64(0..=fifth))
}

/// One request's place in the queue of an upstream.
pub(super) struct Waiting<'u>(&'u Upstream);

impl<'u> Waiting<'u> {
    /// One more waits, until this is dropped.
    ///
    /// # Errors
    /// `NoCapacity`: too many do.
    pub(super) fn join(upstream: &'u Upstream) -> Result<Self, Fault> {
        let before = upstream.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Self(upstream);
        if before >= upstream.max_waiting {
            return Err(Fault::unsent(Cause::NoCapacity));
        }
        Ok(place)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn open(
    upstream: &Arc<Upstream>,
    permit: OwnedSemaphorePermit,
) -> Result<Box<Connection>, Fault> {
    let stream = connect(upstream).await?;
    upstream.meters.active.inc();
    Ok(Box::new(Connection {
        http1: Http1::new(stream),
        expires: Instant::now() + lifetime(),
        state: Cell::new(State::Active),
        upstream: Arc::clone(upstream),
        _permit: permit,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::Parts;

    #[tokio::test(start_paused = true)]
    async fn whoever_waited_in_vain_leaves_nothing_behind() {
        let upstream = Arc::new(Upstream::new(Parts {
            max_connections: 0,
            max_waiting: 10,
            ..Parts::bare("u", 1)
        }));
        let pool = Pools::default().of(&upstream);
        for _ in 0..5 {
            let fault = pool.connect(&upstream).await.unwrap_err();
            assert_eq!(fault.cause, Cause::NoCapacity);
            assert_eq!(pool.waiters.borrow().len(), 1);
        }
        assert_eq!(upstream.waiting.load(Ordering::Relaxed), 0);
    }
}
