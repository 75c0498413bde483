//! Decides what the control thread runs: the admin socket, the configuration watch, the
//! fetching of issuers' keys, and the housekeeping of what all workers share. Never a request.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime;
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::admin::{self, Process};
use crate::limit::SHARDS;
use crate::listen::{Draining, Stage};
use crate::observe::{Decisions, WallClock};
use crate::state::{Readiness, Reloader, Shared, guard, issuers, watch};

/// One shard of the limiter is looked through at each tick: all of them in 16 s.
const TICK: Duration = Duration::from_millis(250);

/// What the control thread is given.
pub(super) struct Control {
    pub(super) shared: Arc<Shared>,
    pub(super) reloader: Arc<Reloader>,
    pub(super) readiness: Arc<Readiness>,
    pub(super) process: Process,
    pub(super) admin: TcpListener,
    pub(super) draining: Draining,
    pub(super) wall: Arc<dyn WallClock>,
    pub(super) decisions: Decisions,
}

impl Control {
    /// The thread's whole life.
    pub(super) fn run(self) {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => LocalSet::new().block_on(&runtime, self.serve()),
            Err(error) => tracing::error!(%error, "the control thread cannot start"),
        }
    }

    async fn serve(self) {
        let mut draining = self.draining;
        let office = admin::Office {
            shared: Arc::clone(&self.shared),
            reloader: Arc::clone(&self.reloader),
            readiness: self.readiness,
            process: Arc::new(self.process),
            decisions: self.decisions,
            wall: Arc::clone(&self.wall),
        };
        let admin = async {
            if let Err(error) = admin::serve(self.admin, office).await {
                tracing::error!(%error, "the admin socket cannot be used");
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = admin => {}
            () = issuers::follow(Arc::clone(&self.reloader), self.wall) => {}
            () = guard::follow(Arc::clone(&self.reloader)) => {}
            () = watch::follow(self.reloader) => {}
            () = keep_house(Arc::clone(&self.shared)) => {}
            () = self.shared.logs.level.follow() => {}
            // Probes and metrics answer until the very end.
            () = draining.reached(Stage::Stopped) => {}
        }
    }
}

async fn keep_house(shared: Arc<Shared>) {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for shard in (0..SHARDS).cycle() {
        tick.tick().await;
        shared.limiter.sweep(shard);
    }
}
