//! Decides how long a store is waited for, when it is asked at all, and when it is connected to anew.
//!
//! One connection for the process carries the questions of all workers. A task of its own keeps it:
//! no request connects, no request waits for a connection, and a store that cannot be reached costs a
//! request nothing. What a request does wait for is one answer, no longer than the configured time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::breaker::{Breaker, Leave};
use super::connect::{CONNECT, Connection, Link, Unconnected};
use super::failure::Failure;
use super::key::Digest;
use super::memory::{Memory, SHARDS, Said};
use super::script::{self, Question};
use crate::limit::{Clock, Moment};

/// How often an idle connection is tried, and a shard of the memory swept.
const TICK: Duration = Duration::from_secs(1);

/// The pause before a further attempt to connect, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// What a store is made of.
#[derive(Clone)]
pub struct Parts {
    /// Its name in the configuration.
    pub name: Box<str>,
    /// Where it is.
    pub link: Link,
    /// The longest that a request waits for it.
    pub timeout: Duration,
    /// Tells when leases lapse and the circuit is tried again.
    pub clock: Arc<dyn Clock>,
    /// What is counted of it.
    pub meters: Meters,
}

/// What is counted of a store.
#[derive(Clone)]
pub struct Meters {
    /// 1 while it is not asked: there is no connection, or it failed too often.
    pub degraded: Gauge,
    /// Calls that were sent to it.
    pub calls: Counter,
    /// Decisions it did not take, in the order of [`Failure::ALL`].
    pub failed: [Counter; Failure::ALL.len()],
    /// Takes how long each answer took.
    pub took: Arc<dyn Fn(Duration) + Send + Sync>,
}

/// A store. Dropping it closes its connection.
pub struct Store {
    inner: Arc<Inner>,
    task: Option<AbortHandle>,
}

pub(super) struct Inner {
    name: Box<str>,
    link: Link,
    timeout: Duration,
    pub(super) clock: Arc<dyn Clock>,
    meters: Meters,
    breaker: Breaker,
    pub(super) memory: Memory,
    connection: Mutex<Option<(u64, Connection)>>,
    broken: Notify,
    is_closed: AtomicBool,
    runtime: Option<Handle>,
}

impl Store {
    /// A store that connects by itself, on this runtime; without one, it never does.
    #[must_use]
    pub fn open(parts: Parts, runtime: Option<Handle>) -> Self {
        parts.meters.degraded.set(1);
        let inner = Arc::new(Inner {
            name: parts.name,
            link: parts.link,
            timeout: parts.timeout,
            clock: parts.clock,
            meters: parts.meters,
            breaker: Breaker::default(),
            memory: Memory::new(),
            connection: Mutex::default(),
            broken: Notify::new(),
            is_closed: AtomicBool::new(false),
            runtime,
        });
        let keeping = keep(Arc::clone(&inner));
        let task = inner
            .runtime
            .as_ref()
            .map(|runtime| runtime.spawn(keeping).abort_handle());
        Self { inner, task }
    }

    /// Its name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Closes its connection. Who still decides by it, decides without it from now on.
    pub fn close(&self) {
        self.inner.is_closed.store(true, Ordering::Relaxed);
        if let Some(task) = &self.task {
            task.abort();
        }
        *self.inner.connection.lock() = None;
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("name", &self.inner.name)
            .field("link", &self.inner.link)
            .finish_non_exhaustive()
    }
}

impl Inner {
    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// The connection, where there is one.
    pub(super) fn connection(&self) -> Option<Connection> {
        let kept = self.connection.lock().clone();
        kept.map(|(_, connection)| connection)
    }

    /// Until when a request that comes now may wait.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Counts that a decision was not taken here.
    pub(super) fn count(&self, failure: Failure) {
        if let Some(counter) = self.meters.failed.get(failure as usize) {
            counter.inc();
        }
    }

