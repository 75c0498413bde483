//! Decides how an access log is changed while it is written: opened first, then turned to, so that
//! what cannot be opened changes nothing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use prometheus_client::metrics::counter::Counter;

use super::Desk;
use super::manner::{Destination, Manner, Sink, look, open};

/// Changes an access log. Clones change the same.
#[derive(Clone, Debug)]
pub struct Switch(Arc<Desk>);

/// A change that can no longer fail.
pub struct Prepared {
    manner: Manner,
    /// What was opened; `None`: the lines go where they went.
    sink: Option<Sink>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Prepared").field(&self.manner).finish()
    }
}

impl Prepared {
    /// What will hold.
    #[must_use]
    pub const fn manner(&self) -> &Manner {
        &self.manner
    }
}

/// Of a log that nobody writes.
impl Default for Switch {
    fn default() -> Self {
        Self(Arc::new(Desk::new(false, Counter::default())))
    }
}

impl Switch {
    pub(super) fn of(desk: Arc<Desk>) -> Self {
        Self(desk)
    }

    /// Opens what this manner needs and is not open yet. Nothing changes before it is applied.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn prepare(&self, manner: &Manner) -> io::Result<Prepared> {
        let stays = *self.0.to.lock() == manner.to;
        Ok(Prepared {
            manner: manner.clone(),
            sink: if stays { None } else { Some(open(&manner.to)?) },
        })
    }

    /// Whether a destination could be opened, as far as can be told without making a file.
    ///
    /// # Errors
    /// It could not.
    pub fn look(&self, to: &Destination) -> io::Result<()> {
        if *self.0.to.lock() == *to {
            return Ok(());
        }
        look(to)
    }

    /// Writes in this manner from now on; what waits still goes where it went.
    pub fn apply(&self, prepared: Prepared) {
        self.0.set(&prepared.manner);
        if let Some(sink) = prepared.sink {
            self.turn_to(sink);
        }
    }

    /// Opens the file anew, as after a rotation: what waits still goes to the old one.
    ///
    /// # Errors
    /// It cannot be opened; then nothing changes.
    pub fn reopen(&self) -> io::Result<()> {
        let to = self.0.to.lock().clone();
        if matches!(to, Destination::File(_)) {
            self.turn_to(open(&to)?);
        }
        Ok(())
    }

    fn turn_to(&self, sink: Sink) {
        self.0.on.store(sink.is_some(), Ordering::Relaxed);
        self.0.order(|orders| orders.redirect = Some(sink));
    }
}
