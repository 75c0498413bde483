//! Decides which table a name refers to, and which tables nobody refers to.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use crate::config::read::{At, quote};
use crate::config::report::{Finding, Report, Span};
use crate::config::suggest;
use crate::config::table::Tables;
use crate::config::word::Name;

/// The names of one kind of table.
pub(crate) struct Names<'f> {
    /// What they name, such as `upstream`.
    kind: &'static str,
    places: HashMap<&'f str, usize>,
    /// In the order of the file: path and place of the name.
    tables: Vec<(&'f str, &'f str, Span)>,
    is_complete: bool,
    used: RefCell<HashSet<usize>>,
}

impl<'f> Names<'f> {
    /// The names of the tables there are.
    pub(crate) fn of<T>(kind: &'static str, tables: &'f Tables<T>) -> Self {
        let names = tables.iter().enumerate();
        Self {
            kind,
            places: names.map(|(at, named)| (&*named.name, at)).collect(),
            tables: tables
                .iter()
                .map(|named| (&*named.name, named.path.as_str(), named.span.clone()))
                .collect(),
            is_complete: tables.is_complete,
            used: RefCell::default(),
        }
    }

    /// The place of a name, which does not count as used.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// The place of a name, which counts as used; no report where there is none.
    pub(crate) fn find(&self, name: &Name) -> Option<usize> {
        let place = self.place(&name.0)?;
        self.used.borrow_mut().insert(place);
        Some(place)
    }

    /// The place of a name; reported where there is none.
    pub(crate) fn resolve(&self, name: &At<Name>, report: &Report<'_>) -> Option<usize> {
        let found = self.find(&name.value);
        if found.is_none() {
            self.unknown(name, [], report);
        }
        found
    }

    /// Reports a name that names nothing; `others` are names known from elsewhere.
    pub(crate) fn unknown(
        &self,
        name: &At<Name>,
        others: impl IntoIterator<Item = &'static str>,
        report: &Report<'_>,
    ) {
        if !self.is_complete {
            return;
        }
        let kind = self.kind;
        let mut known: Vec<&str> = Vec::new();
        if !report.is_full() {
            for other in others {
                known.push(other);
            }
            known.extend(self.tables.iter().map(|(name, _, _)| *name));
        }
        let hint = suggest::hint(&name.value.0, known.iter().copied())
            .unwrap_or_else(|| format!("add [{kind}.NAME]"));
        let what = format!("no {kind} is named {}", written(name, report));
        report.add(Finding::error(name.span.clone(), name.path.clone(), what).hint(hint));
    }

    /// The name, where there is only one.
    pub(crate) fn only(&self) -> Option<&'f str> {
        match self.tables.as_slice() {
            [(name, _, _)] => Some(name),
            _ => None,
        }
    }

    /// Warns of every table that was not named: `what` begins the sentence that ends in its kind.
    pub(crate) fn warn_unused(&self, what: &str, report: &Report<'_>) {
        let used = self.used.borrow();
        for (place, (_, path, span)) in self.tables.iter().enumerate() {
            if !used.contains(&place) {
                let what = format!("{what} {}", self.kind);
                report.add(Finding::warning(span.clone(), *path, what));
            }
        }
    }
}

/// A name as it stands in the file, so that no variable's value is shown.
pub(crate) fn written<T>(name: &At<T>, report: &Report<'_>) -> String {
    quote(report.written(&name.span).trim_matches(['"', '\'']))
}
