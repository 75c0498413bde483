//! Decides what is remembered and logged of reloads and rollbacks: what was asked for, and what
//! became of it.
//!
//! Must never hold the text of a configuration.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::history::History;
use crate::config::{Problems, Ratio};
use crate::observe::Timestamp;

/// How many attempts are remembered.
pub const ATTEMPTS: usize = 20;

/// What is remembered for whoever asks.
#[derive(Debug)]
pub(super) struct Told {
    /// When what serves was applied.
    pub(super) loaded: Timestamp,
    /// The last reload, if there was one.
    pub(super) last: Option<Attempt>,
    /// What was applied or rejected, oldest first.
    pub(super) attempts: VecDeque<Attempt>,
    /// The configurations that are kept.
    pub(super) history: History,
    /// How the file stands to what serves.
    pub(super) file: Standing,
}

/// How the configuration file, as it was last read, stands to what serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is what serves.
    Served,
    /// It was rejected; what served before serves on.
    Rejected,
    /// Something older was asked for, or gone back to. It is not read again until it changes or
    /// somebody asks for a reload.
    SetAside,
}

/// One order: when it was given, and what became of it.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// When.
    pub at: Timestamp,
    /// What was to be done.
    pub order: Order,
    /// What serves since, or why the old configuration serves on.
    pub result: Result<Reloaded, Rejected>,
}

/// What was to be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// Serve what the file says.
    Reload,
    /// Serve what served before.
    Rollback,
    /// The same, by the guard.
    Guard(Figures),
}

impl Order {
    /// The name under which it is told.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reload => "reload",
            Self::Rollback => "rollback",
            Self::Guard(_) => "guard",
        }
    }
}

/// What the guard saw of a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// The generation that was watched.
    pub generation: u64,
    /// How many requests ended since it serves.
    pub ended: u64,
    /// How many of those that began under it the gateway failed.
    pub failed: u64,
    /// How long it has served.
    pub after: Duration,
    /// More failures than this part are too many.
    pub ratio: Ratio,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "of {} requests that ended {} were failed by the gateway, more than {}",
            self.ended, self.failed, self.ratio
        )
    }
}

/// Why a configuration did not go live.
#[derive(Clone, Debug)]
pub enum Rejected {
    /// It has problems.
    Problems(Problems),
    /// It changes what cannot change live: these tables.
    RestartNeeded(Vec<&'static str>),
    /// It is not kept.
    NotKept {
        /// The generation that was asked for. `None`: the one before.
        wanted: Option<u64>,
        /// Those that are.
        kept: Vec<u64>,
    },
}

/// What became of a configuration that has no problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// It serves, under this generation.
    Applied(u64),
    /// It says what served already.
    Unchanged(u64),
    /// An older one serves again.
    Again {
        /// Under this generation.
        generation: u64,
        /// Which it is again.
        of: u64,
    },
}

impl Told {
    pub(super) fn attempted(&mut self, attempt: Attempt) {
        if !matches!(attempt.result, Ok(Reloaded::Unchanged(_))) {
            if self.attempts.len() >= ATTEMPTS {
                self.attempts.pop_front();
            }
            self.attempts.push_back(attempt.clone());
        }
        self.last = Some(attempt);
    }
}

impl Rejected {
    /// Says it as loudly as it is: the old configuration serves on.
    pub(super) fn log(&self, order: Order, serving: u64) {
        let order = order.name();
        match self {
            Self::Problems(problems) => {
                tracing::error!(
                    serving,
                    order,
                    count = problems.len(),
                    problems = %format_args!("\n{problems}"),
                    "configuration rejected, the old one serves on"
                );
            }
            Self::RestartNeeded(tables) => {
                tracing::error!(
                    serving,
                    order,
                    ?tables,
                    "configuration rejected, the old one serves on: restart needed"
                );
            }
            Self::NotKept { wanted, kept } => {
                tracing::error!(serving, order, wanted, ?kept, "no such generation is kept");
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
            Self::NotKept { wanted, kept } => {
                match wanted {
                    Some(wanted) => write!(f, "generation {wanted} is not kept")?,
                    None => f.write_str("no generation before the one that serves is kept")?,
                }
                let kept: Vec<_> = kept.iter().map(ToString::to_string).collect();
                write!(f, "; kept: {}", kept.join(", "))
            }
        }
    }
}

impl fmt::Display for Reloaded {
    /// Without a full stop or a line feed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied(generation) => write!(f, "applied, generation {generation}"),
            Self::Unchanged(generation) => write!(f, "unchanged, generation {generation}"),
            Self::Again { generation, of } => write!(
                f,
                "rolled back, generation {generation} is {of} again; the file still says something \
                 else, and is not read again until it changes or a reload is asked for"
            ),
        }
    }
}
