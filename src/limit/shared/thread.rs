//! Decides where connections to stores live: on one thread of their own, which is started with the
//! first store and ends with the process.
//!
//! Not on a worker, whose requests would wait for the others' answers; nor on the control thread, where
//! a large scrape would look like a slow store.

use std::fmt;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The thread, once there is a store.
#[derive(Default)]
pub struct Thread(Mutex<Option<Running>>);

struct Running {
    handle: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Thread {
    /// The runtime of the thread, which is started if it is not running. `None` where it cannot be.
    pub fn handle(&self) -> Option<Handle> {
        let mut running = self.0.lock();
        if running.is_none() {
            match Running::start() {
                Ok(started) => *running = Some(started),
                Err(error) => tracing::error!(%error, "no thread for stores"),
            }
        }
        running.as_ref().map(|running| running.handle.clone())
    }
}

impl Running {
    fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("stores".to_owned())
            .spawn(move || {
                // Also when the other end is dropped.
                drop(runtime.block_on(ended));
            })?;
        Ok(Self {
            handle,
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread for stores panicked");
        }
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Thread")
            .field(&self.0.lock().is_some())
            .finish()
    }
}
