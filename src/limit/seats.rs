//! Decides when a place among requests at once is free again: when its request has ended, however.

use std::sync::Arc;

use super::fingerprint::Fingerprint;
use super::store::Store;

/// The places that one request has, until dropped.
pub struct Seats {
    store: Arc<Store>,
    first: Fingerprint,
    more: Vec<Fingerprint>,
}

impl Seats {
    /// A place that was taken already. Must not be dropped while a shard is locked.
    pub(super) fn taken(store: &Arc<Store>, first: Fingerprint) -> Self {
        Self {
            store: Arc::clone(store),
            first,
            more: Vec::new(),
        }
    }

    /// Another one that was taken already.
    pub(super) fn add(&mut self, taken: Fingerprint) {
        self.more.push(taken);
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        for bucket in [self.first].into_iter().chain(self.more.drain(..)) {
            self.store.lock(bucket).give_back(bucket);
        }
    }
}

impl std::fmt::Debug for Seats {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = 1 + self.more.len();
        out.debug_tuple("Seats").field(&count).finish()
    }
}

#[cfg(test)]
mod tests;
