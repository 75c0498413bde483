//! Decides how one value is taken out of the tree, with its place, and what is said when it is not
//! what its key takes.
//!
//! Must never report one mistake twice: a wrong value is [`Field::Wrong`], which no later rule
//! complains about. Must never repeat a value that came from a variable, or a secret.

use crate::config::document::{Entry, Node, Value, has_user};
use crate::config::report::{Finding, Report, Span};
use crate::config::schema::Shape;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
    /// The key, such as `endpoint.lakeside.host`.
    pub(crate) path: String,
}

/// What was found at a key.
#[derive(Clone, Debug)]
pub(crate) enum Field<T> {
    Absent,
    /// Something was there and has been reported.
    Wrong,
    Given(At<T>),
}

impl<T> Field<T> {
    pub(crate) const fn given(&self) -> Option<&At<T>> {
        match self {
            Self::Given(at) => Some(at),
            Self::Absent | Self::Wrong => None,
        }
    }

    pub(crate) const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// The value where a right one was given.
    pub(crate) fn value(&self) -> Option<T>
    where
        T: Clone,
    {
        self.given().map(|at| at.value.clone())
    }

    /// The value, or the default where none or a wrong one was given.
    pub(crate) fn or(&self, default: T) -> T
    where
        T: Clone,
    {
        self.value().unwrap_or(default)
    }
}

/// A list, its elements each with its place.
pub(crate) type List<T> = Vec<Field<T>>;

/// Why a value is not what its key takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wrong {
    /// Follows the quoted value: `"0s" is zero`. `None`: the general sentence.
    why: Option<String>,
    hint: Option<String>,
    /// The hint shows a part of the value.
    quotes: bool,
}

impl Wrong {
    /// Not of the right kind at all.
    pub(crate) fn kind() -> Self {
        Self::default()
    }

    /// Right in kind, but; the text continues a sentence that begins with the value.
    pub(crate) fn because(why: impl Into<String>) -> Self {
        Self {
            why: Some(why.into()),
            ..Self::default()
        }
    }

    /// Says what to write instead.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Says what to write instead, in words that show the value.
    pub(crate) fn hint_showing(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            quotes: true,
            ..self
        }
    }
}

/// Made from one value of the tree.
pub(crate) trait FromNode: Sized {
    /// Completes the sentence "expected ...".
    const EXPECTED: &'static str;
    /// Whether the value must not be repeated in a message.
    const SECRET: bool = false;

    /// The value, or why not.
    fn from_node(node: &Node) -> Result<Self, Wrong>;

    /// What values that it can be made from look like.
    fn shape() -> Shape;
}

/// Made from a string.
pub(crate) trait FromText: Sized {
    /// Completes the sentence "expected ...".
    const EXPECTED: &'static str;
    /// Whether it is a number with a unit.
    const HAS_UNIT: bool = false;
    /// Whether the value must not be repeated in a message.
    const SECRET: bool = false;

    /// The value, or why not.
    fn from_text(text: &str) -> Result<Self, Wrong>;

    /// What strings that it can be made from look like.
    fn shape() -> Shape;
}

impl<T: FromText> FromNode for T {
    const EXPECTED: &'static str = T::EXPECTED;
    const SECRET: bool = T::SECRET;

    fn from_node(node: &Node) -> Result<Self, Wrong> {
        match &node.value {
            Value::Text { text, .. } => T::from_text(text),
            Value::Integer(Some(number)) if T::HAS_UNIT => {
                // A bare number where a unit is needed: say what it would look like.
                let with_unit = ["s", "B", "/min", "%"]
                    .into_iter()
                    .map(|unit| format!("{number}{unit}"))
                    .find(|text| T::from_text(text).is_ok());
                Err(match with_unit {
                    Some(text) => Wrong::kind().hint(format!("give the unit, such as {text:?}")),
                    None => Wrong::kind(),
                })
            }
            Value::Integer(_)
            | Value::Float
            | Value::Boolean(_)
            | Value::Time
            | Value::Null
            | Value::List(_)
            | Value::Table(_)
            | Value::Failed => Err(Wrong::kind()),
        }
    }

    fn shape() -> Shape {
        T::shape()
    }
}

/// Takes one value, reporting it when it is wrong.
pub(crate) fn take<T: FromNode>(node: &Node, path: &str, report: &Report<'_>) -> Field<T> {
    if matches!(node.value, Value::Failed) {
        return Field::Wrong;
    }
    let wrong = match T::from_node(node) {
        Ok(value) => {
            return Field::Given(At {
                value,
                span: node.span.clone(),
                path: path.to_owned(),
            });
        }
        Err(wrong) => wrong,
    };
    let expanded = matches!(node.value, Value::Text { expanded: true, .. });
    let shown = if T::SECRET {
        "the value".to_owned()
    } else {
        describe(node, report)
    };
    let what = match wrong.why {
        Some(why) => format!("{shown} {why}"),
        None => format!("expected {}, found {shown}", T::EXPECTED),
    };
    let hint = wrong
        .hint
        .filter(|_| !(wrong.quotes && (expanded || T::SECRET)));
    report.add(Finding::error(node.span.clone(), path, what).hint(hint));
    Field::Wrong
}

/// Longer values are cut in messages.
const QUOTED: usize = 60;

/// A value as a message shows it. What came from a variable is shown as it is written.
pub(crate) fn describe(node: &Node, report: &Report<'_>) -> String {
    match &node.value {
        Value::Text { expanded: true, .. } => {
            let written = report.written(&node.span);
            let inner = written.trim_matches(['"', '\'']);
            format!("{} (with its variables replaced)", quote(inner))
        }
        Value::Text { text, .. } if has_user(text) => "the URL".to_owned(),
        Value::Text { text, .. } => quote(text),
        Value::Integer(Some(number)) => format!("the integer {number}"),
        Value::Integer(None) => "an integer that is too large".to_owned(),
        Value::Float => "a floating point number".to_owned(),
        Value::Boolean(boolean) => format!("the boolean {boolean}"),
        Value::Time => "a date or time".to_owned(),
        Value::Null => "null".to_owned(),
        Value::List(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
        Value::Failed => "a string".to_owned(),
    }
}

/// A string in double quotes, control characters escaped, cut when long.
pub(crate) fn quote(text: &str) -> String {
    if text.chars().count() <= QUOTED {
        return format!("{text:?}");
    }
    let beginning: String = text.chars().take(QUOTED).collect();
    format!("{:?}", format!("{beginning}..."))
}

/// `parent.key`, the key in quotes where TOML needs them.
pub(crate) fn key_path(parent: &str, key: &str) -> String {
    let is_bare = !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    let key = if is_bare { key.to_owned() } else { quote(key) };
    if parent.is_empty() {
        key
    } else {
        format!("{parent}.{key}")
    }
}

/// Names become metric labels and parts of paths.
pub(crate) fn check_name(entry: &Entry, path: &str, report: &Report<'_>) {
    if let Some(why) = name_flaw(&entry.key) {
        report.add(Finding::error(entry.key_span.clone(), path, why));
    }
}

/// Why a text cannot be the name of a table, such as a caller's; `None` where it can.
#[must_use]
pub fn name_flaw(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("a name cannot be empty")
    } else if name.len() > 64 {
        Some("a name has at most 64 characters")
    } else if !name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    {
        Some("a name consists of letters, digits, `.`, `_` and `-`")
    } else {
        None
    }
}