    /// Asks about several buckets: all grant, or none is charged. Where they stand in different parts
    /// of a cluster, one after the other, up to the first that refuses: the answer then ends there.
    pub(super) async fn ask(
        self: &Arc<Self>,
        questions: &[Question<'_>],
        deadline: Instant,
    ) -> Result<Vec<Said>, Failure> {
        let kept = self.connection.lock().clone();
        let (id, mut connection) = kept.ok_or(Failure::Unreachable)?;
        let leave = self.breaker.leave(self.now()).ok_or(Failure::CircuitOpen)?;
        let began = Instant::now();
        // A call that waited for another's answer first has less time: that it runs out says little.
        let is_fair = deadline.saturating_duration_since(began) * 2 >= self.timeout;
        self.meters.calls.inc();
        let asking = async {
            match &connection {
                Connection::Single(_) => script::ask(&mut connection, questions).await,
                Connection::Cluster(_) => self.ask_each(&mut connection, questions).await,
            }
        };
        let answer = timeout_at(deadline, asking).await;
        let failure = match answer {
            Ok(Ok(said)) => {
                (self.meters.took)(began.elapsed());
                leave.answered();
                self.tell();
                return Ok(said);
            }
            Ok(Err(failure)) => failure,
            Err(_) if is_fair => Failure::Timeout,
            Err(_) => return Err(Failure::Timeout),
        };
        self.failed(failure, leave, id);
        Err(failure)
    }

    async fn ask_each(
        self: &Arc<Self>,
        connection: &mut Connection,
        questions: &[Question<'_>],
    ) -> Result<Vec<Said>, Failure> {
        let mut all: Vec<Said> = Vec::with_capacity(questions.len());
        let mut granted = Granted {
            store: self,
            by: Vec::new(),
        };
        for question in questions {
            let one = script::ask(connection, std::slice::from_ref(question)).await?;
            let Some(said) = one.first().copied() else {
                return Err(Failure::Protocol);
            };
            all.push(said);
            if said.granted == 0 {
                for (said, question) in all.iter_mut().zip(questions) {
                    let back = question.ns(said.granted);
                    said.debt = said.debt.saturating_sub(back);
                    said.granted = 0;
                }
                return Ok(all);
            }
            granted
                .by
                .push((question.digest, question.ns(said.granted)));
        }
        granted.by.clear();
        Ok(all)
    }

    fn failed(&self, failure: Failure, leave: Leave<'_>, id: u64) {
        let opens = leave.failed(self.now());
        if opens {
            tracing::warn!(
                store = &*self.name,
                failure = failure.label(),
                "a store failed too often: not asked for a second"
            );
        }
        if opens || failure.breaks() {
            self.let_go(id);
        }
        self.tell();
    }

    /// Gives back to a bucket what was charged in vain, without waiting for it.
    pub(super) fn refund(self: &Arc<Self>, digest: Digest, ns: u64) {
        let Some(runtime) = &self.runtime else { return };
        let Some((_, mut connection)) = self.connection.lock().clone() else {
            return;
        };
        runtime.spawn(async move {
            let refund = script::refund(&mut connection, digest, ns);
            // A refund that is lost leaves a caller with less, never with more.
            timeout(CONNECT, refund).await.ok();
        });
    }

    /// Drops the connection of this number, and with it whatever still waits on it.
    fn let_go(&self, id: u64) {
        let mut connection = self.connection.lock();
        if connection.as_ref().is_some_and(|(kept, _)| *kept == id) {
            *connection = None;
            self.broken.notify_one();
        }
    }

    /// Tells whether it is asked. Once it is closed, another of its name may tell.
    fn tell(&self) {
        if self.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let is_asked = self.connection.lock().is_some() && self.breaker.is_closed();
        self.meters.degraded.set(i64::from(!is_asked));
    }

    async fn connect(&self) -> Result<Connection, Unconnected> {
        let mut connection = self.link.connect().await?;
        let greeting = timeout(CONNECT, script::greet(&mut connection)).await;
        greeting.map_err(|_| Unconnected::TooSlow)??;
        Ok(connection)
    }
}

/// What was granted so far by parts of a cluster; given back unless all of them do.
struct Granted<'s> {
    store: &'s Arc<Inner>,
    by: Vec<(Digest, u64)>,
}

impl Drop for Granted<'_> {
    fn drop(&mut self) {
        for (digest, ns) in self.by.drain(..) {
            self.store.refund(digest, ns);
        }
    }
}

/// Keeps a store connected, for ever.
async fn keep(store: Arc<Inner>) {
    let (first, most) = PAUSE;
    let mut pause = first;
    let mut said = String::new();
    for id in 0.. {
        let began = Instant::now();
        match store.connect().await {
            Ok(connection) => {
                tracing::info!(store = &*store.name, "connected to a store");
                said.clear();
                *store.connection.lock() = Some((id, connection));
                store.tell();
                stay(&store, id).await;
                store.tell();
            }
            Err(error) => {
                // Once for each reason, not for each attempt.
                let error = error.to_string();
                if error != said {
                    tracing::warn!(store = &*store.name, %error, "cannot connect to a store");
                    said = error;
                }
            }
        }
        if began.elapsed() >= TICK {
            pause = first;
        }
        sleep(pause).await;
        pause = (pause * 2).min(most);
    }
}

/// Returns when the connection is gone, or does not answer.
async fn stay(store: &Arc<Inner>, id: u64) {
    for shard in (0..SHARDS).cycle() {
        let broken = store.broken.notified();
        if timeout(TICK, broken).await.is_ok() {
            return;
        }
        store.memory.sweep(shard, store.now());
        let Some((_, mut connection)) = store.connection.lock().clone() else {
            return;
        };
        let ping = redis::cmd("PING");
        let answer = timeout(CONNECT, ping.query_async::<redis::Value>(&mut connection)).await;
        if !answer.is_ok_and(|answer| answer.is_ok()) {
            store.let_go(id);
        }
    }
}
