//! Decides when a place among requests at once is free again: when its request has ended, however.

use std::sync::Arc;

use super::fingerprint::Fingerprint;
use super::store::Store;

/// The places that one request has, until dropped.
pub struct Seats {
    store: Arc<Store>,
    taken: Vec<Fingerprint>,
}

impl Seats {
    /// Places that were taken already.
    pub(super) fn taken(store: &Arc<Store>, taken: Vec<Fingerprint>) -> Self {
        Self {
            store: Arc::clone(store),
            taken,
        }
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        for bucket in self.taken.drain(..) {
            self.store.lock(bucket).give_back(bucket);
        }
    }
}

impl std::fmt::Debug for Seats {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Seats").field(&self.taken.len()).finish()
    }
}

#[cfg(test)]
mod tests;
