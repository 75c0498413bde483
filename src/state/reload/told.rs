//! Decides what is remembered and logged of reloads: what was asked for, and what became of it.
//!
//! Must never hold the text of a configuration.

use std::fmt;

use crate::config::Problems;
use crate::observe::Timestamp;

/// What is remembered for whoever asks.
#[derive(Debug)]
pub(super) struct Told {
    /// When what serves was applied.
    pub(super) loaded: Timestamp,
    /// The last reload, if there was one.
    pub(super) last: Option<Attempt>,
}

/// One reload: when it was, and what became of it.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// When.
    pub at: Timestamp,
    /// What serves since, or why the old configuration serves on.
    pub result: Result<Reloaded, Rejected>,
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

impl Rejected {
    /// Says it as loudly as it is: the old configuration serves on.
    pub(super) fn log(&self, serving: u64) {
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
