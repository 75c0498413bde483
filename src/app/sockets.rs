//! Decides which sockets the gateway starts with: its own, or those that a service manager opened for
//! it.

use std::io;
use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;

use super::StartError;
use super::listeners::{Listeners, Ready};
use crate::config::Settings;
use crate::listen;

/// The name of the admin socket among sockets.
const ADMIN: &str = "admin";

/// Sockets that a service manager opened (`LISTEN_FDS`). Each is used by the listener, or the admin
/// socket, whose name it has (`LISTEN_FDNAMES`), whatever its address; else by the one that is configured
/// with its address.
#[derive(Debug, Default)]
pub struct Inherited(Vec<Passed>);

/// One of them.
#[derive(Debug)]
struct Passed {
    name: Box<str>,
    address: SocketAddr,
    socket: TcpListener,
}

impl Inherited {
    /// Takes them from the environment, once, before there are threads.
    ///
    /// # Errors
    /// When one of them is no TCP socket.
    #[allow(
        clippy::disallowed_methods,
        reason = "the environment is read here and handed in"
    )]
    pub fn from_env() -> io::Result<Self> {
        let mut passed = ListenFd::from_env();
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut names = names.split(':');
        let mut inherited = Self::default();
        for index in 0..passed.len() {
            let name = names.next().unwrap_or_default();
            if let Some(socket) = passed.take_tcp_listener(index)? {
                inherited.put(name, socket.local_addr()?, socket);
            }
        }
        Ok(inherited)
    }

    /// These listening sockets.
    ///
    /// # Errors
    /// When one has no address.
    pub fn of(sockets: impl IntoIterator<Item = TcpListener>) -> io::Result<Self> {
        let mut inherited = Self::default();
        for socket in sockets {
            inherited.put("", socket.local_addr()?, socket);
        }
        Ok(inherited)
    }

    /// Keeps one for whoever has its name, or its address, later.
    pub(super) fn put(&mut self, name: &str, address: SocketAddr, socket: TcpListener) {
        self.0.push(Passed {
            name: name.into(),
            address,
            socket,
        });
    }

    /// The one of this name; else the one with this address.
    pub(super) fn take(&mut self, name: &str, address: SocketAddr) -> Option<TcpListener> {
        let index = self.index(|it| *it.name == *name && it.address == address);
        let index = index.or_else(|| self.index(|it| *it.name == *name));
        let index = index.or_else(|| self.index(|it| it.address == address))?;
        Some(self.0.swap_remove(index).socket)
    }

    fn index(&self, is_it: impl Fn(&Passed) -> bool) -> Option<usize> {
        self.0.iter().position(is_it)
    }

    /// The address of one that is left.
    fn left(&self) -> Option<SocketAddr> {
        self.0.first().map(|it| it.address)
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
    match listeners.spare(|spare| spare.left()) {
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
        what: ADMIN.into(),
        source,
    };
    // The admin port is never shared: two gateways behind one would answer for each other.
    let listener = match inherited.take(ADMIN, address) {
        Some(passed) => passed,
        None => TcpListener::bind(address).map_err(failed)?,
    };
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> (TcpListener, SocketAddr) {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    }

    #[test]
    fn a_name_goes_before_an_address() {
        let [one, two, three, four] = [(); 4].map(|()| socket());
        let mut inherited = Inherited::default();
        inherited.put("forecourt.socket", one.1, one.0);
        inherited.put("public", two.1, two.0);
        inherited.put("both", three.1, three.0);
        inherited.put("both", four.1, four.0);
        let mut take = |name, address| {
            let taken: Option<TcpListener> = inherited.take(name, address);
            taken.map(|it| it.local_addr().unwrap())
        };
        // Whatever address it is configured with.
        assert_eq!(take("public", one.1), Some(two.1));
        // Of several with the name the one with the address.
        assert_eq!(take("both", four.1), Some(four.1));
        // A name that nothing has says nothing.
        assert_eq!(take("secure", one.1), Some(one.1));
        assert_eq!(take("public", one.1), None);
        assert_eq!(inherited.left(), Some(three.1));
    }
}
