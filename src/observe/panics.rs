//! Decides what is told of a panic: where it happened, and in which thread. Never what it said: the
//! message of a panic is made of values, and those may be a caller's.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::panic::{self, PanicHookInfo};
use std::thread;

thread_local! {
    static LAST: RefCell<Option<Box<str>>> = const { RefCell::new(None) };
}

/// Has every panic of this process told in the log, with its trace where `RUST_BACKTRACE` asks for one.
/// Whatever else would have told of it does no more.
pub fn watch() {
    panic::set_hook(Box::new(tell));
}

fn tell(panic: &PanicHookInfo<'_>) {
    let at = panic.location().map(ToString::to_string);
    let thread = thread::current();
    let trace = Backtrace::capture();
    let trace = (trace.status() == BacktraceStatus::Captured).then_some(trace);
    tracing::error!(
        at,
        thread = thread.name(),
        trace = trace.map(|it| it.to_string()),
        "a thread panicked"
    );
    LAST.set(at.map(Into::into));
}

/// Where this thread panicked last, once; `None` where nobody watches.
#[must_use]
pub fn place() -> Option<Box<str>> {
    LAST.take()
}
