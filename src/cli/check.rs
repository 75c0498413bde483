//! `forecourt check`: every problem of a configuration file. Opens no socket.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use super::EX_CONFIG;
use super::print::{Format, print, print_json};
use crate::app::{self, Options};
use crate::config::Problems;

/// What `--format json` prints.
#[derive(Serialize)]
struct Checked<'a> {
    file: &'a Path,
    ok: bool,
    problems: &'a Problems,
    warnings: &'a Problems,
}

pub(super) fn check(file: PathBuf, format: Format) -> ExitCode {
    let checked = app::load(&Options::new(file.clone()));
    let none = Problems::default();
    let (problems, warnings, code) = match &checked {
        Ok(loaded) => (&none, &loaded.settings.warnings, ExitCode::SUCCESS),
        Err(problems) => (problems, &none, ExitCode::from(EX_CONFIG)),
    };
    let ok = checked.is_ok();
    let printed = match format {
        Format::Json => print_json(&Checked {
            file: &file,
            ok,
            problems,
            warnings,
        }),
        Format::Text => {
            for warning in warnings {
                eprintln!("{warning}");
            }
            if ok {
                print(&format!("{}: ok\n", file.display()))
            } else {
                eprintln!("{problems}");
                ExitCode::SUCCESS
            }
        }
    };
    if printed == ExitCode::SUCCESS {
        code
    } else {
        printed
    }
}
