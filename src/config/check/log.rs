//! Decides what `[log]` says. Must never open a file.

use super::files::Files;
use crate::config::amount::Percent;
use crate::config::file;
use crate::config::settings::{AccessFormat, AccessLog, Level, Log, LogFormat};
use crate::config::word::Filled;

pub(super) fn log(file: &file::Log, files: Files<'_, '_>) -> Log {
    let access = match file.access.value() {
        None => AccessLog::Stdout,
        Some(Filled(text)) => match &*text {
            "stdout" => AccessLog::Stdout,
            "off" => AccessLog::Off,
            path => AccessLog::File(files.directory.join(path)),
        },
    };
    let place = file.access.given();
    let place = place.filter(|_| matches!(access, AccessLog::File(_)));
    Log {
        access,
        access_place: place.map(|at| files.place(&at.span, &at.path)),
        access_format: file.access_format.or(AccessFormat::Json),
        access_ok_millionths: file.access_ok_sample.or(Percent(1_000_000)).0,
        format: file.format.or(LogFormat::Json),
        level: file.level.or(Level::Info),
    }
}
