//! Decides what a gateway is started from: a file, clocks, and what the file and its certificates say.
//! Must never open a socket.

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::{Problems, Settings, Sources};
use crate::limit::{Clock, SystemClock};
use crate::observe::{SystemWallClock, WallClock};
use crate::state::Keyring;
use crate::state::reload::Environment;
use crate::state::tls::Files;

/// What a gateway is started from.
#[derive(Clone)]
pub struct Options {
    /// The configuration file, which is followed.
    pub path: PathBuf,
    /// Answers for environment variables.
    pub env: Environment,
    /// The limiter's clock.
    pub clock: Arc<dyn Clock>,
    /// The time of day.
    pub wall: Arc<dyn WallClock>,
}

impl Options {
    /// A configuration file, the process's environment, and real clocks.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            env: Arc::new(environment),
            clock: Arc::new(SystemClock::new()),
            wall: Arc::new(SystemWallClock),
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the environment is read here and handed in"
)]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A configuration that can be served.
#[derive(Debug)]
pub struct Loaded {
    pub(super) sources: Sources,
    /// What it says. The warnings of its certificates are among its own.
    pub settings: Settings,
    pub(super) keyring: Keyring,
    pub(super) files: Files,
}

/// Reads the file of a configuration and those that it includes, without understanding them.
///
/// # Errors
/// One problem: that the file cannot be read.
pub fn read(options: &Options) -> Result<Sources, Problems> {
    Sources::read(&options.path, &*options.env)
}

/// Loads a configuration as [`super::Gateway::start`] would: valid, and with certificates that can be used.
///
/// # Errors
/// Every problem.
pub fn load(options: &Options) -> Result<Loaded, Problems> {
    examine(options, read(options)?)
}

/// The same with files that were read already.
///
/// # Errors
/// Every problem.
pub fn examine(options: &Options, sources: Sources) -> Result<Loaded, Problems> {
    let mut settings = sources.parse(&*options.env)?;
    let keyring = Keyring::default();
    let mut files = Files::default();
    let loaded = keyring.load(&settings, &mut files, options.wall.now())?;
    settings.warn(loaded.warnings);
    Ok(Loaded {
        sources,
        settings,
        keyring,
        files,
    })
}
