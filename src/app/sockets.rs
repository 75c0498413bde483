//! Decides which sockets the gateway has: its own, or those that a service manager opened for it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use listenfd::ListenFd;

use super::StartError;
use super::worker::Listening;
use crate::config::Settings;
use crate::listen::{self, Open};
use crate::state::{Listener, Shared};

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

    fn take(&mut self, address: SocketAddr) -> Option<TcpListener> {
        let index = self.0.iter().position(|(bound, _)| *bound == address)?;
        Some(self.0.swap_remove(index).1)
    }
}

/// The sockets of all workers.
pub(super) struct Sockets {
    pub(super) by_worker: Vec<Vec<Listening>>,
    pub(super) addresses: Vec<(Box<str>, SocketAddr)>,
    pub(super) admin: TcpListener,
}

/// Opens what is configured.
pub(super) fn bind(
    settings: &Settings,
    workers: usize,
    shared: &Shared,
    mut inherited: Inherited,
) -> Result<Sockets, StartError> {
    let loads: Vec<_> = (0..workers)
        .map(|index| shared.metrics.worker(index))
        .collect();
    let all = Arc::new(AtomicUsize::new(0));
    let mut by_worker: Vec<Vec<Listening>> = (0..workers).map(|_| Vec::new()).collect();
    let mut addresses = Vec::new();
    for listener in &settings.listeners {
        let failed = |source| StartError::Bind {
            address: listener.address,
            what: listener.name.clone(),
            source,
        };
        let passed = inherited.take(listener.address);
        let bound = listen::bind(
            listener.address,
            workers,
            i32::from(listener.backlog),
            passed,
        )
        .map_err(failed)?;
        let address = bound
            .first()
            .ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?
            .socket
            .local_addr()
            .map_err(failed)?;
        addresses.push((listener.name.clone(), address));
        let meters = shared.metrics.listener(&listener.name);
        let desks = listen::desks(&loads);
        for ((bound, desk), acceptors) in bound.into_iter().zip(desks).zip(&mut by_worker) {
            acceptors.push(Listening {
                bound,
                listener: Listener::new(listener, meters.clone()),
                open: Open {
                    all: Arc::clone(&all),
                    here: meters.connections.clone(),
                },
                desk,
            });
        }
    }
    warn_of_short_queues(settings);
    let admin = bind_admin(settings, &mut inherited)?;
    match inherited.0.first() {
        Some((address, _)) => Err(StartError::Unclaimed { address: *address }),
        None => Ok(Sockets {
            by_worker,
            addresses,
            admin,
        }),
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
