//! Decides what operators are told of issuers and their keys. Must never show a caller.

use serde::Serialize;

use crate::config::Jwks;
use crate::observe::rfc3339;
use crate::state::Snapshot;

#[derive(Serialize)]
pub(super) struct Issuer<'s> {
    name: &'s str,
    issuer: &'s str,
    /// A file or a URL.
    jwks: String,
    /// Keys that can verify tokens, and those that cannot.
    keys: usize,
    left_out: usize,
    /// When those in force were read; for a file, when it changed.
    read: Option<String>,
    /// When reading them was tried last.
    tried: Option<String>,
    /// Why what was read last is not in force.
    error: Option<Box<str>>,
}

pub(super) fn issuers(snapshot: &Snapshot) -> Vec<Issuer<'_>> {
    let configured = snapshot.settings.issuers.iter();
    let both = configured.zip(snapshot.issuers.iter());
    let shown = both.map(|(configured, compiled)| {
        let keyset = compiled.keys.current();
        let told = compiled.keys.told();
        Issuer {
            name: &configured.name,
            issuer: &configured.issuer,
            jwks: match &configured.jwks {
                Jwks::File(file) => file.path.display().to_string(),
                Jwks::Url { url, .. } => url.to_string(),
            },
            keys: keyset.len(),
            left_out: keyset.left_out(),
            read: told.read.map(rfc3339),
            tried: told.tried.map(rfc3339),
            error: told.error,
        }
    });
    shown.collect()
}
