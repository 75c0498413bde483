//! Decides how the logs follow the configuration: what has to be opened is opened before anything
//! changes, and turned to with the swap.

use std::io;

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;

use crate::config::{self, Problem, Problems, Severity};
use crate::observe::{Destination, Dial, Manner, Prepared, Spelling, Switch};

/// What of the logs can be changed while the process runs.
#[derive(Debug)]
pub struct Logs {
    access: Switch,
    /// What was opened for a configuration that does not serve yet.
    prepared: Mutex<Option<Prepared>>,
    /// The level of the diagnostics.
    pub level: Dial,
}

/// Of what nobody writes.
impl Default for Logs {
    fn default() -> Self {
        let level = Dial::new(None, "", Gauge::default());
        Self::new(Switch::default(), level)
    }
}

/// How the access log is written by this configuration.
#[must_use]
pub fn manner(log: &config::Log) -> Manner {
    Manner {
        to: match &log.access {
            config::AccessLog::Stdout => Destination::Stdout,
            config::AccessLog::Off => Destination::Off,
            config::AccessLog::File(path) => Destination::File(path.clone()),
        },
        spelling: match log.access_format {
            config::AccessFormat::Json => Spelling::Json,
            config::AccessFormat::Combined => Spelling::Combined,
        },
        ok_millionths: log.access_ok_millionths,
    }
}

impl Logs {
    /// The logs of this process.
    #[must_use]
    pub fn new(access: Switch, level: Dial) -> Self {
        Self {
            access,
            prepared: Mutex::default(),
            level,
        }
    }

    /// Opens what a configuration needs and is not open.
    ///
    /// # Errors
    /// It cannot be opened; then the configuration cannot serve.
    pub fn prepare(&self, log: &config::Log) -> Result<(), Problems> {
        let prepared = self.access.prepare(&manner(log));
        let prepared = prepared.map_err(|error| problem(log, &error))?;
        *self.prepared.lock() = Some(prepared);
        Ok(())
    }

    /// Whether that could be opened, as far as can be told without doing it.
    ///
    /// # Errors
    /// It could not.
    pub fn look(&self, log: &config::Log) -> Result<(), Problems> {
        let looked = self.access.look(&manner(log).to);
        looked.map_err(|error| problem(log, &error))
    }

    /// Writes as this configuration says from now on.
    pub fn apply(&self, log: &config::Log) {
        self.level.configure(log.level.name());
        let wanted = manner(log);
        let prepared = self.prepared.lock().take();
        let prepared = match prepared.filter(|prepared| *prepared.manner() == wanted) {
            Some(prepared) => Ok(prepared),
            None => self.access.prepare(&wanted),
        };
        match prepared {
            Ok(prepared) => self.access.apply(prepared),
            Err(error) => tracing::error!(%error, "the access log cannot be opened; it stays"),
        }
    }

    /// Opens the access log's file anew, as after a rotation. The outcome is logged.
    pub fn reopen(&self) {
        match self.access.reopen() {
            Ok(()) => tracing::info!("access log opened anew"),
            Err(error) => tracing::error!(%error, "the access log cannot be opened; it stays"),
        }
    }
}

fn problem(log: &config::Log, error: &io::Error) -> Problems {
    let what = format!("the access log cannot be opened: {error}");
    let hint = "may this process write there, and does the directory exist?";
    let place = log.access_place.as_ref();
    let problem = place.map_or_else(
        || Problem::of_the_file(&what),
        |place| place.problem(Severity::Error, &what, Some(hint)),
    );
    [problem].into_iter().collect()
}
