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
        let told = self.0.borrow();
        let part = told.iter().find(|(_, value)| is_amount && is_number(value));
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
            // ASCII letters have one byte in either case: places are the same.
            let lowered = covered.to_ascii_lowercase();
            let mut shown = String::with_capacity(covered.len());
            let mut from = 0;
            for (at, _) in lowered.match_indices(&value) {
                shown.push_str(covered.get(from..at).unwrap_or_default());
                shown.push_str(&format!("${{{name}}}"));
                from = at + value.len();
            }
            shown.push_str(covered.get(from..).unwrap_or_default());
            covered = shown;
        }
        covered
    }

    /// Whether a JSON text may tell a value: also one in another unit, or with escapes.
    pub(super) fn hides(&self, json: &str) -> bool {
        let is_escaped =
            |value: &str| value.contains(|it: char| it.is_control() || "\"\\".contains(it));
        let told = self.0.borrow();
        let is_unseen = told
            .iter()
            .any(|(_, value)| is_number(value) || is_escaped(value));
        is_unseen || self.cover(json) != json
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

/// Whether a value could be a number in an amount, perhaps with its unit.
fn is_number(value: &str) -> bool {
    let number = value.trim_end_matches(|it: char| it.is_ascii_alphabetic() || "/%".contains(it));
    let is_plain = number.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    is_plain && number.starts_with(|it: char| it.is_ascii_digit())
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
        assert!(!veil.hides("2m"));
        veil.ask(&|_| Some("120000".to_owned()), "PIN");
        for text in ["2m", "64KiB", "1/s", "5%"] {
            assert_eq!(veil.cover_value(text), "${PIN}...");
        }
        assert!(
            veil.hides("a configuration"),
            "of which the hash could be tried out"
        );
        assert_eq!(veil.cover_value("127.0.0.1:80"), "127.0.0.1:80");
        assert_eq!(veil.cover_value("1200001"), "${PIN}1");
        assert_eq!(veil.cover_value("lead.submit"), "lead.submit");
    }
}
