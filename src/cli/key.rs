//! `forecourt key`: new API keys, and the digests of those that exist. Must never write a key anywhere
//! but to standard output, once.

use std::io::{self, Read};
use std::process::ExitCode;

use clap::Subcommand;

use super::print::{fail, print};
use crate::config;
use crate::credential::fresh::{self, Fresh, SHORT};
use crate::credential::key::LONGEST;

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Print a new key on standard output, once, and the caller's table on standard error.
    New {
        /// The caller's name in the configuration.
        #[arg(value_parser = caller_name)]
        name: String,
    },
    /// Print a new token for the admin socket on standard output, once, and its line of `[admin]` on
    /// standard error.
    Admin,
    /// Read a key from standard input, and print the `key_sha256` of it.
    Hash,
}

fn caller_name(name: &str) -> Result<String, &'static str> {
    config::name_flaw(name).map_or_else(|| Ok(name.to_owned()), Err)
}

pub(super) fn key(command: KeyCommand) -> ExitCode {
    match command {
        KeyCommand::New { name } => new(&name),
        KeyCommand::Admin => admin(),
        KeyCommand::Hash => hash(),
    }
}

fn new(name: &str) -> ExitCode {
    drawn("key", |key| fresh::table(name, key))
}

fn admin() -> ExitCode {
    drawn("token", |token| {
        format!("[admin]\ntoken_sha256 = [\"{}\"]\n", fresh::digest(token))
    })
}

/// Makes one, and says how the configuration knows it.
fn drawn(what: &str, configured: impl Fn(&str) -> String) -> ExitCode {
    let key = match Fresh::draw() {
        Ok(key) => key,
        Err(error) => return fail(format_args!("no randomness to make a {what} of: {error}")),
    };
    // Apart, so that the key can go into a file or a pipe and the table is still read.
    eprint!(
        "# The {what} stands on standard output and nowhere else. For the configuration:\n{}",
        configured(key.expose())
    );
    print(&format!("{}\n", key.expose()))
}

fn hash() -> ExitCode {
    let mut bytes = Vec::new();
    let most = u64::try_from(LONGEST + 3).unwrap_or(u64::MAX);
    if let Err(error) = io::stdin().take(most).read_to_end(&mut bytes) {
        return fail(error);
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
        Err(why) => fail(why),
    }
}
