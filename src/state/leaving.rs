//! Decides nothing: carries an operator's word that the gateway is to leave, from the admin socket to
//! whoever drains it.

use tokio::sync::watch;

/// Whether an operator wants the gateway to drain and end.
#[derive(Debug)]
pub struct Leaving(watch::Sender<bool>);

impl Default for Leaving {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Leaving {
    /// Asks for it. To ask again changes nothing.
    pub fn ask(&self) {
        self.0.send_replace(true);
    }

    /// Resolves when it was asked for.
    pub async fn asked(&self) {
        // The sender stands here: it cannot go while somebody waits.
        let _ = self.0.subscribe().wait_for(|asked| *asked).await;
    }
}
