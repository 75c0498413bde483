//! Decides how a thread of the gateway begins, and what it means that something of it ends before it was
//! told to: the gateway is not whole any more. Calls are not welcome from then on, and whoever runs the
//! gateway is told. Must never let one go unnoticed.

use std::fmt::Display;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::FutureExt as _;
use prometheus_client::metrics::counter::Counter;
use tokio::sync::watch;
use tokio::time::Instant;

use super::StartError;
use crate::listen::{Draining, Stage};
use crate::observe::panics;
use crate::state::Readiness;

/// How soon what panicked is begun anew.
const AGAIN: Duration = Duration::from_secs(1);

/// How often it is looked whether a thread has ended.
const LOOK: Duration = Duration::from_millis(2);

/// Who is told what ended too early.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    fallen: watch::Sender<Option<Box<str>>>,
    readiness: Arc<Readiness>,
}

impl Watch {
    /// Nothing has ended.
    pub(super) fn new(readiness: &Arc<Readiness>) -> Self {
        Self {
            fallen: watch::Sender::new(None),
            readiness: Arc::clone(readiness),
        }
    }

    /// Something that should go on has ended.
    pub(super) fn fell(&self, what: impl Display) {
        tracing::error!("{what} ended before it was told to");
        self.readiness.set_ready(false);
        self.fallen.send_modify(|fallen| {
            if fallen.is_none() {
                *fallen = Some(what.to_string().into());
            }
        });
    }

    /// Resolves with the first that ended too early.
    pub(super) async fn fallen(&self) -> Box<str> {
        let mut fallen = self.fallen.subscribe();
        match fallen.wait_for(Option::is_some).await {
            Ok(fallen) => fallen.clone().unwrap_or_default(),
            // This end holds the sender.
            Err(_) => std::future::pending().await,
        }
    }

    /// Starts a thread that is to live until the gateway has come so far.
    pub(super) fn spawn(
        &self,
        name: &str,
        (until, draining): (Stage, Draining),
        run: impl FnOnce() + Send + 'static,
    ) -> Result<JoinHandle<()>, StartError> {
        let duty = Duty {
            watch: self.clone(),
            name: name.into(),
            until,
            draining,
        };
        thread::Builder::new()
            .name(name.into())
            .spawn(move || {
                // By name, so that it is there until the end, whichever way that is.
                let _duty = duty;
                run();
            })
            .map_err(StartError::Thread)
    }
}

/// A thread's, until it ends.
struct Duty {
    watch: Watch,
    name: Box<str>,
    until: Stage,
    draining: Draining,
}

impl Drop for Duty {
    fn drop(&mut self) {
        if self.draining.stage() < self.until {
            self.watch.fell(format_args!("the thread {}", self.name));
        }
    }
}

/// Joins a thread that was told to end. One that has not by then is left behind.
pub(super) fn end(thread: JoinHandle<()>, by: Instant) {
    while !thread.is_finished() && Instant::now() < by {
        // Nobody unparks this thread: it looks again.
        thread::park_timeout(LOOK);
    }
    let name = thread.thread().name().unwrap_or_default().to_owned();
    if !thread.is_finished() {
        tracing::error!(name, "a thread does not end, and is left behind");
    } else if thread.join().is_err() {
        tracing::error!(name, "a thread panicked");
    }
}

/// Does what `begin` makes, and anew after each panic of it. It resolves with what comes of it.
pub(super) async fn again<F: Future>(
    what: &'static str,
    panicked: &Counter,
    begin: impl Fn() -> F,
) -> F::Output {
    loop {
        let doing = AssertUnwindSafe(async { begin().await }).catch_unwind();
        match doing.await {
            Ok(done) => return done,
            Err(_) => {
                panicked.inc();
                let at = panics::place();
                tracing::error!(what, at, "panicked; it is begun anew");
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::listen::Drain;

    fn watch() -> (Watch, Arc<Readiness>) {
        let readiness = Arc::new(Readiness::default());
        readiness.set_ready(true);
        (Watch::new(&readiness), readiness)
    }

    #[tokio::test]
    async fn a_thread_that_returns_or_panics_too_early_is_told() {
        for panics in [false, true] {
            let (watch, readiness) = watch();
            let drain = Drain::default();
            let told = (Stage::Draining, drain.subscribe());
            let thread = watch.spawn("worker-0", told, move || assert!(!panics, "as told"));
            assert_eq!(thread.unwrap().join().is_err(), panics);
            assert!(watch.fallen().await.contains("worker-0"));
            assert!(!readiness.is_ready());
        }
    }

    #[tokio::test]
    async fn a_thread_that_ends_when_it_is_told_is_not() {
        let (watch, readiness) = watch();
        let drain = Drain::default();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let told = (Stage::Draining, drain.subscribe());
        let thread = watch.spawn("worker-0", told, move || {
            let _ = released.recv();
        });
        drain.advance(Stage::Draining);
        drop(release);
        thread.unwrap().join().unwrap();
        assert_eq!(watch.fallen().now_or_never(), None);
        assert!(readiness.is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn what_panics_is_counted_and_begun_anew() {
        let (turns, panicked) = (Cell::new(0), Counter::default());
        let turn = || {
            turns.set(turns.get() + 1);
            let turn = turns.get();
            async move {
                tokio::task::yield_now().await;
                assert!(turn > 3, "as told");
                turn
            }
        };
        assert_eq!(again("a test", &panicked, turn).await, 4);
        assert_eq!(panicked.get(), 3);
    }
}
