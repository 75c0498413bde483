//! Decides what `${VAR}` means inside a string value.
//!
//! `${VAR}` is the variable, a problem when it is unset; `${VAR:-default}` and `${VAR:?message}`
//! treat empty like unset, as a shell does; `$${` is a literal `${`. Expansion happens on the parsed
//! tree: a value can never add a key, close a quote or be expanded again. Must never read the
//! process environment itself, and never show what a variable held.

use crate::config::document::{Node, Value};
use crate::config::read::key_path;
use crate::config::report::{Finding, Report, Span};

/// The environment as it is handed in.
pub(crate) type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

const FORMS: &str =
    "the forms are ${VAR}, ${VAR:-default} and ${VAR:?message}; $${ is a literal ${";

/// Expands every string value below a node, in place.
pub(crate) fn expand(node: &mut Node, path: &str, env: Environment<'_>, report: &Report<'_>) {
    let span = node.span.clone();
    match &mut node.value {
        Value::Text { text, expanded } => {
            if !text.contains('$') {
                return;
            }
            let place = Place { path, span, report };
            match expand_text(text, env, &place) {
                Some(new) => {
                    *expanded = new != *text;
                    *text = new;
                }
                None => node.value = Value::Failed,
            }
        }
        Value::List(nodes) => {
            for (index, node) in nodes.iter_mut().enumerate() {
                expand(node, &format!("{path}[{index}]"), env, report);
            }
        }
        Value::Table(entries) => {
            for entry in entries {
                expand(&mut entry.node, &key_path(path, &entry.key), env, report);
            }
        }
        Value::Integer(_)
        | Value::Float
        | Value::Boolean(_)
        | Value::Time
        | Value::Null
        | Value::Failed => {}
    }
}

/// The string being expanded.
struct Place<'p> {
    path: &'p str,
    span: Span,
    report: &'p Report<'p>,
}

impl Place<'_> {
    /// The span of the nth `${` as it is written, or of the whole string where escapes hide it.
    fn nth(&self, nth: usize) -> Span {
        let written = self.report.written(&self.span);
        written.match_indices("${").nth(nth).map_or_else(
            || self.span.clone(),
            |(at, _)| {
                let rest = written.get(at..).unwrap_or_default();
                let length = rest.find('}').map_or(2, |end| end + 1);
                self.span.start + at..self.span.start + at + length
            },
        )
    }

    fn problem(&self, nth: usize, what: String, hint: Option<String>) {
        self.report
            .add(Finding::error(self.nth(nth), self.path, what).hint(hint));
    }
}

/// The string with its variables replaced, or `None` after reporting why not.
fn expand_text(text: &str, env: Environment<'_>, place: &Place<'_>) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut nth = 0;
    let mut good = true;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(literal) = after.strip_prefix("${") {
            out.push_str("${");
            rest = literal;
            nth += 1;
        } else if let Some(body) = after.strip_prefix('{') {
            let Some((body, following)) = body.split_once('}') else {
                let what = "a variable is not closed: `${` without `}`".to_owned();
                place.problem(nth, what, Some(FORMS.to_owned()));
                return None;
            };
            match variable(body, env) {
                Ok(value) => out.push_str(&value),
                Err((what, hint)) => {
                    place.problem(nth, what, hint);
                    good = false;
                }
            }
            rest = following;
            nth += 1;
        } else {
            out.push('$');
            rest = after;
            warn_about_bare(after, env, place);
        }
    }
    out.push_str(rest);
    good.then_some(out)
}

/// What stands between the braces, replaced; or what is wrong and what to do.
fn variable(body: &str, env: Environment<'_>) -> Result<String, (String, Option<String>)> {
    let end = body.find(|c: char| !is_name_character(c));
    let (name, form) = body.split_at(end.unwrap_or(body.len()));
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let what =
            "not the name of a variable: letters, digits and `_`, not beginning with a digit";
        return Err((what.to_owned(), Some(FORMS.to_owned())));
    }
    let value = env(name);
    if form.is_empty() {
        return value.ok_or_else(|| {
            let hint = format!("set it, or give a default: ${{{name}:-default}}");
            (format!("the variable {name} is not set"), Some(hint))
        });
    }
    let value = value.filter(|value| !value.is_empty());
    if let Some(default) = form.strip_prefix(":-") {
        if default.contains("${") {
            let what = "a variable stands inside the default of another".to_owned();
            return Err((what, Some("variables cannot be nested".to_owned())));
        }
        return Ok(value.unwrap_or_else(|| default.to_owned()));
    }
    if let Some(message) = form.strip_prefix(":?") {
        return value.ok_or_else(|| match message.trim() {
            "" => (format!("the variable {name} is not set or empty"), None),
            said => (
                format!("the variable {name} is not set or empty: {said}"),
                None,
            ),
        });
    }
    Err((
        format!("${{{name}...}} is not a form of variable known here"),
        Some(FORMS.to_owned()),
    ))
}

/// `$TOKEN` stands for itself. Where a variable of that name exists, it was hardly meant to.
fn warn_about_bare(after: &str, env: Environment<'_>, place: &Place<'_>) {
    let end = after.find(|c: char| !is_name_character(c));
    let name = after.get(..end.unwrap_or(after.len())).unwrap_or_default();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if is_name && env(name).is_some() {
        let what = format!("${name} is taken literally, though a variable of that name is set");
        let hint = format!("write ${{{name}}} for the variable");
        place
            .report
            .add(Finding::warning(place.span.clone(), place.path, what).hint(hint));
    }
}

const fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}
