//! Decides where a finding stands in the text: offsets become lines, columns and a source line with
//! the secrets masked; findings become [`Problems`] in the order of the file.
//!
//! Must never stop at the first finding, and must never show a masked span.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use crate::config::problem::{Excerpt, Problem, Problems, Severity};
use crate::config::sources::Sources;

/// Bytes of the text, from and to.
pub(crate) type Span = Range<usize>;

/// More problems than this are counted, not listed: nobody reads them, and a log takes them.
const LISTED: usize = 500;

/// Characters of a source line that are shown at most.
const WIDTH: usize = 100;

/// Bytes of a source line that are looked at on either side of a mark.
const REACH: usize = 4 * WIDTH;

/// One problem before its place is known in lines.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    severity: Severity,
    span: Option<Span>,
    path: String,
    what: String,
    hint: Option<String>,
    shown: bool,
}

impl Finding {
    /// Something that fails the load; no span: about the file as a whole.
    pub(crate) fn error(
        span: impl Into<Option<Span>>,
        path: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Error,
            span: span.into(),
            path: path.into(),
            what: what.into(),
            hint: None,
            shown: true,
        }
    }

    /// Something that does not fail the load.
    pub(crate) fn warning(
        span: impl Into<Option<Span>>,
        path: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(span, path, what)
        }
    }

    /// Says what to do about it.
    pub(crate) fn hint(self, hint: impl Into<Option<String>>) -> Self {
        Self {
            hint: hint.into(),
            ..self
        }
    }

    /// Leaves the source line out.
    pub(crate) fn unshown(self) -> Self {
        Self {
            shown: false,
            ..self
        }
    }
}

/// The texts being read and everything found wrong with them so far.
pub(crate) struct Report<'t> {
    files: Vec<Started>,
    text: &'t str,
    line_starts: Vec<usize>,
    findings: RefCell<Vec<Finding>>,
    secrets: RefCell<Vec<Span>>,
    known: RefCell<BTreeMap<&'static str, Vec<&'static str>>>,
}

/// Where the text of a file begins.
struct Started {
    name: Box<str>,
    at: usize,
    /// Lines before it.
    lines: usize,
}

impl<'t> Report<'t> {
    /// Starts a report about a text that came from `origin`.
    pub(crate) fn new(text: &'t str, origin: &Path) -> Self {
        Self::about(text, [(origin, 0)])
    }

    /// Starts a report about the texts of several files.
    pub(crate) fn of(sources: &'t Sources) -> Self {
        let parts = sources.parts().iter();
        Self::about(
            sources.text(),
            parts.map(|part| (&*part.path, part.span.start)),
        )
    }

    fn about<'p>(text: &'t str, files: impl IntoIterator<Item = (&'p Path, usize)>) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts: Vec<_> = std::iter::once(0)
            .chain(newlines.map(|(at, _)| at + 1))
            .collect();
        let started = |(path, at): (&Path, usize)| Started {
            name: path.display().to_string().into(),
            at,
            lines: line_starts.partition_point(|start| *start < at),
        };
        Self {
            files: files.into_iter().map(started).collect(),
            text,
            line_starts,
            findings: RefCell::default(),
            secrets: RefCell::default(),
            known: RefCell::default(),
        }
    }

