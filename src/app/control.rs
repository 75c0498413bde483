//! Decides what the control thread runs: the admin socket, the configuration watch, the
//! fetching of issuers' keys, and the housekeeping of what all workers share. Never a request. What of it
//! panics is begun anew.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use tokio::runtime;
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval};

use super::pulse::Heart;
use super::thread;
use crate::admin::{self, Process};
use crate::limit::SHARDS;
use crate::listen::{Draining, Stage};
use crate::observe::{Caught, Decisions, WallClock};
use crate::state::{Leaving, Readiness, Reloader, Shared, guard, issuers, watch};

/// One shard of the limiter is looked through at each tick: all of them in 16 s.
const TICK: Duration = Duration::from_millis(250);

/// What the control thread is given.
pub(super) struct Control {
    pub(super) shared: Arc<Shared>,
    pub(super) reloader: Arc<Reloader>,
    pub(super) readiness: Arc<Readiness>,
    pub(super) leaving: Arc<Leaving>,
    pub(super) process: Process,
    pub(super) admin: TcpListener,
    pub(super) draining: Draining,
    pub(super) wall: Arc<dyn WallClock>,
    pub(super) decisions: Decisions,
    pub(super) heart: Heart,
}

impl Control {
    /// The thread's whole life. Says whether it began.
    pub(super) fn run(self, begins: Sender<io::Result<()>>) {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => {
                let _ = begins.send(Ok(()));
                drop(begins);
                LocalSet::new().block_on(&runtime, self.serve());
            }
            Err(error) => drop(begins.send(Err(error))),
        }
    }

    async fn serve(self) {
        let mut draining = self.draining;
        let office = admin::Office {
            shared: Arc::clone(&self.shared),
            reloader: Arc::clone(&self.reloader),
            readiness: self.readiness,
            leaving: self.leaving,
            process: Arc::new(self.process),
            decisions: self.decisions,
            wall: Arc::clone(&self.wall),
        };
        let panicked = self.shared.metrics.panics(Caught::Loop);
        tokio::select! {
            () = thread::again("the admin socket", &panicked, || answer(&self.admin, office.clone())) => {}
            () = thread::again("issuers' keys", &panicked, || {
                issuers::follow(Arc::clone(&self.reloader), Arc::clone(&self.wall))
            }) => {}
            () = thread::again("the guard", &panicked, || guard::follow(Arc::clone(&self.reloader))) => {}
            () = thread::again("the watch", &panicked, || watch::follow(Arc::clone(&self.reloader))) => {}
            () = thread::again("housekeeping", &panicked, || keep_house(&self.shared, &self.heart)) => {}
            () = self.shared.logs.level.follow() => {}
            // Probes and metrics answer until the very end.
            () = draining.reached(Stage::Stopped) => {}
        }
    }
}

async fn answer(listener: &TcpListener, office: admin::Office) {
    let served = match listener.try_clone() {
        Ok(listener) => admin::serve(listener, office).await,
        Err(error) => Err(error),
    };
    if let Err(error) = served {
        tracing::error!(%error, "the admin socket cannot be used");
        std::future::pending::<()>().await;
    }
}

async fn keep_house(shared: &Shared, heart: &Heart) {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for shard in (0..SHARDS).cycle() {
        tick.tick().await;
        heart.beat();
        shared.limiter.sweep(shard);
    }
}
