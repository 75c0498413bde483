//! Decides what a problem is and how it prints: an operator's mistake, where it stands, why it is
//! one, and what to write instead.
//!
//! Must never carry a value that came from a variable or a literal header value: problems are
//! logged, shown on the admin socket and pasted into tickets.

use std::fmt;

use serde::Serialize;

/// Whether a problem fails the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file is not used.
    Error,
    /// The file is used; something in it is probably not what was meant.
    Warning,
}

/// One mistake in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Whether it fails the load.
    pub severity: Severity,
    /// The file, as it was named to us.
    pub file: Box<str>,
    /// See [`Problem::offset`].
    #[serde(skip)]
    pub(crate) at: usize,
    /// The line, from 1; 0 when the problem is about the file as a whole.
    pub line: usize,
    /// The column in characters, from 1; 0 when the problem is about the file as a whole.
    pub column: usize,
    /// The key, such as `endpoint.lakeside.host`; empty for syntax and whole-file problems.
    pub path: Box<str>,
    /// What is wrong, in one sentence without a full stop.
    pub what: Box<str>,
    /// What to do about it.
    pub hint: Option<Box<str>>,
    /// The source line, secrets masked.
    pub excerpt: Option<Excerpt>,
}

impl Problem {
    /// A problem that stands nowhere in particular.
    #[must_use]
    pub fn of_the_file(what: &str) -> Self {
        Self {
            severity: Severity::Error,
            file: "".into(),
            line: 0,
            column: 0,
            path: "".into(),
            what: what.into(),
            hint: None,
            excerpt: None,
            at: 0,
        }
    }

    /// Where it stands in all files of the configuration, one after the other, in bytes: what problems
    /// are sorted by.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.at
    }
}

/// A source line with the faulty part marked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// The line, shortened when it is long; control characters replaced, secrets masked.
    pub text: Box<str>,
    /// Where the mark begins, in characters from 0.
    pub start: usize,
    /// How long the mark is, in characters; at least 1.
    pub length: usize,
}

/// Problems in the order in which they stand in the file.
///
/// As an error it prints all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// The problems, first to last.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Problem> for Problems {
    fn from_iter<I: IntoIterator<Item = Problem>>(problems: I) -> Self {
        Self(problems.into_iter().collect())
    }
}

impl IntoIterator for Problems {
    type Item = Problem;
    type IntoIter = std::vec::IntoIter<Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl std::error::Error for Problems {}

impl fmt::Display for Problems {
    /// One problem after the other, without a newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    /// `file:line:column: key: what`, the source line, the hint. The first line stands alone for
    /// editors and `grep`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}:{}", self.line, self.column)?;
        }
        f.write_str(": ")?;
        match self.severity {
            Severity::Error => {}
            Severity::Warning => f.write_str("warning: ")?,
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.what)?;
        if let Some(excerpt) = &self.excerpt {
            let line = self.line.to_string();
            let gutter = line.len();
            write!(f, "\n  {line} | {}", excerpt.text)?;
            write!(
                f,
                "\n  {:gutter$} | {:start$}{}",
                "",
                "",
                "^".repeat(excerpt.length),
                start = excerpt.start
            )?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}
