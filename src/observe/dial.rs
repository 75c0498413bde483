//! Decides which level of diagnostics is in force: the configured one, or another for a time.
//!
//! Whoever turns the level up says for how long, so that no gateway is left talkative by somebody who
//! went home. A reload changes what it goes back to, and ends nothing. Must never keep a worker waiting.

use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::clock::Timestamp;
use super::log::{Level, Problem};

/// How long another level than the configured one may hold.
pub const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How long it holds where nothing is said.
pub const USUAL: Duration = Duration::from_secs(600);

/// The level of this process's diagnostics.
pub struct Dial {
    state: Mutex<State>,
    turned: Notify,
    /// 1 while the level is not the configured one.
    gauge: Gauge,
}

struct State {
    /// `None` where nobody has set the diagnostics up.
    level: Option<Level>,
    configured: Box<str>,
    turned: Option<Turned>,
}

#[derive(Clone)]
struct Turned {
    due: Instant,
    until: Timestamp,
}

/// How the dial stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The level in force.
    pub level: Box<str>,
    /// The one it goes back to.
    pub configured: Box<str>,
    /// When it goes back; none where it is the configured one.
    pub until: Option<Timestamp>,
}

/// Why the level was not changed.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It is no level, or cannot be changed.
    #[error(transparent)]
    Level(#[from] Problem),
    /// For nothing, or longer than a day.
    #[error("a level other than the configured one holds for at least 1s and at most 24h")]
    Time,
}

impl Dial {
    /// A dial for diagnostics that were set up at the configured level. `gauge` shows 1 while another
    /// is in force.
    #[must_use]
    pub fn new(level: Option<Level>, configured: &str, gauge: Gauge) -> Self {
        Self {
            state: Mutex::new(State {
                level,
                configured: configured.into(),
                turned: None,
            }),
            turned: Notify::new(),
            gauge,
        }
    }

    /// Puts a level in force for a time from `now`. The configured one ends whatever was in force.
    ///
    /// # Errors
    /// It is no level, the time is none or too long, or nobody has set the diagnostics up; then
    /// nothing changes.
    pub fn turn(&self, level: &str, time: Duration, now: Timestamp) -> Result<(), Refused> {
        let mut state = self.state.lock();
        if !(Duration::from_secs(1)..=LONGEST).contains(&time) {
            return Err(Refused::Time);
        }
        let handle = state.level.as_ref().ok_or(Problem::Gone)?;
        handle.replace(level)?;
        state.turned = (level != &*state.configured).then(|| Turned {
            due: Instant::now() + time,
            until: now.checked_add(time).unwrap_or(Timestamp::MAX),
        });
        self.gauge.set(i64::from(state.turned.is_some()));
        drop(state);
        tracing::warn!(level, seconds = time.as_secs(), "log level changed");
        self.turned.notify_one();
        Ok(())
    }

    /// The configuration says another level. One that is in force for a time stays for that time.
    pub fn configure(&self, level: &str) {
        let mut state = self.state.lock();
        if *state.configured == *level {
            return;
        }
        state.configured = level.into();
        if state.turned.is_none() {
            state.go_back();
        }
    }

    /// How it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let state = self.state.lock();
        let until = state.turned.as_ref().map(|turned| turned.until);
        let in_force = state.level.as_ref().filter(|_| until.is_some());
        Standing {
            level: in_force
                .map_or_else(|| state.configured.clone(), |level| level.current().into()),
            configured: state.configured.clone(),
            until,
        }
    }

    /// Goes back in time, for ever.
    pub async fn follow(&self) {
        loop {
            let due = self.state.lock().turned.as_ref().map(|turned| turned.due);
            let Some(due) = due else {
                self.turned.notified().await;
                continue;
            };
            tokio::select! {
                () = self.turned.notified() => {}
                () = sleep_until(due) => self.end(due),
            }
        }
    }

    fn end(&self, due: Instant) {
        let mut state = self.state.lock();
        // It may have been turned again meanwhile.
        if state.turned.as_ref().is_none_or(|turned| turned.due > due) {
            return;
        }
        state.turned = None;
        state.go_back();
        self.gauge.set(0);
        let level = state.configured.clone();
        drop(state);
        tracing::warn!(level = &*level, "log level is the configured one again");
    }
}

