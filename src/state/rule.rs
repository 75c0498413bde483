//! Decides where a rule stands: the key of the configuration that decides, in which file, on which line.
//!
//! Must never show what a key says.

use serde::Serialize;

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

impl Snapshot {
    /// The first of these keys that stands in the configuration; where none does, the last one, whose
    /// default holds. `None`: there are none.
    #[must_use]
    pub fn rule(&self, keys: &[&[&str]]) -> Option<Rule> {
        let lines = self.lines.load();
        let found = keys.iter().find_map(|key| Some((key, lines.find(key)?)));
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
