//! Decides what a configuration text says: one tree with spans, made from TOML or JSON, so that
//! nothing behind this file knows which of the two it was.
//!
//! Follows TOML 1.1 and RFC 8259. Must never let a duplicate key choose silently, and never hand
//! out a tree whose shape is a guess made after a syntax error.

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions};
use toml::de::{DeTable, DeValue};

use crate::config::Format;
use crate::config::report::{Finding, Report, Span, floor};

/// Tables and lists stand inside each other at most this deep; the deepest key there is needs 4.
const DEEPEST: usize = 32;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

/// What a value is.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A string; `expanded` when a variable stood in it.
    Text {
        text: String,
        expanded: bool,
    },
    /// An integer, or `None` when it does not fit.
    Integer(Option<i128>),
    Float,
    Boolean(bool),
    Time,
    Null,
    List(Vec<Node>),
    Table(Vec<Entry>),
    /// Was a string whose variables could not be expanded: reported already.
    Failed,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) node: Node,
}

/// Reads a text into a tree, or reports why it cannot be read.
pub(crate) fn read(text: &str, format: Format, report: &Report<'_>) -> Option<Node> {
    if text.trim().is_empty() {
        report.add(
            Finding::error(None, "", "the file is empty").hint(
                "a listener, an upstream and an endpoint are the least there can be".to_owned(),
            ),
        );
        return None;
    }
    let node = match format {
        Format::Toml => read_toml(text, report),
        Format::Json => read_json(text, report),
    }?;
    mask_secrets(&node, false, report);
    Some(node)
}

/// Leaves of a tree what stands at one key.
pub(crate) fn keep(node: &mut Node, key: &str) {
    if let Value::Table(entries) = &mut node.value {
        entries.retain(|entry| entry.key == key);
    }
}

/// Moves every span of a tree by so much: its text stands behind others.
pub(crate) fn shift(node: &mut Node, by: usize) {
    let moved = |span: &mut Span| *span = span.start + by..span.end + by;
    moved(&mut node.span);
    match &mut node.value {
        Value::Table(entries) => {
            for entry in entries {
                moved(&mut entry.key_span);
                shift(&mut entry.node, by);
            }
        }
        Value::List(nodes) => nodes.iter_mut().for_each(|node| shift(node, by)),
        Value::Text { .. }
        | Value::Integer(_)
        | Value::Float
        | Value::Boolean(_)
        | Value::Time
        | Value::Null
        | Value::Failed => {}
    }
}

fn read_toml(text: &str, report: &Report<'_>) -> Option<Node> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut readable = true;
    let mut repeated_table = None;
    for error in &errors {
        let span = error.span();
        let (what, hint) = if error.message() == "duplicate key" {
            let start = span.clone().unwrap_or_default().start;
            let since = |from: usize| text.get(from..start).unwrap_or_default();
            if repeated_table.is_some_and(|header| !since(header).contains("\n[")) {
                // What stands in a table that was given before was given before, too.
                continue;
            }
            let line_start = since(0).rfind('\n').map_or(0, |newline| newline + 1);
            if since(line_start).trim_start().starts_with('[') {
                repeated_table = Some(start);
            }
            ("this key was given before".to_owned(), None)
        } else {
            readable = false;
            toml_words(error.message())
        };
        let finding = Finding::error(span.clone(), "", what).hint(hint);
        let shown = span.is_some_and(|span| !is_near_secret(text, span.start, Format::Toml));
        report.add(if shown { finding } else { finding.unshown() });
    }
    if !readable {
        return None;
    }
    Some(Node {
        span: 0..0,
        value: toml_table(table.get_ref(), 0, report),
    })
}

/// A message of the TOML parser in plainer words, and what usually lies behind it.
fn toml_words(message: &str) -> (String, Option<String>) {
    let what = message.trim_end_matches(", expected literal string");
    let hint = if what.contains("string values must be quoted") {
        Some("put the value in double quotes")
    } else if what.contains("invalid basic string, expected `\"`") {
        Some("a string ends with the quote it began with, on the same line")
    } else {
        None
    };
    (what.to_owned(), hint.map(str::to_owned))
}

fn toml_table(table: &DeTable<'_>, depth: usize, report: &Report<'_>) -> Value {
    let mut entries: Vec<_> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: key.span(),
            node: Node {
                span: value.span(),
                value: toml_value(value.get_ref(), &value.span(), depth + 1, report),
            },
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span.start);
    Value::Table(entries)
}

fn toml_value(value: &DeValue<'_>, span: &Span, depth: usize, report: &Report<'_>) -> Value {
    if depth > DEEPEST {
        return too_deep(span, report);
    }
    match value {
        DeValue::String(text) => Value::Text {
            text: text.to_string(),
            expanded: false,
        },
        DeValue::Integer(integer) => {
            let digits = integer.as_str().replace('_', "");
            Value::Integer(i128::from_str_radix(&digits, integer.radix()).ok())
        }
        DeValue::Float(_) => Value::Float,
        DeValue::Boolean(boolean) => Value::Boolean(*boolean),
        DeValue::Datetime(_) => Value::Time,
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .map(|item| Node {
                    span: item.span(),
                    value: toml_value(item.get_ref(), &item.span(), depth + 1, report),
                })
                .collect(),
        ),
        DeValue::Table(table) => toml_table(table, depth, report),
    }
}

