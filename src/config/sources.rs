//! Decides what texts a configuration is made of: its file, and the files that it includes.
//!
//! The texts stand one after the other, so that a place is one number in all of them. Must never
//! understand more of a file than its `include`, and never show what stands in one.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::config::document;
use crate::config::expand::{self, Environment};
use crate::config::include::{MOST, Pattern, Search};
use crate::config::problem::{Problems, Severity};
use crate::config::read::{At, Field, List};
use crate::config::report::{Finding, Report, Span};
use crate::config::table::Table;
use crate::config::{Format, Settings};

/// More than this is not read, in bytes, all files together: no configuration is larger, and a device
/// may never end.
pub const LARGEST: usize = 4 << 20;

/// The texts of a configuration, not yet understood.
#[derive(Clone, PartialEq)]
pub struct Sources {
    text: String,
    parts: Vec<Part>,
    /// What came of looking for the files that are included.
    findings: Vec<Finding>,
    followed: Vec<PathBuf>,
}

/// One file among the texts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    /// Where its text stands.
    pub(crate) span: Span,
}

impl Sources {
    /// One text. The files that it includes are not read.
    #[must_use]
    pub fn of(text: &str, format: Format, path: &Path) -> Self {
        let mut sources = Self {
            text: String::new(),
            parts: Vec::new(),
            findings: Vec::new(),
            followed: vec![path.to_owned()],
        };
        sources.add(text, format, path);
        sources
    }

    /// Reads a file and those that it includes. `env` answers for environment variables.
    ///
    /// # Errors
    /// One problem: that the file cannot be read, and why. What is wrong with an included one is told
    /// with everything else, by [`Sources::parse`].
    pub fn read(path: &Path, env: Environment<'_>) -> Result<Self, Problems> {
        let sources = Self::of(&read(path)?, Format::of(path), path);
        Ok(sources.completed(path, Reach::Anywhere, env))
    }

    /// A text that somebody proposes for the place of a file. Of the files that it includes, those
    /// below the directory of that file are read: who proposes it may not be allowed to read others.
    #[must_use]
    pub fn candidate(
        text: &str,
        format: Format,
        origin: &Path,
        place: &Path,
        env: Environment<'_>,
    ) -> Self {
        Self::of(text, format, origin).completed(place, Reach::Below, env)
    }

    /// A text that somebody proposes for another place. That it includes files is a problem: they are
    /// not read.
    #[must_use]
    pub fn alone(text: &str, format: Format, origin: &Path, env: Environment<'_>) -> Self {
        Self::of(text, format, origin).completed(origin, Reach::Nothing, env)
    }

    /// Reads the texts into settings. `env` answers for environment variables.
    ///
    /// # Errors
    /// Every problem, in the order of the files. While one of them is no TOML or JSON, only that is
    /// reported.
    pub fn parse(&self, env: Environment<'_>) -> Result<Settings, Problems> {
        let report = Report::of(self);
        for finding in &self.findings {
            report.add(finding.clone());
        }
        super::understand(self, env, &report)
    }

