//! `forecourt diff`: sends a file to a running gateway and shows what it would change there. Like
//! `diff`, it exits with 1 where there is a difference.
//!
//! The file is read here and understood there: its variables and the files it names are the gateway's.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use http::{Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::EX_CONFIG;
use super::print::{Format, fail, is_coloured, print};
use super::reload::rejected;
use super::remote::{Answered, Remote};
use crate::config;

/// No gateway answers, or not so that it could be told what is different (`EX_UNAVAILABLE` of
/// sysexits.h): 1 would say that something is.
const EX_UNAVAILABLE: u8 = 69;

/// What of a gateway's answer is needed here.
#[derive(Deserialize)]
struct Preview {
    different: bool,
    text: String,
}

pub(super) fn diff(
    file: &Path,
    directory: Option<&Path>,
    format: Format,
    remote: &Remote,
) -> ExitCode {
    let text = match config::read(file) {
        Ok(text) => text,
        Err(problems) => {
            fail(problems);
            return ExitCode::from(EX_CONFIG);
        }
    };
    let kind = match config::Format::of(file) {
        config::Format::Toml => "toml",
        config::Format::Json => "json",
    };
    let encoded = |path: &Path| {
        let path = path.to_string_lossy();
        utf8_percent_encode(&path, NON_ALPHANUMERIC).to_string()
    };
    let mut target = format!("/diff?as=json&format={kind}&name={}", encoded(file));
    if let Some(directory) = directory {
        // Named from here, meant there: on one machine that is the same.
        let directory: PathBuf = std::path::absolute(directory).unwrap_or(directory.to_owned());
        target += &format!("&directory={}", encoded(&directory));
    }
    match remote.ask(Method::POST, &target, text.into_bytes()) {
        Ok(answer) if answer.status == StatusCode::OK => {
            let is_different = answer.read::<Preview>().map(|preview| preview.different);
            match (show(&answer, format), is_different) {
                (ExitCode::SUCCESS, Some(false)) => ExitCode::SUCCESS,
                (ExitCode::SUCCESS, Some(true)) => ExitCode::from(1),
                _ => ExitCode::from(EX_UNAVAILABLE),
            }
        }
        Ok(answer) if answer.status == StatusCode::UNPROCESSABLE_ENTITY => {
            rejected(&answer, format);
            ExitCode::from(EX_CONFIG)
        }
        Ok(answer) => {
            fail(answer);
            ExitCode::from(EX_UNAVAILABLE)
        }
        Err(error) => {
            fail(error);
            ExitCode::from(EX_UNAVAILABLE)
        }
    }
}

/// Prints what would change.
pub(super) fn show(answer: &Answered, format: Format) -> ExitCode {
    match (format, answer.read::<Preview>()) {
        (Format::Json, _) => print(&answer.text()),
        (Format::Text, Some(preview)) if is_coloured(&io::stdout()) => {
            print(&coloured(&preview.text))
        }
        (Format::Text, Some(preview)) => print(&preview.text),
        (Format::Text, None) => fail(answer),
    }
}

/// What came is green, what went is red, what changed is yellow.
fn coloured(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() * 2);
    for line in text.split_inclusive('\n') {
        let colour = match line.trim_start().split(' ').next() {
            Some("+") => "32",
            Some("-") => "31",
            Some("~") => "33",
            Some("!") => "1;31",
            _ => {
                shown.push_str(line);
                continue;
            }
        };
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |it| (it, "\n"));
        shown.push_str(&format!("\x1b[{colour}m{line}\x1b[0m{end}"));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_signs_are_coloured() {
        let text = "generation 1\n+ a\n    key: \"+ x\"\n      - \"y\"\n~ b\n! c\n-d";
        let shown = "generation 1\n\x1b[32m+ a\x1b[0m\n    key: \"+ x\"\n\x1b[31m      - \"y\"\x1b[0m\n\
                     \x1b[33m~ b\x1b[0m\n\x1b[1;31m! c\x1b[0m\n-d";
        assert_eq!(coloured(text), shown);
    }
}
