//! Decides the order in which the gateway, or one listener of it, stops, and tells every thread.
//!
//! Serving, then leaving (every answer closes its connection), then draining (no new connections;
//! what is in flight may finish), then stopped (what is left is cut). The stages only move forward. A
//! listener that closes alone is as far as it itself or the gateway is, whichever is further.

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
pub struct Draining {
    gateway: watch::Receiver<Stage>,
    /// Of one listener, where it may close alone.
    listener: Option<watch::Receiver<Stage>>,
}

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
        Draining {
            gateway: self.0.subscribe(),
            listener: None,
        }
    }
}

impl Draining {
    /// Waits for this, or for one listener that closes alone.
    pub(super) fn with(&self, listener: &Drain) -> Self {
        Self {
            gateway: self.gateway.clone(),
            listener: Some(listener.0.subscribe()),
        }
    }

    /// The stage now.
    #[must_use]
    pub fn stage(&self) -> Stage {
        let listener = self.listener.as_ref().map(|it| *it.borrow());
        self.gateway().max(listener.unwrap_or(Stage::Serving))
    }

    /// The stage of the whole gateway.
    pub(super) fn gateway(&self) -> Stage {
        *self.gateway.borrow()
    }

    /// Resolves when the stage is reached, or when the gateway itself is gone.
    pub async fn reached(&mut self, stage: Stage) {
        // An error means that the sender is gone: nothing serves any more.
        let reached = async |waiting: &mut watch::Receiver<Stage>| {
            let _ = waiting.wait_for(|now| *now >= stage).await;
        };
        match &mut self.listener {
            None => reached(&mut self.gateway).await,
            Some(listener) => tokio::select! {
                () = reached(&mut self.gateway) => {}
                () = reached(listener) => {}
            },
        }
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

    #[tokio::test]
    async fn a_listener_is_as_far_as_it_or_the_gateway_is() {
        let (gateway, listener, other) = (Drain::default(), Drain::default(), Drain::default());
        let whole = gateway.subscribe();
        let (mut closing, mut serving) = (whole.with(&listener), whole.with(&other));
        listener.advance(Stage::Draining);
        closing.reached(Stage::Draining).await;
        assert_eq!(closing.stage(), Stage::Draining);
        assert_eq!(
            (closing.gateway(), serving.stage()),
            (Stage::Serving, Stage::Serving)
        );
        gateway.advance(Stage::Leaving);
        serving.reached(Stage::Leaving).await;
        assert_eq!(
            (closing.stage(), serving.stage()),
            (Stage::Draining, Stage::Leaving)
        );
        gateway.advance(Stage::Stopped);
        closing.reached(Stage::Stopped).await;
    }
}
