//! Where requests are forwarded: one upstream's facts, its connections, and one exchange with it.
//!
//! Everything that speaks HTTP to a dealer stands behind [`Pools::exchange`]. This room knows no
//! protocol rule and never retries a request of which a byte may have been written.
//!
//! Connections are pooled per worker thread: nothing here crosses a thread but the count of open
//! connections, which is limited over all workers.

mod connect;
mod exchange;
mod fault;
mod http1;
mod http2;
mod pool;
mod reply;
mod stream;
mod tls;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Semaphore;

pub use fault::{Cause, Fault};
pub use http1::Request;
pub use pool::Pools;
pub use reply::{Reply, ReplyBody};
pub use tls::Secure;

/// One dealer's address and how it is spoken to. Made once per configuration of it; outlives
/// reloads that leave it unchanged, and its connections with it.
pub struct Upstream {
    /// Tells pools apart: a changed upstream of the same name is another one.
    id: u64,
    /// Its name in the configuration.
    pub name: Box<str>,
    /// Host name or address literal to connect to, without brackets.
    pub host: Box<str>,
    /// TCP port.
    pub port: u16,
    /// The `Host` it is sent.
    pub authority: HeaderValue,
    /// The URL's path as a request target.
    target: Box<str>,
    /// The URL's path without a slash at the end; empty for `/`.
    path: Box<str>,
    /// Whether it is spoken to in HTTP/2.
    pub http2: bool,
    /// Keep the caller's `Host`.
    pub preserve_host: bool,
    /// Headers of the operator's that replace the caller's.
    pub headers: Box<[(HeaderName, HeaderValue)]>,
    /// Waiting times.
    pub timeouts: Timeouts,
    /// How many requests may wait for a connection, over all workers.
    pub max_waiting: usize,
    /// Open connections now, by state.
    pub meters: Meters,
    /// How it is spoken to over TLS; `None`: in clear.
    secure: Option<Arc<Secure>>,
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// Requests it may carry at once, over all workers.
    max_in_flight: Option<usize>,
    in_flight: AtomicUsize,
}

/// One request's place among those an upstream carries at once, until dropped. Without a limit
/// none is counted.
#[derive(Debug)]
pub struct Place(Arc<Upstream>);

/// Waiting times of one upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first attempt to an open connection.
    pub connect: Duration,
    /// From the request being sent to the response head.
    pub response: Duration,
    /// Between two pieces of the response body.
    pub idle: Duration,
    /// How long an unused connection is kept.
    pub keep_alive: Duration,
}

/// Gauges of open connections.
#[derive(Clone, Debug, Default)]
pub struct Meters {
    /// Carrying an exchange.
    pub active: Gauge,
    /// Kept for the next one.
    pub idle: Gauge,
}

/// What an [`Upstream`] is made of.
#[derive(Debug)]
pub struct Parts {
    /// Its name in the configuration.
    pub name: Box<str>,
    /// Host name or address literal, without brackets.
    pub host: Box<str>,
    /// TCP port.
    pub port: u16,
    /// The `Host` it is sent.
    pub authority: HeaderValue,
    /// The URL's path without a slash at the end; empty for `/`.
    pub path: Box<str>,
    /// Whether the URL's path ends in a slash.
    pub trailing_slash: bool,
    /// Whether it is spoken to in HTTP/2.
    pub http2: bool,
    /// Keep the caller's `Host`.
    pub preserve_host: bool,
    /// Headers of the operator's.
    pub headers: Box<[(HeaderName, HeaderValue)]>,
    /// Waiting times.
    pub timeouts: Timeouts,
    /// Open connections allowed, over all workers.
    pub max_connections: usize,
    /// Requests that may wait for one, over all workers.
    pub max_waiting: usize,
    /// Requests it may carry at once, over all workers.
    pub max_in_flight: Option<usize>,
    /// Gauges of open connections.
    pub meters: Meters,
    /// How it is spoken to over TLS; `None`: in clear.
    pub secure: Option<Arc<Secure>>,
}

#[cfg(test)]
impl Parts {
    /// An upstream of this machine that tests say the rest of: a second for everything, one connection.
    pub(crate) fn bare(name: &str, port: u16) -> Self {
        let second = Duration::from_secs(1);
        Self {
            name: name.into(),
            host: "127.0.0.1".into(),
            port,
            authority: HeaderValue::from_str(&format!("127.0.0.1:{port}")).unwrap(),
            path: "".into(),
            trailing_slash: false,
            http2: false,
            preserve_host: false,
            headers: [].into(),
            timeouts: Timeouts {
                connect: second,
                response: second,
                idle: second,
                keep_alive: second,
            },
            max_connections: 1,
            max_waiting: 1,
            max_in_flight: None,
            meters: Meters::default(),
            secure: None,
        }
    }
}

impl Upstream {
    /// Makes an upstream without touching the network.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let target = if parts.trailing_slash || parts.path.is_empty() {
            format!("{}/", parts.path).into()
        } else {
            parts.path.clone()
        };
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            name: parts.name,
            host: parts.host,
            port: parts.port,
            authority: parts.authority,
            target,
            path: parts.path,
            http2: parts.http2,
            preserve_host: parts.preserve_host,
            headers: parts.headers,
            timeouts: parts.timeouts,
            max_waiting: parts.max_waiting,
            meters: parts.meters,
            secure: parts.secure,
            permits: Arc::new(Semaphore::new(
                parts.max_connections.min(Semaphore::MAX_PERMITS),
            )),
            waiting: AtomicUsize::new(0),
            max_in_flight: parts.max_in_flight,
            in_flight: AtomicUsize::new(0),
        }
    }

    /// Whether it is spoken to over TLS.
    #[must_use]
    pub const fn is_secure(&self) -> bool {
        self.secure.is_some()
    }

    /// A place for one more request; `None` where there is no limit.
    ///
    /// # Errors
    /// `Full`: it carries as many as it may.
    pub fn enter(self: &Arc<Self>) -> Result<Option<Place>, Fault> {
        let Some(most) = self.max_in_flight else {
            return Ok(None);
        };
        if self.in_flight.fetch_add(1, Ordering::Relaxed) >= most {
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
            return Err(Fault::unsent(Cause::Full));
        }
        Ok(Some(Place(Arc::clone(self))))
    }

    /// What follows the URL's path in a path of the upstream's; `None` where it is not below it.
    #[must_use]
    pub fn rest_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(&*self.path)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    }

    /// The URL's path, followed by `rest`: what follows the endpoint's path, empty or beginning
    /// with `/`. A lone slash is nothing: an upstream that redirects it would lose the call.
    #[must_use]
    pub fn path_with(&self, rest: &str) -> Cow<'_, str> {
        match rest {
            "" | "/" => Cow::Borrowed(&self.target),
            rest => Cow::Owned(format!("{}{rest}", self.path)),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Upstream {
    /// Leaves the headers out: they may be credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("name", &self.name)
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
