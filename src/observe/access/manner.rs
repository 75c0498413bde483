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
    /// Of those whose outcome is `ok`, so many in a million are written.
    pub ok_millionths: u32,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            to: Destination::Off,
            spelling: Spelling::Json,
            ok_millionths: ALL,
        }
    }
}

/// Every line.
pub(super) const ALL: u32 = 1_000_000;

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
            let file = appended(true).open(path)?;
            Some(Box::new(file))
        }
    })
}

/// Whether a destination could be opened: a file that is there is, of one that is not the directory must
/// be.
pub(super) fn look(to: &Destination) -> io::Result<()> {
    let Destination::File(path) = to else {
        return Ok(());
    };
    match appended(false).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
            directory.map_or(Ok(()), |it| it.read_dir().map(drop))
        }
        opened => opened.map(drop),
    }
}

fn appended(is_made: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).create(is_made).mode(0o640);
    options.custom_flags(WITHOUT_WAITING);
    options
}