impl State {
    fn go_back(&self) {
        if let Some(level) = &self.level
            && let Err(error) = level.replace(&self.configured)
        {
            tracing::error!(%error, "the log level cannot be changed");
        }
    }
}

impl fmt::Debug for Dial {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Dial").field(&self.standing()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::log::tests::detached;
    use std::sync::Arc;

    const MINUTE: Duration = Duration::from_secs(60);

    fn dial() -> (Arc<Dial>, Level, Gauge, impl Sized) {
        let (level, subscriber) = detached("info");
        let gauge = Gauge::default();
        let dial = Dial::new(Some(level.clone()), "info", gauge.clone());
        (Arc::new(dial), level, gauge, subscriber)
    }

    fn follow(dial: &Arc<Dial>) {
        let dial = Arc::clone(dial);
        tokio::spawn(async move { dial.follow().await });
    }

    /// Lets time pass, and whoever waited for it act.
    async fn pass(time: Duration) {
        tokio::time::sleep(time).await;
        tokio::task::yield_now().await;
    }

    #[tokio::test(start_paused = true)]
    async fn another_level_holds_for_its_time_and_no_longer() {
        let (dial, level, gauge, _subscriber) = dial();
        follow(&dial);
        dial.turn("debug", 10 * MINUTE, Timestamp::UNIX_EPOCH)
            .unwrap();
        let standing = dial.standing();
        assert_eq!((&*standing.level, &*standing.configured), ("debug", "info"));
        assert_eq!(standing.until, Timestamp::from_second(600).ok());
        assert_eq!(gauge.get(), 1);
        pass(10 * MINUTE - Duration::from_secs(1)).await;
        assert_eq!(level.current(), "debug");
        pass(Duration::from_secs(2)).await;
        assert_eq!(level.current(), "info");
        let standing = dial.standing();
        assert_eq!(
            (&*standing.level, standing.until, gauge.get()),
            ("info", None, 0)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn turning_again_counts_from_then_and_the_configured_level_ends_it() {
        let (dial, level, gauge, _subscriber) = dial();
        follow(&dial);
        dial.turn("debug", 2 * MINUTE, Timestamp::UNIX_EPOCH)
            .unwrap();
        pass(MINUTE).await;
        dial.turn("info,forecourt=trace", 5 * MINUTE, Timestamp::UNIX_EPOCH)
            .unwrap();
        pass(3 * MINUTE).await;
        assert!(level.current().contains("forecourt=trace"));
        // Shorter than before as well.
        dial.turn("debug", MINUTE, Timestamp::UNIX_EPOCH).unwrap();
        pass(MINUTE + Duration::from_secs(1)).await;
        assert_eq!((level.current().as_str(), gauge.get()), ("info", 0));
        dial.turn("debug", MINUTE, Timestamp::UNIX_EPOCH).unwrap();
        dial.turn("info", MINUTE, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((dial.standing().until, gauge.get()), (None, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reload_changes_what_it_goes_back_to() {
        let (dial, level, _gauge, _subscriber) = dial();
        follow(&dial);
        dial.turn("trace", MINUTE, Timestamp::UNIX_EPOCH).unwrap();
        dial.configure("warn");
        assert_eq!(level.current(), "trace");
        pass(2 * MINUTE).await;
        assert_eq!(level.current(), "warn");
        dial.configure("error");
        assert_eq!(
            (level.current().as_str(), &*dial.standing().level),
            ("error", "error")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_changes_nothing() {
        let (dial, level, gauge, _subscriber) = dial();
        let now = Timestamp::UNIX_EPOCH;
        for (wanted, time) in [
            ("loud", MINUTE),
            ("", MINUTE),
            ("debug", Duration::ZERO),
            ("debug", LONGEST + MINUTE),
        ] {
            assert!(dial.turn(wanted, time, now).is_err(), "{wanted} {time:?}");
        }
        assert_eq!((level.current().as_str(), gauge.get()), ("info", 0));
        dial.turn("debug", LONGEST, now).unwrap();
        let none = Dial::new(None, "info", Gauge::default());
        assert!(matches!(
            none.turn("debug", MINUTE, now),
            Err(Refused::Level(_))
        ));
        assert_eq!(&*none.standing().level, "info");
    }
}
