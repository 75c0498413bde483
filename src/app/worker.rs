//! Decides what one worker thread runs: the listeners it is told of, its requests, the sweeping of its
//! pools.

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use tokio::runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinError, JoinSet, LocalSet};
use tokio::time::{MissedTickBehavior, interval};

use super::listeners::{Manner, Order, Orders};
use crate::http1::{Answer, RequestHead};
use crate::listen::{self, Acceptor, Draining, Handler, Limits, Reins, Stage};
use crate::observe::otlp::Tracer;
use crate::observe::{Pen, Ring, WallClock};
use crate::proxy::worker::Parts;
use crate::proxy::{self, Budget, Worker, ingress};
use crate::state::connection::Connection;
use crate::state::{Live, Readiness, Shared};

/// How often idle upstream connections are looked through: often enough that one is closed well
/// before an agent that keeps it for 5 s would close it.
const SWEEP: Duration = Duration::from_millis(250);

/// What a worker thread is given.
pub(super) struct Belongings {
    /// Its number among the workers, from 0.
    pub(super) index: usize,
    pub(super) shared: Arc<Shared>,
    pub(super) live: Live,
    pub(super) budget: Arc<Budget>,
    pub(super) pen: Pen,
    pub(super) ring: Ring,
    pub(super) tracer: Option<Tracer>,
    pub(super) wall: Arc<dyn WallClock>,
    pub(super) readiness: Arc<Readiness>,
    /// What it is told of listeners.
    pub(super) orders: UnboundedReceiver<Orders>,
    pub(super) draining: Draining,
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
            tracer: self.tracer,
            wall: self.wall,
            readiness: self.readiness,
        }));
        let sweeping = tokio::task::spawn_local(sweep(Rc::clone(&worker)));
        let mut draining = self.draining;
        let mut orders = self.orders;
        let mut serving = Serving {
            index: self.index,
            worker,
            live: self.live,
            draining: draining.clone(),
            reins: HashMap::new(),
            tasks: JoinSet::new(),
        };
        loop {
            // All that it was told, also where it began when the gateway ended: clients wait there.
            while let Ok(told) = orders.try_recv() {
                serving.obey(told);
            }
            // Where every listener failed, the thread stays until it is told, so that it can be joined.
            let ends = draining.stage() >= Stage::Draining;
            if ends && serving.tasks.is_empty() {
                break;
            }
            tokio::select! {
                told = orders.recv() => match told {
                    Some(told) => serving.obey(told),
                    // Nobody can tell it anything any more.
                    None => break,
                },
                Some(ended) = serving.tasks.join_next() => note(ended),
                () = draining.reached(Stage::Draining), if !ends => {}
            }
        }
        sweeping.abort();
    }
}

/// The worker's listeners.
struct Serving {
    index: usize,
    worker: Rc<Worker>,
    live: Live,
    draining: Draining,
    reins: HashMap<u64, Rc<Reins>>,
    tasks: JoinSet<io::Result<()>>,
}

impl Serving {
    fn obey(&mut self, told: Orders) {
        let orders = told.orders.into_iter();
        orders.for_each(|order| self.carry_out(order));
        told.uptake.taken(self.index);
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Open(id, bound, desk, manner) => {
                let unreadable = self.worker.nowhere.clone();
                let (acceptor, reins) = Acceptor::new(bound, manner.unpacked(), desk, unreadable);
                let live = self.live.clone();
                let limits = move || limits(&live);
                let worker = Rc::clone(&self.worker);
                let make = move |connection| Ingress {
                    worker: Rc::clone(&worker),
                    connection,
                };
                let draining = self.draining.clone();
                let serving = listen::serve(acceptor, limits, make, draining);
                self.tasks.spawn_local(serving);
                self.reins.insert(id, Rc::new(reins));
            }
            Order::Change(id, manner) => {
                if let Some(reins) = self.reins.get(&id) {
                    reins.change(manner.unpacked());
                }
            }
            Order::Close(id, timeout) => {
                let Some(reins) = self.reins.remove(&id) else {
                    return;
                };
                reins.close(Stage::Draining);
                tokio::task::spawn_local(async move {
                    let ended = tokio::time::timeout(timeout, reins.slack());
                    if ended.await.is_err() {
                        reins.close(Stage::Stopped);
                    }
                });
            }
        }
    }
}

fn note(ended: Result<io::Result<()>, JoinError>) {
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "a listener cannot be used"),
        Err(_) => tracing::error!("a listener panicked"),
    }
}

impl Manner {
    /// As this thread has it.
    fn unpacked(self) -> listen::Manner {
        listen::Manner {
            listener: Rc::new(self.listener),
            open: self.open,
            doorman: self.doorman,
            backlog: self.backlog,
        }
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
