//! Decides where the files are that the configuration names. Must never open one.

use std::path::Path;

use crate::config::file;
use crate::config::read::{At, Field};
use crate::config::report::{Finding, Report, Span};
use crate::config::settings::{NamedFile, PairFiles, Place};
use crate::config::word::Filled;

/// Paths are resolved against this directory.
#[derive(Clone, Copy)]
pub(super) struct Files<'r, 't> {
    pub(super) directory: &'r Path,
    pub(super) report: &'r Report<'t>,
}

impl Files<'_, '_> {
    /// A file, where one is named.
    pub(super) fn one(self, field: &Field<Filled>) -> Option<NamedFile> {
        field.given().map(|at| self.named(at))
    }

    /// A certificate and its key; `None` where one of them was reported.
    pub(super) fn pair(self, pair: &file::PairFiles) -> Option<PairFiles> {
        Some(PairFiles {
            certificate: self.one(&pair.certificate)?,
            key: self.one(&pair.key)?,
        })
    }

    pub(super) fn named(self, at: &At<Filled>) -> NamedFile {
        NamedFile {
            path: self.directory.join(&*at.value.0),
            place: self.place(&at.span, &at.path),
        }
    }

    /// A place of the configuration file.
    pub(super) fn place(self, span: &Span, path: &str) -> Place {
        let blank = Finding::error(span.clone(), path, "");
        Place::of(self.report.problem(&blank))
    }
}
