//! Decides what a valid configuration is: these types, which only [`crate::config::parse`] makes
//! and which need no further checking.
//!
//! Must never hold a default that `docs/configuration.md` does not name, and never show a secret.

mod admin;
mod caller;
mod files;
mod front;
mod issuer;
mod listener;
mod log;
mod quota;
mod reload;
mod store;
mod upstream;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

use crate::config::lines::KeyLines;
use crate::config::problem::{Problem, Problems};
use crate::config::web::Host;
use crate::protocol::{Contract, HttpStatus, Steps};

pub use admin::Admin;
pub use caller::{Authenticate, Caller, CertificateName, KeySha256};
pub use files::{NamedFile, Origin, PairFiles, Place};
pub use front::{ClientHeader, Front};
pub use issuer::{Algorithm, Issuer, Jwks};
pub use listener::{Clients, Listener, Tls};
pub use log::{AccessFormat, AccessLog, Level, Log, LogFormat};
pub use quota::{Allowance, Plan, Quota};
pub use reload::{Guard, Ratio, Reload};
pub use store::{Kept, OnStoreError, Store, StoreTopology};
pub use upstream::{Upstream, UpstreamTls};

/// A whole configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `[runtime]`. Needs a restart.
    pub runtime: Runtime,
    /// `[listener.NAME]`, in the order of the file; at least one.
    pub listeners: Vec<Listener>,
    /// `[admin]`. Its address needs a restart.
    pub admin: Admin,
    /// `[limits]`.
    pub limits: Limits,
    /// `[log]`. Its `format` needs a restart.
    pub log: Log,
    /// `[shutdown]`.
    pub shutdown: Shutdown,
    /// `[reload]`.
    pub reload: Reload,
    /// `[callers]`.
    pub callers: Callers,
    /// `[caller.NAME]`, in the order of the file.
    pub known: Vec<Caller>,
    /// `[issuer.NAME]`, in the order of the file.
    pub issuers: Vec<Issuer>,
    /// `[quota.NAME]`, in the order of the file.
    pub quotas: Vec<Quota>,
    /// `[store.NAME]`, in the order of the file.
    pub stores: Vec<Store>,
    /// `[plan.NAME]`, in the order of the file.
    pub plans: Vec<Plan>,
    /// `[upstream.NAME]`, in the order of the file.
    pub upstreams: Vec<Upstream>,
    /// `[endpoint.NAME]`, in the order of the file; at least one.
    pub endpoints: Vec<Endpoint>,
    /// What is probably not meant, each of severity warning.
    pub warnings: Problems,
    /// Where each key stands.
    pub lines: Arc<KeyLines>,
    /// Where it was read.
    pub origin: Origin,
}

impl Settings {
    /// Adds warnings about what the named files hold, in the order of the file.
    pub fn warn(&mut self, warnings: impl IntoIterator<Item = Problem>) {
        let own = std::mem::take(&mut self.warnings);
        let mut all: Vec<_> = own.into_iter().chain(warnings).collect();
        all.sort_by_key(|it| it.at);
        self.warnings = all.into_iter().collect();
    }

    /// How many sockets serving may hold at once, to callers and to upstreams.
    #[must_use]
    pub fn most_sockets(&self) -> usize {
        let to_upstreams = self.upstreams.iter().map(|it| it.max_connections);
        to_upstreams.fold(self.limits.connections, usize::saturating_add)
    }

    /// Whether serving `next` would be no different. Warnings do not count: they name lines, which
    /// a comment moves.
    #[must_use]
    pub fn serves_like(&self, next: &Self) -> bool {
        let Self {
            runtime,
            listeners,
            admin,
            limits,
            log,
            shutdown,
            reload,
            callers,
            known,
            issuers,
            quotas,
            stores,
            plans,
            upstreams,
            endpoints,
            warnings: _,
            lines: _,
            origin: _,
        } = self;
        *runtime == next.runtime
            && *listeners == next.listeners
            && *admin == next.admin
            && *limits == next.limits
            && *log == next.log
            && *shutdown == next.shutdown
            && *reload == next.reload
            && *callers == next.callers
            && *known == next.known
            && *issuers == next.issuers
            && *quotas == next.quotas
            && *stores == next.stores
            && *plans == next.plans
            && *upstreams == next.upstreams
            && *endpoints == next.endpoints
    }

