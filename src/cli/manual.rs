//! `forecourt completions` and `forecourt man`: made of the same definition as `--help`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_mangen::Man;

use super::Arguments;
use super::print::{fail, print};

/// The section of the manual for commands of system administration.
const SECTION: &str = "8";

/// When the commands last changed in a way that matters to whoever reads their pages.
const CHANGED: &str = "2026-12-01";

pub(super) fn completions(shell: clap_complete::Shell) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "forecourt", &mut text);
    print(&String::from_utf8_lossy(&text))
}

pub(super) fn pages(to: Option<PathBuf>) -> ExitCode {
    let Some(directory) = to else {
        let mut text = Vec::new();
        return match page(definition()).render(&mut text) {
            Ok(()) => print(&String::from_utf8_lossy(&text)),
            Err(error) => fail(error),
        };
    };
    let written = fs::create_dir_all(&directory).and_then(|()| write(definition(), &directory));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(format_args!("{}: {error}", directory.display())),
    }
}

/// The definition with every name as it is typed: `forecourt key new`.
fn definition() -> clap::Command {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    command
}

fn page(command: clap::Command) -> Man {
    Man::new(command)
        .section(SECTION)
        .date(CHANGED)
        .source(concat!("forecourt ", env!("CARGO_PKG_VERSION")))
        .manual("Forecourt")
}

/// One page for each command and subcommand, as `git-commit` has one of its own.
fn write(command: clap::Command, directory: &Path) -> io::Result<()> {
    for sub in command.get_subcommands() {
        write(sub.clone(), directory)?;
    }
    page(command).generate_to(directory).map(|_| ())
}