    /// The files whose texts these are; first the one that includes the others.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().map(|part| &*part.path)
    }

    /// What to watch for news: these files and others that were looked for, and for each directory
    /// that was looked through the path of any file in it.
    #[must_use]
    pub fn followed(&self) -> &[PathBuf] {
        &self.followed
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The text of one file.
    pub(crate) fn written(&self, part: &Part) -> &str {
        self.text.get(part.span.clone()).unwrap_or_default()
    }

    fn add(&mut self, text: &str, format: Format, path: &Path) {
        // What stands at the very end of a text must not stand in the next.
        if !self.parts.is_empty() {
            self.text.push('\n');
        }
        let start = self.text.len();
        self.text
            .push_str(text.strip_prefix('\u{feff}').unwrap_or(text));
        self.parts.push(Part {
            path: path.to_owned(),
            format,
            span: start..self.text.len(),
        });
    }

    /// What the first text includes, as far as that can be understood: what cannot is reported by
    /// whoever reads it whole.
    fn patterns(&self, env: Environment<'_>) -> Vec<At<Pattern>> {
        let Some(part) = self.parts.first().filter(|_| self.text.contains("include")) else {
            return Vec::new();
        };
        let unheard = Report::new(self.written(part), &part.path);
        let Some(mut node) = document::read(unheard.text(), part.format, &unheard) else {
            return Vec::new();
        };
        document::keep(&mut node, "include");
        expand::expand(&mut node, "", env, &unheard);
        let patterns: Field<List<Pattern>> = Table::root(&node, &unheard).one_or_list("include");
        let patterns = patterns.value().unwrap_or_default();
        patterns.iter().filter_map(Field::given).cloned().collect()
    }

    fn completed(mut self, place: &Path, reach: Reach, env: Environment<'_>) -> Self {
        for at in self.patterns(env) {
            self.include(&at, place, reach);
        }
        self
    }

    fn include(&mut self, at: &At<Pattern>, main: &Path, reach: Reach) {
        let find = |severity: fn(Span, String, String) -> Finding, what: String| {
            severity(at.span.clone(), at.path.clone(), what)
        };
        let refused = match reach {
            Reach::Anywhere => None,
            Reach::Below if at.value.stays_below() => None,
            Reach::Below => {
                Some("leads elsewhere than below the directory of the configuration file")
            }
            Reach::Nothing => Some("names files, which are not read here"),
        };
        if let Some(what) = refused {
            self.findings.push(find(Finding::error, what.to_owned()));
            return;
        }
        let directory = main.parent().unwrap_or(Path::new(""));
        let mut search = Search::default();
        search.look(directory, &at.value);
        self.followed.append(&mut search.followed);
        for (path, error) in search.unread {
            let what = format!("{} cannot be looked through: {error}", path.display());
            self.findings.push(find(Finding::error, what));
        }
        if search.found.is_empty() && at.value.is_open() {
            let what = "matches no file".to_owned();
            self.findings.push(find(Finding::warning, what));
        }
        for path in search.found {
            if path == main || self.files().any(|known| known == path) {
                continue;
            }
            self.followed.push(path.clone());
            // The first is the file itself.
            if self.parts.len() > MOST {
                let what = format!("matches more than {MOST} files");
                self.findings.push(find(Finding::error, what));
                return;
            }
            // Looked at before it is opened: a pipe would be waited for.
            let read = match fs::metadata(&path).is_ok_and(|it| !it.is_file()) {
                true => Err(Unread::because("it is no file")),
                false => text(&path, LARGEST.saturating_sub(self.text.len())),
            };
            match read {
                Ok(text) => self.add(&text, Format::of(&path), &path),
                Err(unread) => {
                    let what = format!("{} {}", path.display(), unread.what);
                    self.findings.push(find(Finding::error, what));
                }
            }
        }
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.files()).finish()
    }
}

/// Which files a text may include.
#[derive(Clone, Copy)]
enum Reach {
    Anywhere,
    /// Below the directory of the configuration file.
    Below,
    Nothing,
}

/// Reads the text of one file, without understanding it.
///
/// # Errors
/// One problem: that it cannot be read, and why.
pub fn read(path: &Path) -> Result<String, Problems> {
    text(path, LARGEST).map_err(|unread| {
        let report = Report::new("", path);
        let hint = unread
            .is_missing
            .then_some("name another file with -c FILE");
        let finding = Finding::error(None, "", unread.what);
        report.add(finding.hint(hint.map(str::to_owned)));
        report.problems(Severity::Error)
    })
}

/// Why there is no text.
struct Unread {
    what: String,
    is_missing: bool,
}

impl Unread {
    fn because(what: impl fmt::Display) -> Self {
        Self {
            what: format!("cannot be read: {what}"),
            is_missing: false,
        }
    }
}

/// The text of a file, of so many bytes at most.
fn text(path: &Path, most: usize) -> Result<String, Unread> {
    let unreadable = |error: io::Error| Unread {
        is_missing: error.kind() == io::ErrorKind::NotFound,
        ..Unread::because(error)
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() > most {
        let what = match most {
            LARGEST => "larger than",
            _ => "with it, the files would have more than",
        };
        return Err(Unread::because(format!("{what} {} MiB", LARGEST >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        Unread::because(format!("not UTF-8 on line {line}"))
    })
}
