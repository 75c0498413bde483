//! Decides whether a new configuration goes live: all of it, or nothing. What its certificate files
//! come to hold goes live without it.
//!
//! Read, parse, check, compile, then one pointer swap. A file with a problem, or one that changes
//! what cannot change live, leaves the old snapshot serving; it is logged with every problem and
//! counted. Readiness never changes here.

mod series;
mod told;

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::live::Live;
use super::snapshot::{Shared, Snapshot, compile};
use super::sockets::{Opened, Sockets, Uptake};
use super::stores;
use super::tls::{self, Change, Files, Keyring};
use crate::config::{Problems, Settings, Sources};
use crate::observe::{Timestamp, WallClock};

pub use told::{Attempt, Rejected, Reloaded};

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
    told: Mutex<Told>,
    /// The last change of listeners, and the generation that brought it.
    uptake: Mutex<Option<(u64, Uptake)>>,
}

/// What one look at the configuration file, and at the files it names, saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    sources: Result<Sources, Problems>,
    files: Files,
}

/// The last look that was acted on, and whether its text is what serves.
#[derive(Debug)]
struct ActedOn {
    look: Look,
    is_served: bool,
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
        let snapshot = compile(settings, 1, &shared, &keyring, None);
        let loaded = wall.now();
        shared.metrics.config_applied(1, loaded);
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
                is_served: true,
            }),
            told: Mutex::new(Told { loaded, last: None }),
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

    /// The listening sockets.
    #[must_use]
    pub fn sockets(&self) -> &dyn Sockets {
        &*self.sockets
    }

    /// What workers have to take up of a generation; `None`: it changed nothing about listeners, or
    /// another did since.
    #[must_use]
    pub fn uptake(&self, generation: u64) -> Option<Uptake> {
        let uptake = self.uptake.lock();
        let (of, uptake) = uptake.as_ref()?;
        (*of == generation).then(|| uptake.clone())
    }

    /// The workers that have yet to take up the last change of listeners.
    #[must_use]
    pub fn workers_behind(&self) -> Vec<usize> {
        let uptake = self.uptake.lock();
        uptake
            .as_ref()
            .map_or_else(Vec::new, |(_, it)| it.waiting())
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
        if acted_on.is_served && acted_on.look.sources == look.sources {
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
            .map(|(settings, opened)| self.replace(settings, opened, &previous));
        if result.is_err() {
            // What serves on still follows its certificates.
            self.refresh(&previous.settings, &mut files);
        }
        self.keyring.publish(&self.shared.metrics);
        let serving = self.live.load();
        wanted.extend(tls::paths(&serving.settings).map(Path::to_owned));
        files.keep(|path| wanted.contains(path));
        *acted_on = ActedOn {
            look: Look {
                sources: look.sources,
                files: files.forgotten(),
            },
            is_served: result.is_ok(),
        };
        self.shared.metrics.config_reloaded(result.is_ok());
        match &result {
            Ok(Reloaded::Applied(generation)) => {
                tracing::info!(generation, "configuration applied")
            }
            Ok(Reloaded::Unchanged(generation)) => {
                tracing::info!(generation, "configuration unchanged");
            }
            Err(rejected) => rejected.log(previous.generation),
        }
        self.told.lock().last = Some(Attempt {
            at: self.wall.now(),
            result: result.clone(),
        });
        result
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

    fn replace(
        &self,
        settings: Settings,
        opened: Box<dyn Opened + '_>,
        previous: &Snapshot,
    ) -> Reloaded {
        if previous.settings.serves_like(&settings) {
            return Reloaded::Unchanged(previous.generation);
        }
        for warning in &settings.warnings {
            tracing::warn!("{warning}");
        }
        let generation = previous.generation + 1;
        let next = compile(
            settings,
            generation,
            &self.shared,
            &self.keyring,
            Some(previous),
        );
        let settings = next.settings.clone();
        let kept = next.stores.clone();
        self.live.replace(next);
        if let Some(uptake) = opened.put_in_force(&self.keyring) {
            *self.uptake.lock() = Some((generation, uptake));
        }
        series::forget(&previous.settings, &settings, &self.shared);
        // Idle workers still look at the old snapshot, perhaps for long.
        stores::close_others(&previous.stores, &kept);
        let now = self.wall.now();
        self.told.lock().loaded = now;
        self.shared.metrics.config_applied(generation, now);
        Reloaded::Applied(generation)
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