    /// The whole text.
    pub(crate) const fn text(&self) -> &'t str {
        self.text
    }

    /// The text as it stands in a span; empty when the span is not of this text.
    pub(crate) fn written(&self, span: &Span) -> &'t str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    /// Takes over what was found in one text, which stands here at an offset.
    pub(crate) fn absorb(&self, other: Report<'_>, offset: usize) {
        let moved = |span: Span| span.start + offset..span.end + offset;
        let findings = other.findings.into_inner().into_iter();
        let secrets = other.secrets.into_inner().into_iter();
        self.findings.borrow_mut().extend(findings.map(|it| {
            Finding {
                // What is about a file as a whole is about its beginning.
                span: it
                    .span
                    .map(moved)
                    .or((offset > 0).then_some(offset..offset)),
                ..it
            }
        }));
        self.secrets.borrow_mut().extend(secrets.map(moved));
    }

    /// Adds a finding.
    pub(crate) fn add(&self, finding: Finding) {
        self.findings.borrow_mut().push(finding);
    }

    /// Masks a span in every source line that is shown.
    pub(crate) fn mask(&self, span: Span) {
        self.secrets.borrow_mut().push(span);
    }

    /// Notes that a section takes these keys.
    pub(crate) fn note_keys(&self, section: &'static str, keys: &[&'static str]) {
        let mut known = self.known.borrow_mut();
        let noted = known.entry(section).or_default();
        for key in keys {
            if !noted.contains(key) {
                noted.push(key);
            }
        }
    }

    /// Every key that was asked for, by section.
    #[cfg(test)]
    pub(crate) fn known(&self) -> BTreeMap<&'static str, Vec<&'static str>> {
        self.known.borrow().clone()
    }

    /// Whether so much was found that one more would only be counted.
    pub(crate) fn is_full(&self) -> bool {
        self.findings.borrow().len() >= LISTED
    }

    /// Whether anything that fails the load was found.
    pub(crate) fn has_errors(&self) -> bool {
        self.findings
            .borrow()
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }

    /// The line of a span, and its file where that is not the file of another span.
    pub(crate) fn line(&self, span: &Span, seen_from: &Span) -> String {
        let (line, _) = self.position(span.start);
        match (self.file(span.start), self.file(seen_from.start)) {
            (Some(file), Some(other)) if file.at != other.at => {
                format!("line {line} of {}", file.name)
            }
            (Some(_) | None, _) => format!("line {line}"),
        }
    }

    /// The file that an offset is in.
    fn file(&self, offset: usize) -> Option<&Started> {
        let files = self.files.partition_point(|file| file.at <= offset);
        self.files.get(files.checked_sub(1)?)
    }

    /// The name of the file that an offset is in, and its line there, from 1.
    pub(crate) fn place(&self, offset: usize) -> (&str, usize) {
        let (line, _) = self.position(offset);
        (self.file(offset).map_or("", |file| &file.name), line)
    }

    /// Line and column in its file, both from 1, of an offset.
    pub(crate) fn position(&self, offset: usize) -> (usize, usize) {
        let lines_before = self.file(offset).map_or(0, |file| file.lines);
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = line
            .checked_sub(1)
            .and_then(|index| self.line_starts.get(index))
            .copied()
            .unwrap_or_default();
        let before = floor(self.text, offset);
        let column = self
            .text
            .get(start..before)
            .map_or(0, |text| text.chars().count());
        (line - lines_before, column + 1)
    }

    /// The findings of one severity as problems, in the order of the file.
    pub(crate) fn problems(&self, severity: Severity) -> Problems {
        let findings = self.findings.borrow();
        let mut chosen: Vec<_> = findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .collect();
        chosen.sort_by_key(|finding| finding.span.as_ref().map(|span| span.start));
        let left_out = chosen.len().saturating_sub(LISTED);
        let more = (left_out > 0).then(|| {
            self.problem(&Finding {
                severity,
                ..Finding::error(None, "", format!("and {left_out} more problems"))
            })
        });
        chosen
            .into_iter()
            .take(LISTED)
            .map(|finding| self.problem(finding))
            .chain(more)
            .collect()
    }

    /// One finding with its place in the text.
    pub(crate) fn problem(&self, finding: &Finding) -> Problem {
        let (line, column) = finding
            .span
            .as_ref()
            .map_or((0, 0), |span| self.position(span.start));
        let excerpt = match &finding.span {
            Some(span) if finding.shown => self.excerpt(span),
            _ => None,
        };
        let at = finding.span.as_ref().map_or(0, |span| span.start);
        Problem {
            severity: finding.severity,
            file: self.file(at).map_or("", |file| &file.name).into(),
            at,
            line,
            column,
            path: finding.path.as_str().into(),
            what: finding.what.as_str().into(),
            hint: finding.hint.as_deref().map(Into::into),
            excerpt,
        }
    }

    /// The source line with the span marked and every secret replaced by stars.
    fn excerpt(&self, span: &Span) -> Option<Excerpt> {
        let lines = self
            .line_starts
            .partition_point(|start| *start <= span.start);
        let line_start = *self.line_starts.get(lines.checked_sub(1)?)?;
        let line_end = line_start + self.text.get(line_start..)?.lines().next()?.len();
        let from = floor(self.text, span.start.saturating_sub(REACH)).max(line_start);
        let to = floor(self.text, span.start.saturating_add(REACH)).min(line_end);
        let near = self.text.get(from..to)?;
        if near.trim().is_empty() {
            return None;
        }
        let secrets = self.secrets.borrow();
        let secrets: Vec<_> = secrets
            .iter()
            .filter(|secret| secret.start < to && secret.end > from)
            .collect();
        let mut shown: Vec<char> = Vec::new();
        // A mark inside a secret marks what stands for it.
        let span = secrets
            .iter()
            .find(|secret| secret.contains(&span.start))
            .map_or(span, |secret| secret);
        let (mut start, mut end) = (None, None);
        let mut masked_to = 0;
        for (offset, character) in near.char_indices() {
            let offset = from + offset;
            if start.is_none() && offset >= span.start {
                start = Some(shown.len());
            }
            if end.is_none() && offset >= span.end {
                end = Some(shown.len());
            }
            if offset < masked_to {
                continue;
            }
            if let Some(secret) = secrets.iter().find(|secret| secret.contains(&offset)) {
                masked_to = secret.end;
                shown.extend("\"***\"".chars());
            } else {
                shown.push(printable(character));
            }
        }
        let start = start.unwrap_or(shown.len());
        let end = end.unwrap_or(shown.len()).max(start + 1);
        Some(window(&shown, start, end))
    }
}

/// What stands for a character on a terminal or in a log line.
fn printable(character: char) -> char {
    match character {
        '\t' => ' ',
        other if other.is_control() => '\u{fffd}',
        other => other,
    }
}

/// At most [`WIDTH`] characters of a line, the marked part among them.
fn window(line: &[char], start: usize, end: usize) -> Excerpt {
    let indent = line.iter().take_while(|c| **c == ' ').count().min(start);
    let from = if line.len() - indent <= WIDTH {
        indent
    } else {
        start.saturating_sub(WIDTH / 3).max(indent)
    };
    let to = line.len().min(from + WIDTH);
    let (before, after) = (
        if from > indent { "..." } else { "" },
        if to < line.len() { "..." } else { "" },
    );
    let middle: String = line.get(from..to).unwrap_or_default().iter().collect();
    Excerpt {
        text: format!("{before}{middle}{after}").into(),
        start: before.len() + start.saturating_sub(from),
        length: end.min(to).saturating_sub(start).max(1),
    }
}

/// The nearest character boundary at or before an offset.
pub(crate) fn floor(text: &str, offset: usize) -> usize {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
