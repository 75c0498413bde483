//! Decides which snapshot is served: one pointer, replaced whole.

use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};

use super::snapshot::Snapshot;

/// The handle to what is served now. Clones share it.
#[derive(Clone, Debug)]
pub struct Live(Arc<ArcSwap<Snapshot>>);

/// A thread's own view of the live snapshot: it looks whether the pointer changed and otherwise
/// touches nothing that other threads write.
#[derive(Debug)]
pub struct View(Cache<Arc<ArcSwap<Snapshot>>, Arc<Snapshot>>);

impl Live {
    /// Serves this snapshot.
    #[must_use]
    pub fn new(snapshot: Snapshot) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(snapshot)))
    }

    /// The snapshot served now.
    #[must_use]
    pub fn load(&self) -> Arc<Snapshot> {
        self.0.load_full()
    }

    /// Serves this snapshot from now on. Requests that loaded the old one finish on it.
    pub fn replace(&self, snapshot: Snapshot) {
        self.0.store(Arc::new(snapshot));
    }

    /// A view for one thread.
    #[must_use]
    pub fn view(&self) -> View {
        View(Cache::new(Arc::clone(&self.0)))
    }
}

impl View {
    /// The snapshot served now.
    pub fn load(&mut self) -> &Arc<Snapshot> {
        self.0.load()
    }
}
