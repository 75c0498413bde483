//! Decides how a command's result reaches standard output.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use serde::Serialize;

/// Who reads what a command prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// A person.
    #[default]
    Text,
    /// A program: one JSON value.
    Json,
}

/// Prints text. Whoever reads the pipe may have seen enough of it: that is no failure.
pub(super) fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(error),
    }
}

/// Prints one JSON value and a line feed.
pub(super) fn print_json(value: &impl Serialize) -> ExitCode {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&format!("{text}\n")),
        Err(error) => fail(error),
    }
}

/// Says why a command failed.
pub(super) fn fail(why: impl std::fmt::Display) -> ExitCode {
    // With nowhere left to say it, the exit code has to do.
    let _ = writeln!(io::stderr(), "{why}");
    ExitCode::FAILURE
}

/// Whether what is printed may be coloured: on a terminal, unless `NO_COLOR` is set to something.
pub(super) fn is_coloured(out: &impl IsTerminal) -> bool {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    out.is_terminal() && !no_colour
}
