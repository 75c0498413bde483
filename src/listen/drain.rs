//! Decides the order in which the gateway stops, and tells every thread.
//!
//! Serving, then leaving (every answer closes its connection), then draining (no new connections;
//! what is in flight may finish), then stopped (what is left is cut). The stages only move forward.

use tokio::sync::watch;

/// How far the shutdown is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Connections are accepted.
    Serving,
    /// Connections are still accepted, and each answer announces that its connection ends.
    Leaving,
    /// Listeners are closed, connections end after the request they carry.
    Draining,
    /// Connections are cut.
    Stopped,
}

/// The end that moves the stage.
#[derive(Debug)]
pub struct Drain(watch::Sender<Stage>);

/// The end that waits for it.
#[derive(Clone, Debug)]
pub struct Draining(watch::Receiver<Stage>);

impl Default for Drain {
    fn default() -> Self {
        Self(watch::Sender::new(Stage::Serving))
    }
}

impl Drain {
    /// Moves to a stage; never back.
    pub fn advance(&self, stage: Stage) {
        self.0.send_if_modified(|now| {
            let moves = *now < stage;
            if moves {
                *now = stage;
            }
            moves
        });
    }

    /// Another end that waits.
    #[must_use]
    pub fn subscribe(&self) -> Draining {
        Draining(self.0.subscribe())
    }
}

impl Draining {
    /// The stage now.
    #[must_use]
    pub fn stage(&self) -> Stage {
        *self.0.borrow()
    }

    /// Resolves when the stage is reached, or when the gateway itself is gone.
    pub async fn reached(&mut self, stage: Stage) {
        // An error means that the sender is gone: nothing serves any more.
        let _ = self.0.wait_for(|now| *now >= stage).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stages_only_move_forward() {
        let drain = Drain::default();
        let mut waiting = drain.subscribe();
        drain.advance(Stage::Stopped);
        drain.advance(Stage::Draining);
        waiting.reached(Stage::Draining).await;
        assert_eq!(waiting.stage(), Stage::Stopped);
    }
}
