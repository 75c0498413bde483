//! Decides how a table is read: key by key; what is wrong is reported and reading goes on; what
//! nobody asked for is reported at the end.
//!
//! Must never stop at a wrong value: the operator wants all of them.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use crate::config::document::{Entry, Node, Value, mask_secrets};
use crate::config::read::{At, Field, FromNode, check_name, describe, key_path, take};
use crate::config::report::{Finding, Report, Span};
use crate::config::schema::{Drawing, Times};
use crate::config::suggest;

mod draw;
mod list;

/// The keys of tables with names that hold tables themselves.
const NESTED: [&str; 6] = [
    "cost",
    "headers",
    "proxy_protocol",
    "quotas",
    "tls",
    "upstreams",
];

/// A table being read.
pub(crate) struct Table<'t> {
    report: &'t Report<'t>,
    /// How the documentation names it, such as `[endpoint.NAME]`.
    section: &'static str,
    path: String,
    /// Where to point when something is missing: the name in the header.
    span: Option<Span>,
    entries: &'t [Entry],
    asked: Vec<&'static str>,
    /// Something else stood here and was reported: nothing is missing in it.
    is_broken: bool,
    /// Where what is asked for is drawn instead of read.
    drawing: Option<Rc<RefCell<Drawing>>>,
}

/// A table whose keys are names, such as `[endpoint.NAME]`.
pub(crate) struct Tables<T> {
    /// In the order of the file.
    pub(crate) entries: Vec<Named<T>>,
    /// Whether all there was could be read: otherwise an unknown name may be no mistake.
    pub(crate) is_complete: bool,
}

/// One entry of a [`Tables`] table.
pub(crate) struct Named<T> {
    pub(crate) name: Box<str>,
    /// Where the name stands.
    pub(crate) span: Span,
    pub(crate) path: String,
    pub(crate) value: T,
}

impl<'t> Table<'t> {
    /// The whole document.
    pub(crate) fn root(node: &'t Node, report: &'t Report<'t>) -> Self {
        let mut table = Self::empty(report, "the file", String::new());
        table.open(node);
        table
    }

    const fn empty(report: &'t Report<'t>, section: &'static str, path: String) -> Self {
        Self {
            report,
            section,
            path,
            span: None,
            entries: &[],
            asked: Vec::new(),
            is_broken: false,
            drawing: None,
        }
    }

    /// Takes the entries of a node, or reports that it has none.
    fn open(&mut self, node: &'t Node) {
        match &node.value {
            Value::Table(entries) => {
                self.entries = entries;
                // `[endpoint.a.b]` gives an endpoint `a` with nothing but a table `b`.
                self.is_broken = self.section.ends_with(".NAME]")
                    && !entries.is_empty()
                    && entries.iter().all(|entry| {
                        matches!(entry.node.value, Value::Table(_))
                            && !NESTED.contains(&entry.key.as_str())
                    });
            }
            Value::Failed => self.is_broken = true,
            Value::Text { .. }
            | Value::Integer(_)
            | Value::Float
            | Value::Boolean(_)
            | Value::Time
            | Value::Null
            | Value::List(_) => {
                self.is_broken = true;
                // The value is not repeated: it may stand where secrets stand.
                let found = if matches!(node.value, Value::Text { .. }) {
                    "a string".to_owned()
                } else {
                    describe(node, self.report)
                };
                let what = format!("expected a table, found {found}");
                self.report
                    .add(Finding::error(node.span.clone(), self.path.clone(), what));
            }
        }
    }

    /// Where the table is to be pointed at.
    pub(crate) const fn span(&self) -> Option<&Span> {
        self.span.as_ref()
    }

    fn ask(&mut self, key: &'static str) -> Option<(&'t Entry, String)> {
        self.asked.push(key);
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some((entry, key_path(&self.path, key)))
    }

    /// What stands where nothing stands: absent, or wrong in a broken table.
    const fn nothing<T>(&self) -> Field<T> {
        if self.is_broken {
            Field::Wrong
        } else {
            Field::Absent
        }
    }

