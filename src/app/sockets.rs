//! Decides which sockets the gateway starts with: its own, or those that a service manager opened for
//! it.

use std::io;
use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;

use super::StartError;
use super::listeners::{Listeners, Ready};
use crate::config::Settings;
use crate::listen;

/// Sockets that a service manager opened (`LISTEN_FDS`). Each is used by the listener, or the admin
/// socket, that is configured with its address.
#[derive(Debug, Default)]
pub struct Inherited(Vec<(SocketAddr, TcpListener)>);

impl Inherited {
    /// Takes them from the environment, once, before there are threads.
    ///
    /// # Errors
    /// When one of them is no TCP socket.
    pub fn from_env() -> io::Result<Self> {
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::new();
        for index in 0..passed.len() {
            sockets.extend(passed.take_tcp_listener(index)?);
        }
        Self::of(sockets)
    }

    /// These listening sockets.
    ///
    /// # Errors
    /// When one has no address.
    pub fn of(sockets: impl IntoIterator<Item = TcpListener>) -> io::Result<Self> {
        let sockets = sockets.into_iter();
        let with_address = sockets.map(|socket| Ok((socket.local_addr()?, socket)));
        with_address.collect::<io::Result<_>>().map(Self)
    }

    /// Keeps one for whoever has its address later.
    pub(super) fn put(&mut self, address: SocketAddr, socket: TcpListener) {
        self.0.push((address, socket));
    }

    /// The one with an address.
    pub(super) fn take(&mut self, address: SocketAddr) -> Option<TcpListener> {
        let index = self.0.iter().position(|(bound, _)| *bound == address)?;
        Some(self.0.swap_remove(index).1)
    }
}

/// Opens the sockets that the gateway starts with: of its listeners, and the admin socket.
pub(super) fn bind<'l>(
    settings: &Settings,
    listeners: &'l Listeners,
) -> Result<(Ready<'l>, TcpListener), StartError> {
    let ready = listeners.prepare(settings).map_err(|failed| {
        let failed = failed.into_iter().next();
        failed.map_or_else(
            || StartError::Thread(io::ErrorKind::InvalidInput.into()),
            |failed| StartError::Bind {
                address: failed.listener.address,
                what: failed.listener.name,
                source: failed.source,
            },
        )
    })?;
    warn_of_short_queues(settings);
    let admin = listeners.spare(|spare| bind_admin(settings, spare))?;
    match listeners.spare(|spare| spare.0.first().map(|(address, _)| *address)) {
        Some(address) => Err(StartError::Unclaimed { address }),
        None => Ok((ready, admin)),
    }
}

fn warn_of_short_queues(settings: &Settings) {
    let Some(most) = listen::somaxconn() else {
        return;
    };
    for listener in &settings.listeners {
        if most < u32::from(listener.backlog) {
            tracing::warn!(
                listener = &*listener.name,
                backlog = listener.backlog,
                somaxconn = most,
                "the system's net.core.somaxconn is below the listener's backlog"
            );
        }
    }
}

fn bind_admin(settings: &Settings, inherited: &mut Inherited) -> Result<TcpListener, StartError> {
    let address = settings.admin.address;
    let failed = |source| StartError::Bind {
        address,
        what: "admin".into(),
        source,
    };
    // The admin port is never shared: two gateways behind one would answer for each other.
    let listener = match inherited.take(address) {
        Some(passed) => passed,
        None => TcpListener::bind(address).map_err(failed)?,
    };
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}