fn read_json(text: &str, report: &Report<'_>) -> Option<Node> {
    let strict = ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    match jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &strict) {
        Ok(parsed) => {
            let value = parsed.value?;
            Some(json_node(&value, 0, report))
        }
        Err(error) => {
            let span = error.range().start..error.range().end;
            let shown = !is_near_secret(text, span.start, Format::Json);
            let finding = Finding::error(span, "", lower_first(&error.kind().to_string()));
            report.add(if shown { finding } else { finding.unshown() });
            None
        }
    }
}

fn json_node(value: &ast::Value<'_>, depth: usize, report: &Report<'_>) -> Node {
    use jsonc_parser::common::Ranged;
    let range = value.range();
    let span = range.start..range.end;
    if depth > DEEPEST {
        let value = too_deep(&span, report);
        return Node { span, value };
    }
    let value = match value {
        ast::Value::StringLit(text) => Value::Text {
            text: text.value.to_string(),
            expanded: false,
        },
        ast::Value::NumberLit(number) if number.value.contains(['.', 'e', 'E']) => Value::Float,
        ast::Value::NumberLit(number) => Value::Integer(number.value.parse().ok()),
        ast::Value::BooleanLit(boolean) => Value::Boolean(boolean.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(list) => Value::List(
            list.elements
                .iter()
                .map(|element| json_node(element, depth + 1, report))
                .collect(),
        ),
        ast::Value::Object(object) => json_table(object, depth, report),
    };
    Node { span, value }
}

fn json_table(object: &ast::Object<'_>, depth: usize, report: &Report<'_>) -> Value {
    use jsonc_parser::common::Ranged;
    let mut entries: Vec<Entry> = Vec::with_capacity(object.properties.len());
    let mut seen = std::collections::HashSet::new();
    for property in &object.properties {
        let range = property.name.range();
        let key_span = range.start..range.end;
        let key = property.name.as_str().to_owned();
        if !seen.insert(key.clone()) {
            report.add(Finding::error(key_span, "", "this key was given before"));
            continue;
        }
        entries.push(Entry {
            key,
            key_span,
            node: json_node(&property.value, depth + 1, report),
        });
    }
    Value::Table(entries)
}

fn too_deep(span: &Span, report: &Report<'_>) -> Value {
    report.add(Finding::error(
        span.clone(),
        "",
        format!("stands more than {DEEPEST} tables or lists deep"),
    ));
    Value::Failed
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(characters).collect()
    })
}

/// Words in a key that say: the value is nobody's business.
const SECRET_WORDS: [&str; 9] = [
    "authorization",
    "token",
    "secret",
    "passw",
    "cookie",
    "credential",
    "api-key",
    "api_key",
    "key_sha256",
];

fn is_secret_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| key.contains(word))
}

/// Whether a text is a URL with a user name, and perhaps a password, in it.
pub(crate) fn has_user(text: &str) -> bool {
    text.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.contains('@')
    })
}

/// Masks every string `inside`, and every one below a key `headers` and below a key that sounds like a secret, wherever it
/// stands: a misspelled table must not put a token into a log.
pub(crate) fn mask_secrets(node: &Node, inside: bool, report: &Report<'_>) {
    match &node.value {
        Value::Table(entries) => {
            for entry in entries {
                let key = entry.key.to_ascii_lowercase();
                let is_headers = key.ends_with("headers") || key == "header";
                let inside = inside || is_headers || is_secret_key(&entry.key);
                mask_secrets(&entry.node, inside, report);
            }
        }
        Value::List(nodes) => {
            for node in nodes {
                mask_secrets(node, inside, report);
            }
        }
        Value::Text { text, .. } => {
            let lower = text.to_ascii_lowercase();
            let is_credential = lower.starts_with("bearer ") || lower.starts_with("basic ");
            if inside || is_credential || has_user(text) {
                report.mask(node.span.clone());
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

/// Whether a line that cannot be parsed may hold a secret: it, or one before it in the same table,
/// speaks of headers or of something secret, or it holds an inline TOML table, whose key may be the
/// very thing that cannot be parsed.
fn is_near_secret(text: &str, offset: usize, format: Format) -> bool {
    let offset = floor(text, offset);
    let (before, after) = text.split_at_checked(offset).unwrap_or((text, ""));
    let line_rest = after.lines().next().unwrap_or_default();
    let line_start = before.rsplit('\n').next().unwrap_or_default();
    let has_table = line_start.contains('{') || line_rest.contains('{');
    if sounds_secret(line_rest) || (format == Format::Toml && has_table) {
        return true;
    }
    for line in before.rsplit('\n') {
        if sounds_secret(line) {
            return true;
        }
        if line.trim_start().starts_with(['[', '}']) {
            return false;
        }
    }
    false
}

fn sounds_secret(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let words = ["header", "bearer ", "basic ", "@"];
    is_secret_key(&line) || words.iter().any(|word| line.contains(word))
}
