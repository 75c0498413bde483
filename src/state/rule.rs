//! Decides where a rule stands: the key of the configuration that decides, in which file, on which line.
//!
//! Must never show what a key says.

use std::sync::Arc;

use serde::Serialize;

use super::reload::Generation;
use super::snapshot::Snapshot;
use crate::config::KeyLines;

/// A key that decides something. Without a line it does not stand in the file: a default holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The key, such as `endpoint.lakeside.contract`.
    pub key: String,
    /// The file it stands in.
    pub file: Option<String>,
    /// The line it stands on, from 1.
    pub line: Option<u32>,
}

/// Where the keys of one configuration stand.
#[derive(Clone, Debug)]
pub struct Lines(Arc<KeyLines>);

impl Snapshot {
    /// Where its keys stand, in the file that said the same last.
    #[must_use]
    pub fn key_lines(&self) -> Lines {
        Lines(self.lines.load_full())
    }
}

impl Generation {
    /// Where its keys stood.
    #[must_use]
    pub fn key_lines(&self) -> Lines {
        Lines(Arc::clone(&self.settings.lines))
    }
}

impl Lines {
    /// The first of these keys that stands in the configuration; where none does, the last one, whose
    /// default holds. `None`: there are none.
    #[must_use]
    pub fn rule(&self, keys: &[&[&str]]) -> Option<Rule> {
        let found = keys.iter().find_map(|key| Some((key, self.0.find(key)?)));
        let (key, place) = match found {
            Some((key, place)) => (key, Some(place)),
            None => (keys.last()?, None),
        };
        Some(Rule {
            key: KeyLines::spelled(key),
            file: place.map(|(file, _)| file.to_owned()),
            line: place.map(|(_, line)| line),
        })
    }
}
