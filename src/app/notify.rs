//! Decides what a service manager is told (sd_notify(3)): that the gateway serves, that it reloads, that
//! it stops, in a line how it is, and, as long as every thread turns, that all is well.
//!
//! Where there is none (`NOTIFY_SOCKET` is not set) nothing is told. Must never fail for it.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Gateway, Pulse};
use crate::state::Attempt;
use crate::state::reload::Order;

/// How often it is looked whether the line has changed.
const TICK: Duration = Duration::from_secs(1);

/// What the end itself takes, beside what is granted for it.
const MARGIN: Duration = Duration::from_secs(5);

/// The longest line, in bytes.
const LINE: usize = 240;

/// The service manager of this process.
#[derive(Debug, Default)]
pub(super) struct Manager {
    /// What it was told last.
    line: String,
}

impl Manager {
    /// Every listener accepts; or does again, after a reload.
    pub(super) fn ready(&mut self, gateway: &Gateway) {
        self.line = line(gateway, "serving");
        tell(&[NotifyState::Ready, NotifyState::Status(&self.line)]);
    }

    /// The configuration is being read.
    pub(super) fn reloading(&self) {
        let mut states = vec![NotifyState::Reloading];
        states.extend(NotifyState::monotonic_usec_now());
        tell(&states);
    }

    /// The gateway stops, which may take as long as its configuration says.
    pub(super) fn stopping(&mut self, gateway: &Gateway) {
        let shutdown = &gateway.reloader.live().load().settings.shutdown;
        let at_most = shutdown.delay.saturating_add(shutdown.timeout);
        self.line = line(gateway, "draining");
        let micros = at_most.saturating_add(MARGIN).as_micros();
        tell(&[
            NotifyState::Stopping,
            NotifyState::ExtendTimeoutUsec(u32::try_from(micros).unwrap_or(u32::MAX)),
            NotifyState::Status(&self.line),
        ]);
    }

    /// Tells the line whenever it has changed.
    pub(super) async fn follow(&mut self, gateway: &Gateway, doing: &str) -> Infallible {
        let mut tick = interval(TICK);
        loop {
            tick.tick().await;
            let line = line(gateway, doing);
            if line != self.line {
                self.line = line;
                tell(&[NotifyState::Status(&self.line)]);
            }
        }
    }
}

/// Tells the service manager that all is well, for as long as every thread turns. `every`: how long it
/// may be left without a word; `None`: it does not ask for it.
pub(super) async fn keep_well(mut pulse: Pulse, every: Option<Duration>) -> Infallible {
    let Some(every) = every.filter(|every| !every.is_zero()) else {
        return std::future::pending().await;
    };
    // At half of the time, and where a thread did not turn until then, soon after it does.
    let mut looks = interval(every / 8);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = Instant::now();
    let mut is_logged = false;
    loop {
        looks.tick().await;
        if told.elapsed() < every / 2 {
            continue;
        }
        let still: Vec<&str> = pulse.still().collect();
        if still.is_empty() {
            tell(&[NotifyState::Watchdog]);
            told = Instant::now();
            pulse.feel();
            is_logged = false;
        } else if !std::mem::replace(&mut is_logged, true) {
            tracing::error!(?still, "threads do not turn; the watchdog is not fed");
        }
    }
}

/// How long the service manager may be left without a word, where it asks for one.
pub(super) fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}

/// How the gateway is, in a line.
fn line(gateway: &Gateway, doing: &str) -> String {
    let snapshot = gateway.reloader.live().load();
    spelled(
        doing,
        snapshot.generation,
        snapshot.settings.listeners.len(),
        gateway.reloader.last().as_ref(),
    )
}

fn spelled(doing: &str, generation: u64, listeners: usize, last: Option<&Attempt>) -> String {
    let plural = if listeners == 1 { "" } else { "s" };
    let mut line = format!("{doing}, generation {generation}, {listeners} listener{plural}");
    // Writing into memory cannot fail. One line: what follows a line feed would be another word.
    match last.map(|attempt| (&attempt.result, attempt.order)) {
        Some((Err(rejected), order)) => {
            let why = rejected.to_string();
            let first = why.lines().next().unwrap_or_default();
            let order = match order {
                Order::Reload => "reload",
                Order::Rollback | Order::Guard(_) => "rollback",
            };
            let _ = write!(line, "; the last {order} was rejected: {first}");
        }
        Some((Ok(_), Order::Guard(figures))) => {
            let _ = write!(
                line,
                "; generation {} made calls fail, and was taken back",
                figures.generation
            );
        }
        Some((Ok(_), Order::Reload | Order::Rollback)) | None => {}
    }
    if line.len() > LINE {
        let end = (0..=LINE).rev().find(|at| line.is_char_boundary(*at));
        line.truncate(end.unwrap_or(0));
        line.push_str("...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Timestamp;
    use crate::state::Rejected;

    #[test]
    fn a_line_is_one_line_and_not_long() {
        assert_eq!(
            spelled("serving", 1, 1, None),
            "serving, generation 1, 1 listener"
        );
        let attempt = |tables| Attempt {
            at: Timestamp::UNIX_EPOCH,
            order: Order::Reload,
            result: Err(Rejected::RestartNeeded(tables)),
        };
        let told = spelled("draining", 7, 2, Some(&attempt(vec!["runtime"])));
        assert_eq!(
            told,
            "draining, generation 7, 2 listeners; the last reload was rejected: restart needed: [runtime] changed"
        );
        let long = spelled("serving", 1, 1, Some(&attempt(vec!["a\nb"; 100])));
        assert!(!long.contains('\n'), "{long}");
        let long = spelled("serving", 1, 1, Some(&attempt(vec!["ä"; 200])));
        assert!(long.len() <= LINE + 3 && long.ends_with("..."), "{long}");
    }

    #[tokio::test(start_paused = true)]
    async fn where_nobody_asks_for_it_there_is_no_watchdog() {
        for every in [None, Some(Duration::ZERO)] {
            let well = keep_well(Pulse::default(), every);
            assert!(
                tokio::time::timeout(Duration::from_secs(3600), well)
                    .await
                    .is_err()
            );
        }
    }
}
