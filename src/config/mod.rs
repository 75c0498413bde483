//! Text to valid settings, with every problem at once: where it stands, why it is one, what to do.
//!
//! The way of a file: `document` reads TOML or JSON into one tree with spans; `expand` replaces
//! variables in its strings; `file` takes out the keys there are, through `table`; `check`
//! applies the rules between them and makes [`Settings`], which need no further checking. Whatever is
//! found on the way goes to one `report`, which becomes [`Problems`].
//!
//! This room reads one file and nothing else: no socket, no clock, no process environment (it is
//! handed in). It must never guess: a file with a problem gives no settings at all.

mod amount;
mod check;
pub mod diff;
mod document;
mod effective;
mod expand;
mod file;
mod json;
mod lines;
mod network;
mod per;
mod problem;
mod proof;
mod read;
mod report;
mod schema;
mod settings;
mod store;
mod suggest;
mod table;
#[cfg(test)]
mod tests;
mod web;
mod word;

use std::io::Read;
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
    KeySha256, Level, Limits, Listener, Log, LogFormat, NamedFile, OnStoreError, PairFiles, Pin,
    Place, Plan, Quota, RateLimitHeaders, Ratio, Reload, Runtime, Secret, Settings, Shutdown,
    Store, StoreTopology, Tls, Upstream, UpstreamTls,
};
pub use store::{Node, StoreUrl};
pub use web::{Host, KeysUrl, UpstreamUrl};

use report::{Finding, Report};

/// Larger files are not read, in bytes: no configuration is, and a device may never end.
pub const LARGEST: usize = 4 << 20;

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

/// Reads a file into settings.
///
/// `env` answers for environment variables.
///
/// # Errors
///
/// Every problem of the file; or one, that it cannot be read.
pub fn load(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Settings, Problems> {
    parse(&read(path)?, Format::of(path), path, env)
}

/// Reads the text of a configuration file, without understanding it.
///
/// # Errors
///
/// One problem: that it cannot be read, and why.
pub fn read(path: &Path) -> Result<String, Problems> {
    text(path).map_err(|finding| {
        let report = Report::new("", path);
        report.add(finding);
        report.problems(Severity::Error)
    })
}

/// Reads a text into settings.
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
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let report = Report::new(text, origin);
    let settings = settings(format, origin, env, &report);
    let errors = report.problems(Severity::Error);
    match settings {
        Some(settings) if errors.is_empty() => Ok(Settings {
            warnings: report.problems(Severity::Warning),
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
    format: Format,
    origin: &Path,
    env: expand::Environment<'_>,
    report: &Report<'_>,
) -> Option<Settings> {
    let mut document = document::read(report.text(), format, report)?;
    expand::expand(&mut document, "", env, report);
    let file = file::File::take(table::Table::root(&document, report));
    let directory = origin.parent().unwrap_or(Path::new(""));
    let settings = check::check(file, directory, report)?;
    Some(Settings {
        lines: Arc::new(KeyLines::of(&document, report)),
        ..settings
    })
}

/// The text of a file, or why there is none.
fn text(path: &Path) -> Result<String, Finding> {
    let unreadable = |error: std::io::Error| {
        let hint = (error.kind() == std::io::ErrorKind::NotFound)
            .then(|| "name another file with -c FILE".to_owned());
        Finding::error(None, "", format!("cannot be read: {error}")).hint(hint)
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(LARGEST as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() > LARGEST {
        let what = format!("cannot be read: larger than {} MiB", LARGEST >> 20);
        return Err(Finding::error(None, "", what));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Finding::error(
            None,
            "",
            format!("cannot be read: not UTF-8 on line {line}"),
        )
    })
}
