//! Gateways that count together in a store: against a real `redis-server`, which these tests start.
//!
//! Whether there is one is known only when the tests run, and the usual harness can ignore a test only
//! when it is compiled. So this binary brings its own: without the program each test is reported as
//! ignored, with the reason; with `FORECOURT_DEMANDS=redis` that is a failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "tests say what must be there and fail where it is not"
)]

#[path = "../it/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with the other tests")]
mod support;

mod counting;
mod exact;
mod explained;
mod failing;
mod kinds;
mod redis;
mod reload;
mod seen;
mod setting;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// A test and its name.
type Test = (&'static str, fn());

/// The tests of a file, by name.
#[macro_export]
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        pub const ALL: &[$crate::Test] = &[$((
            concat!(module_path!(), "::", stringify!($name)),
            $name as fn(),
        )),+];
    };
}

const MISSING: &str = "needs redis-server (Debian package redis-server)";

fn main() -> ExitCode {
    let is_there = redis::is_installed();
    if !is_there && redis::is_demanded() {
        eprintln!("FORECOURT_DEMANDS has redis, and there is none: {MISSING}");
        return ExitCode::FAILURE;
    }
    let files = [
        counting::ALL,
        exact::ALL,
        explained::ALL,
        failing::ALL,
        kinds::ALL,
        reload::ALL,
        seen::ALL,
    ];
    let trials = files.into_iter().flatten().map(|(name, test)| {
        let name = name.strip_prefix("store::").unwrap_or(name);
        let trial = Trial::test(name, || {
            test();
            Ok(())
        });
        if is_there {
            trial
        } else {
            trial.with_kind(MISSING).with_ignored_flag(true)
        }
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
