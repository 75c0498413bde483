//! Decides what of a candidate's text is not told back: what the gateway's environment holds.
//!
//! Whoever may ask what a text would change need not be allowed to read this process's variables. So
//! the variables that a candidate names are its to use, and their values are shown by their names.

use std::cell::RefCell;

use crate::config::{Excerpt, Problem, Problems};

/// Shorter values are told: they are no secrets, and stand in everything.
const SHORTEST: usize = 4;

/// The variables that were asked for, with their values.
#[derive(Default)]
pub(super) struct Veil(RefCell<Vec<(String, String)>>);

impl Veil {
    /// Answers from an environment and remembers what was told.
    pub(super) fn ask(
        &self,
        environment: &dyn Fn(&str) -> Option<String>,
        name: &str,
    ) -> Option<String> {
        let value = environment(name)?;
        let mut told = self.0.borrow_mut();
        if value.len() >= SHORTEST && !told.iter().any(|(known, _)| known == name) {
            told.push((name.to_owned(), value.clone()));
            // A value may stand in a longer one.
            told.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        }
        Some(value)
    }

    /// A value with the variables' names in place of theirs. An amount may be told in another unit than
    /// it was written in: where a variable could be a part of one, none is told.
    pub(super) fn cover_value(&self, text: &str) -> String {
        let is_amount = text.starts_with(|it: char| it.is_ascii_digit())
            && text.ends_with(|it: char| it.is_ascii_alphabetic() || it == '%');
        let could_be = |value: &str| {
            let digits =
                value.trim_end_matches(|it: char| it.is_ascii_alphabetic() || "/%".contains(it));
            let digits = digits.bytes().all(|it| it.is_ascii_digit() || it == b'.');
            digits && value.starts_with(|it: char| it.is_ascii_digit())
        };
        let told = self.0.borrow();
        let part = told.iter().find(|(_, value)| is_amount && could_be(value));
        match part {
            Some((name, _)) => format!("${{{name}}}..."),
            None => self.cover(text),
        }
    }

    /// The text with the variables' names in place of their values, in whatever case they stand.
    pub(super) fn cover(&self, text: &str) -> String {
        let mut covered = text.to_owned();
        for (name, value) in self.0.borrow().iter() {
            let value = value.to_ascii_lowercase();
            let mut shown = String::with_capacity(covered.len());
            let mut rest = covered.as_str();
            // ASCII letters have one byte in either case: places are the same.
            while let Some(at) = rest.to_ascii_lowercase().find(&value) {
                let (before, after) = rest.split_at(at);
                shown.push_str(before);
                shown.push_str(&format!("${{{name}}}"));
                rest = after.get(value.len()..).unwrap_or_default();
            }
            shown.push_str(rest);
            covered = shown;
        }
        covered
    }

    /// Whether anything is covered in a text.
    pub(super) fn hides(&self, text: &str) -> bool {
        self.cover(text) != text
    }

    /// The same problems, told without values.
    pub(super) fn problems(&self, problems: Problems) -> Problems {
        let cover = |text: &str| -> Box<str> { self.cover(text).into() };
        let problems = problems.into_iter().map(|problem| Problem {
            what: cover(&problem.what),
            hint: problem.hint.as_deref().map(cover),
            excerpt: problem.excerpt.map(|excerpt| Excerpt {
                text: cover(&excerpt.text),
                ..excerpt
            }),
            ..problem
        });
        problems.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_by_their_names() {
        let veil = Veil::default();
        let environment = |name: &str| match name {
            "TOKEN" => Some("Secret".to_owned()),
            "LONGER" => Some("secret-and-more".to_owned()),
            "SHORT" => Some("ab".to_owned()),
            _ => None,
        };
        assert_eq!(veil.cover("a secret"), "a secret");
        for name in ["TOKEN", "LONGER", "SHORT", "TOKEN"] {
            assert_eq!(veil.ask(&environment, name), environment(name));
        }
        assert_eq!(veil.ask(&environment, "NONE"), None);
        for (text, shown) in [
            ("nothing", "nothing"),
            ("/xSECRETx/secret", "/x${TOKEN}x/${TOKEN}"),
            ("Secret-And-More", "${LONGER}"),
            ("é secret é", "é ${TOKEN} é"),
            ("ab", "ab"),
        ] {
            assert_eq!(veil.cover(text), shown);
            assert_eq!(veil.hides(text), shown != text);
        }
    }

    #[test]
    fn an_amount_that_a_variable_could_be_part_of_is_not_told() {
        let veil = Veil::default();
        for text in ["2m", "64KiB", "1/s", "5%"] {
            assert_eq!(veil.cover_value(text), text);
        }
        veil.ask(&|_| Some("no-number".to_owned()), "TOKEN");
        assert_eq!(veil.cover_value("2m"), "2m");
        veil.ask(&|_| Some("120000".to_owned()), "PIN");
        for text in ["2m", "64KiB", "1/s", "5%"] {
            assert_eq!(veil.cover_value(text), "${PIN}...");
        }
        assert_eq!(veil.cover_value("127.0.0.1:80"), "127.0.0.1:80");
        assert_eq!(veil.cover_value("1200001"), "${PIN}1");
        assert_eq!(veil.cover_value("lead.submit"), "lead.submit");
    }
}