    /// One value.
    pub(crate) fn field<T: FromNode>(&mut self, key: &'static str) -> Field<T> {
        self.draw::<T>(key, Times::One);
        match self.ask(key) {
            Some((entry, path)) => take(&entry.node, &path, self.report),
            None => self.nothing(),
        }
    }

    /// One value that must be there.
    pub(crate) fn required<T: FromNode>(&mut self, key: &'static str) -> Field<T> {
        self.required_beside(key, &[])
    }

    /// One value that must be there; `others` are keys of this table that look like its key and
    /// mean something else.
    pub(crate) fn required_beside<T: FromNode>(
        &mut self,
        key: &'static str,
        others: &[&'static str],
    ) -> Field<T> {
        let field = self.field::<T>(key);
        if let Some(drawing) = &self.drawing {
            drawing.borrow_mut().require(key, &[]);
            return field;
        }
        if !field.is_absent() {
            return field;
        }
        if self.is_misspelt(key, others) {
            return Field::Wrong;
        }
        let hint = format!("{key} takes {}", T::EXPECTED);
        self.missing(key, Some(hint));
        field
    }

    /// An absent field becomes a wrong one where its key is there under another spelling: that is
    /// reported as an unknown key. `others` are keys of this table that look like it and can stand
    /// in its place. For keys that must be there.
    pub(crate) fn unless_misspelt<T>(
        &self,
        field: Field<T>,
        key: &'static str,
        others: &[&'static str],
    ) -> Field<T> {
        if let Some(drawing) = &self.drawing {
            drawing.borrow_mut().require(key, others);
        }
        if field.is_absent() && self.is_misspelt(key, others) {
            return Field::Wrong;
        }
        field
    }

    fn is_misspelt(&self, key: &str, others: &[&str]) -> bool {
        self.entries.iter().any(|entry| {
            entry.key != key
                && !others.contains(&entry.key.as_str())
                && suggest::nearest(&entry.key, [key]).is_some()
        })
    }

    /// Reports a key that must be there and is not.
    pub(crate) fn missing(&self, key: &str, hint: Option<String>) {
        if !self.is_broken {
            let what = format!("{key} is missing");
            self.report
                .add(Finding::error(self.span.clone(), self.path.clone(), what).hint(hint));
        }
    }

    /// A table below this one; without one, an absent one.
    pub(crate) fn table(&mut self, key: &'static str, section: &'static str) -> Option<Self> {
        let drawn = self.drawn_below(|drawing| drawing.table(key, section), section);
        if drawn.is_some() {
            return drawn;
        }
        let (entry, path) = self.ask(key)?;
        Some(self.below(entry, path, section))
    }

    /// A table below this one that is read even where it is absent, for its defaults.
    pub(crate) fn table_or_empty(&mut self, key: &'static str, section: &'static str) -> Self {
        if let Some(drawn) = self.drawn_below(|drawing| drawing.table(key, section), section) {
            return drawn;
        }
        match self.ask(key) {
            Some((entry, path)) => self.below(entry, path, section),
            None => Self {
                is_broken: self.is_broken,
                ..Self::empty(self.report, section, key.to_owned())
            },
        }
    }

    fn below(&self, entry: &'t Entry, path: String, section: &'static str) -> Self {
        let mut table = Self {
            span: Some(entry.key_span.clone()),
            ..Self::empty(self.report, section, path)
        };
        table.open(&entry.node);
        table
    }

    /// The entries of a table below this one whose keys are the operator's.
    pub(crate) fn pairs<T: FromNode>(
        &mut self,
        key: &'static str,
        section: &'static str,
    ) -> Field<Vec<(At<String>, Field<T>)>> {
        self.draw::<T>(key, Times::Pairs);
        let Some((entry, path)) = self.ask(key) else {
            return self.nothing();
        };
        let table = self.below(entry, path.clone(), section);
        if table.is_broken {
            return Field::Wrong;
        }
        let pairs = table.entries.iter().map(|entry| {
            let path = key_path(&path, &entry.key);
            let value = take(&entry.node, &path, self.report);
            let key = At {
                value: entry.key.clone(),
                span: entry.key_span.clone(),
                path,
            };
            (key, value)
        });
        Field::Given(At {
            value: pairs.collect(),
            span: entry.node.span.clone(),
            path: path.clone(),
        })
    }

    /// The tables `[key.NAME]`, each read by `shape`.
    pub(crate) fn named<T>(
        &mut self,
        key: &'static str,
        section: &'static str,
        shape: fn(Table<'t>) -> T,
    ) -> Tables<T> {
        let mut named = Tables {
            entries: Vec::new(),
            is_complete: !self.is_broken,
        };
        if let Some(drawn) = self.drawn_below(|drawing| drawing.tables(key, section), section) {
            shape(drawn);
            return named;
        }
        let Some((entry, path)) = self.ask(key) else {
            return named;
        };
        let Value::Table(entries) = &entry.node.value else {
            named.is_complete = false;
            let what = format!("expected tables with names, {section}");
            let is_list = matches!(entry.node.value, Value::List(_));
            let hint = (is_list && !section.starts_with('`'))
                .then(|| format!("write {section} instead of [[{key}]]"));
            self.report
                .add(Finding::error(entry.key_span.clone(), path, what).hint(hint));
            return named;
        };
        let stray = entries
            .iter()
            .find(|entry| !matches!(entry.node.value, Value::Table(_)));
        if let Some(stray) = stray {
            named.is_complete = false;
            let (what, hint) = if section.starts_with('`') {
                (format!("is no table, and {section} holds only those"), None)
            } else {
                let what = format!("stands in [{key}], which holds only tables with names");
                (what, Some(format!("name the table: {section}")))
            };
            let path = key_path(&path, &stray.key);
            self.report
                .add(Finding::error(stray.key_span.clone(), path, what).hint(hint));
        }
        for entry in entries {
            if !matches!(entry.node.value, Value::Table(_)) {
                continue;
            }
            let path = key_path(&path, &entry.key);
            check_name(entry, &path, self.report);
            named.entries.push(Named {
                name: entry.key.as_str().into(),
                span: entry.key_span.clone(),
                path: path.clone(),
                value: shape(self.below(entry, path, section)),
            });
        }
        named
    }

    /// Ends the reading: reports every key that nobody asked for.
    pub(crate) fn finish(self) {
        self.report.note_keys(self.section, &self.asked);
        let asked: HashSet<_> = self.asked.iter().copied().collect();
        for entry in self.entries {
            if asked.contains(entry.key.as_str()) {
                continue;
            }
            let is_table = matches!(entry.node.value, Value::Table(_) | Value::List(_));
            if is_table
                || ["[upstream.NAME]", "[caller.NAME]", "[store.NAME]"].contains(&self.section)
            {
                // It may be a misspelt `headers`, or a key where its digest belongs.
                mask_secrets(&entry.node, true, self.report);
            }
            let what = match self.section {
                "the file" => "no such table or key".to_owned(),
                section => format!("no such key in {section}"),
            };
            let hint = suggest::nearest(&entry.key, self.asked.iter().copied())
                .map(|known| format!("did you mean `{known}`?"))
                .or_else(|| self.dotted_name(entry))
                .or_else(|| {
                    (!self.asked.is_empty()).then(|| format!("known: {}", self.asked.join(", ")))
                });
            let path = key_path(&self.path, &entry.key);
            self.report
                .add(Finding::error(entry.key_span.clone(), path, what).hint(hint));
        }
    }

    /// `[endpoint.a.b]` is a table `b` in the endpoint `a`: probably the name was `a.b`.
    fn dotted_name(&self, entry: &Entry) -> Option<String> {
        let Value::Table(inner) = &entry.node.value else {
            return None;
        };
        let kind = self.section.strip_suffix(".NAME]")?.strip_prefix('[')?;
        let is_ours = inner
            .iter()
            .any(|entry| self.asked.iter().any(|key| *key == entry.key));
        let name = self.path.strip_prefix(kind)?.strip_prefix('.')?;
        is_ours.then(|| {
            format!(
                "a name with a dot stands in quotes: [{kind}.\"{}.{}\"]",
                name.trim_matches('"'),
                entry.key
            )
        })
    }
}
