//! Decides what a valid `[log]` is. Must never open a file.

use std::path::PathBuf;

use super::Place;

/// `[log]`: what is written where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Where the line per request goes. Default standard output.
    pub access: AccessLog,
    /// Where a file is named, if one is.
    pub access_place: Option<Place>,
    /// How that line is spelled. Default JSON.
    pub access_format: AccessFormat,
    /// Of lines whose outcome is `ok`, how many in a million are written. Default all.
    pub access_ok_millionths: u32,
    /// How diagnostics are written. Default JSON.
    pub format: LogFormat,
    /// Which diagnostics are written. Default `info`.
    pub level: Level,
}

/// Where the access log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// Standard output.
    Stdout,
    /// Nowhere.
    Off,
    /// A file, resolved against the directory of the configuration file; appended to.
    File(PathBuf),
}

/// How the line per request is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessFormat {
    /// One JSON object a line.
    Json,
    /// As nginx and Apache do in their combined format, with the request's id and outcome after it.
    Combined,
}

impl AccessFormat {
    /// Every format.
    pub const ALL: [Self; 2] = [Self::Json, Self::Combined];

    /// The name used in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Combined => "combined",
        }
    }
}

/// How diagnostics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

impl LogFormat {
    /// Every format.
    pub const ALL: [Self; 2] = [Self::Json, Self::Text];

    /// The name used in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}

/// The least severe diagnostics that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Something failed that an operator must look at.
    Error,
    /// Something is off.
    Warn,
    /// What an operator wants to know in quiet times.
    Info,
    /// For whoever looks for a defect.
    Debug,
    /// Everything.
    Trace,
}

impl Level {
    /// Every level, most severe first.
    pub const ALL: [Self; 5] = [
        Self::Error,
        Self::Warn,
        Self::Info,
        Self::Debug,
        Self::Trace,
    ];

    /// The name used in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}
