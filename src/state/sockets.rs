//! Decides what a change of the configuration asks of the listening sockets, and of the workers that
//! accept on them. Must never open one: whoever starts the gateway does.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::watch;

use super::tls::Keyring;
use crate::config::{Problems, Settings};

/// The listening sockets of the gateway.
pub trait Sockets: Send + Sync {
    /// Opens what the next settings need and is not open. It listens, and nobody accepts before it is
    /// put in force; dropped, it is closed.
    ///
    /// # Errors
    /// Each listener that cannot be opened, and why. Nothing of it stays open.
    fn open(&self, next: &Settings) -> Result<Box<dyn Opened + '_>, Problems>;

    /// The listeners' names and addresses, with the ports they really got.
    fn addresses(&self) -> Vec<(Box<str>, SocketAddr)>;
}

/// Sockets that are open and wait for their configuration to be served.
pub trait Opened {
    /// Tells every worker what to accept on from now on, and what no longer. `None`: what they do
    /// already.
    fn put_in_force(self: Box<Self>, keyring: &Keyring) -> Option<Uptake>;
}

/// Which workers have yet to take up a change. Clones look at the same change.
#[derive(Clone, Debug)]
pub struct Uptake(Arc<watch::Sender<BTreeSet<usize>>>);

impl Uptake {
    /// A change that these workers are told of.
    #[must_use]
    pub fn by(workers: usize) -> Self {
        Self(Arc::new(watch::Sender::new((0..workers).collect())))
    }

    /// A worker has taken it up.
    pub fn taken(&self, worker: usize) {
        self.0.send_modify(|waiting| {
            waiting.remove(&worker);
        });
    }

    /// The workers that have not.
    #[must_use]
    pub fn waiting(&self) -> Vec<usize> {
        self.0.borrow().iter().copied().collect()
    }

    /// Resolves when all have.
    pub async fn by_all(&self) {
        // The sender is here: it cannot be gone.
        let _ = self.0.subscribe().wait_for(BTreeSet::is_empty).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_taken_up_when_the_last_worker_has() {
        let uptake = Uptake::by(3);
        uptake.taken(1);
        uptake.taken(1);
        assert_eq!(uptake.waiting(), [0, 2]);
        uptake.taken(0);
        let waits = tokio::time::timeout(std::time::Duration::ZERO, uptake.by_all());
        assert!(waits.await.is_err());
        uptake.taken(2);
        uptake.by_all().await;
        assert!(uptake.waiting().is_empty());
    }
}
