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

pub(super) fn completions(shell: clap_complete::Shell) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "forecourt", &mut text);
    print(&String::from_utf8_lossy(&text))
}

pub(super) fn pages(to: Option<PathBuf>) -> ExitCode {
    let done = match to {
        None => page(Arguments::command()).map(|text| print(&String::from_utf8_lossy(&text))),
        Some(directory) => write(&directory).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(fail)
}

fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(command).section(SECTION).render(&mut text)?;
    Ok(text)
}

/// One page for each command and subcommand, as `git-commit` has one of its own.
fn write(directory: &Path) -> io::Result<()> {
    fn one(command: &clap::Command, name: &str, directory: &Path) -> io::Result<()> {
        // The name is leaked: it has to live as long as the program, which ends after this.
        let shown: &'static str = Box::leak(name.to_owned().into_boxed_str());
        let text = page(command.clone().name(shown))?;
        fs::write(directory.join(format!("{name}.{SECTION}")), text)?;
        for sub in command.get_subcommands() {
            if sub.get_name() != "help" {
                one(sub, &format!("{name}-{}", sub.get_name()), directory)?;
            }
        }
        Ok(())
    }
    fs::create_dir_all(directory)?;
    one(&Arguments::command(), "forecourt", directory)
}
