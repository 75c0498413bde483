//! Decides how the configuration is described to editors: a JSON Schema, draft 2020-12.
//!
//! There is no list of keys here. The reader is run once without a text, and draws what it asks for:
//! each key with the shape of its type (`read`, `word`, `amount`, `web`), each table with its keys.
//! What a key means and its default are taken from the tables of `docs/configuration.md`, so that
//! there is one text for people and editors. Rules between keys are `check`'s: no schema has them.
//!
//! A string with a variable in it fits everywhere a string, a number or a switch is read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use crate::config::file::File;
use crate::config::json::{Json, object, some};
use crate::config::report::Report;
use crate::config::table::Table;

/// The page whose words are used.
const PAGE: &str = include_str!("../../docs/configuration.md");

/// What a name can be.
const NAME: &str = "^[A-Za-z0-9._-]{1,64}$";

/// The configuration's JSON Schema, indented, with a line feed at the end.
#[must_use]
pub fn schema() -> String {
    let report = Report::new("", Path::new(""));
    let drawing = Drawing::new("the file", Rc::default());
    File::take(Table::drawn(&report, Rc::clone(&drawing)));
    let drawing = drawing.borrow();
    let mut members = vec![
        (
            "$schema".to_owned(),
            "https://json-schema.org/draft/2020-12/schema".into(),
        ),
        ("title".to_owned(), "Forecourt configuration".into()),
    ];
    if let Json::Object(own) = drawing.json() {
        members.extend(own);
    }
    let named = drawing.named.borrow();
    let named = named.iter().map(|(name, json)| (*name, Some(json.clone())));
    members.push(("$defs".to_owned(), object(named)));
    let text = serde_json::to_string_pretty(&Json::Object(members));
    // A tree of texts and numbers is always written.
    text.unwrap_or_default() + "\n"
}

/// What a value of one type looks like.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Under which it is described once, where it has a name.
    name: Option<&'static str>,
    json: Json,
}

impl Shape {
    fn of<'m>(members: impl IntoIterator<Item = (&'m str, Option<Json>)>) -> Self {
        Self {
            name: None,
            json: object(members),
        }
    }

    /// Any string.
    pub(crate) fn text() -> Self {
        Self::of([("type", some("string"))])
    }

    /// Any string but the empty one.
    pub(crate) fn filled() -> Self {
        Self::of([("type", some("string")), ("minLength", some(1_u64))])
    }

    /// A string that matches a pattern as a whole, or holds a variable.
    pub(crate) fn like(name: &'static str, expected: &str, pattern: &str) -> Self {
        Self {
            name: Some(name),
            ..Self::of([
                ("description", some(expected)),
                ("type", some("string")),
                ("pattern", some(format!("^({pattern})$|\\$\\{{"))),
            ])
        }
    }

    /// One of these words.
    pub(crate) fn words(words: impl IntoIterator<Item = &'static str>) -> Self {
        Self::or_variable(object([("enum", Some(Json::list(words)))]))
    }

    /// An integer between two bounds, both included.
    pub(crate) fn integer(least: u64, most: u64) -> Self {
        Self::or_variable(object([
            ("type", some("integer")),
            ("minimum", some(least)),
            ("maximum", some(most)),
        ]))
    }

    /// True or false.
    pub(crate) fn boolean() -> Self {
        Self::or_variable(object([("type", some("boolean"))]))
    }

    fn or_variable(json: Json) -> Self {
        let variable = object([("$ref", some("#/$defs/variable"))]);
        Self::of([("anyOf", Some(Json::List(vec![json, variable])))])
    }
}

/// How often a value stands at its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    One,
    List,
    OneOrList,
    /// Under keys of the operator's.
    Pairs,
}

/// A table as the reader asks for it.
#[derive(Debug)]
pub(crate) struct Drawing {
    section: &'static str,
    keys: Vec<(&'static str, Key)>,
    required: Vec<&'static str>,
    /// One of each of these must be there.
    one_of: Vec<Vec<&'static str>>,
    named: Rc<RefCell<BTreeMap<&'static str, Json>>>,
}

#[derive(Debug)]
enum Key {
    Value(Json),
    Table(Rc<RefCell<Drawing>>),
    /// A list of tables, all alike.
    List(Rc<RefCell<Drawing>>),
    /// Tables with names, all alike.
    Tables(Rc<RefCell<Drawing>>),
}

impl Drawing {
    fn new(
        section: &'static str,
        named: Rc<RefCell<BTreeMap<&'static str, Json>>>,
    ) -> Rc<RefCell<Self>> {
        let variable = object([
            (
                "description",
                some("a string with a variable in it: ${VAR}, ${VAR:-default} or ${VAR:?message}"),
            ),
            ("type", some("string")),
            ("pattern", some("\\$\\{")),
        ]);
        named.borrow_mut().insert("variable", variable);
        Rc::new(RefCell::new(Self {
            section,
            keys: Vec::new(),
            required: Vec::new(),
            one_of: Vec::new(),
            named,
        }))
    }

    /// A key and what it takes.
    pub(crate) fn key(&mut self, key: &'static str, shape: Shape, times: Times) {
        let one = match shape.name {
            None => shape.json,
            Some(name) => {
                self.named.borrow_mut().insert(name, shape.json);
                object([("$ref", some(format!("#/$defs/{name}")))])
            }
        };
        let list = |one: Json| object([("type", some("array")), ("items", Some(one))]);
        let json = match times {
            Times::One => one,
            Times::List => list(one),
            Times::OneOrList => object([("anyOf", Some(Json::List(vec![one.clone(), list(one)])))]),
            Times::Pairs => object([
                ("type", some("object")),
                ("additionalProperties", Some(one)),
            ]),
        };
        self.keys.push((key, Key::Value(json)));
    }