    /// Where `next` differs from these settings in what cannot change while the gateway runs: some of
    /// `runtime`, `admin.address`, `log.format`, `limits.limiter_keys`. Empty: `next` can go live.
    #[must_use]
    pub fn restart_needed(&self, next: &Self) -> Vec<&'static str> {
        [
            ("runtime", self.runtime != next.runtime),
            ("admin.address", self.admin.address != next.admin.address),
            ("log.format", self.log.format != next.log.format),
            // The table of buckets is made once.
            (
                "limits.limiter_keys",
                self.limits.limiter_keys != next.limits.limiter_keys,
            ),
        ]
        .into_iter()
        .filter_map(|(table, differs)| differs.then_some(table))
        .collect()
    }
}

/// `[runtime]`: what the process is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runtime {
    /// Worker threads, at most 1024. `None`: one per core.
    pub workers: Option<NonZeroUsize>,
}

/// `[limits]`: what a client can cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest request body, bytes; at most `in_flight_bytes`. Default 1 MiB.
    pub body: u64,
    /// Largest request head, bytes; 8 KiB to 1 MiB. Default 32 KiB.
    pub header_bytes: usize,
    /// Most header lines; 1 to 1000. Default 100.
    pub header_count: usize,
    /// Time to receive a request head. Default 10 s.
    pub header_timeout: Duration,
    /// Time to receive a request body. Default 30 s.
    pub body_timeout: Duration,
    /// How long a client connection may be without a request. Default 75 s.
    pub idle_timeout: Duration,
    /// Most client connections at once, over all workers. Default 10,000.
    pub connections: usize,
    /// Most requests open at once on one HTTP/2 connection; 1 to 1000. Default 100.
    pub concurrent_streams: u32,
    /// Most requests being served at once, over all workers. Default 100,000.
    pub in_flight_requests: usize,
    /// Most bytes of request bodies held at once, over all workers. Default 256 MiB.
    pub in_flight_bytes: u64,
    /// Most limiter keys that are tracked apart. Default 1,048,576.
    pub limiter_keys: usize,
}

/// `[shutdown]`: how the process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// How long it is not ready but still accepts. Default 0 s.
    pub delay: Duration,
    /// How long what is in flight may take after that; 0: nothing is waited for. Default 25 s.
    pub timeout: Duration,
}

/// `[callers]`: who is asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callers {
    /// What identifies a caller who is not proven: the first that is present. Never empty. Default
    /// the address.
    pub identify: Vec<Identify>,
    /// The header in which API keys stand, beside `Authorization: Bearer`. Default `x-api-key`.
    pub key_header: HeaderName,
}

/// One way to identify a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identify {
    /// The value of a request header, which nobody has verified.
    Header(HeaderName),
    /// The client's address; always present, so always the last of a list.
    Address,
}

/// `[endpoint.NAME]`: a public URL pinned to a contract, or to several.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// Its name.
    pub name: Box<str>,
    /// The hosts it answers for. Default any.
    pub host: Host,
    /// Its path, beginning with `/`, without a slash at the end unless it is `/`.
    pub path: Box<str>,
    /// Its contracts, never empty. One: pinned. Two or more: ambiguous, nothing is inferred.
    pub contracts: Vec<Pin>,
    /// Whether it asks who is calling. Default off.
    pub authenticate: Authenticate,
    /// Whether the header that proved the caller travels on. Default true.
    pub forward_credential: bool,
    /// Its quotas, as places in [`Settings::quotas`].
    pub quotas: Vec<usize>,
    /// How answers tell callers of their quotas. Default draft.
    pub ratelimit_headers: RateLimitHeaders,
    /// Which HTTP status carries a JSON-RPC answer made here. Default split.
    pub http_status: HttpStatus,
    /// The steps that only count and log. Default none.
    pub report: Steps,
    /// The JSON-RPC methods served, never empty. `None`: whatever the protocol allows.
    pub methods: Option<Vec<Box<str>>>,
}

/// How answers tell callers of their quotas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RateLimitHeaders {
    /// `RateLimit` and `RateLimit-Policy`.
    #[default]
    Draft,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    Legacy,
    /// Not at all.
    Off,
}

impl RateLimitHeaders {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Draft, Self::Legacy, Self::Off];

    /// The name used in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Legacy => "x-ratelimit",
            Self::Off => "off",
        }
    }
}

/// A contract of an endpoint and where its calls go.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    /// The contract, the endpoint's overrides applied.
    pub contract: Contract,
    /// A place in [`Settings::upstreams`].
    pub upstream: usize,
}

/// A value that is never shown: `Debug` and `Display` print stars.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    pub(in crate::config) fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The value itself. Only for where it is sent.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
