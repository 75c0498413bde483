//! The composition root: the only file that knows every room. Starts the threads, and stops them in
//! order.
//!
//! One thread per worker, each with its own runtime, listeners and upstream pools; one control
//! thread with the admin socket, the configuration watch and the housekeeping. [`Gateway`] is the
//! whole gateway as a value: `main`, the demo and the tests start the same one.

mod control;
mod explain;
mod listeners;
mod load;
mod sockets;
mod telemetry;
mod worker;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::admin::Process;
use crate::config::{self, Problems, Settings};
use crate::limit::Limiter;
use crate::limit::shared::Thread;
use crate::listen::{Drain, Stage};
use crate::observe::otlp::Export;
use crate::observe::{AccessLog, Decisions, Dial, Metrics, log};
use crate::proxy::Budget;
use crate::state::reload::{Reloaded, Reloader};
use crate::state::sockets::Sockets;
use crate::state::{self, Findings, Logs, Readiness, Rejected, Shared};

use listeners::Listeners;
pub use sockets::Inherited;

pub use explain::{Unexplained, explained};
pub use load::{Loaded, Options, examine, load, read};

/// How long the last telemetry may take on its way out.
const LAST_EXPORT: std::time::Duration = std::time::Duration::from_secs(2);

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration has problems: exit 78.
    #[error("{0}")]
    Config(Problems),
    /// An address cannot be bound.
    #[error("cannot listen on {address} ({what}): {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The listener's name, or `admin`.
        what: Box<str>,
        /// The system's reason.
        source: io::Error,
    },
    /// A service manager opened a socket that nothing in the configuration has the address of.
    #[error(
        "a socket at {address} was passed to this process, and no listener has this address: its \
         clients would wait for ever"
    )]
    Unclaimed {
        /// The address.
        address: SocketAddr,
    },
    /// The access log cannot be opened.
    #[error("cannot open the access log: {0}")]
    AccessLog(io::Error),
    /// What the `OTEL_*` variables ask for cannot be started.
    #[error("cannot export telemetry: {0}")]
    Telemetry(io::Error),
    /// A thread or its runtime cannot be started.
    #[error("cannot start: {0}")]
    Thread(io::Error),
}

/// Sends this process's diagnostics where the settings say. Once per process.
///
/// # Errors
/// When it was done before.
pub fn install_log(settings: &Settings) -> Result<log::Level, log::Problem> {
    let format = match settings.log.format {
        config::LogFormat::Json => log::Format::Json,
        config::LogFormat::Text => log::Format::Text,
    };
    log::install(settings.log.level.name(), format)
}

/// Writes out the diagnostics that wait, within half a second. The last thing a process does.
pub fn flush_log() {
    log::flush(std::time::Duration::from_millis(500));
}

/// A running gateway.
pub struct Gateway {
    shared: Arc<Shared>,
    reloader: Arc<Reloader>,
    readiness: Arc<Readiness>,
    drain: Drain,
    workers: Vec<JoinHandle<()>>,
    control: Option<JoinHandle<()>>,
    listeners: Arc<Listeners>,
    admin: SocketAddr,
    access: AccessLog,
    export: Export,
}

impl Gateway {
    /// Starts serving. Returns when every listener accepts.
    ///
    /// # Errors
    /// Why it did not start; nothing is left running.
    pub fn start(options: Options) -> Result<Self, StartError> {
        Self::start_with(options, Inherited::default())
    }

    /// The same on sockets that were opened before, where the configuration has their address.
    ///
    /// # Errors
    /// As [`Gateway::start`]; also when a socket is left over.
    pub fn start_with(options: Options, inherited: Inherited) -> Result<Self, StartError> {
        let Loaded {
            sources,
            settings,
            keyring,
            files,
        } = load(&options).map_err(StartError::Config)?;
        for warning in &settings.warnings {
            tracing::warn!("{warning}");
        }
        let metrics = Metrics::new(env!("CARGO_PKG_VERSION"));
        let manner = state::logs::manner(&settings.log);
        let access = AccessLog::start(&manner, metrics.access_log_dropped.clone())
            .map_err(StartError::AccessLog)?;
        let level = Dial::new(
            log::installed().cloned(),
            settings.log.level.name(),
            metrics.log_level_changed.clone(),
        );
        let budget = Arc::new(Budget::new(metrics.in_flight_bytes.clone()));
        let shared = Arc::new(Shared {
            limiter: Limiter::new(Arc::clone(&options.clock), settings.limits.limiter_keys),
            metrics,
            clock: Arc::clone(&options.clock),
            stores: Thread::default(),
            logs: Logs::new(access.switch(), level),
            findings: Findings::default(),
        });

        let workers = worker_count(&settings);
        let (listeners, orders) = Listeners::new(workers, &shared, inherited);
        let listeners = Arc::new(listeners);
        let (ready, admin) = sockets::bind(&settings, &listeners)?;
        let admin_address = admin.local_addr().map_err(StartError::Thread)?;
        ready.serve(&keyring);
        tell_what_starts(&settings, admin_address);

        let export = telemetry::export(&options, &shared).map_err(StartError::Telemetry)?;
        let process = Process {
            version: env!("CARGO_PKG_VERSION"),
            started: options.wall.now(),
            workers,
            admin: admin_address,
        };

        let reloader = Arc::new(Reloader::start(
            options.path,
            options.env,
            (sources, files),
            settings,
            (keyring, Arc::clone(&listeners) as Arc<dyn Sockets>),
            Arc::clone(&shared),
            Arc::clone(&options.wall),
        ));
        let decisions = Decisions::new(workers);
        let readiness = Arc::new(Readiness::default());
        let drain = Drain::default();
        let mut gateway = Self {
            shared: Arc::clone(&shared),
            reloader: Arc::clone(&reloader),
            readiness: Arc::clone(&readiness),
            workers: Vec::with_capacity(workers),
            control: None,
            listeners,
            admin: admin_address,
            access,
            export,
            drain,
        };
        for (index, orders) in orders.into_iter().enumerate() {
            let belongings = worker::Belongings {
                index,
                shared: Arc::clone(&shared),
                live: reloader.live().clone(),
                budget: Arc::clone(&budget),
                pen: gateway.access.pen(),
                ring: decisions.ring(index),
                tracer: gateway.export.tracer(),
                wall: Arc::clone(&options.wall),
                readiness: Arc::clone(&readiness),
                orders,
                draining: gateway.drain.subscribe(),
            };
            let thread = spawn(format!("worker-{index}"), move || belongings.run())?;
            gateway.workers.push(thread);
        }
        let control = control::Control {
            shared,
            reloader,
            readiness: Arc::clone(&readiness),
            process,
            admin,
            draining: gateway.drain.subscribe(),
            wall: options.wall,
            decisions,
        };
        gateway.control = Some(spawn("control".into(), move || control.run())?);
        readiness.set_ready(true);
        Ok(gateway)
    }

