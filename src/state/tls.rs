//! Decides which certificates, keys, roots and keys of issuers are in force: those of the files that the configuration
//! names, as long as they can be used, and otherwise the last that could.
//!
//! A pair is replaced whole, when certificate and key belong together; an expired one replaces only
//! an expired one. Whatever is wrong with a file that was good before leaves what serves as it is.
//! New handshakes use what is in force, connections that are open stay as they are. Must never let a
//! session of a client whose certificate was checked against other roots be resumed.

mod compare;
mod files;
mod keysets;
mod library;
mod loading;
mod names;
mod pair;
mod roots;
mod show;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::server::ProducesTickets;
use rustls::{RootCertStore, ServerConfig};
use tokio::sync::Notify;

use crate::config::{self, Jwks, NamedFile, PairFiles, Problem, Problems, Settings};
use crate::credential::token::Keyset;
use crate::observe::Timestamp;
use crate::state::issuers::Keys;
use crate::upstream::Secure;

pub use compare::{Content, FileDifference, Kind};
pub use files::Files;
pub use pair::Pair;
pub use show::{Change, Shown};

use files::Fingerprint;
use loading::{Loading, Ready};
use pair::Refused;

/// Everything that was read of certificate files, and what is made of it.
#[derive(Debug, Default)]
pub struct Keyring {
    held: Mutex<Held>,
    /// Something was loaded since somebody waited for it.
    changed: Notify,
    /// Listeners and names whose series are on the metrics.
    published: Mutex<BTreeSet<(String, String)>>,
}

/// What one listener's handshakes are made with, now.
#[derive(Debug)]
pub struct Terminator(ArcSwap<ServerConfig>);

impl Terminator {
    /// For one handshake.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        self.0.load_full()
    }
}

/// What came of reading the files that settings name.
#[derive(Debug, Default)]
pub struct Loaded {
    /// What is probably not meant in what is in force.
    pub warnings: Vec<Problem>,
    /// What is different from before.
    pub changes: Vec<Change>,
}

#[derive(Debug, Default)]
struct Held {
    pairs: HashMap<PairPaths, Kept<Pair>>,
    roots: HashMap<PathBuf, Kept<RootCertStore>>,
    system: Option<Arc<RootCertStore>>,
    listeners: BTreeMap<Box<str>, Listening>,
    upstreams: BTreeMap<Box<str>, Reaching>,
    keysets: HashMap<PathBuf, Kept<Keyset>>,
    issuers: BTreeMap<Box<str>, Trusting>,
}

/// The paths of a certificate and its key.
type PairPaths = (PathBuf, PathBuf);

/// The last of its kind that could be used, and what the last look saw.
#[derive(Debug)]
struct Kept<T> {
    good: Arc<T>,
    seen: Fingerprint,
    /// Why what was seen last is not what is in force.
    refused: Option<Refused>,
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self {
            good: Arc::clone(&self.good),
            seen: self.seen,
            refused: self.refused.clone(),
        }
    }
}

/// What a listener's configuration was made of.
#[derive(Debug)]
struct Listening {
    files: config::Tls,
    default: Arc<Pair>,
    others: Vec<Arc<Pair>>,
    clients: Option<(Arc<RootCertStore>, bool)>,
    ticketer: Arc<dyn ProducesTickets>,
    terminator: Arc<Terminator>,
}

/// What an upstream's configuration was made of.
#[derive(Debug)]
struct Reaching {
    files: config::UpstreamTls,
    roots: Arc<RootCertStore>,
    client: Option<Arc<Pair>>,
    secure: Arc<Secure>,
}

/// What an issuer's keys are taken from.
#[derive(Debug)]
struct Trusting {
    jwks: config::Jwks,
    refresh: Duration,
    keys: Arc<Keys>,
}

impl Keyring {
    /// Reads the files that the settings name, as far as `files` does not know them, and puts in
    /// force what can be used: all of it, or nothing.
    ///
    /// # Errors
    /// What is wrong with files of which none was good before. Nothing changed.
    pub fn load(
        &self,
        settings: &Settings,
        files: &mut Files,
        now: Timestamp,
    ) -> Result<Loaded, Problems> {
        files.add(paths(settings));
        let mut held = self.held.lock();
        let ready = read(&held, settings, files, now)?;
        for (terminator, config) in ready.replaced {
            terminator.0.store(config);
        }
        for (secure, config) in ready.renewed {
            secure.replace(config);
        }
        for (keys, read) in ready.read {
            keys.take(read, now);
        }
        *held = ready.next;
        self.changed.notify_one();
        Ok(ready.loaded)
    }

    /// What a listener's handshakes are made with; `None` where it is in clear.
    #[must_use]
    pub fn terminator(&self, listener: &str) -> Option<Arc<Terminator>> {
        let held = self.held.lock();
        let listening = held.listeners.get(listener)?;
        Some(Arc::clone(&listening.terminator))
    }

    /// How an upstream is spoken to; `None` where it is in clear.
    #[must_use]
    pub fn secure(&self, upstream: &str) -> Option<Arc<Secure>> {
        let held = self.held.lock();
        let reaching = held.upstreams.get(upstream)?;
        Some(Arc::clone(&reaching.secure))
    }
}

/// Makes of the files that the settings name what could be put in force.
fn read(
    held: &Held,
    settings: &Settings,
    files: &Files,
    now: Timestamp,
) -> Result<Ready, Problems> {
    let mut loading = Loading::new(held, files, now);
    for listener in &settings.listeners {
        if let Some(tls) = &listener.tls {
            loading.listener(&listener.name, tls);
        }
    }
    for upstream in &settings.upstreams {
        if let Some(tls) = &upstream.tls {
            loading.upstream(&upstream.name, tls);
        }
    }
    for issuer in &settings.issuers {
        loading.issuer(issuer);
    }
    loading.finish()
}

/// Every file with certificates, keys, roots or keys of issuers that settings name.
pub fn paths(settings: &Settings) -> impl Iterator<Item = &Path> {
    let listeners = settings.listeners.iter().filter_map(|it| it.tls.as_ref());
    let of_listeners = listeners.flat_map(|tls| {
        let pairs = tls.certificates().flat_map(halves);
        pairs.chain(tls.clients.iter().map(|it| &it.ca))
    });
    let upstreams = settings.upstreams.iter().filter_map(|it| it.tls.as_ref());
    let of_upstreams = upstreams.flat_map(|tls| {
        let client = tls.client.iter().flat_map(halves);
        client.chain(tls.ca.as_ref())
    });
    let of_issuers = settings.issuers.iter().filter_map(|it| match &it.jwks {
        Jwks::File(file) => Some(file),
        Jwks::Url { tls, .. } => tls.as_ref()?.ca.as_ref(),
    });
    of_listeners
        .chain(of_upstreams)
        .chain(of_issuers)
        .map(|file| file.path.as_path())
}

fn halves(pair: &PairFiles) -> [&NamedFile; 2] {
    [&pair.certificate, &pair.key]
}
