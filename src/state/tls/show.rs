//! Decides what operators are told of certificates and keys: what changed, what is in force, until when.
//! Must never show a key.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use super::pair::{Half, Pair, Refused};
use super::{Held, Keyring, Listening};
use crate::observe::{Metrics, Timestamp};

/// Something about a file is different from before.
#[derive(Clone, Debug)]
pub enum Change {
    /// A certificate and its key came into force.
    Pair {
        /// Its file.
        certificate: PathBuf,
        /// What it is for.
        name: String,
        /// Its serial number.
        serial: Box<str>,
        /// Until when it is valid.
        not_after: Timestamp,
        /// Whether it was too late already, as the one before it was.
        is_expired: bool,
    },
    /// Roots came into force.
    Roots {
        /// Their file.
        file: PathBuf,
        /// How many there are.
        count: usize,
    },
    /// Keys of an issuer came into force.
    Keys {
        /// The issuer's name.
        issuer: Box<str>,
        /// Their file.
        file: PathBuf,
        /// How many can be used.
        count: usize,
        /// How many cannot.
        left_out: usize,
    },
    /// What was seen cannot be used; what was in force stays so.
    Refused {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
}

/// A certificate that is in force.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its file.
    pub certificate: PathBuf,
    /// The host names it is for.
    pub names: Vec<Box<str>>,
    /// The addresses it is for.
    pub addresses: Vec<IpAddr>,
    /// Its serial number, in hexadecimal.
    pub serial: Box<str>,
    /// From when it is valid.
    pub not_before: Timestamp,
    /// Until when.
    pub not_after: Timestamp,
    /// Why what its files hold now is not what is in force.
    pub refused: Option<String>,
}

impl Change {
    /// Tells the operator, once.
    pub fn log(&self) {
        match self {
            Self::Pair {
                certificate,
                name,
                serial,
                not_after,
                is_expired: true,
            } => tracing::warn!(
                certificate = %certificate.display(), name, %serial, %not_after,
                "a certificate was replaced by one that is expired, as it was itself"
            ),
            Self::Pair {
                certificate,
                name,
                serial,
                not_after,
                is_expired: false,
            } => tracing::info!(
                certificate = %certificate.display(), name, %serial, %not_after,
                "certificate replaced"
            ),
            Self::Roots { file, count } => {
                tracing::info!(file = %file.display(), count, "roots replaced");
            }
            Self::Keys {
                issuer,
                file,
                count,
                left_out,
            } => tracing::info!(
                issuer = &**issuer, file = %file.display(), count, left_out,
                "keys replaced"
            ),
            Self::Refused { file, why } => tracing::warn!(
                file = %file.display(), why,
                "what a file says cannot be used; what was in force stays so"
            ),
        }
    }
}

impl Keyring {
    /// The certificates of a listener, the default one first.
    #[must_use]
    pub fn shown(&self, listener: &str) -> Vec<Shown> {
        let held = self.held.lock();
        let listening = held.listeners.get(listener);
        let shown = listening.map(|it| it.certificates(&held).map(|(_, shown)| shown).collect());
        shown.unwrap_or_default()
    }

    /// The files whose content is not what is in force, and why, by path.
    #[must_use]
    pub fn refused(&self) -> BTreeMap<PathBuf, String> {
        let held = self.held.lock();
        let pairs = held.pairs.iter().map(|((certificate, key), kept)| {
            let of = |why: &Refused| match why.half {
                Half::Certificate | Half::Keys => certificate.clone(),
                Half::Key => key.clone(),
            };
            let why = kept.refused.as_ref();
            why.map(|why| (of(why), why.to_string()))
        });
        let roots = held.roots.iter().map(|(file, kept)| {
            let why = kept.refused.as_ref();
            why.map(|why| (file.clone(), why.to_string()))
        });
        let keysets = held.keysets.iter().map(|(file, kept)| {
            let why = kept.refused.as_ref();
            why.map(|why| (file.clone(), why.to_string()))
        });
        pairs.chain(roots).chain(keysets).flatten().collect()
    }

    /// Says on the metrics until when certificates are valid.
    pub fn publish(&self, metrics: &Metrics) {
        let held = self.held.lock();
        let mut wanted = BTreeSet::new();
        for (listener, listening) in &held.listeners {
            for (pair, _) in listening.certificates(&held) {
                let name = pair.name();
                metrics.certificate(listener, &name, pair.not_after);
                wanted.insert((listener.to_string(), name));
            }
        }
        let mut published = self.published.lock();
        for (listener, name) in published.difference(&wanted) {
            metrics.forget_certificate(listener, name);
        }
        *published = wanted;
    }
}

impl Listening {
    fn certificates<'h>(&'h self, held: &'h Held) -> impl Iterator<Item = (&'h Arc<Pair>, Shown)> {
        let pairs = std::iter::once(&self.default).chain(&self.others);
        pairs.zip(self.files.certificates()).map(|(pair, files)| {
            let paths = (files.certificate.path.clone(), files.key.path.clone());
            let kept = held.pairs.get(&paths);
            let shown = Shown {
                certificate: files.certificate.path.clone(),
                names: pair.names.clone(),
                addresses: pair.addresses.clone(),
                serial: pair.serial.clone(),
                not_before: pair.not_before,
                not_after: pair.not_after,
                refused: kept
                    .and_then(|it| it.refused.as_ref())
                    .map(ToString::to_string),
            };
            (pair, shown)
        })
    }
}
