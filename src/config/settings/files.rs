//! Decides how a file that the configuration names is remembered: its path, and where it is named.
//! Must never open one.

use std::path::{Path, PathBuf};

use crate::config::problem::{Problem, Severity};

/// Where a value stands in the configuration file, for problems that show only in use.
#[derive(Clone, Debug)]
pub struct Place(Box<Problem>);

/// A file that a key names, resolved against the directory of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Where it is named.
    pub place: Place,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairFiles {
    /// PEM file with the certificate chain, the end entity's first.
    pub certificate: NamedFile,
    /// PEM file with the private key.
    pub key: NamedFile,
}

/// The files that a configuration was read from: first the one that includes the others.
#[derive(Clone, Debug, Default)]
pub struct Origin(Vec<PathBuf>);

impl Origin {
    pub(in crate::config) fn of<'p>(files: impl Iterator<Item = &'p Path>) -> Self {
        Self(files.map(Path::to_owned).collect())
    }

    /// All but the first.
    pub fn included(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().skip(1).map(PathBuf::as_path)
    }
}

/// The same configuration from other files is the same configuration.
impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Origin {}

impl Place {
    /// The place of a problem in want of words.
    pub(in crate::config) fn of(problem: Problem) -> Self {
        Self(Box::new(problem))
    }

    /// A problem with what stands here.
    #[must_use]
    pub fn problem(&self, severity: Severity, what: &str, hint: Option<&str>) -> Problem {
        Problem {
            severity,
            what: what.into(),
            hint: hint.map(Into::into),
            ..(*self.0).clone()
        }
    }
}

/// The same value elsewhere is the same value.
impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Place {}