    /// The address of a listener as it is now, with the port it really got.
    #[must_use]
    pub fn address(&self, listener: &str) -> Option<SocketAddr> {
        self.listeners.address(listener)
    }

    /// The address of the admin socket.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        self.admin
    }

    /// Reads the configuration file now and serves what it says.
    ///
    /// # Errors
    /// Why not; the old configuration serves on.
    pub fn reload(&self) -> Result<Reloaded, Rejected> {
        self.reloader.reload()
    }

    /// Opens the access log's file anew, as after a rotation.
    pub fn reopen_access_log(&self) {
        self.shared.logs.reopen();
    }

    /// Exports the telemetry of requests that have ended, within 2 s.
    pub fn flush_telemetry(&self) {
        self.export.flush(LAST_EXPORT);
    }

    /// Writes out every access-log line of requests that have ended.
    pub fn flush_access_log(&self) {
        self.access.flush(std::time::Duration::from_secs(2));
    }

    /// Readiness off, then after `[shutdown] delay` the listeners close and what is in flight may
    /// finish until `[shutdown] timeout`. `hurry` resolving cuts all of that short.
    pub async fn drain(&self, hurry: impl Future<Output = ()>) {
        let shutdown = self.reloader.live().load().settings.shutdown.clone();
        self.readiness.set_ready(false);
        self.drain.advance(Stage::Leaving);
        tracing::info!(delay = ?shutdown.delay, timeout = ?shutdown.timeout, "draining");
        let orderly = async {
            tokio::time::sleep(shutdown.delay).await;
            self.drain.advance(Stage::Draining);
            let finished = async {
                // Woken often enough to end soon after the last connection does.
                while !self.workers.iter().all(JoinHandle::is_finished) {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
            };
            if tokio::time::timeout(shutdown.timeout, finished)
                .await
                .is_err()
            {
                tracing::warn!("the shutdown timeout is over; cutting what is left");
            }
        };
        tokio::select! {
            () = orderly => {}
            () = hurry => tracing::warn!("told again; cutting what is left"),
        }
    }

    /// Cuts what is left, joins every thread, and writes out the access log.
    pub fn stop(mut self) {
        self.halt();
    }

    fn halt(&mut self) {
        self.readiness.set_ready(false);
        self.drain.advance(Stage::Stopped);
        for thread in self.workers.drain(..).chain(self.control.take()) {
            if thread.join().is_err() {
                tracing::error!("a thread panicked");
            }
        }
        self.export.flush(LAST_EXPORT);
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.halt();
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("listeners", &self.listeners)
            .field("admin", &self.admin)
            .finish_non_exhaustive()
    }
}

fn spawn(name: String, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StartError> {
    thread::Builder::new()
        .name(name)
        .spawn(run)
        .map_err(StartError::Thread)
}

fn worker_count(settings: &Settings) -> usize {
    settings
        .runtime
        .workers
        .or_else(|| thread::available_parallelism().ok())
        .map_or(1, NonZeroUsize::get)
}

fn tell_what_starts(settings: &Settings, admin: SocketAddr) {
    tracing::info!(%admin, "admin socket");
    for endpoint in &settings.endpoints {
        for pin in &endpoint.contracts {
            let upstream = settings.upstreams.get(pin.upstream);
            tracing::info!(
                endpoint = &*endpoint.name,
                host = %endpoint.host,
                path = &*endpoint.path,
                contract = &*pin.contract.name,
                upstream = upstream.map(|it| &*it.name),
                "serving"
            );
        }
    }
    tracing::warn!(
        "agent cards are passed on as they are: buyers will see the dealer's own URL in them"
    );
}
