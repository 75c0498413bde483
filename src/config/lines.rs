//! Decides what is remembered of where each key stood, once its file was read: which line decides
//! something can be told long after.
//!
//! Must never hold a value.

use std::collections::HashMap;

use crate::config::document::{Node, Value};
use crate::config::read::key_path;
use crate::config::report::Report;

/// The place of every key of a configuration.
#[derive(Clone, Debug, Default)]
pub struct KeyLines {
    files: Vec<Box<str>>,
    /// The file's place among these, and the line.
    lines: HashMap<Box<str>, (usize, u32)>,
}

/// Where keys stand is no part of what they say.
impl PartialEq for KeyLines {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl KeyLines {
    /// Those of a document.
    pub(in crate::config) fn of(document: &Node, report: &Report<'_>) -> Self {
        let mut lines = Self::default();
        lines.note(document, "", report);
        lines
    }

    /// The file and line, from 1, of a key such as `["endpoint", "lakeside", "contract"]`; `None`: it
    /// does not stand in the configuration, so that a default holds.
    #[must_use]
    pub fn find(&self, key: &[&str]) -> Option<(&str, u32)> {
        let (file, line) = *self.lines.get(&*Self::spelled(key))?;
        Some((self.files.get(file)?, line))
    }

    /// The key as problems spell it: `endpoint.lakeside.contract`.
    #[must_use]
    pub fn spelled(key: &[&str]) -> String {
        key.iter()
            .fold(String::new(), |path, part| key_path(&path, part))
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn note(&mut self, node: &Node, path: &str, report: &Report<'_>) {
        let Value::Table(entries) = &node.value else {
            return;
        };
        for entry in entries {
            let path = key_path(path, &entry.key);
            self.note(&entry.node, &path, report);
            let (file, line) = report.place(entry.key_span.start);
            let known = self.files.iter().position(|it| **it == *file);
            let file = known.unwrap_or_else(|| {
                self.files.push(file.into());
                self.files.len() - 1
            });
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            self.lines.insert(path.into(), (file, line));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Format, parse};

    const TOML: &str = "\
[listener.public]
address = \"127.0.0.1:0\"

[upstream.\"lake.side\"]
url = \"http://127.0.0.1:9001/a2a\"
headers = { x-one = \"1\" }

[endpoint]
lakeside.path = \"/a2a\"
lakeside.upstream = \"lake.side\"
";

    #[test]
    fn every_key_has_its_line() {
        let settings = parse(TOML, Format::Toml, Path::new("f.toml"), &|_| None).unwrap();
        for (key, line) in [
            (&["listener", "public"][..], Some(1)),
            (&["listener", "public", "address"], Some(2)),
            (&["upstream", "lake.side", "url"], Some(5)),
            (&["upstream", "lake.side", "headers", "x-one"], Some(6)),
            (&["endpoint", "lakeside", "path"], Some(9)),
            (&["endpoint", "lakeside", "upstream"], Some(10)),
            (&["endpoint", "lakeside", "contract"], None),
            (&["limits", "body"], None),
            (&[], None),
        ] {
            let found = settings.lines.find(key);
            assert_eq!(found, line.map(|line| ("f.toml", line)), "{key:?}");
        }
        let spelled = KeyLines::spelled(&["upstream", "lake.side", "url"]);
        assert_eq!(spelled, "upstream.\"lake.side\".url");
    }

    #[test]
    fn json_has_lines_as_well() {
        let json = r#"{
  "listener": {"public": {"address": "127.0.0.1:0"}},
  "upstream": {"u": {"url": "http://127.0.0.1:9001"}},
  "endpoint": {
    "e": {"path": "/a2a",
      "upstream": "u"}
  }
}"#;
        let settings = parse(json, Format::Json, Path::new("f.json"), &|_| None).unwrap();
        let line = |key: &[&str]| settings.lines.find(key).map(|(_, line)| line);
        assert_eq!(line(&["endpoint", "e", "path"]), Some(5));
        assert_eq!(line(&["endpoint", "e", "upstream"]), Some(6));
        assert_eq!(settings.lines.len(), 10);
    }
}
