//! Decides how the walk looks: plain text for 80 to 100 columns, colours only where asked for.
//!
//! JSON is laid out anew, never changed: every name, string and number stands as it was received.

use std::io::{self, Write};

use serde_json::value::RawValue;

use super::compare::Members;

/// The width that laid-out JSON keeps to, where single strings allow it.
const WIDTH: usize = 88;

/// Where the walk is printed.
pub struct Screen<'w> {
    out: &'w mut dyn Write,
    is_coloured: bool,
}

/// What a piece of text is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tone {
    Title,
    Quiet,
    Good,
    Bad,
}

impl<'w> Screen<'w> {
    /// Prints to a writer.
    pub fn new(out: &'w mut dyn Write, is_coloured: bool) -> Self {
        Self { out, is_coloured }
    }

    /// A line.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    /// A line in a tone.
    pub(super) fn tell(&mut self, tone: Tone, text: &str) -> io::Result<()> {
        if !self.is_coloured {
            return self.line(text);
        }
        let code = match tone {
            Tone::Title => "1",
            Tone::Quiet => "2",
            Tone::Good => "32",
            Tone::Bad => "1;31",
        };
        self.line(&format!("\x1b[{code}m{text}\x1b[0m"))
    }

    /// Lines with a mark in front of each.
    pub(super) fn marked(&mut self, mark: &str, text: &str) -> io::Result<()> {
        for line in text.trim_end().lines() {
            self.line(format!("  {mark} {line}").trim_end())?;
        }
        Ok(())
    }
}

/// A JSON text laid out; anything else as it is.
pub(super) fn lay_out(text: &str) -> String {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(value) => {
            let mut out = String::new();
            value_into(&mut out, value, 0, 0);
            out
        }
        Err(_) => text.to_owned(),
    }
}

/// Appends a value that starts at a depth of indentation with some text before it on its line.
fn value_into(out: &mut String, value: &RawValue, depth: usize, before: usize) {
    let flat = flat(value);
    if 2 * depth + before + width(&flat) <= WIDTH {
        out.push_str(&flat);
    } else if let Ok(Members(members)) = serde_json::from_str(value.get()) {
        let members = members.iter();
        let named = members.map(|(name, value)| (format!("{}: ", quoted(name)), *value));
        parts_into(out, ('{', '}'), named.collect(), depth);
    } else if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(value.get()) {
        match &*items {
            // An only item needs no level of its own.
            [only] if only.get().starts_with('{') => {
                out.push('[');
                value_into(out, only, depth, WIDTH);
                out.push(']');
            }
            _ => {
                let items = items.into_iter().map(|item| (String::new(), item));
                parts_into(out, ('[', ']'), items.collect(), depth);
            }
        }
    } else {
        out.push_str(&flat);
    }
}

/// Appends members or items, as many on a line as fit; one that takes several lines stands alone.
fn parts_into(
    out: &mut String,
    (open, close): (char, char),
    parts: Vec<(String, &RawValue)>,
    depth: usize,
) {
    out.push(open);
    let last = parts.len().saturating_sub(1);
    // Nothing more goes on the line of the bracket.
    let mut column = WIDTH;
    for (index, (name, value)) in parts.iter().enumerate() {
        let flat = flat(value);
        let needed = width(name) + width(&flat) + 2;
        if column + needed > WIDTH {
            out.push('\n');
            out.push_str(&"  ".repeat(depth + 1));
            column = 2 * (depth + 1);
        } else {
            out.push(' ');
        }
        out.push_str(name);
        if 2 * (depth + 1) + needed <= WIDTH {
            out.push_str(&flat);
            column += needed;
        } else {
            value_into(out, value, depth + 1, width(name));
            column = WIDTH;
        }
        if index < last {
            out.push(',');
        }
    }
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push(close);
}

/// A value on one line.
fn flat(value: &RawValue) -> String {
    if let Ok(Members(members)) = serde_json::from_str(value.get()) {
        let members: Vec<String> = members
            .iter()
            .map(|(name, value)| format!("{}: {}", quoted(name), flat(value)))
            .collect();
        if members.is_empty() {
            "{}".into()
        } else {
            format!("{{ {} }}", members.join(", "))
        }
    } else if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(value.get()) {
        let items: Vec<String> = items.iter().map(|item| flat(item)).collect();
        format!("[{}]", items.join(", "))
    } else {
        value.get().to_owned()
    }
}

fn quoted(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laid_out_json_keeps_every_spelling() {
        let long = "x".repeat(WIDTH);
        let text = format!(r#"{{"id":9007199254740993,"b":"a\u0062c","c":[{{}},[],"{long}"]}}"#);
        let shown = lay_out(&text);
        assert_eq!(
            shown,
            format!(
                "{{\n  \"id\": 9007199254740993, \"b\": \"a\\u0062c\",\n  \"c\": [\n    {{}}, [],\n    \"{long}\"\n  ]\n}}"
            )
        );
        assert_eq!(
            lay_out(r#"{"a":[1,{"b":2}]}"#),
            r#"{ "a": [1, { "b": 2 }] }"#
        );
        assert_eq!(lay_out("{oops"), "{oops");
    }

    #[test]
    fn colours_only_where_asked_for() {
        for (is_coloured, shown) in [(false, "ok\n"), (true, "\x1b[32mok\x1b[0m\n")] {
            let mut out = Vec::new();
            Screen::new(&mut out, is_coloured)
                .tell(Tone::Good, "ok")
                .unwrap();
            assert_eq!(out, shown.as_bytes());
        }
    }
}
