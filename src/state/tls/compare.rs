//! Decides how the files that settings name differ from what is in force: certificates, roots and
//! keys of issuers, by what they say. Must never put anything in force, and never show a key.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::pair::Refused;
use super::{Files, Held, Kept, Keyring, Pair, paths, read};
use crate::config::diff::Change;
use crate::config::{Problem, Problems, Settings};
use crate::observe::{Timestamp, rfc3339};

/// A file whose content would come into force, or would go out of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileDifference {
    /// What it holds.
    pub kind: Kind,
    /// Where it is; of a certificate and its key the certificate's.
    pub file: String,
    /// What becomes of it.
    pub change: Change,
    /// What is in force. `None`: nothing of this file.
    pub before: Option<Content>,
    /// What would be in force. `None`: nothing of this file.
    pub after: Option<Content>,
    /// Why what the file holds now would not come into force; what was in force stays so.
    pub refused: Option<String>,
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A certificate with its key.
    Certificate,
    /// Certificates that are trusted.
    Roots,
    /// The keys of an issuer.
    Keys,
}

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// A certificate.
    Certificate {
        /// The hosts and addresses it is for.
        subjects: Vec<String>,
        /// Its serial number, in hexadecimal.
        serial: Box<str>,
        /// From when it is valid.
        not_before: String,
        /// Until when.
        not_after: String,
    },
    /// Several of something.
    Several {
        /// How many.
        count: usize,
    },
}

impl Keyring {
    /// What loading these settings would change, and what it would warn of.
    ///
    /// # Errors
    /// As [`Keyring::load`].
    pub fn compare(
        &self,
        settings: &Settings,
        files: &mut Files,
        now: Timestamp,
    ) -> Result<(Vec<FileDifference>, Vec<Problem>), Problems> {
        files.add(paths(settings));
        let held = self.held.lock();
        let ready = read(&held, settings, files, now)?;
        let mut found = held.compared(&ready.next);
        found.sort_by(|one, other| (one.kind, &one.file).cmp(&(other.kind, &other.file)));
        Ok((found, ready.loaded.warnings))
    }
}

impl Held {
    fn compared(&self, next: &Self) -> Vec<FileDifference> {
        let pair = |pair: &Pair| Content::Certificate {
            subjects: pair
                .names
                .iter()
                .map(ToString::to_string)
                .chain(pair.addresses.iter().map(ToString::to_string))
                .collect(),
            serial: pair.serial.clone(),
            not_before: rfc3339(pair.not_before),
            not_after: rfc3339(pair.not_after),
        };
        let (kind, several) = (Kind::Certificate, |count| Content::Several { count });
        let path = |paths: &(PathBuf, PathBuf)| shown(&paths.0);
        let pairs = compared(kind, &self.pairs, &next.pairs, path, pair);
        let path = |path: &PathBuf| shown(path);
        let roots = compared(Kind::Roots, &self.roots, &next.roots, path, |it| {
            several(it.len())
        });
        let keys = compared(Kind::Keys, &self.keysets, &next.keysets, path, |it| {
            several(it.len())
        });
        pairs.into_iter().chain(roots).chain(keys).collect()
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn compared<K: Eq + Hash, T>(
    kind: Kind,
    before: &HashMap<K, Kept<T>>,
    after: &HashMap<K, Kept<T>>,
    path: impl Fn(&K) -> String,
    content: impl Fn(&T) -> Content,
) -> Vec<FileDifference> {
    let mut found = BTreeMap::new();
    for (key, new) in after {
        let old = before.get(key);
        let is_same = old.is_some_and(|old| Arc::ptr_eq(&old.good, &new.good));
        // Told already where it was refused before.
        let told = old.and_then(|old| old.refused.as_ref());
        let refused = new.refused.as_ref().filter(|it| told != Some(*it));
        if is_same && refused.is_none() {
            continue;
        }
        let change = match old {
            Some(_) => Change::Changed,
            None => Change::Added,
        };
        let difference = FileDifference {
            kind,
            file: path(key),
            change,
            before: old.map(|it| content(&it.good)),
            after: Some(content(&new.good)),
            refused: refused.map(Refused::to_string),
        };
        found.insert(difference.file.clone(), difference);
    }
    for (key, old) in before {
        if !after.contains_key(key) {
            let difference = FileDifference {
                kind,
                file: path(key),
                change: Change::Removed,
                before: Some(content(&old.good)),
                after: None,
                refused: None,
            };
            found.entry(difference.file.clone()).or_insert(difference);
        }
    }
    found.into_values().collect()
}
