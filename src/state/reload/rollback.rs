//! Decides how the gateway goes back to a configuration that served before: it is compiled anew and
//! serves under a new generation.
//!
//! The file still says something else. It is not read again until it changes, or somebody asks for a
//! reload. Must never serve what cannot be served any more: certificates are read anew.

use std::sync::Arc;

use super::history::{Generation, How};
use super::told::{Figures, Order, Rejected, Reloaded, Standing};
use super::{ActedOn, Reloader};
use crate::observe::Cause;
use crate::state::snapshot::Snapshot;
use crate::state::tls::{self, Change, Files};

impl Reloader {
    /// Serves a generation that is kept; without a number the one before the one that serves.
    ///
    /// # Errors
    /// Why not; what serves now serves on. It has been logged.
    pub fn roll_back(&self, to: Option<u64>) -> Result<Reloaded, Rejected> {
        let mut acted_on = self.acted_on.lock();
        self.go_back(&mut acted_on, to, Order::Rollback)
    }

    /// The same by the guard. `None`: what it watched does not serve any more.
    pub(in crate::state) fn retreat(
        &self,
        to: u64,
        figures: Figures,
    ) -> Option<Result<Reloaded, Rejected>> {
        let mut acted_on = self.acted_on.lock();
        let is_current = self.live.load().generation == figures.generation;
        is_current.then(|| self.go_back(&mut acted_on, Some(to), Order::Guard(figures)))
    }

    fn go_back(
        &self,
        acted_on: &mut ActedOn,
        to: Option<u64>,
        order: Order,
    ) -> Result<Reloaded, Rejected> {
        let previous = self.live.load();
        let (target, kept) = {
            let told = self.told.lock();
            let kept = told.history.iter().map(|it| it.number).collect();
            (told.history.find(to).cloned(), kept)
        };
        let mut files = Files::default();
        let result = target
            .ok_or(Rejected::NotKept { wanted: to, kept })
            .and_then(|target| self.restore(target, &previous, &mut files, order));
        self.keyring.publish(&self.shared.metrics);
        let mut file = acted_on.file;
        match &result {
            Ok(Reloaded::Again { generation, of }) => {
                acted_on.look.files = files.forgotten();
                file = Standing::SetAside;
                self.announce(*generation, *of, order);
            }
            Ok(Reloaded::Applied(generation) | Reloaded::Unchanged(generation)) => {
                tracing::info!(generation, "this generation serves already");
            }
            Err(rejected) => rejected.log(order, previous.generation),
        }
        self.tell(acted_on, order, file, &result);
        result
    }

    /// Compiles what a generation says, its certificates put in force.
    fn restore(
        &self,
        target: Generation,
        previous: &Snapshot,
        files: &mut Files,
        order: Order,
    ) -> Result<Reloaded, Rejected> {
        let fixed = previous.settings.restart_needed(&target.settings);
        if !fixed.is_empty() {
            return Err(Rejected::RestartNeeded(fixed));
        }
        if previous.settings.serves_like(&target.settings) {
            return Ok(Reloaded::Unchanged(previous.generation));
        }
        self.shared
            .logs
            .prepare(&target.settings.log)
            .map_err(Rejected::Problems)?;
        let opened = self.sockets.open(&target.settings);
        let opened = opened.map_err(Rejected::Problems)?;
        *files = Files::look(tls::paths(&target.settings));
        let loaded = self
            .keyring
            .load(&target.settings, files, self.wall.now())
            .map_err(Rejected::Problems)?;
        loaded.changes.iter().for_each(Change::log);
        let of = target.number;
        let how = match order {
            Order::Guard(figures) => How::Guard { of, figures },
            Order::Reload | Order::Rollback => How::Rollback { of },
        };
        Ok(self.serve(Arc::clone(&target.settings), opened, previous, how))
    }

    fn announce(&self, generation: u64, of: u64, order: Order) {
        let hash = self.live.load().effective.hash.clone();
        let note = "the file still says something else; it is not read again until it changes or a \
                    reload is asked for";
        let configuration = &self.shared.metrics.configuration;
        match order {
            Order::Reload | Order::Rollback => {
                configuration.rolled_back(Cause::Asked);
                tracing::warn!(generation, of, %hash, note, "configuration rolled back");
            }
            Order::Guard(figures) => {
                configuration.rolled_back(Cause::Guard);
                tracing::error!(
                    generation,
                    of,
                    %hash,
                    rejected = figures.generation,
                    ended = figures.ended,
                    failed = figures.failed,
                    ratio = %figures.ratio,
                    after_ms = u64::try_from(figures.after.as_millis()).unwrap_or(u64::MAX),
                    note,
                    "too many requests fail under the new configuration: rolled back"
                );
            }
        }
    }
}
