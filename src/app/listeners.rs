//! Decides which listening sockets there are for a configuration: opens what is new before it is
//! served, and tells the workers what is new, what is changed and what is gone once it is.
//!
//! A socket is known by its address. Whichever listener has that address has the socket, so one that is
//! changed, renamed, or swaps its address with another loses neither its queue nor its connections.
//! Must never accept a connection.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::sockets::Inherited;
use crate::config::{self, Problem, Problems, Settings, Severity};
use crate::listen::{self, Bound, Desk, Doorman, Open};
use crate::state::sockets::{Opened, Sockets, Uptake};
use crate::state::{Keyring, Listener, Shared};

/// What one worker is told at once.
pub(super) struct Orders {
    pub(super) orders: Vec<Order>,
    /// To be told when they have been carried out.
    pub(super) uptake: Uptake,
}

/// What a worker does about one listening socket.
pub(super) enum Order {
    /// Accept on it.
    Open(u64, Bound, Desk, Manner),
    /// Take connections in another manner.
    Change(u64, Manner),
    /// Close it, and cut its connections after so long.
    Close(u64, Duration),
}

/// What a listener is to its connections, on its way to a worker.
pub(super) struct Manner {
    pub(super) listener: Listener,
    pub(super) open: Open,
    pub(super) doorman: Option<Doorman>,
    pub(super) backlog: u16,
}

/// The listening sockets of all workers.
pub(super) struct Listeners {
    shared: Arc<Shared>,
    workers: Vec<UnboundedSender<Orders>>,
    loads: Vec<Gauge>,
    /// Open connections, over all listeners and workers.
    all: Arc<AtomicUsize>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    open: Vec<Standing>,
    /// How many were opened so far.
    count: u64,
    /// Sockets of a service manager that no listener has the address of, now.
    spare: Inherited,
}

/// A socket that is open.
struct Standing {
    id: u64,
    settings: config::Listener,
    /// With the port that it really got.
    address: SocketAddr,
    /// The service manager's, which lives on when its listener goes.
    passed: Option<TcpListener>,
}

/// A listener whose socket cannot be opened.
pub(super) struct Failed {
    pub(super) listener: config::Listener,
    pub(super) source: io::Error,
}

/// Sockets that are open and wait for their configuration to be served.
pub(super) struct Ready<'l> {
    listeners: &'l Listeners,
    places: Vec<(config::Listener, Place)>,
    /// For connections of listeners that go.
    timeout: Duration,
}

/// Where the socket of a listener comes from.
enum Place {
    /// It is open, under this number.
    Kept(u64),
    New {
        bound: Vec<Bound>,
        address: SocketAddr,
        passed: Option<TcpListener>,
    },
}

impl Listeners {
    /// None yet, and the ends at which so many workers are told of them.
    pub(super) fn new(
        workers: usize,
        shared: &Arc<Shared>,
        inherited: Inherited,
    ) -> (Self, Vec<UnboundedReceiver<Orders>>) {
        let (workers, ends): (Vec<_>, Vec<_>) = (0..workers).map(|_| unbounded_channel()).unzip();
        let indices = 0..workers.len();
        let listeners = Self {
            shared: Arc::clone(shared),
            workers,
            loads: indices.map(|index| shared.metrics.worker(index)).collect(),
            all: Arc::new(AtomicUsize::new(0)),
            held: Mutex::new(Held {
                spare: inherited,
                ..Held::default()
            }),
        };
        (listeners, ends)
    }

    /// The address of a listener, with the port it really got.
    pub(super) fn address(&self, name: &str) -> Option<SocketAddr> {
        let held = self.held.lock();
        let standing = held.open.iter().find(|it| *it.settings.name == *name)?;
        Some(standing.address)
    }

    /// Sockets of the service manager that no listener has.
    pub(super) fn spare<T>(&self, look: impl FnOnce(&mut Inherited) -> T) -> T {
        look(&mut self.held.lock().spare)
    }