    /// A table at a key.
    pub(crate) fn table(&mut self, key: &'static str, section: &'static str) -> Rc<RefCell<Self>> {
        let below = Self::new(section, Rc::clone(&self.named));
        self.keys.push((key, Key::Table(Rc::clone(&below))));
        below
    }

    /// A list of tables at a key.
    pub(crate) fn list(&mut self, key: &'static str, section: &'static str) -> Rc<RefCell<Self>> {
        let below = Self::new(section, Rc::clone(&self.named));
        self.keys.push((key, Key::List(Rc::clone(&below))));
        below
    }

    /// Tables with names at a key.
    pub(crate) fn tables(&mut self, key: &'static str, section: &'static str) -> Rc<RefCell<Self>> {
        let below = Self::new(section, Rc::clone(&self.named));
        self.keys.push((key, Key::Tables(Rc::clone(&below))));
        below
    }

    /// A key that must be there, or one of the others in its place.
    pub(crate) fn require(&mut self, key: &'static str, others: &[&'static str]) {
        if others.is_empty() {
            if !self.required.contains(&key) {
                self.required.push(key);
            }
            return;
        }
        let mut any = vec![key];
        any.extend(others);
        self.one_of.push(any);
    }

    fn json(&self) -> Json {
        let keys = self.keys.iter();
        let properties = keys.map(|(name, key)| (*name, Some(self.property(name, key))));
        let properties = object(properties);
        let required =
            (!self.required.is_empty()).then(|| Json::list(self.required.iter().copied()));
        let alternatives = self.one_of.iter().flatten();
        let alternatives: Vec<_> = alternatives
            .map(|key| object([("required", Some(Json::list([*key])))]))
            .collect();
        object([
            ("type", some("object")),
            ("properties", Some(properties)),
            ("required", required),
            (
                "anyOf",
                (!alternatives.is_empty()).then_some(Json::List(alternatives)),
            ),
            ("additionalProperties", some(false)),
        ])
    }

    fn property(&self, name: &str, key: &Key) -> Json {
        let (mut json, section) = match key {
            Key::Value(json) => (json.clone(), self.section),
            Key::Table(table) => (table.borrow().json(), table.borrow().section),
            Key::List(table) => {
                let items = Some(table.borrow().json());
                let json = object([("type", some("array")), ("items", items)]);
                (json, table.borrow().section)
            }
            Key::Tables(table) => {
                let table = table.borrow();
                let is_needed = self.required.contains(&name);
                let json = object([
                    ("type", some("object")),
                    ("propertyNames", some(object([("pattern", some(NAME))]))),
                    ("additionalProperties", Some(table.json())),
                    ("minProperties", is_needed.then_some(1_u64.into())),
                ]);
                (json, table.section)
            }
        };
        let said = match key {
            Key::Value(_) => Said::row(self.section, name),
            Key::Table(_) | Key::List(_) | Key::Tables(_) => {
                Said::row(self.section, name).or_else(|| Said::section(section))
            }
        };
        if let (Json::Object(members), Some(said)) = (&mut json, said) {
            members.insert(0, ("description".to_owned(), said.meaning.into()));
            if let Some(default) = said.default {
                members.push(("default".to_owned(), default));
            }
        }
        json
    }
}

/// What the page says of a key.
struct Said {
    meaning: String,
    default: Option<Json>,
}

impl Said {
    /// The row of a key: key, value, default, meaning.
    fn row(section: &str, key: &str) -> Option<Self> {
        // The keys of an inline table stand in the table around it.
        let texts = match section.strip_prefix('`') {
            Some(inline) => {
                let row = format!("| `{}` |", inline.trim_end_matches('`'));
                PAGE.split("\n## ").find(|text| text.contains(&row))
            }
            // Of the first level, this is the only key that is no table.
            None if section == "the file" => chapter("include"),
            None => chapter(section),
        };
        let row = format!("| `{key}` |");
        let line = texts?.lines().find(|line| line.starts_with(&row))?;
        let mut cells = line.split('|').skip(2).map(str::trim);
        let (kind, default, meaning) = (cells.next()?, cells.next()?, cells.next()?);
        Some(Self {
            meaning: format!("{meaning} ({kind})"),
            default: value(default),
        })
    }

    /// The words between a heading and its table.
    fn section(section: &str) -> Option<Self> {
        let text = chapter(section)?;
        let words = text.split("\n|").next()?.split("\n```").next()?;
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        (!words.is_empty()).then_some(Self {
            meaning: words,
            default: None,
        })
    }
}

/// What stands under the heading of a section.
fn chapter(section: &str) -> Option<&'static str> {
    let heading = format!("\n## `{section}`\n");
    let (_, after) = PAGE.split_once(&heading)?;
    after.split("\n## ").next()
}

/// A default that is a value, not words about one.
fn value(cell: &str) -> Option<Json> {
    let text = cell.strip_prefix('`')?.strip_suffix('`')?;
    match serde_json::from_str(text).ok()? {
        serde_json::Value::Bool(flag) => some(flag),
        serde_json::Value::Number(number) => number.as_u64().map(Json::from),
        serde_json::Value::String(text) => some(text),
        serde_json::Value::Array(items) => {
            let items = items.iter().map(|item| item.as_str().map(Json::from));
            items.collect::<Option<_>>().map(Json::List)
        }
        serde_json::Value::Null | serde_json::Value::Object(_) => None,
    }
}
