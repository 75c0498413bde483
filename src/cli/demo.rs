//! `forecourt demo`: the rules at work.

use std::io;
use std::process::ExitCode;

use super::print::{fail, is_coloured};
use crate::demo::{self, Screen};

pub(super) fn demo(once: bool) -> ExitCode {
    let mut out = io::stdout();
    let is_coloured = is_coloured(&out);
    match demo::run(&mut Screen::new(&mut out, is_coloured), once) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => fail(error),
    }
}
