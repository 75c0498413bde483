//! The command line: every command and argument in one definition, of which help, completions and
//! manual pages are made.
//!
//! Exit codes: 0 well, 1 a failure while running, 2 wrong usage, 78 a bad configuration. Must never
//! decide anything but how a command is asked for and how its outcome is told.

mod check;
mod demo;
mod diff;
mod drain;
mod explain;
mod healthcheck;
mod key;
mod log_level;
mod manual;
mod print;
mod readiness;
mod reload;
mod remote;
mod rollback;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config;
use healthcheck::Asked;
use key::KeyCommand;
use print::{Format, print};
use remote::Remote;

/// A bad configuration (`EX_CONFIG` of sysexits.h).
const EX_CONFIG: u8 = 78;

/// Where the configuration stands unless something else is said.
const DEFAULT_FILE: &str = "/etc/forecourt/forecourt.toml";

/// What every command ends with.
const EXIT_CODES: &str = "\
Exit codes: 0 well; 1 a failure while running; 2 wrong usage; 78 a bad configuration.";

/// The reverse-proxy ingress gateway in front of A2A dealer agents.
#[derive(Debug, Parser)]
#[command(
    name = "forecourt",
    version,
    arg_required_else_help = true,
    after_help = EXIT_CODES
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve what a configuration file says, and follow the file.
    Run {
        /// The configuration file.
        #[arg(
            short,
            long = "config",
            value_name = "FILE",
            env = "FORECOURT_CONFIG",
            default_value = DEFAULT_FILE
        )]
        config: PathBuf,
    },
    /// Check a configuration file and print every problem in it.
    Check {
        /// The configuration file.
        #[arg(value_name = "FILE", default_value = DEFAULT_FILE)]
        file: PathBuf,
        /// For whom the result is printed.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Show what a configuration file would change in a running gateway. Exits with 0 where that is
    /// nothing, 1 where it is something, 78 where the file is bad, 69 where no gateway answers.
    Diff {
        /// The file, which may lie anywhere: it is read as if it stood in the place of the gateway's
        /// own.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Where relative paths in the file begin, on the gateway's machine.
        #[arg(long, value_name = "DIRECTORY")]
        directory: Option<PathBuf>,
        /// For whom the result is printed.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
        #[command(flatten)]
        remote: Remote,
    },
    /// Have a running gateway read its configuration file now.
    Reload {
        /// Only show what that would change.
        #[arg(long)]
        dry_run: bool,
        /// For whom the result is printed.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
        #[command(flatten)]
        remote: Remote,
    },
    /// Have a running gateway serve again what it served before.
    Rollback {
        /// The generation to go back to, of those that are kept; else the one before.
        #[arg(long, value_name = "N")]
        to: Option<u64>,
        /// For whom the result is printed.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
        #[command(flatten)]
        remote: Remote,
    },
    /// Say what would become of a request, and why; or what was decided on one.
    Explain(Box<explain::Explain>),
    /// Have a running gateway leave: as on SIGTERM, it finishes what it serves and exits.
    Drain {
        /// Return when it is gone, or when the time that it has is over.
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        remote: Remote,
    },
    /// Tell by the exit code whether the gateway here is well, for a container's health check.
    Healthcheck {
        #[command(flatten)]
        asked: Asked,
    },
    /// Show the level of a running gateway's diagnostics, or change it for a time.
    LogLevel {
        /// The level: error, warn, info, debug or trace, or a list such as info,forecourt::proxy=debug.
        #[arg(value_name = "LEVEL")]
        level: Option<String>,
        /// How long it holds; then it is the configured one again. 24h at most.
        #[arg(
            long = "for",
            value_name = "TIME",
            default_value = "10m",
            requires = "level"
        )]
        time: String,
        /// For whom the result is printed.
        #[arg(long, value_enum, default_value_t)]
        format: Format,
        #[command(flatten)]
        remote: Remote,
    },
    /// Read access logs, and tell which callers would break under a stricter contract, and why.
    ///
    /// Exits 0 when every call that the log tells enough about is ready, 1 when some break, 2 when the
    /// log tells of none.
    Readiness {
        #[command(flatten)]
        asked: readiness::Asked,
    },
    /// Print the JSON Schema of the configuration file, for editors.
    Schema,
    /// Make API keys, or the digests by which the configuration knows them.
    Key {
        #[command(subcommand)]
        command: KeyCommand,
    },
    /// Show the rules at work, in front of an embedded dealer agent; then serve for trying out.
    Demo {
        /// Exit after the walk: 0 when every answer was what the rules say, else 1.
        #[arg(long)]
        once: bool,
    },
    /// Print the completions of a shell.
    Completions {
        /// The shell.
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one for each command.
    Man {
        /// The directory to write `forecourt.8`, `forecourt-run.8` and so on into.
        #[arg(long, value_name = "DIRECTORY")]
        to: Option<PathBuf>,
    },
}

/// Does what this process's arguments say, and chooses its exit code.
#[must_use]
pub fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run { config } => run::run(config),
        Command::Check { file, format } => check::check(file, format),
        Command::Diff {
            file,
            directory,
            format,
            remote,
        } => diff::diff(&file, directory.as_deref(), format, &remote),
        Command::Reload {
            dry_run,
            format,
            remote,
        } => reload::reload(dry_run, format, &remote),
        Command::Rollback { to, format, remote } => rollback::roll_back(to, format, &remote),
        Command::Explain(explain) => explain::explain(&explain),
        Command::Drain { wait, remote } => drain::drain(&remote, wait),
        Command::Healthcheck { asked } => healthcheck::healthcheck(asked),
        Command::LogLevel {
            level,
            time,
            format,
            remote,
        } => log_level::level(&remote, level.as_deref(), &time, format),
        Command::Readiness { asked } => readiness::readiness(&asked),
        Command::Schema => print(&config::schema()),
        Command::Key { command } => key::key(command),
        Command::Demo { once } => demo::demo(once),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { to } => manual::pages(to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_holds_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn everything_is_explained() {
        fn look(command: &clap::Command, path: &str) {
            let path = format!("{path} {}", command.get_name());
            assert!(command.get_about().is_some(), "{path}");
            for argument in command.get_arguments() {
                let id = argument.get_id();
                assert!(argument.get_help().is_some(), "{path} {id}");
            }
            for sub in command.get_subcommands() {
                look(sub, &path);
            }
        }
        look(&Arguments::command(), "");
    }
}
