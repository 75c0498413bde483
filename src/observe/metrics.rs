//! Decides which metrics exist, what they are called and which labels they carry.
//!
//! [`NAMES`] is the whole list. Handles are made once per snapshot and configured name
//! ([`Metrics::endpoint`] and its sisters); counting on the request path is one addition through
//! such a handle, with no look-up and no lock. Label values are configured names and closed sets
//! of our own: nothing in this file takes a label from a request.
//!
//! The registry outlives every snapshot, so counters survive a reload. A name that was configured
//! away is forgotten ([`Metrics::forget_endpoint`]), or its series would be scraped for ever.

use std::hash::Hash;
use std::sync::atomic::Ordering;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

use super::clock::Timestamp;
use super::histogram::Histogram;
use crate::protocol::{Outcome, Step};

mod configuration;
mod credential;
mod exemplars;
mod exposition;
mod handshake;
mod issuers;
mod labels;
mod meters;
mod names;
mod store;

pub use configuration::{Cause, Configuration};
pub use credential::{CredentialMeters, CredentialResult};
pub use exposition::Exposition;
pub use handshake::{HandshakeFailure, HandshakeMeters};
pub use issuers::{KeyMeters, TokenMeters};
use labels::{
    At, Certified, Decided, EndedAt, Examined, Filled, On, Pooled, Reported, Shaken, Unproxied,
    Worker, at, certified, decided, ended_at, filled, on, pooled, reported, shaken, unproxied,
};
use meters::FILLED;
pub use meters::{EndpointMeters, ListenerMeters, Presence, QuotaMeters, UpstreamMeters};
pub use names::NAMES;
use store::Stores;
pub use store::{StoreMeters, StoredQuotaMeters};

/// The source of a decision that was taken on this process's own buckets.
pub const LOCAL: &str = "local";

/// All metrics of this process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<EndedAt, Counter>,
    duration: Family<At, Histogram>,
    exemplars: exemplars::AllExemplars,
    upstream_duration: Family<At, Histogram>,
    normalized: Family<Filled, Counter>,
    reported: Family<Reported, Counter>,
    stripped: Family<At, Counter>,
    credentials: Family<Examined, Counter>,
    decisions: Family<Decided, Counter>,
    stores: Stores,
    ratelimit_keys: Gauge,
    ratelimit_overflow: Counter,
    connections: Family<On, Gauge>,
    worker_connections: Family<Worker, Gauge>,
    connections_refused: Family<On, Counter>,
    proxy_refused: Family<Unproxied, Counter>,
    probes: Family<On, Counter>,
    handshake_failures: Family<Shaken, Counter>,
    certificate_expiry: Family<Certified, Gauge>,
    issuers: issuers::Families,
    upstream_connections: Family<Pooled, Gauge>,
    /// Which configuration serves, and how it came.
    pub configuration: Configuration,
    /// Requests being served. See [`Presence`].
    pub requests_in_flight: Gauge,
    /// Bytes of request bodies held in memory.
    pub in_flight_bytes: Gauge,
    /// Access-log lines lost. The access log counts here.
    pub access_log_dropped: Counter,
    /// Spans lost. Their exporter counts here.
    pub spans_dropped: Counter,
    /// 1 while the level of the diagnostics is not the configured one.
    pub log_level_changed: Gauge,
}

