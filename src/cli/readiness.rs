//! `forecourt readiness`: who of those in an access log would break under a stricter contract, how often,
//! and why.
//!
//! The rules are the gateway's own (`protocol::judge`), applied to what a line tells of a call. Reads line
//! by line and keeps a bounded number of callers: a log may be larger than memory. What a log does not
//! tell is said to be unknown, never guessed.

mod lines;
mod seen;
mod show;
mod tally;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::Timestamp;

use super::print::{Format, print, print_json};
use crate::protocol::{Contract, releases};
use lines::{Lines, Piece};
use seen::Seen;
use tally::Tally;

/// The exit code where the question cannot be answered.
const UNANSWERED: u8 = 2;

/// What begins a file that was compressed with gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

#[derive(Debug, clap::Args)]
pub(super) struct Asked {
    /// The contract that callers would be held to, such as aap/3.0.
    #[arg(long, value_name = "CONTRACT", value_parser = contract)]
    to: Contract,
    /// Only calls at this endpoint.
    #[arg(long, value_name = "NAME")]
    endpoint: Option<String>,
    /// Only calls from this time on, such as 2026-11-30T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<Timestamp>,
    /// For whom the result is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Access logs in JSON; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

fn contract(name: &str) -> Result<Contract, String> {
    let Some(release) = releases::find(name) else {
        let known = releases::RELEASES.iter().map(|release| release.name);
        let known = known.collect::<Vec<_>>().join(", ");
        return Err(format!("no such contract; known: {known}"));
    };
    release.contract(None).ok_or_else(|| {
        "it publishes no extension URI, so no log tells who would list it".to_owned()
    })
}

pub(super) fn readiness(asked: &Asked) -> ExitCode {
    let mut tally = Tally::default();
    for file in &asked.files {
        if let Err(error) = read(file, asked, &mut tally) {
            eprintln!("{}: {error}", file.display());
            return ExitCode::from(UNANSWERED);
        }
    }
    let report = tally.report(&asked.to.name, asked.endpoint.as_deref(), asked.since);
    let printed = match asked.format {
        Format::Json => print_json(&report),
        Format::Text => print(&show::text(&report)),
    };
    if printed != ExitCode::SUCCESS {
        return printed;
    }
    match report.is_ready() {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::FAILURE,
        None => ExitCode::from(UNANSWERED),
    }
}

fn read(file: &Path, asked: &Asked, tally: &mut Tally) -> io::Result<()> {
    let source: Box<dyn Read> = if file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(file)?)
    };
    let mut lines = Lines::new(BufReader::with_capacity(1 << 16, source));
    if lines.begin_with(&GZIP)? {
        return Err(io::Error::other(
            "is compressed; zcat it into `forecourt readiness --to CONTRACT -`",
        ));
    }
    while let Some(piece) = lines.next()? {
        let seen = match piece {
            Piece::Line([]) => continue,
            Piece::Line(line) => Seen::read(line),
            Piece::TooLong => None,
        };
        match seen {
            None => tally.foreign(),
            Some(seen) if !is_wanted(&seen, asked) => tally.unasked(),
            Some(seen) => tally.add(&seen, seen.judge(&asked.to)),
        }
    }
    Ok(())
}

fn is_wanted(seen: &Seen, asked: &Asked) -> bool {
    let endpoint = asked.endpoint.as_deref();
    endpoint.is_none_or(|name| seen.endpoint.as_deref() == Some(name))
        && asked.since.is_none_or(|since| seen.at() >= since)
}

#[cfg(test)]
mod tests;
