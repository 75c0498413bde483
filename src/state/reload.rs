//! Decides whether a new configuration goes live: all of it, or nothing. What its certificate files
//! come to hold goes live without it.
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
use super::stores;
use super::tls::{self, Change, Files, Keyring};
use crate::config::{self, Authenticate, Format, Problems, Settings};
use crate::credential::token::Bad;
use crate::observe::{Timestamp, WallClock};

/// Answers for environment variables.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Brings the configuration file to life, once at the start and then for every change of it.
pub struct Reloader {
    path: PathBuf,
    env: Environment,
    shared: Arc<Shared>,
    wall: Arc<dyn WallClock>,
    keyring: Keyring,
    live: Live,
    /// What was last acted on. One reload at a time holds it.
    acted_on: Mutex<ActedOn>,
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

/// What one look at the configuration file, and at the files it names, saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    text: Result<String, Problems>,
    files: Files,
}

/// The last look that was acted on, and whether its text is what serves.
#[derive(Debug)]
struct ActedOn {
    look: Look,
    is_served: bool,
}

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
    /// Compiles the first snapshot, of settings that the file's text said, and whose files are in
    /// the keyring.
    #[must_use]
    pub fn start(
        path: PathBuf,
        env: Environment,
        (text, files): (String, Files),
        settings: Settings,
        keyring: Keyring,
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
            live: Live::new(snapshot),
            acted_on: Mutex::new(ActedOn {
                look: Look {
                    text: Ok(text),
                    files: files.forgotten(),
                },
                is_served: true,
            }),
            told: Mutex::new(Told { loaded, last: None }),
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
        std::iter::once(self.path.clone()).chain(files).collect()
    }

    /// Looks at those files.
    #[must_use]
    pub fn look(&self) -> Look {
        let files = self.acted_on.lock().look.files.clone();
        self.look_at(&files)
    }

    fn look_at(&self, files: &Files) -> Look {
        Look {
            text: config::read(&self.path),
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
        if acted_on.is_served && acted_on.look.text == look.text {
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
            .text
            .clone()
            .map_err(Rejected::Problems)
            .and_then(|text| self.valid(&text, &previous, &mut files, &mut wanted))
            .map(|settings| self.replace(settings, &previous));
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
                text: look.text,
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

    /// Settings that can be served, their certificates put in force. `wanted` are the files that
    /// they name, whatever becomes of them.
    fn valid(
        &self,
        text: &str,
        previous: &Snapshot,
        files: &mut Files,
        wanted: &mut HashSet<PathBuf>,
    ) -> Result<Settings, Rejected> {
        let mut settings = config::parse(text, Format::of(&self.path), &self.path, &*self.env)
            .map_err(Rejected::Problems)?;
        wanted.extend(tls::paths(&settings).map(Path::to_owned));
        let fixed = previous.settings.restart_needed(&settings);
        if !fixed.is_empty() {
            return Err(Rejected::RestartNeeded(fixed));
        }
        let logs = &self.shared.logs;
        logs.prepare(&settings.log)
            .map_err(|problem| Rejected::Problems([*problem].into_iter().collect()))?;
        let loaded = self
            .keyring
            .load(&settings, files, self.wall.now())
            .map_err(Rejected::Problems)?;
        loaded.changes.iter().for_each(Change::log);
        settings.warn(loaded.warnings);
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
        let next = compile(
            settings,
            generation,
            &self.shared,
            &self.keyring,
            Some(previous),
        );
        self.forget(&previous.settings, &next.settings);
        let kept = next.stores.clone();
        self.shared.logs.apply(&next.settings.log);
        self.shared.findings.keep(&next.endpoints);
        self.live.replace(next);
        // Idle workers still look at the old snapshot, perhaps for long.
        stores::close_others(&previous.stores, &kept);
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
        for endpoint in &after.endpoints {
            if endpoint.authenticate == Authenticate::Off {
                metrics.forget_credentials(&endpoint.name);
            }
        }
        for gone in missing(&before.quotas, &after.quotas, |it| &it.name) {
            metrics.forget_quota(gone);
        }
        for gone in missing(&before.upstreams, &after.upstreams, |it| &it.name) {
            metrics.forget_upstream(gone);
        }
        for gone in missing(&before.issuers, &after.issuers, |it| &it.name) {
            metrics.forget_issuer(gone, &Bad::ALL.map(Bad::label));
        }
        for gone in missing(&before.stores, &after.stores, |it| &it.name) {
            stores::forget(gone, &self.shared);
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
