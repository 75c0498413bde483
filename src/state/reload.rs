//! Decides whether a new configuration goes live: all of it, or nothing. What its certificate files
//! come to hold goes live without it.
//!
//! Read, parse, check, compile, then one pointer swap. A file with a problem, or one that changes
//! what cannot change live, leaves the old snapshot serving; it is logged with every problem and
//! counted. Readiness never changes here.

mod history;
mod preview;
mod rollback;
mod series;
mod told;
mod uptake;
mod veil;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::live::Live;
use super::snapshot::{Shared, Snapshot, compile};
use super::sockets::{Opened, Sockets, Uptake};
use super::stores;
use super::tls::{self, Change, Files, Keyring};
use crate::config::{Problems, Settings, Sources};
use crate::observe::{Timestamp, WallClock};

pub use history::{Generation, How};
pub use preview::Preview;
pub use told::{ATTEMPTS, Attempt, Figures, Order, Rejected, Reloaded, Standing};

use history::History;
use told::Told;

/// Answers for environment variables.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Brings the configuration file to life, once at the start and then for every change of it.
pub struct Reloader {
    path: PathBuf,
    env: Environment,
    shared: Arc<Shared>,
    wall: Arc<dyn WallClock>,
    keyring: Keyring,
    sockets: Arc<dyn Sockets>,
    live: Live,
    /// What was last acted on. One reload at a time holds it.
    acted_on: Mutex<ActedOn>,
    /// For whoever only asks. Held for moments, and after `acted_on`.
    told: Mutex<Told>,
    /// Another configuration serves since somebody waited for it.
    replaced: Notify,
    /// The last change of listeners, and the generation that brought it.
    uptake: Mutex<Option<(u64, Uptake)>>,
}

/// What one look at the configuration file, and at the files it names, saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    sources: Result<Sources, Problems>,
    files: Files,
}

/// The last look that was acted on, and how its text stands to what serves.
#[derive(Debug)]
struct ActedOn {
    look: Look,
    file: Standing,
}

impl Reloader {
    /// Compiles the first snapshot, of settings that the file's text said, and whose files are in
    /// the keyring.
    #[must_use]
    pub fn start(
        path: PathBuf,
        env: Environment,
        (sources, files): (Sources, Files),
        settings: Settings,
        (keyring, sockets): (Keyring, Arc<dyn Sockets>),
        shared: Arc<Shared>,
        wall: Arc<dyn WallClock>,
    ) -> Self {
        let settings = Arc::new(settings);
        let snapshot = compile(Arc::clone(&settings), 1, &shared, &keyring, None);
        let loaded = wall.now();
        let hash = snapshot.effective.hash.clone();
        shared.metrics.configuration.applied(1, &hash, loaded);
        tracing::info!(generation = 1, %hash, "configuration loaded");
        let mut history = History::default();
        history.push(Generation {
            number: 1,
            hash,
            at: loaded,
            how: How::Start,
            settings,
        });
        keyring.publish(&shared.metrics);
        Self {
            path,
            env,
            shared,
            wall,
            keyring,
            sockets,
            live: Live::new(snapshot),
            acted_on: Mutex::new(ActedOn {
                look: Look {
                    sources: Ok(sources),
                    files: files.forgotten(),
                },
                file: Standing::Served,
            }),
            told: Mutex::new(Told {
                loaded,
                last: None,
                attempts: VecDeque::new(),
                history,
                file: Standing::Served,
            }),
            replaced: Notify::new(),
            uptake: Mutex::default(),
        }
    }

    /// The handle to what is served.
    #[must_use]
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// The certificates in force.
    #[must_use]
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// When the configuration that serves was applied.
    #[must_use]
    pub fn loaded(&self) -> Timestamp {
        self.told.lock().loaded
    }

    /// The last reload, if there was one since the start.
    #[must_use]
    pub fn last(&self) -> Option<Attempt> {
        self.told.lock().last.clone()
    }

    /// What was applied or rejected, newest first: at most [`ATTEMPTS`] of it.
    #[must_use]
    pub fn attempts(&self) -> Vec<Attempt> {
        self.told.lock().attempts.iter().rev().cloned().collect()
    }

