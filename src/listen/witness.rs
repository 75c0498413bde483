//! Decides how a panic outside a request is told: it is counted, and logged by where it happened. What
//! it ended is the connection or the stream that it happened in, and nothing else.

use std::thread;

use prometheus_client::metrics::counter::Counter;

use crate::observe::panics;

/// Counts a panic when it is dropped by one. It goes with a connection, whose task swallows it.
#[derive(Debug)]
pub(super) struct Witness(Counter);

impl Witness {
    /// Counts here.
    pub(super) fn new(panicked: &Counter) -> Self {
        Self(panicked.clone())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        if thread::panicking() {
            witnessed(&self.0);
        }
    }
}

/// A panic was caught.
pub(super) fn witnessed(panicked: &Counter) {
    panicked.inc();
    let at = panics::place();
    tracing::error!(at, "a client connection panicked");
}

#[cfg(test)]
mod tests;
