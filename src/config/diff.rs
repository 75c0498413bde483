//! Decides what is different between two settings: table by table and key by key, in the words and
//! the order in which a configuration is shown.
//!
//! It compares what is shown of settings, so whatever is shown is compared: a new kind of table too.
//! Must never show a secret: of one that changed it says that it did.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::config::effective::whole;
use crate::config::json::Json;
use crate::config::read::key_path;
use crate::config::settings::{Secret, Settings};

/// The tables that hold tables with names.
const NAMED: [&str; 9] = [
    "listener", "caller", "issuer", "quota", "store", "plan", "upstream", "endpoint", "contract",
];

/// What is different about one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its kind, such as `endpoint`.
    pub table: Box<str>,
    /// Its name, where it has one.
    pub name: Option<Box<str>>,
    /// What became of it.
    pub change: Change,
    /// The keys in it that differ: all it has, where it came or went.
    pub keys: Vec<Key>,
}

/// What became of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// There was none of this name.
    Added,
    /// There is none of this name any more.
    Removed,
    /// Some of its keys differ.
    Changed,
}

/// A key that differs, with what stood and what will stand there, every default filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    /// The key, with dots and places in lists where it stands deeper.
    pub key: String,
    /// `None`: it was not there.
    pub before: Option<Shown>,
    /// `None`: it will not be there.
    pub after: Option<Shown>,
    /// Whether the values are secret: they are stars, whatever they are.
    pub secret: bool,
}

/// A value as a configuration in JSON has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Shown(Json);

impl Difference {
    /// The table and its name as a file has them: `endpoint.lakeside`, `limits`.
    #[must_use]
    pub fn path(&self) -> String {
        match &self.name {
            Some(name) => key_path(&self.table, name),
            None => self.table.to_string(),
        }
    }
}

impl Shown {
    /// The items, where it is a list.
    #[must_use]
    pub fn items(&self) -> Option<Vec<Self>> {
        match &self.0 {
            Json::List(items) => Some(items.iter().cloned().map(Self).collect()),
            Json::Flag(_) | Json::Number(_) | Json::Text(_) | Json::Object(_) => None,
        }
    }

    /// The same value with every text in it changed.
    #[must_use]
    pub fn map(&self, change: &dyn Fn(&str) -> String) -> Self {
        fn walk(json: &Json, change: &dyn Fn(&str) -> String) -> Json {
            match json {
                Json::Text(text) => Json::Text(change(text)),
                Json::Number(number) => {
                    let text = number.to_string();
                    let changed = change(&text);
                    if changed == text {
                        Json::Number(*number)
                    } else {
                        Json::Text(changed)
                    }
                }
                Json::Flag(flag) => Json::Flag(*flag),
                Json::List(items) => Json::List(items.iter().map(|it| walk(it, change)).collect()),
                Json::Object(members) => Json::Object(
                    members
                        .iter()
                        .map(|(key, value)| (change(key), walk(value, change)))
                        .collect(),
                ),
            }
        }
        Self(walk(&self.0, change))
    }
}

impl std::fmt::Display for Shown {
    /// In JSON, on one line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A tree of texts and numbers is always written.
        f.write_str(&serde_json::to_string(&self.0).unwrap_or_default())
    }
}

/// What is different in `after`, in the order of its tables; in each kind what went away stands
/// last.
#[must_use]
pub fn differences(before: &Settings, after: &Settings) -> Vec<Difference> {
    let secrets = [secrets(before), secrets(after)];
    let kinds = [kinds(before), kinds(after)];
    let [old, new] = &kinds;
    let mut found = Vec::new();
    for (kind, after) in new {
        let none = Vec::new();
        let before = old
            .iter()
            .find_map(|(it, tables)| (it == kind).then_some(tables));
        compare(kind, before.unwrap_or(&none), after, &secrets, &mut found);
    }
    for (kind, before) in old {
        if !new.iter().any(|(it, _)| it == kind) {
            compare(kind, before, &[], &secrets, &mut found);
        }
    }
    found
}

/// A key and what stands there.
type Leaf = (String, Json);

/// A table's name and the leaves in it, in order.
type Table = (Option<String>, Vec<Leaf>);

