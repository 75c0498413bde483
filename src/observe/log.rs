//! Decides how diagnostics leave the process: to stderr, as text or JSON, from a level on.
//!
//! This is for what the gateway has to say about itself; requests go to the access log. It is set
//! up once, by `main`. The level can be changed while running (`dial`) and the rest cannot. Must never
//! wait for whoever reads stderr: one thread writes, and lines are lost before a worker stands still.
//!
//! Libraries are heard up to `info` and no further, whatever the level: beyond it, what they say is
//! frames, fields and bytes, and no header value may come into a log.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use thiserror::Error;
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt as layer, reload};

/// How many lines may wait for whoever reads stderr.
const WAITING: usize = 1024;

/// The way to stderr of this process.
static STDERR: OnceLock<Aside> = OnceLock::new();

/// The level of this process.
static LEVEL: OnceLock<Level> = OnceLock::new();

/// The level of what this process says; none before [`install`].
#[must_use]
pub fn installed() -> Option<&'static Level> {
    LEVEL.get()
}

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
    /// The thread that writes did not start.
    #[error("the log cannot be written: {0}")]
    Thread(io::Error),
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
    let aside = Aside::start(io::stderr()).map_err(Problem::Thread)?;
    let (subscriber, level) = build(level, format, aside.clone())?;
    subscriber.try_init().map_err(|_taken| Problem::Installed)?;
    let _ = STDERR.set(aside);
    let _ = LEVEL.set(level.clone());
    Ok(level)
}

/// Waits until what was said has been written, for `limit` at most. Call it before the process
/// ends.
pub fn flush(limit: Duration) {
    if let Some(aside) = STDERR.get() {
        Aside::flush(aside, limit);
    }
}

/// Lines on their way to a thread of their own.
#[derive(Clone)]
struct Aside {
    lines: SyncSender<Item>,
    lost: Arc<AtomicU64>,
}

enum Item {
    Line(Vec<u8>),
    /// Everything before this is written when it is dropped.
    Mark(#[expect(dead_code, reason = "dropping it is the message")] SyncSender<()>),
}

impl Aside {
    fn start(sink: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&lost);
        thread::Builder::new()
            .name("diagnostics".into())
            .spawn(move || write(&waiting, sink, &told))?;
        Ok(Self { lines, lost })
    }

    fn flush(&self, limit: Duration) {
        let (mark, passed) = sync_channel(0);
        if self.lines.try_send(Item::Mark(mark)).is_ok() {
            // An error either way: the mark was dropped, or the time is over.
            let _ = passed.recv_timeout(limit);
        }
    }
}

impl Write for Aside {
    /// A line comes in one piece.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.lines.try_send(Item::Line(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The writing thread's whole life.
fn write(waiting: &Receiver<Item>, mut sink: impl Write, lost: &AtomicU64) {
    let mut told = 0;
    while let Ok(first) = waiting.recv() {
        for item in std::iter::once(first).chain(waiting.try_iter()) {
            if let Item::Line(line) = item {
                // There is nobody to tell.
                let _ = sink.write_all(&line);
            }
        }
        // Only now is there room to say so.
        let total = lost.load(Ordering::Relaxed);
        if total > told {
            told = total;
            tracing::warn!(total, "diagnostics were lost: stderr took none");
        }
    }
}

fn build(
    level: &str,
    format: Format,
    aside: Aside,
) -> Result<(impl Subscriber + Send + Sync + use<>, Level), Problem> {
    let (filter, handle) = reload::Layer::new(parse(level)?);
    let (text, json) = match format {
        Format::Text => {
            let colour = std::io::stderr().is_terminal();
            let text = layer::layer().with_writer(move || aside.clone());
            (Some(text.with_ansi(colour)), None)
        }
        Format::Json => {
            let json = layer::layer().json().flatten_event(true);
            (None, Some(json.with_writer(move || aside.clone())))
        }
    };
    let subscriber = Registry::default()
        .with(filter)
        .with(filter_fn(may_be_heard))
        .with(text)
        .with(json);
    Ok((subscriber, Level(handle)))
}

/// Whether this may be said at any level at all.
fn may_be_heard(what: &Metadata<'_>) -> bool {
    const OURS: &str = env!("CARGO_PKG_NAME");
    let rest = what.target().strip_prefix(OURS);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        || *what.level() <= tracing::Level::INFO
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
pub(super) mod tests {
    use super::*;

    /// A level that nobody hears, as long as what comes with it is kept.
    pub(in crate::observe) fn detached(level: &str) -> (Level, impl Sized) {
        let aside = Aside::start(io::sink()).unwrap();
        let (subscriber, level) = build(level, Format::Json, aside).unwrap();
        (level, subscriber)
    }

    #[test]
    fn the_level_can_be_changed_and_a_bad_one_changes_nothing() {
        let aside = Aside::start(io::sink()).unwrap();
        let (subscriber, level) = build("info", Format::Json, aside).unwrap();
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

    /// Keeps what is written.
    #[derive(Clone, Default)]
    struct Kept(Arc<parking_lot::Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.lock().extend_from_slice(line);
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn libraries_are_not_heard_beyond_info_whatever_the_level() {
        for level in ["trace", "h2=trace,info", "trace,forecourtx=trace"] {
            let kept = Kept::default();
            let aside = Aside::start(kept.clone()).unwrap();
            let (subscriber, _level) = build(level, Format::Json, aside.clone()).unwrap();
            tracing::subscriber::with_default(subscriber, || {
                tracing::trace!(target: "h2::codec", "secret");
                tracing::debug!(target: "forecourtx", "secret");
                tracing::debug!(target: "hyper", "secret");
                tracing::info!(target: "h2", "heard");
                tracing::warn!(target: "forecourt::proxy", "ours");
                tracing::trace!(target: "forecourt", "ours as well");
            });
            Aside::flush(&aside, Duration::from_secs(30));
            let text = String::from_utf8(kept.0.lock().clone()).unwrap();
            assert!(!text.contains("secret"), "{level}: {text}");
            assert!(text.contains("heard") && text.contains("ours"), "{text}");
            assert_eq!(text.contains("as well"), level.starts_with("trace"));
        }
    }

    /// Takes nothing until it is let go.
    struct Blocked(Receiver<()>, Arc<AtomicU64>);

    impl Write for Blocked {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            self.1.fetch_add(1, Ordering::Relaxed);
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_the_reader_of_stderr() {
        let (let_go, blocked) = sync_channel(0);
        let written = Arc::new(AtomicU64::new(0));
        let mut aside = Aside::start(Blocked(blocked, Arc::clone(&written))).unwrap();
        let all = 3 * WAITING;
        for _ in 0..all {
            aside.write_all(b"line\n").unwrap();
        }
        Aside::flush(&aside, Duration::from_millis(1));
        let lost = aside.lost.load(Ordering::Relaxed);
        assert!(lost > 0);
        drop(let_go);
        // The queue may have been too full to be marked before.
        while written.load(Ordering::Relaxed) + lost < all as u64 {
            thread::yield_now();
        }
        assert_eq!(written.load(Ordering::Relaxed) + lost, all as u64);
    }
}
