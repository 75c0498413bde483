//! Text to valid settings, with every problem at once: where it stands, why it is one, what to do.
//!
//! The way of a file: `sources` reads it and what it includes; `document` reads TOML or JSON into a
//! tree with spans; `merge` makes one tree of several; `expand` replaces variables in its strings;
//! `file` takes out the keys there are, through `table`; `check` applies the rules between them and makes [`Settings`], which need no further checking. Whatever is
//! found on the way goes to one `report`, which becomes [`Problems`].
//!
//! This room reads one file and those that it includes, and nothing else: no socket, no clock, no
//! process environment (it is handed in). It must never guess: a file with a problem gives no settings
//! at all.

mod amount;
mod check;
pub mod diff;
mod document;
mod effective;
mod expand;
mod file;
mod include;
mod json;
mod lines;
mod merge;
mod network;
mod per;
mod problem;
mod proof;
mod read;
mod report;
mod schema;
mod settings;
mod sources;
mod store;
mod suggest;
mod table;
#[cfg(test)]
mod tests;
mod web;
mod word;

use std::path::Path;
use std::sync::Arc;

pub use lines::KeyLines;
pub use per::{Dimension, Per};
pub use problem::{Excerpt, Problem, Problems, Severity};
pub use read::name_flaw;
pub use schema::schema;
pub use settings::{
    AccessFormat, AccessLog, Admin, Algorithm, Allowance, Authenticate, Caller, Callers,
    CertificateName, ClientHeader, Clients, Endpoint, Front, Guard, Identify, Issuer, Jwks, Kept,
    KeySha256, Level, Limits, Listener, Log, LogFormat, NamedFile, OnStoreError, Origin, PairFiles,
    Pin, Place, Plan, Quota, RateLimitHeaders, Ratio, Reload, Runtime, Secret, Settings, Shutdown,
    Store, StoreTopology, Tls, Upstream, UpstreamTls,
};
pub use sources::{LARGEST, Sources, read};
pub use store::{Node, StoreUrl};
pub use web::{Host, KeysUrl, UpstreamUrl};

use report::{Finding, Report};

/// How a text is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// TOML, the documented format.
    Toml,
    /// JSON with the same tables and keys.
    Json,
}

impl Format {
    /// The format of a file: JSON where its name ends in `.json`, else TOML.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let is_json = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        if is_json { Self::Json } else { Self::Toml }
    }
}

/// A duration as the configuration writes it, such as `10m`; `None` where it is none.
#[must_use]
pub fn duration(text: &str) -> Option<std::time::Duration> {
    read::FromText::from_text(text).ok()
}

/// Reads a file, and those that it includes, into settings.
///
/// `env` answers for environment variables.
///
/// # Errors
///
/// Every problem of the files; or one, that the file cannot be read.
pub fn load(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Settings, Problems> {
    Sources::read(path, env)?.parse(env)
}

/// Reads a text into settings. Files that it includes are not read: see [`Sources`].
///
/// `origin` names the text in problems; relative paths in it are resolved against its directory.
///
/// # Errors
///
/// Every problem of the text, in its order. While it is no TOML or JSON, only that is reported.
pub fn parse(
    text: &str,
    format: Format,
    origin: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, Problems> {
    Sources::of(text, format, origin).parse(env)
}

fn understand(
    sources: &Sources,
    env: expand::Environment<'_>,
    report: &Report<'_>,
) -> Result<Settings, Problems> {
    let settings = settings(sources, env, report);
    let errors = report.problems(Severity::Error);
    match settings {
        Some(settings) if errors.is_empty() => Ok(Settings {
            warnings: report.problems(Severity::Warning),
            origin: Origin::of(sources.files()),
            ..settings
        }),
        None if errors.is_empty() => {
            // Not reached: whoever gives nothing has said why.
            report.add(Finding::error(None, "", "cannot be understood"));
            Err(report.problems(Severity::Error))
        }
        Some(_) | None => Err(errors),
    }
}

fn settings(
    sources: &Sources,
    env: expand::Environment<'_>,
    report: &Report<'_>,
) -> Option<Settings> {
    let mut document = merge::read(sources, report)?;
    expand::expand(&mut document, "", env, report);
    let file = file::File::take(table::Table::root(&document, report));
    let main = sources.files().next();
    // Relative paths start at the directory of the file that includes the others, wherever they stand.
    let directory = main.and_then(Path::parent).unwrap_or(Path::new(""));
    let settings = check::check(file, directory, report)?;
    Some(Settings {
        lines: Arc::new(KeyLines::of(&document, report)),
        ..settings
    })
}
