//! Decides how the files of a configuration become one tree: each table of the first level is made of
//! what all of them say in it.
//!
//! Must never let one file override another: what two of them give is a problem that names both places.

use std::collections::HashMap;
use std::collections::hash_map;

use crate::config::document::{self, Entry, Node, Value};
use crate::config::read::{describe, key_path};
use crate::config::report::{Finding, Report, Span};
use crate::config::sources::{Part, Sources};

/// Reads every text into one tree, or reports why they cannot be read.
pub(crate) fn read(sources: &Sources, report: &Report<'_>) -> Option<Node> {
    let (first, included) = sources.parts().split_first()?;
    let main = tree(sources, first, report);
    // An empty file is one that nothing is left of.
    let included = included
        .iter()
        .filter(|part| !sources.written(part).trim().is_empty());
    let included: Vec<_> = included.map(|part| tree(sources, part, report)).collect();
    let (mut main, included) = (main?, included.into_iter().collect::<Option<Vec<_>>>()?);
    if included.is_empty() {
        return Some(main);
    }
    if let Value::Table(entries) = main.value {
        let mut merged = Merged::new(entries, report);
        for node in included {
            merged.add(node);
        }
        main.value = Value::Table(merged.entries);
    }
    Some(main)
}

fn tree(sources: &Sources, part: &Part, report: &Report<'_>) -> Option<Node> {
    let own = Report::new(sources.written(part), &part.path);
    let mut node = document::read(own.text(), part.format, &own);
    report.absorb(own, part.span.start);
    if let Some(node) = &mut node {
        document::shift(node, part.span.start);
    }
    node
}

/// What was said so far.
struct Merged<'r, 't> {
    report: &'r Report<'t>,
    entries: Vec<Entry>,
    places: HashMap<String, Place>,
}

/// Something of the first level: where it stands among the entries, and what is in it.
struct Place {
    index: usize,
    span: Span,
    keys: HashMap<String, Span>,
}

impl<'r, 't> Merged<'r, 't> {
    fn new(entries: Vec<Entry>, report: &'r Report<'t>) -> Self {
        let mut merged = Self {
            report,
            entries: Vec::new(),
            places: HashMap::new(),
        };
        entries.into_iter().for_each(|entry| merged.put(entry));
        merged
    }

    /// Adds what an included file says.
    fn add(&mut self, node: Node) {
        let Value::Table(entries) = node.value else {
            let what = format!("expected a table, found {}", describe(&node, self.report));
            self.report.add(Finding::error(node.span, "", what));
            return;
        };
        for entry in entries {
            if entry.key == "include" {
                let what = "stands in a file that is included itself";
                let hint = "only the file that -c names includes others".to_owned();
                self.report
                    .add(Finding::error(entry.key_span, entry.key, what).hint(hint));
            } else {
                self.put(entry);
            }
        }
    }

    fn put(&mut self, entry: Entry) {
        let (place, known) = match self.places.entry(entry.key.clone()) {
            hash_map::Entry::Occupied(place) => {
                let place = place.into_mut();
                let known = self.entries.get_mut(place.index);
                (place, known.map(|known| &mut known.node.value))
            }
            hash_map::Entry::Vacant(place) => {
                let keys = match &entry.node.value {
                    Value::Table(entries) => keys(entries),
                    Value::Text { .. }
                    | Value::Integer(_)
                    | Value::Float
                    | Value::Boolean(_)
                    | Value::Time
                    | Value::Null
                    | Value::List(_)
                    | Value::Failed => HashMap::new(),
                };
                place.insert(Place {
                    index: self.entries.len(),
                    span: entry.key_span.clone(),
                    keys,
                });
                self.entries.push(entry);
                return;
            }
        };
        match (known, entry.node.value) {
            (Some(Value::Table(known)), Value::Table(more)) => {
                for more in more {
                    match place.keys.entry(more.key.clone()) {
                        hash_map::Entry::Vacant(free) => {
                            free.insert(more.key_span.clone());
                            known.push(more);
                        }
                        hash_map::Entry::Occupied(taken) => {
                            let path = key_path(&entry.key, &more.key);
                            twice(&path, taken.get(), more.key_span, self.report);
                        }
                    }
                }
            }
            _ => twice(&entry.key, &place.span, entry.key_span, self.report),
        }
    }
}

fn keys(entries: &[Entry]) -> HashMap<String, Span> {
    let keys = entries.iter();
    keys.map(|it| (it.key.clone(), it.key_span.clone()))
        .collect()
}

fn twice(path: &str, first: &Span, second: Span, report: &Report<'_>) {
    let line = report.line(first, &second);
    let what = format!("was given before, on {line}");
    let hint = "each name and each key stands in one file".to_owned();
    report.add(Finding::error(second, path, what).hint(hint));
}
