//! Decides what a configuration text says: one tree with spans, made from TOML or JSON, so that
//! nothing behind this file knows which of the two it was.
//!
//! Follows TOML 1.1 and RFC 8259. Must never let a duplicate key choose silently, and never hand
//! out a tree whose shape is a guess made after a syntax error.

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions};
use toml::de::{DeTable, DeValue};

use crate::config::Format;
use crate::config::report::{Finding, Report, Span};

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

fn read_toml(text: &str, report: &Report<'_>) -> Option<Node> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut readable = true;
    for error in &errors {
        let span = error.span();
        let duplicate = error.message() == "duplicate key";
        readable &= duplicate;
        let (what, hint) = if duplicate {
            ("this key was given before".to_owned(), None)
        } else {
            (error.message().to_owned(), toml_hint(error.message()))
        };
        let finding = Finding::error(span.clone(), "", what).hint(hint);
        let shown = span.is_some_and(|span| !is_near_secret(text, span.start));
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

/// What usually lies behind a message of the TOML parser.
fn toml_hint(message: &str) -> Option<String> {
    let hint = if message.contains("string values must be quoted") {
        "put the value in double quotes"
    } else if message.contains("key with no value") {
        "a key needs ` = ` and a value"
    } else {
        return None;
    };
    Some(hint.to_owned())
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
            let shown = !is_near_secret(text, span.start);
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
const SECRET_WORDS: [&str; 8] = [
    "authorization",
    "token",
    "secret",
    "passw",
    "cookie",
    "credential",
    "api-key",
    "api_key",
];

fn is_secret_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| key.contains(word))
}

/// Masks every string below a key `headers` and below a key that sounds like a secret, wherever it
/// stands: a misspelled table must not put a token into a log.
fn mask_secrets(node: &Node, inside: bool, report: &Report<'_>) {
    match &node.value {
        Value::Table(entries) => {
            for entry in entries {
                let is_headers = entry.key.to_ascii_lowercase().starts_with("header");
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
            let text = text.to_ascii_lowercase();
            if inside || text.starts_with("bearer ") || text.starts_with("basic ") {
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
/// speaks of headers or of something secret.
fn is_near_secret(text: &str, offset: usize) -> bool {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (before, after) = text.split_at(end);
    let line_rest = after.lines().next().unwrap_or_default();
    let sounds_secret = |line: &str| {
        let line = line.to_ascii_lowercase();
        is_secret_key(&line)
            || ["header", "bearer ", "basic "]
                .iter()
                .any(|w| line.contains(w))
    };
    if sounds_secret(line_rest) {
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