    /// Opens what these settings need and is not open: all of it, or nothing.
    pub(super) fn prepare(&self, next: &Settings) -> Result<Ready<'_>, Vec<Failed>> {
        let mut ready = Ready {
            listeners: self,
            places: Vec::new(),
            timeout: next.shutdown.timeout,
        };
        let (mut failed, mut kept) = (Vec::new(), HashSet::new());
        // Ends before `ready` does, which gives back by the same lock.
        let mut held = self.held.lock();
        for listener in &next.listeners {
            let place = match held.open.iter().find(|it| it.is_for(listener)) {
                Some(standing) if kept.insert(standing.id) => Ok(Place::Kept(standing.id)),
                // Two listeners at one address would take each other's connections.
                Some(_) => Err(io::ErrorKind::AddrInUse.into()),
                None => self.bind(listener, &mut held.spare),
            };
            match place {
                Ok(place) => ready.places.push((listener.clone(), place)),
                Err(source) => failed.push(Failed {
                    listener: listener.clone(),
                    source,
                }),
            }
        }
        drop(held);
        if failed.is_empty() {
            Ok(ready)
        } else {
            Err(failed)
        }
    }

    fn bind(&self, listener: &config::Listener, spare: &mut Inherited) -> io::Result<Place> {
        let passed = spare.take(listener.address);
        let bound = passed.as_ref().map(TcpListener::try_clone).transpose();
        let bound = bound.and_then(|passed| {
            let backlog = i32::from(listener.backlog);
            listen::bind(listener.address, self.workers.len(), backlog, passed)
        });
        let address = bound.as_ref().ok().and_then(|bound| bound.first());
        let address = address.map(|first| first.socket.local_addr());
        match (bound, address) {
            (Ok(bound), Some(Ok(address))) => Ok(Place::New {
                bound,
                address,
                passed,
            }),
            (Err(error), _) | (Ok(_), Some(Err(error))) => {
                if let Some(passed) = passed {
                    spare.put(listener.address, passed);
                }
                Err(error)
            }
            (Ok(_), None) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// What a listener is to its connections.
    fn manner(&self, settings: &config::Listener, keyring: &Keyring) -> Manner {
        let meters = self.shared.metrics.listener(&settings.name);
        let doorman = keyring
            .terminator(&settings.name)
            .map(|terminator| Doorman {
                terminator,
                meters: self.shared.metrics.handshakes(&settings.name),
            });
        Manner {
            open: Open {
                all: Arc::clone(&self.all),
                here: meters.connections.clone(),
            },
            listener: Listener::new(settings, meters),
            doorman,
            backlog: settings.backlog,
        }
    }
}

impl Standing {
    /// Whether a listener can have this socket. Port 0 is any port, so the name decides.
    fn is_for(&self, listener: &config::Listener) -> bool {
        if listener.address.port() == 0 {
            return self.settings.name == listener.name
                && self.settings.address == listener.address;
        }
        self.address == listener.address
    }
}

impl Ready<'_> {
    /// Tells the workers.
    pub(super) fn serve(mut self, keyring: &Keyring) -> Option<Uptake> {
        let listeners = self.listeners;
        let mut held = listeners.held.lock();
        let mut orders: Vec<Vec<Order>> = listeners.workers.iter().map(|_| Vec::new()).collect();
        let mut before = std::mem::take(&mut held.open);
        let mut open = Vec::new();
        for (settings, place) in std::mem::take(&mut self.places) {
            let manner = || listeners.manner(&settings, keyring);
            match place {
                Place::Kept(id) => {
                    let Some(at) = before.iter().position(|it| it.id == id) else {
                        continue;
                    };
                    let standing = before.swap_remove(at);
                    if standing.settings != settings {
                        let to_all = orders.iter_mut();
                        to_all.for_each(|orders| orders.push(Order::Change(id, manner())));
                    }
                    open.push(Standing {
                        settings,
                        ..standing
                    });
                }
                Place::New {
                    bound,
                    address,
                    passed,
                } => {
                    held.count += 1;
                    let id = held.count;
                    let desks = listen::desks(&listeners.loads);
                    for ((orders, bound), desk) in orders.iter_mut().zip(bound).zip(desks) {
                        orders.push(Order::Open(id, bound, desk, manner()));
                    }
                    let workers = listeners.workers.len();
                    tracing::info!(listener = &*settings.name, %address, workers, "listening");
                    open.push(Standing {
                        id,
                        settings,
                        address,
                        passed,
                    });
                }
            }
        }
        for gone in before {
            let (id, address) = (gone.id, gone.address);
            tracing::info!(listener = &*gone.settings.name, %address, "listening no more");
            let to_all = orders.iter_mut();
            to_all.for_each(|orders| orders.push(Order::Close(id, self.timeout)));
            if let Some(passed) = gone.passed {
                tracing::warn!(
                    %address,
                    "the service manager keeps this socket open: whoever connects waits for ever"
                );
                held.spare.put(address, passed);
            }
        }
        held.open = open;
        if orders.iter().all(Vec::is_empty) {
            return None;
        }
        let uptake = Uptake::by(listeners.workers.len());
        for (worker, orders) in listeners.workers.iter().zip(orders) {
            let uptake = uptake.clone();
            // A worker that is gone takes nothing up, and the uptake says so.
            let _ = worker.send(Orders { orders, uptake });
        }
        Some(uptake)
    }
}

impl Drop for Ready<'_> {
    /// What was opened and is not served is closed, but for what is the service manager's.
    fn drop(&mut self) {
        for (settings, place) in std::mem::take(&mut self.places) {
            if let Place::New {
                passed: Some(passed),
                ..
            } = place
            {
                let spare = &mut self.listeners.held.lock().spare;
                spare.put(settings.address, passed);
            }
        }
    }
}

impl Opened for Ready<'_> {
    fn put_in_force(self: Box<Self>, keyring: &Keyring) -> Option<Uptake> {
        self.serve(keyring)
    }
}

impl Sockets for Listeners {
    fn open(&self, next: &Settings) -> Result<Box<dyn Opened + '_>, Problems> {
        match self.prepare(next) {
            Ok(ready) => Ok(Box::new(ready)),
            Err(failed) => Err(failed.iter().map(Failed::problem).collect()),
        }
    }

    fn addresses(&self) -> Vec<(Box<str>, SocketAddr)> {
        let held = self.held.lock();
        let open = held.open.iter();
        open.map(|it| (it.settings.name.clone(), it.address))
            .collect()
    }
}

/// What to do about the system's usual reasons.
const HINTS: [(io::ErrorKind, &str); 3] = [
    (
        io::ErrorKind::AddrInUse,
        "take another port, or stop whoever has this one",
    ),
    (
        io::ErrorKind::AddrNotAvailable,
        "no interface of this machine has the address",
    ),
    (
        io::ErrorKind::PermissionDenied,
        "ports below 1024 need CAP_NET_BIND_SERVICE",
    ),
];

impl Failed {
    fn problem(&self) -> Problem {
        let address = self.listener.address;
        let what = format!("{address} cannot be listened on: {}", self.source);
        let kind = self.source.kind();
        let hint = HINTS
            .iter()
            .find(|(of, _)| *of == kind)
            .map(|(_, hint)| *hint);
        let place = &self.listener.place;
        place.problem(Severity::Error, &what, hint)
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.addresses()).finish()
    }
}
