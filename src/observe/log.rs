//! Decides how diagnostics leave the process: to stderr, as text or JSON, from a level on.
//!
//! This is for what the gateway has to say about itself; requests go to the access log. It is set
//! up once, by `main`. The level can be changed while running and the rest cannot.

use std::fmt;
use std::io::IsTerminal;
use std::str::FromStr;

use thiserror::Error;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt as layer, reload};

/// How a diagnostic is spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One line of text; in colour on a terminal.
    Text,
    /// One JSON object per line.
    Json,
}

/// Why diagnostics were not set up, or the level not changed.
#[derive(Debug, Error)]
pub enum Problem {
    /// The level is neither a level nor a list of `target=level`.
    #[error("`{level}` is not a log level: {why}")]
    Level {
        /// What was given.
        level: String,
        /// What is wrong with it.
        why: String,
    },
    /// They were set up before.
    #[error("the log is already set up")]
    Installed,
    /// What was set up is gone.
    #[error("the log is gone")]
    Gone,
}

/// Changes the level while running. Clones change the same.
#[derive(Clone)]
pub struct Level(reload::Handle<EnvFilter, Registry>);

impl Level {
    /// Lets through what is at least this severe: `error`, `warn`, `info`, `debug`, `trace`, `off`,
    /// or a list like `info,forecourt=debug`.
    ///
    /// # Errors
    ///
    /// [`Problem::Level`] if it cannot be read; then the old level stays.
    pub fn replace(&self, level: &str) -> Result<(), Problem> {
        let filter = parse(level)?;
        self.0.reload(filter).map_err(|_gone| Problem::Gone)
    }

    /// The level in force.
    #[must_use]
    pub fn current(&self) -> String {
        self.0.with_current(ToString::to_string).unwrap_or_default()
    }
}

impl fmt::Debug for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Level").field(&self.current()).finish()
    }
}

/// Sends the diagnostics of this process to stderr.
///
/// # Errors
///
/// [`Problem::Level`] if the level cannot be read, [`Problem::Installed`] if this was called before;
/// nothing changes then, so a test may call it.
pub fn install(level: &str, format: Format) -> Result<Level, Problem> {
    let (subscriber, level) = build(level, format)?;
    subscriber.try_init().map_err(|_taken| Problem::Installed)?;
    Ok(level)
}

fn build(
    level: &str,
    format: Format,
) -> Result<(impl Subscriber + Send + Sync + use<>, Level), Problem> {
    let (filter, handle) = reload::Layer::new(parse(level)?);
    let (text, json) = match format {
        Format::Text => {
            let colour = std::io::stderr().is_terminal();
            let text = layer::layer().with_writer(std::io::stderr);
            (Some(text.with_ansi(colour)), None)
        }
        Format::Json => {
            let json = layer::layer().json().flatten_event(true);
            (None, Some(json.with_writer(std::io::stderr)))
        }
    };
    let subscriber = Registry::default().with(filter).with(text).with(json);
    Ok((subscriber, Level(handle)))
}

fn parse(level: &str) -> Result<EnvFilter, Problem> {
    let problem = |why: String| Problem::Level {
        level: level.to_owned(),
        why,
    };
    // Alone, an unknown word would be taken for a target, and everything else would fall silent.
    for word in level.split(',').map(str::trim) {
        let level = LevelFilter::from_str(word);
        if word.is_empty() || (!word.contains('=') && level.is_err()) {
            return Err(problem(format!("there is no level `{word}`")));
        }
    }
    EnvFilter::from_str(level).map_err(|why| problem(why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_can_be_changed_and_a_bad_one_changes_nothing() {
        let (subscriber, level) = build("info", Format::Json).unwrap();
        let shown = || level.0.with_current(EnvFilter::max_level_hint).unwrap();
        assert_eq!(shown(), Some(LevelFilter::INFO));
        level.replace("warn,forecourt=debug").unwrap();
        assert_eq!(shown(), Some(LevelFilter::DEBUG));
        assert!(level.current().contains("forecourt=debug"));
        for bad in [
            "",
            " ",
            "loud",
            "info,",
            "info,forecourt",
            "info,forecourt=loud",
        ] {
            assert!(
                matches!(level.replace(bad), Err(Problem::Level { .. })),
                "{bad}"
            );
        }
        assert_eq!(shown(), Some(LevelFilter::DEBUG));
        drop(subscriber);
        assert!(matches!(level.replace("info"), Err(Problem::Gone)));
    }

    #[test]
    fn setting_up_twice_is_an_error_and_no_more() {
        // Another test may have been first.
        install("off", Format::Text).ok();
        let second = install("off", Format::Json);
        assert!(matches!(second, Err(Problem::Installed)));
        tracing::error!("not shown");
    }
}
