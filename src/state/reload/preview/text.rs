//! Decides how a preview reads for people: in the manner of `diff`, `+`, `-` and `~` at the beginning
//! of a line.

use std::fmt;

use super::Preview;
use crate::config::diff::{Change, Difference, Key, Shown};
use crate::state::tls::{Content, FileDifference, Kind};

/// Longer pairs of lists are told item by item, in characters.
const LINE: usize = 80;

impl fmt::Display for Preview {
    /// Several lines, each with a line feed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            different,
            generation,
            hash_before,
            hash_after,
            tables,
            reordered,
            files,
            restart_needed,
            stays,
            warnings,
        } = self;
        if *different {
            writeln!(f, "generation {generation} serves: {hash_before}")?;
            match hash_after {
                Some(hash) => writeln!(f, "it would be:        {hash}")?,
                None => writeln!(f, "the new hash depends on variables, which are not told")?,
            }
        } else {
            writeln!(f, "no difference to generation {generation}, which serves")?;
        }
        if *reordered {
            writeln!(
                f,
                "\ntables stand in another order, and nothing else is different"
            )?;
        }
        if !tables.is_empty() {
            writeln!(f)?;
        }
        for table in tables {
            told(f, table)?;
        }
        if !files.is_empty() {
            writeln!(f, "\nfiles:")?;
        }
        for file in files {
            of_file(f, file)?;
        }
        if !restart_needed.is_empty() {
            let tables = restart_needed.join("], [");
            writeln!(
                f,
                "\n! restart needed: [{tables}] cannot change while the gateway runs; a reload would be \
                 rejected"
            )?;
        }
        if !stays.is_empty() {
            writeln!(f, "\nwhat stays:")?;
        }
        for sentence in stays {
            writeln!(f, "  {sentence}")?;
        }
        if !warnings.is_empty() {
            writeln!(f, "\n{warnings}")?;
        }
        Ok(())
    }
}

const fn sign(change: Change) -> char {
    match change {
        Change::Added => '+',
        Change::Removed => '-',
        Change::Changed => '~',
    }
}

fn told(f: &mut fmt::Formatter<'_>, table: &Difference) -> fmt::Result {
    writeln!(f, "{} {}", sign(table.change), table.path())?;
    table
        .keys
        .iter()
        .try_for_each(|key| of_key(f, key, table.change))
}

fn of_key(f: &mut fmt::Formatter<'_>, key: &Key, change: Change) -> fmt::Result {
    let name = &key.key;
    match (&key.before, &key.after) {
        (Some(_), Some(_)) if key.secret => writeln!(f, "    {name}: changed, not shown"),
        (Some(before), Some(after)) => match (before.items(), after.items()) {
            (Some(old), Some(new)) if is_long(before, after) => {
                writeln!(f, "    {name}:")?;
                for gone in old.iter().filter(|it| !new.contains(it)) {
                    writeln!(f, "      - {gone}")?;
                }
                for came in new.iter().filter(|it| !old.contains(it)) {
                    writeln!(f, "      + {came}")?;
                }
                if old.iter().all(|it| new.contains(it)) && new.iter().all(|it| old.contains(it)) {
                    writeln!(f, "      in another order")?;
                }
                Ok(())
            }
            _ => writeln!(f, "    {name}: {before} -> {after}"),
        },
        (Some(before), None) if change == Change::Changed => {
            writeln!(f, "    {name}: {before} -> none")
        }
        (None, Some(after)) if change == Change::Changed => {
            writeln!(f, "    {name}: none -> {after}")
        }
        (Some(value), None) | (None, Some(value)) => writeln!(f, "    {name}: {value}"),
        (None, None) => Ok(()),
    }
}

fn is_long(before: &Shown, after: &Shown) -> bool {
    before.to_string().chars().count() + after.to_string().chars().count() > LINE
}

fn of_file(f: &mut fmt::Formatter<'_>, file: &FileDifference) -> fmt::Result {
    let kind = match file.kind {
        Kind::Certificate => "certificate",
        Kind::Roots => "roots",
        Kind::Keys => "keys",
    };
    writeln!(f, "{} {kind} {}", sign(file.change), file.file)?;
    if let Some(why) = &file.refused {
        return writeln!(f, "    cannot be used, what is in force stays so: {why}");
    }
    let lines = |content: &Option<Content>| content.as_ref().map(said).unwrap_or_default();
    let (old, new) = (lines(&file.before), lines(&file.after));
    let names = if old.is_empty() { &new } else { &old };
    for (index, (name, _)) in names.iter().enumerate() {
        let value = |lines: &[(&str, String)]| lines.get(index).map(|(_, value)| value.clone());
        match (value(&old), value(&new)) {
            (Some(old), Some(new)) if old != new => writeln!(f, "    {name}: {old} -> {new}")?,
            (Some(value), _) | (None, Some(value)) => writeln!(f, "    {name}: {value}")?,
            (None, None) => {}
        }
    }
    Ok(())
}

fn said(content: &Content) -> Vec<(&'static str, String)> {
    match content {
        Content::Certificate {
            subjects,
            serial,
            not_before,
            not_after,
        } => vec![
            ("for", subjects.join(", ")),
            ("serial", serial.to_string()),
            ("not before", not_before.clone()),
            ("not after", not_after.clone()),
        ],
        Content::Several { count } => vec![("count", count.to_string())],
    }
}
