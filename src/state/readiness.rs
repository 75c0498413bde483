//! Decides whether new calls are welcome, for whoever probes.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether new calls are welcome.
#[derive(Debug, Default)]
pub struct Readiness(AtomicBool);

impl Readiness {
    /// Whether new calls are welcome.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Says whether new calls are welcome.
    pub fn set_ready(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }
}