impl Metrics {
    /// All metrics at zero, of a process of this version.
    #[must_use]
    pub fn new(version: &str) -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            duration: Family::default(),
            exemplars: exemplars::AllExemplars::default(),
            upstream_duration: Family::default(),
            normalized: Family::default(),
            reported: Family::default(),
            stripped: Family::default(),
            credentials: Family::default(),
            decisions: Family::default(),
            stores: Stores::default(),
            ratelimit_keys: Gauge::default(),
            ratelimit_overflow: Counter::default(),
            connections: Family::default(),
            worker_connections: Family::default(),
            connections_refused: Family::default(),
            proxy_refused: Family::default(),
            probes: Family::default(),
            handshake_failures: Family::default(),
            certificate_expiry: Family::default(),
            issuers: issuers::Families::default(),
            upstream_connections: Family::default(),
            configuration: Configuration::default(),
            requests_in_flight: Gauge::default(),
            in_flight_bytes: Gauge::default(),
            access_log_dropped: Counter::default(),
            spans_dropped: Counter::default(),
            log_level_changed: Gauge::default(),
        };
        metrics.register(version);
        metrics
    }

    fn register(&mut self, version: &str) {
        let registry = &mut self.registry;
        add(
            registry,
            "forecourt_http_requests_total",
            self.requests.clone(),
        );
        add(
            registry,
            "forecourt_http_request_duration_seconds",
            self.duration.clone(),
        );
        add(
            registry,
            "forecourt_upstream_duration_seconds",
            self.upstream_duration.clone(),
        );
        add(
            registry,
            "forecourt_normalized_headers_total",
            self.normalized.clone(),
        );
        add(registry, "forecourt_reported_total", self.reported.clone());
        add(
            registry,
            "forecourt_stripped_query_total",
            self.stripped.clone(),
        );
        add(
            registry,
            "forecourt_credentials_total",
            self.credentials.clone(),
        );
        add(
            registry,
            "forecourt_ratelimit_decisions_total",
            self.decisions.clone(),
        );
        add(
            registry,
            "forecourt_ratelimit_keys",
            self.ratelimit_keys.clone(),
        );
        add(
            registry,
            "forecourt_ratelimit_overflow_total",
            self.ratelimit_overflow.clone(),
        );
        self.stores.register(registry);
        add(registry, "forecourt_connections", self.connections.clone());
        add(
            registry,
            "forecourt_worker_connections",
            self.worker_connections.clone(),
        );
        add(
            registry,
            "forecourt_connections_refused_total",
            self.connections_refused.clone(),
        );
        add(
            registry,
            "forecourt_proxy_protocol_refused_total",
            self.proxy_refused.clone(),
        );
        add(
            registry,
            "forecourt_health_probes_total",
            self.probes.clone(),
        );
        add(
            registry,
            "forecourt_tls_handshake_failures_total",
            self.handshake_failures.clone(),
        );
        add(
            registry,
            "forecourt_tls_certificate_expiry_timestamp_seconds",
            self.certificate_expiry.clone(),
        );
        self.issuers.register(registry);
        add(
            registry,
            "forecourt_requests_in_flight",
            self.requests_in_flight.clone(),
        );
        add(
            registry,
            "forecourt_in_flight_bytes",
            self.in_flight_bytes.clone(),
        );
        add(
            registry,
            "forecourt_upstream_connections",
            self.upstream_connections.clone(),
        );
        self.configuration.register(registry);
        add(
            registry,
            "forecourt_access_log_dropped_total",
            self.access_log_dropped.clone(),
        );
        add(
            registry,
            "forecourt_spans_dropped_total",
            self.spans_dropped.clone(),
        );
        let changed = self.log_level_changed.clone();
        add(registry, "forecourt_log_level_changed", changed);
        let build = Info::new([("version", version.to_owned())]);
        add(registry, "forecourt_build_info", build);
    }

    /// The handles of an endpoint, all series at zero if they are new. An empty name stands for
    /// requests that found no endpoint.
    #[must_use]
    pub fn endpoint(&self, name: &str) -> EndpointMeters {
        EndpointMeters {
            ended: Outcome::ALL.map(|outcome| made(&self.requests, ended_at(name, outcome))),
            duration: made(&self.duration, at(name)),
            exemplars: self.exemplars.of(name),
            upstream_duration: made(&self.upstream_duration, at(name)),
            filled: FILLED.map(|header| made(&self.normalized, filled(name, header))),
            reported: Step::ALL.map(|step| made(&self.reported, reported(name, step))),
            stripped: made(&self.stripped, at(name)),
        }
    }

    /// Drops the series of an endpoint that is no longer configured. Handles that requests still
    /// hold go on counting, unseen.
    pub fn forget_endpoint(&self, name: &str) {
        for outcome in Outcome::ALL {
            self.requests.remove(&ended_at(name, outcome));
        }
        self.duration.remove(&at(name));
        self.exemplars.forget(name);
        self.upstream_duration.remove(&at(name));
        for header in FILLED {
            self.normalized.remove(&filled(name, header));
        }
        for step in Step::ALL {
            self.reported.remove(&reported(name, step));
        }
        self.stripped.remove(&at(name));
        self.forget_credentials(name);
    }

    /// The handles of a quota, over all endpoints that name it.
    #[must_use]
    pub fn quota(&self, name: &str) -> QuotaMeters {
        QuotaMeters {
            admitted: made(&self.decisions, decided(name, "admitted", LOCAL)),
            refused: made(&self.decisions, decided(name, "refused", LOCAL)),
            stored: None,
        }
    }

    /// Drops the series of a quota that is no longer configured.
    pub fn forget_quota(&self, name: &str) {
        for decision in ["admitted", "refused"] {
            self.decisions.remove(&decided(name, decision, LOCAL));
        }
        self.forget_stored_quota(name);
    }

    /// How many connections a worker thread has open. They are counted from 0.
    #[must_use]
    pub fn worker(&self, index: usize) -> Gauge {
        let worker = index.to_string();
        made(&self.worker_connections, Worker { worker })
    }

    /// The handles of a listener.
    #[must_use]
    pub fn listener(&self, name: &str) -> ListenerMeters {
        ListenerMeters {
            connections: made(&self.connections, on(name)),
            refused: made(&self.connections_refused, on(name)),
            probes: made(&self.probes, on(name)),
            untrusted: made(&self.proxy_refused, unproxied(name, "untrusted")),
            malformed: made(&self.proxy_refused, unproxied(name, "malformed")),
            late: made(&self.proxy_refused, unproxied(name, "late")),
        }
    }

    /// Drops the series of a listener that is no longer configured.
    pub fn forget_listener(&self, name: &str) {
        self.connections.remove(&on(name));
        self.connections_refused.remove(&on(name));
        self.probes.remove(&on(name));
        for reason in ["untrusted", "malformed", "late"] {
            self.proxy_refused.remove(&unproxied(name, reason));
        }
        self.forget_handshakes(name);
    }

    /// Drops the series of handshakes at a listener that is in clear.
    pub fn forget_handshakes(&self, listener: &str) {
        for why in HandshakeFailure::ALL {
            self.handshake_failures
                .remove(&shaken(listener, why.label()));
        }
    }

    /// The handles of a listener that speaks TLS.
    #[must_use]
    pub fn handshakes(&self, listener: &str) -> HandshakeMeters {
        let failed = HandshakeFailure::ALL;
        HandshakeMeters {
            failed: failed.map(|why| made(&self.handshake_failures, shaken(listener, why.label()))),
        }
    }

    /// Says until when a listener's certificate is valid.
    pub fn certificate(&self, listener: &str, name: &str, not_after: Timestamp) {
        made(&self.certificate_expiry, certified(listener, name)).set(not_after.as_second());
    }

    /// Drops the series of a certificate that is no longer served.
    pub fn forget_certificate(&self, listener: &str, name: &str) {
        self.certificate_expiry.remove(&certified(listener, name));
    }

    /// The handles of an upstream.
    #[must_use]
    pub fn upstream(&self, name: &str) -> UpstreamMeters {
        UpstreamMeters {
            idle: made(&self.upstream_connections, pooled(name, "idle")),
            active: made(&self.upstream_connections, pooled(name, "active")),
        }
    }

    /// Drops the series of an upstream that is no longer configured.
    pub fn forget_upstream(&self, name: &str) {
        for state in ["idle", "active"] {
            self.upstream_connections.remove(&pooled(name, state));
        }
    }

    /// Takes over what the limiter counted: its buckets now, and all overflow charges so far.
    /// Call it before a scrape and from time to time.
    pub fn limiter(&self, keys: usize, overflowed: u64) {
        self.ratelimit_keys
            .set(i64::try_from(keys).unwrap_or(i64::MAX));
        // Two scrapes at once must not count the same charges twice.
        self.ratelimit_overflow
            .inner()
            .fetch_max(overflowed, Ordering::Relaxed);
    }
}

/// Registers a metric under its name and with the help of [`NAMES`]. The library appends `_total`
/// and `_info`, and a full stop to the help, by itself.
fn add(registry: &mut Registry, name: &'static str, metric: impl Metric) {
    let help = NAMES.iter().find(|(known, _)| *known == name);
    let help = help.map_or("", |(_, help)| *help);
    let bare = name.strip_suffix("_total").unwrap_or(name);
    let bare = bare.strip_suffix("_info").unwrap_or(bare);
    registry.register(bare, help, metric);
}

fn made<L, M>(family: &Family<L, M>, labels: L) -> M
where
    L: Clone + Eq + Hash,
    M: Clone + Default,
{
    family.get_or_create_owned(&labels)
}

#[cfg(test)]
mod tests;