    /// The configurations that are kept, the one that serves first.
    #[must_use]
    pub fn generations(&self) -> Vec<Generation> {
        self.told.lock().history.iter().rev().cloned().collect()
    }

    /// How the file stands to what serves.
    #[must_use]
    pub fn file(&self) -> Standing {
        self.told.lock().file
    }

    /// Waits until another configuration serves, or does since this was waited for last. For one
    /// waiter.
    pub(in crate::state) async fn replaced(&self) {
        self.replaced.notified().await;
    }

    /// The configuration file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file now and serves what it says.
    ///
    /// # Errors
    /// Why not; the old configuration serves on. It has been logged and counted.
    pub fn reload(&self) -> Result<Reloaded, Rejected> {
        // Read under the lock: of two reloads at once, the later must not apply the older file.
        let mut acted_on = self.acted_on.lock();
        let look = self.look_at(&acted_on.look.files);
        self.act(&mut acted_on, look)
    }

    /// The files that what was last acted on depends on.
    #[must_use]
    pub fn followed(&self) -> Vec<PathBuf> {
        let acted_on = self.acted_on.lock();
        let files = acted_on.look.files.paths().map(Path::to_owned);
        let sources = acted_on.look.sources.iter();
        let sources = sources.flat_map(|it| it.followed().iter().cloned());
        std::iter::once(self.path.clone())
            .chain(sources)
            .chain(files)
            .collect()
    }

    /// Looks at those files.
    #[must_use]
    pub fn look(&self) -> Look {
        let files = self.acted_on.lock().look.files.clone();
        self.look_at(&files)
    }

    fn look_at(&self, files: &Files) -> Look {
        Look {
            sources: Sources::read(&self.path, &*self.env),
            files: Files::look(files.paths()),
        }
    }

    /// Whether a look at the files saw something else than was last acted on.
    #[must_use]
    pub fn is_news(&self, look: &Look) -> bool {
        self.acted_on.lock().look != *look
    }

    /// Serves what looks at the files agreed on. `None`: it was acted on meanwhile, or the files have
    /// changed again, which is for another look.
    ///
    /// # Errors
    /// As [`Reloader::reload`].
    pub fn apply(&self, look: Look) -> Option<Result<Reloaded, Rejected>> {
        let mut acted_on = self.acted_on.lock();
        let is_current = acted_on.look != look && self.look_at(&acted_on.look.files) == look;
        if !is_current {
            return None;
        }
        if acted_on.file != Standing::Rejected && acted_on.look.sources == look.sources {
            // Only certificates: the configuration is what it was.
            let previous = self.live.load();
            let mut files = look.files;
            self.refresh(&previous.settings, &mut files);
            acted_on.look.files = files.forgotten();
            return Some(Ok(Reloaded::Unchanged(previous.generation)));
        }
        Some(self.act(&mut acted_on, look))
    }

    fn act(&self, acted_on: &mut ActedOn, look: Look) -> Result<Reloaded, Rejected> {
        let previous = self.live.load();
        let mut files = look.files;
        let mut wanted = HashSet::new();
        let result = look
            .sources
            .clone()
            .map_err(Rejected::Problems)
            .and_then(|sources| self.valid(&sources, &previous, &mut files, &mut wanted))
            .map(|(settings, opened)| self.serve(Arc::new(settings), opened, &previous, How::File));
        if result.is_err() {
            // What serves on still follows its certificates.
            self.refresh(&previous.settings, &mut files);
        }
        self.keyring.publish(&self.shared.metrics);
        let serving = self.live.load();
        wanted.extend(tls::paths(&serving.settings).map(Path::to_owned));
        files.keep(|path| wanted.contains(path));
        acted_on.look = Look {
            sources: look.sources,
            files: files.forgotten(),
        };
        let file = match result {
            Ok(_) => Standing::Served,
            Err(_) => Standing::Rejected,
        };
        self.shared.metrics.configuration.reloaded(result.is_ok());
        match &result {
            Ok(Reloaded::Unchanged(generation)) => {
                tracing::info!(generation, "configuration unchanged");
            }
            Ok(_) => {
                let (generation, hash) = (serving.generation, &serving.effective.hash);
                tracing::info!(generation, %hash, "configuration applied");
            }
            Err(rejected) => rejected.log(Order::Reload, previous.generation),
        }
        self.tell(acted_on, Order::Reload, file, &result);
        result
    }

