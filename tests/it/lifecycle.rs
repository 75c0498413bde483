//! How the gateway lives as a process: what a panic costs, what a service manager hears, and the commands
//! that ask for its end or its health.

mod commands;
mod manager;
mod panics;
mod threads;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use forecourt::app::{self, Inherited, Options};
use forecourt::limit::{Clock, ManualClock, Moment, SystemClock};
use forecourt::observe::{ManualWallClock, Timestamp, WallClock};

use crate::support::Gateway;
use crate::support::gateway::{NOW_MS, two_workers};
use crate::support::process::told;
use crate::support::wait::elapse;

/// What a panic must not tell.
const SECRET: &str = "a caller's secret";

/// Panics once, when it is told to and a thread of this name asks.
#[derive(Debug, Default)]
struct Fuse {
    is_lit: AtomicBool,
    thread: &'static str,
}

impl Fuse {
    fn of(thread: &'static str) -> Arc<Self> {
        Arc::new(Self {
            is_lit: AtomicBool::new(false),
            thread,
        })
    }

    fn light(&self) {
        self.is_lit.store(true, Ordering::SeqCst);
    }

    fn is_lit(&self) -> bool {
        self.is_lit.load(Ordering::SeqCst)
    }

    fn burn(&self) {
        let thread = thread::current();
        let is_it = thread.name().is_some_and(|it| it.starts_with(self.thread));
        if is_it && self.is_lit.swap(false, Ordering::SeqCst) {
            panic!("{SECRET}");
        }
    }
}

/// The limiter's clock, at which a fuse hangs.
#[derive(Debug)]
struct Fused(SystemClock, Arc<Fuse>);

impl Clock for Fused {
    fn now(&self) -> Moment {
        self.1.burn();
        self.0.now()
    }
}

/// The time of day, at which a fuse hangs.
#[derive(Debug)]
struct FusedWall(ManualWallClock, Arc<Fuse>);

impl WallClock for FusedWall {
    fn now(&self) -> Timestamp {
        self.1.burn();
        self.0.now()
    }
}

/// A gateway of two workers whose limiter and whose time of day can be made to panic.
#[track_caller]
fn fused(configuration: &str, limiter: &Arc<Fuse>, wall: &Arc<Fuse>) -> Gateway {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("forecourt.toml");
    std::fs::write(&path, two_workers(configuration)).unwrap();
    let day = ManualWallClock::at(NOW_MS);
    let options = Options {
        path,
        env: Arc::new(|_| None),
        clock: Arc::new(Fused(SystemClock::new(), Arc::clone(limiter))),
        wall: Arc::new(FusedWall(day.clone(), Arc::clone(wall))),
    };
    let inner = app::Gateway::start_with(options, Inherited::default());
    Gateway {
        inner: inner.unwrap_or_else(|error| panic!("{error}")),
        clock: ManualClock::new(),
        wall: day,
        directory,
    }
}

/// Obeys files that lie beside a configuration: `panic`, `block`.
#[derive(Debug)]
struct Obeying(SystemClock, Box<Path>);

impl Clock for Obeying {
    fn now(&self) -> Moment {
        let thread = thread::current();
        if thread.name().is_some_and(|it| it.starts_with("worker-")) {
            if std::fs::remove_file(self.1.join("panic")).is_ok() {
                panic!("{SECRET}");
            }
            while self.1.join("block").exists() {
                std::fs::write(self.1.join("hangs"), "").unwrap();
                elapse(std::time::Duration::from_millis(10));
            }
        }
        self.0.now()
    }
}

/// Not a test but a process of some: a whole gateway that can be made to panic and to hang. Without the
/// word of one of them it is nothing.
#[test]
fn as_a_process() {
    let Some(path) = told("FORECOURT_AS_A_PROCESS") else {
        return;
    };
    let mut options = Options::new(path.clone().into());
    let directory = Path::new(&path).parent().unwrap().into();
    options.clock = Arc::new(Obeying(SystemClock::new(), directory));
    let settings = app::load(&options).unwrap().settings;
    drop(app::install_log(&settings).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let served = runtime.block_on(app::serve(options, Inherited::default()));
    app::flush_log();
    served.unwrap();
}
