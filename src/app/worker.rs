//! Decides what one worker thread runs: its listeners, its requests, the sweeping of its pools.

use std::error::Error;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use tokio::runtime;
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::http1::{Answer, RequestHead};
use crate::listen::{self, Acceptor, Bound, Desk, Doorman, Draining, Handler, Limits, Open, Stage};
use crate::observe::{Pen, Ring, WallClock};
use crate::proxy::worker::Parts;
use crate::proxy::{self, Budget, Worker, ingress};
use crate::state::connection::Connection;
use crate::state::{self, Live, Readiness, Shared};

/// How often idle upstream connections are looked through: often enough that one is closed well
/// before an agent that keeps it for 5 s would close it.
const SWEEP: Duration = Duration::from_millis(250);

/// What a worker thread is given.
pub(super) struct Belongings {
    pub(super) shared: Arc<Shared>,
    pub(super) live: Live,
    pub(super) budget: Arc<Budget>,
    pub(super) pen: Pen,
    pub(super) ring: Ring,
    pub(super) wall: Arc<dyn WallClock>,
    pub(super) readiness: Arc<Readiness>,
    pub(super) acceptors: Vec<Listening>,
    pub(super) draining: Draining,
}

/// One of the worker's listening sockets.
pub(super) struct Listening {
    pub(super) bound: Bound,
    pub(super) listener: state::Listener,
    pub(super) open: Open,
    pub(super) desk: Desk,
    pub(super) doorman: Option<Doorman>,
}

impl Belongings {
    /// The thread's whole life.
    pub(super) fn run(self) {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => LocalSet::new().block_on(&runtime, self.serve()),
            Err(error) => tracing::error!(%error, "a worker cannot start"),
        }
    }

    async fn serve(self) {
        let worker = Rc::new(Worker::new(Parts {
            shared: self.shared,
            live: self.live.clone(),
            budget: self.budget,
            pen: self.pen,
            ring: self.ring,
            wall: self.wall,
            readiness: self.readiness,
        }));
        let sweeping = tokio::task::spawn_local(sweep(Rc::clone(&worker)));
        let mut serving = Vec::new();
        for listening in self.acceptors {
            let acceptor = Acceptor {
                bound: listening.bound,
                listener: Rc::new(listening.listener),
                open: listening.open,
                desk: listening.desk,
                unreadable: worker.nowhere.clone(),
                doorman: listening.doorman,
            };
            let live = self.live.clone();
            let limits = move || limits(&live);
            let worker = Rc::clone(&worker);
            let make = move |connection| Ingress {
                worker: Rc::clone(&worker),
                connection,
            };
            let draining = self.draining.clone();
            serving.push(tokio::task::spawn_local(async move {
                if let Err(error) = listen::serve(acceptor, limits, make, draining).await {
                    tracing::error!(%error, "a listener cannot be used");
                }
            }));
        }
        for listener in serving {
            if listener.await.is_err() {
                tracing::error!("a listener panicked");
            }
        }
        let mut draining = self.draining;
        if draining.stage() < Stage::Draining {
            // Every listener failed; the thread stays until it is told, so that it can be joined.
            draining.reached(Stage::Draining).await;
        }
        sweeping.abort();
    }
}

/// Hands the requests of one connection to the request path.
struct Ingress {
    worker: Rc<Worker>,
    connection: Rc<Connection>,
}

impl Handler for Ingress {
    type Body = proxy::Body;

    async fn handle<B>(&self, head: RequestHead, body: B) -> Answer<proxy::Body>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        ingress::handle(&self.worker, &self.connection, head, body).await
    }
}

fn limits(live: &Live) -> Limits {
    let snapshot = live.load();
    let limits = &snapshot.settings.limits;
    Limits {
        connections: limits.connections,
        header_bytes: limits.header_bytes,
        header_count: limits.header_count,
        header_timeout: limits.header_timeout,
        idle_timeout: limits.idle_timeout,
        concurrent_streams: limits.concurrent_streams,
    }
}

async fn sweep(worker: Rc<Worker>) {
    let mut tick = interval(SWEEP);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        worker.pools.sweep();
    }
}
