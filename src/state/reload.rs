//! Decides whether a new configuration goes live: all of it, or nothing.
//!
//! Read, parse, check, compile, then one pointer swap. A file with a problem, or one that changes
//! what cannot change live, leaves the old snapshot serving; it is logged with every problem and
//! counted. Readiness never changes here.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::live::Live;
use super::snapshot::{Shared, Snapshot, compile};
use crate::config::{self, Format, Problems, Settings};
use crate::observe::{Timestamp, WallClock};

/// Answers for environment variables.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Brings the configuration file to life, once at the start and then for every change of it.
pub struct Reloader {
    path: PathBuf,
    env: Environment,
    shared: Arc<Shared>,
    wall: Arc<dyn WallClock>,
    live: Live,
    /// What the file said when it was last acted on. One reload at a time holds it.
    acted_on: Mutex<Look>,
    told: Mutex<Told>,
}

/// What is remembered for whoever asks.
#[derive(Debug)]
struct Told {
    loaded: Timestamp,
    last: Option<Attempt>,
}

/// One reload: when it was, and what became of it.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// When.
    pub at: Timestamp,
    /// What serves since, or why the old configuration serves on.
    pub result: Result<Reloaded, Rejected>,
}

/// What one look at the configuration file saw.
pub type Look = Result<String, Problems>;

/// Why a configuration did not go live.
#[derive(Clone, Debug)]
pub enum Rejected {
    /// It has problems.
    Problems(Problems),
    /// It changes what cannot change live: these tables.
    RestartNeeded(Vec<&'static str>),
}

/// What became of a configuration that has no problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// It serves, under this generation.
    Applied(u64),
    /// It says what served already.
    Unchanged(u64),
}

impl Reloader {
    /// Compiles the first snapshot, of settings that the file's text said.
    #[must_use]
    pub fn start(
        path: PathBuf,
        env: Environment,
        text: String,
        settings: Settings,
        shared: Arc<Shared>,
        wall: Arc<dyn WallClock>,
    ) -> Self {
        let snapshot = compile(settings, 1, &shared, None);
        let loaded = wall.now();
        shared.metrics.config_applied(1, loaded);
        Self {
            path,
            env,
            shared,
            wall,
            live: Live::new(snapshot),
            acted_on: Mutex::new(Ok(text)),
            told: Mutex::new(Told { loaded, last: None }),
        }
    }

    /// The handle to what is served.
    #[must_use]
    pub fn live(&self) -> &Live {
        &self.live
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
        let look = config::read(&self.path);
        self.act(&mut acted_on, look)
    }

    /// Whether a look at the file saw something else than was last acted on.
    #[must_use]
    pub fn is_news(&self, look: &Look) -> bool {
        *self.acted_on.lock() != *look
    }

    /// Serves what looks at the file agreed on. `None`: it was acted on meanwhile, or the file has
    /// changed again, which is for another look.
    ///
    /// # Errors
    /// As [`Reloader::reload`].
    pub fn apply(&self, look: Look) -> Option<Result<Reloaded, Rejected>> {
        let mut acted_on = self.acted_on.lock();
        let is_current = *acted_on != look && config::read(&self.path) == look;
        is_current.then(|| self.act(&mut acted_on, look))
    }

    fn act(&self, acted_on: &mut Look, look: Look) -> Result<Reloaded, Rejected> {
        let previous = self.live.load();
        acted_on.clone_from(&look);
        let result = look
            .map_err(Rejected::Problems)
            .and_then(|text| self.valid(&text, &previous))
            .map(|settings| self.replace(settings, &previous));
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

    fn valid(&self, text: &str, previous: &Snapshot) -> Result<Settings, Rejected> {
        let settings = config::parse(text, Format::of(&self.path), &self.path, &*self.env)
            .map_err(Rejected::Problems)?;
        let not_yet = settings.not_yet();
        if !not_yet.is_empty() {
            return Err(Rejected::Problems(not_yet));
        }
        let fixed = previous.settings.restart_needed(&settings);
        if !fixed.is_empty() {
            return Err(Rejected::RestartNeeded(fixed));
        }
        Ok(settings)
    }

    fn replace(&self, settings: Settings, previous: &Snapshot) -> Reloaded {
        if previous.settings.serves_like(&settings) {
            return Reloaded::Unchanged(previous.generation);
        }
        for warning in &settings.warnings {
            tracing::warn!("{warning}");
        }
        let generation = previous.generation + 1;
        let next = compile(settings, generation, &self.shared, Some(previous));
        self.forget(&previous.settings, &next.settings);
        self.live.replace(next);
        let now = self.wall.now();
        self.told.lock().loaded = now;
        self.shared.metrics.config_applied(generation, now);
        Reloaded::Applied(generation)
    }

    /// Drops the series of what is no longer configured.
    fn forget(&self, before: &Settings, after: &Settings) {
        let metrics = &self.shared.metrics;
        for gone in missing(&before.endpoints, &after.endpoints, |it| &it.name) {
            metrics.forget_endpoint(gone);
        }
        for gone in missing(&before.quotas, &after.quotas, |it| &it.name) {
            metrics.forget_quota(gone);
        }
        for gone in missing(&before.upstreams, &after.upstreams, |it| &it.name) {
            metrics.forget_upstream(gone);
        }
    }
}

/// The names that stand before and not after.
fn missing<'a, T>(
    before: &'a [T],
    after: &'a [T],
    name: impl Fn(&'a T) -> &'a str,
) -> impl Iterator<Item = &'a str> {
    let kept: HashSet<&str> = after.iter().map(&name).collect();
    before
        .iter()
        .map(name)
        .filter(move |name| !kept.contains(name))
}

impl Rejected {
    fn log(&self, serving: u64) {
        match self {
            Self::Problems(problems) => {
                tracing::error!(
                    serving,
                    count = problems.len(),
                    problems = %format_args!("\n{problems}"),
                    "configuration rejected, the old one serves on"
                );
            }
            Self::RestartNeeded(tables) => {
                tracing::error!(
                    serving,
                    ?tables,
                    "configuration rejected, the old one serves on: restart needed"
                );
            }
        }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Problems(problems) => problems.fmt(f),
            Self::RestartNeeded(tables) => {
                write!(f, "restart needed: [{}] changed", tables.join("], ["))
            }
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