    /// Remembers what became of an order.
    fn tell(
        &self,
        acted_on: &mut ActedOn,
        order: Order,
        file: Standing,
        result: &Result<Reloaded, Rejected>,
    ) {
        acted_on.file = file;
        let mut told = self.told.lock();
        told.file = file;
        told.attempted(Attempt {
            at: self.wall.now(),
            order,
            result: result.clone(),
        });
    }

    /// Puts in force what certificate files hold.
    fn refresh(&self, settings: &Settings, files: &mut Files) {
        match self.keyring.load(settings, files, self.wall.now()) {
            Ok(loaded) => loaded.changes.iter().for_each(Change::log),
            Err(problems) => tracing::error!(%problems, "certificates cannot be replaced"),
        }
        self.keyring.publish(&self.shared.metrics);
    }

    /// Settings that can be served, their sockets open and their certificates put in force. `wanted` are
    /// the files that they name, whatever becomes of them.
    fn valid(
        &self,
        sources: &Sources,
        previous: &Snapshot,
        files: &mut Files,
        wanted: &mut HashSet<PathBuf>,
    ) -> Result<(Settings, Box<dyn Opened + '_>), Rejected> {
        let mut settings = sources.parse(&*self.env).map_err(Rejected::Problems)?;
        wanted.extend(tls::paths(&settings).map(Path::to_owned));
        let fixed = previous.settings.restart_needed(&settings);
        if !fixed.is_empty() {
            return Err(Rejected::RestartNeeded(fixed));
        }
        let logs = &self.shared.logs;
        logs.prepare(&settings.log).map_err(Rejected::Problems)?;
        // Before the certificates: what cannot be opened must change nothing.
        let opened = self.sockets.open(&settings).map_err(Rejected::Problems)?;
        let loaded = self
            .keyring
            .load(&settings, files, self.wall.now())
            .map_err(Rejected::Problems)?;
        loaded.changes.iter().for_each(Change::log);
        settings.warn(loaded.warnings);
        Ok((settings, opened))
    }

    /// Serves settings whose sockets are open and whose certificates are in force, where that would be
    /// any different.
    fn serve(
        &self,
        settings: Arc<Settings>,
        opened: Box<dyn Opened + '_>,
        previous: &Snapshot,
        how: How,
    ) -> Reloaded {
        if previous.settings.serves_like(&settings) {
            // A comment moves lines.
            previous.lines.store(Arc::clone(&settings.lines));
            return Reloaded::Unchanged(previous.generation);
        }
        for warning in &settings.warnings {
            tracing::warn!("{warning}");
        }
        let generation = previous.generation + 1;
        let next = compile(
            Arc::clone(&settings),
            generation,
            &self.shared,
            &self.keyring,
            Some(previous),
        );
        self.shared.logs.apply(&settings.log);
        self.shared.findings.keep(&next.endpoints);
        let (kept, hash) = (next.stores.clone(), next.effective.hash.clone());
        self.live.replace(next);
        if let Some(uptake) = opened.put_in_force(&self.keyring) {
            *self.uptake.lock() = Some((generation, uptake));
        }
        series::forget(&previous.settings, &settings, &self.shared);
        // Idle workers still look at the old snapshot, perhaps for long.
        stores::close_others(&previous.stores, &kept);
        let now = self.wall.now();
        let configuration = &self.shared.metrics.configuration;
        configuration.applied(generation, &hash, now);
        let mut told = self.told.lock();
        told.loaded = now;
        told.history.push(Generation {
            number: generation,
            hash,
            at: now,
            how,
            settings,
        });
        drop(told);
        self.replaced.notify_one();
        match how.of() {
            None => Reloaded::Applied(generation),
            Some(of) => Reloaded::Again { generation, of },
        }
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
