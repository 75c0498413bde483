//! Decides how the query of an admin page is read: parameters that the page knows, each at most once.
//!
//! Must never overlook one: who misspells `dry-run` must not reload.

use http::StatusCode;
use percent_encoding::percent_decode_str;

use super::answer::{Answer, text};
use super::attempt::As;

/// The parameters of one request.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query whose parameters are some of these.
    ///
    /// # Errors
    /// One that is anything else.
    pub(super) fn read(query: Option<&str>, known: &[&str]) -> Result<Self, Wrong> {
        let mut found: Vec<(String, String)> = Vec::new();
        let parts = query.unwrap_or_default().split('&');
        for part in parts.filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let decoded = |text| percent_decode_str(text).decode_utf8();
            let (Ok(name), Ok(value)) = (decoded(name), decoded(value)) else {
                return Err(Wrong::because("a parameter is not UTF-8"));
            };
            if !known.contains(&&*name) {
                return Err(Wrong::because(format!(
                    "no such parameter; known: {}",
                    known.join(", ")
                )));
            }
            if found.iter().any(|(other, _)| *other == name) {
                return Err(Wrong::because(format!("{name} stands there twice")));
            }
            found.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(found))
    }

    /// The value of a parameter; empty where it has none.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }

    /// Whether a parameter without a value stands there.
    ///
    /// # Errors
    /// Where it has one.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Wrong> {
        match self.value(name) {
            None => Ok(false),
            Some("" | "true") => Ok(true),
            Some(_) => Err(Wrong::because(format!("{name} takes no value"))),
        }
    }

    /// `as`: for whom the answer is. Text, where nothing is said.
    ///
    /// # Errors
    /// Anything else.
    pub(super) fn to(&self) -> Result<As, Wrong> {
        match self.value("as") {
            None | Some("text") => Ok(As::Text),
            Some("json") => Ok(As::Json),
            Some(_) => Err(Wrong::because("as takes text or json")),
        }
    }
}

/// What is wrong with a request.
#[derive(Debug)]
pub(super) struct Wrong(Box<str>);

impl Wrong {
    pub(super) fn because(why: impl Into<Box<str>>) -> Self {
        Self(why.into())
    }

    pub(super) fn answer(&self) -> Answer {
        text(StatusCode::BAD_REQUEST, format!("{}\n", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_is_read_and_once() {
        let known = ["dry-run", "as", "directory"];
        let read = |query| Query::read(query, &known);
        for wrong in [
            "dryrun",
            "dry-run&dry-run",
            "as=json&as=json",
            "x=1",
            "%ff",
            "dry%2Drun&dry-run",
        ] {
            assert!(read(Some(wrong)).is_err(), "{wrong}");
        }
        for (query, flag, to) in [
            (None, Some(false), Some(As::Text)),
            (Some(""), Some(false), Some(As::Text)),
            (Some("dry-run"), Some(true), Some(As::Text)),
            (Some("dry-run=true&as=json"), Some(true), Some(As::Json)),
            (Some("dry-run=false&as=xml"), None, None),
            (Some("&dry%2Drun&"), Some(true), Some(As::Text)),
        ] {
            let query = read(query).ok().unwrap();
            assert_eq!(query.flag("dry-run").ok(), flag);
            assert_eq!(query.to().ok(), to);
        }
        let query = read(Some("directory=/a%20b+c")).ok().unwrap();
        assert_eq!(query.value("directory"), Some("/a b+c"));
    }
}
