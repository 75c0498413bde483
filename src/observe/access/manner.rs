//! Decides where access-log lines go and how they are written, as far as that can change. Opening waits
//! for nobody: a pipe that nobody reads is an error.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Where the lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Nowhere; nothing is formatted.
    Off,
    /// Standard output.
    Stdout,
    /// This file, appended to; created readable by owner and group only.
    File(PathBuf),
}

/// How a line is spelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spelling {
    /// One JSON object.
    #[default]
    Json,
    /// As nginx and Apache do in their combined format, with the request's id and outcome after it.
    Combined,
}

/// Everything about an access log that can be changed while it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Where the lines go.
    pub to: Destination,
    /// How they are spelled.
    pub spelling: Spelling,
    /// Of those whose outcome is `ok`, so many in a hundred are written.
    pub ok_percent: u8,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            to: Destination::Off,
            spelling: Spelling::Json,
            ok_percent: ALL,
        }
    }
}

/// Every line, in percent.
pub(super) const ALL: u8 = 100;

/// Opening a pipe waits for whoever reads it unless this is said. Files and devices do not care.
const WITHOUT_WAITING: i32 = libc::O_NONBLOCK;

pub(super) type Sink = Option<Box<dyn Write + Send>>;

/// Opens a destination.
pub(super) fn open(to: &Destination) -> io::Result<Sink> {
    Ok(match to {
        Destination::Off => None,
        // Without the line buffering of `io::Stdout`: whole pieces are written.
        Destination::Stdout => {
            let stdout = io::stdout().as_fd().try_clone_to_owned()?;
            Some(Box::new(File::from(stdout)))
        }
        Destination::File(path) => {
            let mut options = OpenOptions::new();
            let file = options
                .append(true)
                .create(true)
                .mode(0o640)
                .custom_flags(WITHOUT_WAITING)
                .open(path)?;
            Some(Box::new(file))
        }
    })
}
