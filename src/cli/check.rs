//! `forecourt check`: every problem of a configuration file. Opens no socket.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;

use super::EX_CONFIG;
use super::print::{Format, print, print_json};
use crate::app::{self, Options};
use crate::config::{Problems, Sources};

/// What `--format json` prints.
#[derive(Serialize)]
struct Checked<'a> {
    file: &'a Path,
    ok: bool,
    /// The files that it includes, in the order in which they were read.
    included: &'a [&'a Path],
    problems: &'a Problems,
    warnings: &'a Problems,
}

pub(super) fn check(file: PathBuf, format: Format) -> ExitCode {
    let options = Options::new(file.clone());
    let read = app::read(&options);
    let included: Vec<_> = read.iter().flat_map(Sources::files).skip(1).collect();
    let checked = read.clone().and_then(|read| app::examine(&options, read));
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
            included: &included,
            problems,
            warnings,
        }),
        Format::Text => {
            for warning in warnings {
                eprintln!("{warning}");
            }
            if ok {
                let included = included.iter();
                let included = included.map(|it| format!("{}: included\n", it.display()));
                let included: String = included.collect();
                print(&format!("{included}{}: ok\n", file.display()))
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
