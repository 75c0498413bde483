//! The `forecourt` command: parses arguments, runs, and chooses the exit code. Nothing else.
//!
//! Exit codes: 0 well, 1 a failure while running, 2 wrong usage, 78 a bad configuration.

use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use forecourt::app::{self, Gateway, Inherited, Options, StartError};
use forecourt::config;
use forecourt::credential::fresh::{self, Fresh, SHORT};
use forecourt::credential::key::LONGEST;
use forecourt::demo::{self, Screen};
use tokio::signal::unix::{SignalKind, signal};

/// Gives freed memory to the next request instead of back and forth to the system: the large pieces
/// of a 100 KB answer would be mapped anew for each.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A bad configuration (`EX_CONFIG` of sysexits.h).
const EX_CONFIG: u8 = 78;

/// The reverse-proxy ingress gateway in front of A2A dealer agents.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve what a configuration file says, and follow the file.
    Run {
        /// The configuration file.
        #[arg(
            short,
            long = "config",
            value_name = "FILE",
            env = "FORECOURT_CONFIG",
            default_value = "/etc/forecourt/forecourt.toml"
        )]
        config: PathBuf,
    },
    /// Check a configuration file and print every problem in it.
    Check {
        /// The configuration file.
        #[arg(value_name = "FILE", default_value = "/etc/forecourt/forecourt.toml")]
        file: PathBuf,
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
}

#[derive(Subcommand)]
enum KeyCommand {
    /// Print a new key on standard output, once, and the caller's table on standard error.
    New {
        /// The caller's name in the configuration.
        #[arg(value_parser = caller_name)]
        name: String,
    },
    /// Read a key from standard input, and print the `key_sha256` of it.
    Hash,
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Run { config } => run(config),
        Command::Check { file } => check(file),
        Command::Schema => print(&config::schema()),
        Command::Key {
            command: KeyCommand::New { name },
        } => new_key(&name),
        Command::Key {
            command: KeyCommand::Hash,
        } => hash_key(),
        Command::Demo { once } => demo(once),
    }
}

fn check(file: PathBuf) -> ExitCode {
    let shown = file.display().to_string();
    match app::load(&Options::new(file)) {
        Ok(loaded) => {
            for warning in &loaded.settings.warnings {
                eprintln!("{warning}");
            }
            println!("{shown}: ok");
            ExitCode::SUCCESS
        }
        Err(problems) => {
            eprintln!("{problems}");
            ExitCode::from(EX_CONFIG)
        }
    }
}

fn print(text: &str) -> ExitCode {
    // Whoever reads the pipe may have seen enough of it.
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn caller_name(name: &str) -> Result<String, &'static str> {
    config::name_flaw(name).map_or_else(|| Ok(name.to_owned()), Err)
}

fn new_key(name: &str) -> ExitCode {
    let key = match Fresh::draw() {
        Ok(key) => key,
        Err(error) => {
            eprintln!("no randomness to make a key of: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Apart, so that the key can go into a file or a pipe and the table is still read.
    eprint!(
        "# The key stands on standard output and nowhere else. For the configuration:\n{}",
        fresh::table(name, key.expose())
    );
    print(&format!("{}\n", key.expose()))
}

fn hash_key() -> ExitCode {
    let mut bytes = Vec::new();
    let most = u64::try_from(LONGEST + 3).unwrap_or(u64::MAX);
    if let Err(error) = io::stdin().take(most).read_to_end(&mut bytes) {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    // The end of the line is not the key's.
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match fresh::fit(line) {
        Ok(key) => {
            if key.len() < SHORT {
                eprintln!(
                    "warning: a key this short can be guessed by whoever sees its digest; \
                     `forecourt key new` makes one that cannot"
                );
            }
            print(&format!("{}\n", fresh::digest(key)))
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn demo(once: bool) -> ExitCode {
    let mut out = io::stdout();
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    let is_coloured = out.is_terminal() && !no_colour;
    match demo::run(&mut Screen::new(&mut out, is_coloured), once) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(file: PathBuf) -> ExitCode {
    // Before there are threads: the environment is changed.
    let inherited = match Inherited::from_env() {
        Ok(inherited) => inherited,
        Err(error) => {
            eprintln!("cannot use the sockets that were passed to this process: {error}");
            return ExitCode::FAILURE;
        }
    };
    let options = Options::new(file);
    // The log's level and format stand in the file, so it is read once before the log is set up.
    let settings = match app::load(&options) {
        Ok(loaded) => loaded.settings,
        Err(problems) => {
            eprintln!("{problems}");
            return ExitCode::from(EX_CONFIG);
        }
    };
    if let Err(problem) = app::install_log(&settings) {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    let sockets = settings.most_sockets();
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) if usize::try_from(limit).is_ok_and(|it| it < sockets) => tracing::warn!(
            limit,
            sockets,
            "the limit of open files is below [limits] connections plus max_connections of all upstreams"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let served = match runtime {
        Ok(runtime) => runtime.block_on(serve(options, inherited)),
        Err(error) => Err(StartError::Thread(error)),
    };
    let code = match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(StartError::Config(problems)) => {
            eprintln!("{problems}");
            ExitCode::from(EX_CONFIG)
        }
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    };
    app::flush_log();
    code
}

/// Serves until told to stop: SIGHUP reloads, SIGTERM and SIGINT drain, a second one cuts.
async fn serve(options: Options, inherited: Inherited) -> Result<(), StartError> {
    let signals = || -> std::io::Result<_> {
        Ok((
            signal(SignalKind::hangup())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        ))
    };
    let (mut hangup, mut terminate, mut interrupt) = signals().map_err(StartError::Thread)?;
    let gateway = Gateway::start_with(options, inherited)?;
    loop {
        tokio::select! {
            _ = hangup.recv() => {
                // The outcome is logged and counted where it happens.
                let _ = gateway.reload();
            }
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    let again = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    gateway.drain(again).await;
    gateway.stop();
    Ok(())
}
