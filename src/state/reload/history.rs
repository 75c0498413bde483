//! Decides which configurations are kept in memory once they served, and which of them is meant by
//! a rollback.
//!
//! Must never keep more than the configuration that serves says: the newest, itself among them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::told::Figures;
use crate::config::Settings;
use crate::observe::Timestamp;

/// One configuration that served, or serves.
#[derive(Clone, Debug)]
pub struct Generation {
    /// Counts applied configurations from 1.
    pub number: u64,
    /// Equal where configurations are.
    pub hash: Box<str>,
    /// When it was applied.
    pub at: Timestamp,
    /// How it came.
    pub how: How,
    /// What it says.
    pub settings: Arc<Settings>,
}

/// How a configuration came to serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    /// The process began with it.
    Start,
    /// The file said it.
    File,
    /// Somebody asked for this older generation.
    Rollback {
        /// Which it is again.
        of: u64,
    },
    /// The guard went back to this older generation.
    Guard {
        /// Which it is again.
        of: u64,
        /// What the guard saw.
        figures: Figures,
    },
}

impl How {
    /// The name under which it is told.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::File => "file",
            Self::Rollback { .. } => "rollback",
            Self::Guard { .. } => "guard",
        }
    }

    /// Which generation it is again.
    #[must_use]
    pub const fn of(self) -> Option<u64> {
        match self {
            Self::Start | Self::File => None,
            Self::Rollback { of } | Self::Guard { of, .. } => Some(of),
        }
    }
}

/// The configurations that are kept, oldest first. The last one serves.
#[derive(Debug, Default)]
pub(super) struct History(VecDeque<Generation>);

impl History {
    /// Keeps one that serves from now on.
    pub(super) fn push(&mut self, generation: Generation) {
        let keep = generation.settings.reload.keep.max(1);
        self.0.push_back(generation);
        while self.0.len() > keep {
            self.0.pop_front();
        }
    }

    /// The one of this number; without a number the one before the one that serves.
    pub(super) fn find(&self, number: Option<u64>) -> Option<&Generation> {
        match number {
            Some(number) => self.0.iter().find(|it| it.number == number),
            None => self.0.iter().rev().nth(1),
        }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Generation> {
        self.0.iter()
    }
}
