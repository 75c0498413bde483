//! Decides which files an `include` means.
//!
//! `*` stands for any characters of one name and `?` for one, neither for a dot at its beginning: so
//! the hidden files of editors and the directories behind a Kubernetes mount are left alone. Must
//! never read a file.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::config::read::{FromText, Wrong};
use crate::config::schema::Shape;

/// Files that are included at most.
pub(crate) const MOST: usize = 1000;

/// A file to include, or many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Box<str>);

impl Pattern {
    /// Whether it leads nowhere but below the directory where it begins, as far as its names tell.
    pub(crate) fn stays_below(&self) -> bool {
        !self.0.starts_with('/') && self.0.split('/').all(|name| name != "..")
    }

    /// Whether it stands for whatever files there are.
    pub(crate) fn is_open(&self) -> bool {
        is_open(&self.0)
    }
}

impl FromText for Pattern {
    const EXPECTED: &'static str = "a file or a pattern, such as \"conf.d/*.toml\"";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        if text.is_empty() {
            return Err(Wrong::because("is empty"));
        }
        if text.chars().any(char::is_control) {
            return Err(Wrong::because("contains a control character"));
        }
        // A key that stands beside the configuration must not be read as one, and be shown in problems.
        if ![".toml", ".json"].iter().any(|end| text.ends_with(end)) {
            let hint = "name files that end in .toml or .json, such as \"conf.d/*.toml\"";
            return Err(Wrong::because("includes what is no configuration").hint(hint));
        }
        if text.contains("**") {
            let hint = "`*` stands for characters of one name: no directory is searched through";
            return Err(Wrong::because("has a `**`").hint(hint));
        }
        Ok(Self(text.into()))
    }

    fn shape() -> Shape {
        Shape::filled()
    }
}

/// What looking for files came to.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// The files, by name. Whether they are there is known of those only that a pattern matched.
    pub(crate) found: Vec<PathBuf>,
    /// A path in each directory that was looked through.
    pub(crate) followed: Vec<PathBuf>,
    /// Directories that could not be looked through.
    pub(crate) unread: Vec<(PathBuf, io::Error)>,
}

impl Search {
    /// Looks for what a pattern means in a directory.
    pub(crate) fn look(&mut self, directory: &Path, pattern: &Pattern) {
        let (start, pattern) = match pattern.0.strip_prefix('/') {
            Some(rest) => (Path::new("/"), rest),
            None => (directory, &*pattern.0),
        };
        let mut paths = vec![start.to_owned()];
        let mut is_listed = true;
        for name in pattern.split('/').filter(|name| !name.is_empty()) {
            is_listed = is_open(name);
            if is_listed {
                paths = paths.iter().flat_map(|it| self.matches(it, name)).collect();
            } else {
                paths.iter_mut().for_each(|path| path.push(name));
            }
        }
        if is_open(pattern) && !is_listed {
            // Not every directory that a pattern matched has this file.
            paths.retain(|path| path.symlink_metadata().is_ok());
        }
        paths.sort();
        self.found.append(&mut paths);
    }

    /// What in a directory has a name like this.
    fn matches(&mut self, directory: &Path, pattern: &str) -> Vec<PathBuf> {
        self.followed.push(directory.join("*"));
        let here = match directory.as_os_str().is_empty() {
            true => Path::new("."),
            false => directory,
        };
        let names = fs::read_dir(here).and_then(|entries| {
            let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
            let matching =
                names.filter(|name| name.as_ref().map_or(true, |it| is_like(it, pattern)));
            // One more than may be: so that it is noticed.
            matching.take(MOST + 1).collect::<io::Result<Vec<_>>>()
        });
        match names {
            Ok(names) => names.iter().map(|name| directory.join(name)).collect(),
            Err(error) => {
                // What is not there, or is no directory, has no files.
                let is_none = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
                if !is_none.contains(&error.kind()) {
                    self.unread.push((directory.to_owned(), error));
                }
                Vec::new()
            }
        }
    }
}

fn is_open(name: &str) -> bool {
    name.contains(['*', '?'])
}

/// Whether a name is what a pattern stands for.
fn is_like(name: &OsStr, pattern: &str) -> bool {
    // A name in no encoding was meant by nobody.
    let Some(name) = name.to_str() else {
        return false;
    };
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (name, pattern): (Vec<_>, Vec<_>) = (name.chars().collect(), pattern.chars().collect());
    let (mut at, mut with) = (0, 0);
    // Where the last star stands, and how far the name was when it was taken to end there.
    let mut star = None;
    while let Some(character) = name.get(at) {
        match pattern.get(with) {
            Some('*') => {
                star = Some((with, at));
                with += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == character => {
                at += 1;
                with += 1;
            }
            Some(_) | None => {
                let Some((after, taken)) = &mut star else {
                    return false;
                };
                *taken += 1;
                (at, with) = (*taken, *after + 1);
            }
        }
    }
    pattern.iter().skip(with).all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is(name: &str, pattern: &str) -> bool {
        is_like(OsStr::new(name), pattern)
    }

    /// The same by trying everything.
    fn plainly(name: &[char], pattern: &[char]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, rest) => rest.is_none(),
            (Some(('*', after)), rest) => {
                plainly(name, after) || rest.is_some_and(|(_, rest)| plainly(rest, pattern))
            }
            (Some((_, _)), None) => false,
            (Some((wanted, after)), Some((character, rest))) => {
                (*wanted == '?' || wanted == character) && plainly(rest, after)
            }
        }
    }

    #[test]
    fn a_star_is_any_characters_and_a_question_mark_is_one() {
        for (name, pattern, matches) in [
            ("a.toml", "*.toml", true),
            (".toml", "*.toml", false),
            (".a.toml.swp", "*", false),
            ("..data", "*", false),
            (".a.toml", ".*.toml", true),
            ("a.tomlx", "*.toml", false),
            ("a.toml.toml", "*.toml", true),
            ("10-a.json", "??-*.json", true),
            ("1-a.json", "??-*.json", false),
            (".x", "?x", false),
            ("é.toml", "?.toml", true),
            ("", "*", true),
            ("a", "", false),
            ("[ab].toml", "[ab].toml", true),
            ("a.toml", "[ab].toml", false),
        ] {
            assert_eq!(is(name, pattern), matches, "{name} {pattern}");
        }
    }

    proptest! {
        #[test]
        fn as_if_everything_was_tried(name in "[ab]{0,8}", pattern in "[ab*?]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(is(&name, &pattern), plainly(&chars(&name), &chars(&pattern)));
        }
    }
}
