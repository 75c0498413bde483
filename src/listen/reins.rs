//! Decides how a listener is changed or closed while it is open: by whoever holds its reins.
//!
//! A change holds for connections that come after it. Must never touch those that are open, but for
//! telling them that their listener closes.

use std::rc::Rc;

use tokio::sync::watch;

use super::drain::{Drain, Draining, Stage};
use super::spread::Open;
use super::tls::Doorman;
use crate::state::Listener;

/// What a listener is to the connections that it takes.
#[derive(Clone, Debug)]
pub struct Manner {
    /// What it is called, and what is known of those in front of it.
    pub listener: Rc<Listener>,
    /// Where its open connections are counted.
    pub open: Open,
    /// Who makes TLS connections of them; `None`: clear text.
    pub doorman: Option<Doorman>,
    /// How many connections may wait for being accepted.
    pub backlog: u16,
}

/// The end that changes a listener and closes it. Dropped, the listener goes on as it is.
#[derive(Debug)]
pub struct Reins {
    manner: watch::Sender<Manner>,
    closing: Rc<Drain>,
}

/// The end that the listener holds.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) manner: watch::Receiver<Manner>,
    /// Kept, so that its stage is never taken for reached because nobody can move it any more.
    closing: Rc<Drain>,
}

/// The reins of a listener, and what they are fastened to.
pub(super) fn reins(manner: Manner) -> (Reins, Held) {
    let (sender, manner) = watch::channel(manner);
    let closing = Rc::new(Drain::default());
    let held = Held {
        manner,
        closing: Rc::clone(&closing),
    };
    let manner = sender;
    (Reins { manner, closing }, held)
}

impl Reins {
    /// Takes connections in this manner from now on.
    pub fn change(&self, manner: Manner) {
        self.manner.send_replace(manner);
    }

    /// Closes the listener: [`Stage::Draining`] takes no more connections and ends those that are open
    /// after the request they carry; [`Stage::Stopped`] cuts what is left.
    pub fn close(&self, stage: Stage) {
        self.closing.advance(stage);
    }

    /// Resolves when the listener and all of its connections have ended.
    pub async fn slack(&self) {
        self.manner.closed().await;
    }
}

impl Held {
    /// Waits for either: the gateway's end, or the listener's own.
    pub(super) fn along(&self, gateway: &Draining) -> Draining {
        gateway.with(&self.closing)
    }

    /// The manner there is now, seen.
    pub(super) fn now(&mut self) -> Manner {
        self.manner.borrow_and_update().clone()
    }

    /// Resolves when there is another; never once nobody can change it.
    pub(super) async fn changed(&mut self) {
        if self.manner.changed().await.is_err() {
            std::future::pending().await
        }
    }
}