/// Every kind of table with its tables.
fn kinds(settings: &Settings) -> Vec<(String, Vec<Table>)> {
    let Json::Object(kinds) = whole(settings) else {
        return Vec::new();
    };
    let tables = |kind: &str, json: Json| match json {
        Json::Object(tables) if NAMED.contains(&kind) => tables
            .into_iter()
            .map(|(name, table)| (Some(name), leaves(table)))
            .collect(),
        table @ (Json::Flag(_)
        | Json::Number(_)
        | Json::Text(_)
        | Json::List(_)
        | Json::Object(_)) => vec![(None, leaves(table))],
    };
    kinds
        .into_iter()
        .map(|(kind, json)| {
            let tables = tables(&kind, json);
            (kind, tables)
        })
        .collect()
}

/// What stands at the ends of a tree. A list of plain values is one.
fn leaves(table: Json) -> Vec<Leaf> {
    fn walk(path: String, json: Json, found: &mut Vec<Leaf>) {
        match json {
            Json::Object(members) => {
                for (key, value) in members {
                    walk(key_path(&path, &key), value, found);
                }
            }
            Json::List(items) if items.iter().any(|it| matches!(it, Json::Object(_))) => {
                for (index, item) in items.into_iter().enumerate() {
                    walk(format!("{path}[{index}]"), item, found);
                }
            }
            leaf @ (Json::Flag(_) | Json::Number(_) | Json::Text(_) | Json::List(_)) => {
                found.push((path, leaf));
            }
        }
    }
    let mut found = Vec::new();
    walk(String::new(), table, &mut found);
    found
}

fn compare(
    kind: &str,
    before: &[Table],
    after: &[Table],
    secrets: &[Secrets<'_>; 2],
    found: &mut Vec<Difference>,
) {
    let old: HashMap<_, _> = before.iter().map(|(name, keys)| (name, keys)).collect();
    let mut add = |name: &Option<String>, change, keys: Vec<Key>| {
        if change == Change::Changed && keys.is_empty() {
            return;
        }
        found.push(Difference {
            table: kind.into(),
            name: name.as_deref().map(Into::into),
            change,
            keys,
        });
    };
    for (name, new) in after {
        let change = match old.contains_key(name) {
            true => Change::Changed,
            false => Change::Added,
        };
        let none = Vec::new();
        let old = old.get(name).copied().unwrap_or(&none);
        let [was, is] = secrets;
        let table = (kind, name.as_deref().unwrap_or_default());
        add(name, change, keys(table, (old, new), (was, is)));
    }
    let kept: HashSet<_> = after.iter().map(|(name, _)| name).collect();
    for (name, old) in before {
        if !kept.contains(name) {
            let [was, is] = secrets;
            let table = (kind, name.as_deref().unwrap_or_default());
            add(name, Change::Removed, keys(table, (old, &[]), (was, is)));
        }
    }
}

/// The keys of a table that differ.
fn keys(
    (kind, name): (&str, &str),
    (before, after): (&[Leaf], &[Leaf]),
    (was, is): (&Secrets<'_>, &Secrets<'_>),
) -> Vec<Key> {
    let old: HashMap<_, _> = before.iter().map(|(key, value)| (key, value)).collect();
    let secret = |secrets: &Secrets<'_>, key: &String| {
        let place = (kind.to_owned(), name.to_owned(), key.clone());
        secrets.get(&place).copied().cloned()
    };
    let mut found = Vec::new();
    for (key, new) in after {
        let old = old.get(key).copied();
        let (was, is) = (secret(was, key), secret(is, key));
        if old != Some(new) || was != is {
            found.push(Key {
                key: key.clone(),
                before: old.cloned().map(Shown),
                after: Some(Shown(new.clone())),
                secret: was.is_some() || is.is_some(),
            });
        }
    }
    let kept: HashSet<_> = after.iter().map(|(key, _)| key).collect();
    for (key, old) in before {
        if !kept.contains(key) {
            found.push(Key {
                key: key.clone(),
                before: Some(Shown(old.clone())),
                after: None,
                secret: secret(was, key).is_some(),
            });
        }
    }
    found
}

/// What is shown as stars, by kind, name and key.
type Secrets<'s> = BTreeMap<(String, String, String), &'s Secret>;

fn secrets(settings: &Settings) -> Secrets<'_> {
    let headers = settings.upstreams.iter().flat_map(|upstream| {
        upstream.headers.iter().map(|(name, secret)| {
            let key = key_path("headers", name.as_str());
            (
                ("upstream".to_owned(), upstream.name.to_string(), key),
                secret,
            )
        })
    });
    let passwords = settings.stores.iter().filter_map(|store| {
        let secret = store.password.as_ref()?;
        let place = (
            "store".to_owned(),
            store.name.to_string(),
            "password".to_owned(),
        );
        Some((place, secret))
    });
    headers.chain(passwords).collect()
}

#[cfg(test)]
mod tests;
