//! Decides what is told of workers that have yet to take up what a configuration changed about
//! listeners.

use super::Reloader;
use crate::state::sockets::{Sockets, Uptake};

impl Reloader {
    /// The listening sockets.
    #[must_use]
    pub fn sockets(&self) -> &dyn Sockets {
        &*self.sockets
    }

    /// What workers have to take up of a generation; `None`: it changed nothing about listeners, or
    /// another did since.
    #[must_use]
    pub fn uptake(&self, generation: u64) -> Option<Uptake> {
        let uptake = self.uptake.lock();
        let (of, uptake) = uptake.as_ref()?;
        (*of == generation).then(|| uptake.clone())
    }

    /// The workers that have yet to take up the last change of listeners.
    #[must_use]
    pub fn workers_behind(&self) -> Vec<usize> {
        let uptake = self.uptake.lock();
        uptake
            .as_ref()
            .map_or_else(Vec::new, |(_, it)| it.waiting())
    }
}
