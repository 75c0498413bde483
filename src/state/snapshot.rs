//! Decides what valid settings mean for serving: [`compile`] makes an immutable snapshot of them.
//!
//! Everything that a request needs is resolved here, once: routes, contracts, quotas, upstreams,
//! counters. Upstreams that did not change are taken over from the previous snapshot with their
//! connections. Compiling cannot fail and opens no socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use http::header::HeaderValue;

use super::effective::Effective;
use super::findings::{Findings, Found};
use super::gate::Gate;
use super::issuers::Issuers;
use super::logs::Logs;
use super::routes::Routes;
use super::stores;
use super::tls::Keyring;
use crate::config::{self, KeyLines, Settings};
use crate::credential;
use crate::limit::shared::{Group, Store, Thread};
use crate::limit::{self, Announcement, Clock, Limiter, Quota, Rule, Source};
use crate::observe::{EndpointMeters, Metrics, QuotaMeters};
use crate::protocol::{Contract, HttpStatus, Outcome, Steps};
use crate::upstream::{Meters, Parts, Secure, Timeouts, Upstream};

/// What outlives every snapshot and is shared by all threads.
#[derive(Debug)]
pub struct Shared {
    /// The buckets.
    pub limiter: Limiter<Arc<dyn Clock>>,
    /// The counters.
    pub metrics: Metrics,
    /// The limiter's clock.
    pub clock: Arc<dyn Clock>,
    /// Where connections to stores live.
    pub stores: Thread,
    /// What of the logs can be changed.
    pub logs: Logs,
    /// What steps in report mode would have refused.
    pub findings: Findings,
}

/// One compiled configuration.
#[derive(Debug)]
pub struct Snapshot {
    /// Counts configurations from 1.
    pub generation: u64,
    /// Where requests go.
    pub routes: Routes<Arc<Endpoint>>,
    /// What names a caller who is not proven, first match wins.
    pub callers: Box<[Source]>,
    /// What proves a caller.
    pub credentials: credential::Callers,
    /// Whose bucket a proven caller's is, in the order of the settings.
    pub proven: Box<[limit::Caller]>,
    /// Whose tokens are believed.
    pub issuers: Issuers,
    /// What it was compiled from.
    pub settings: Arc<Settings>,
    /// How it is shown.
    pub effective: Effective,
    /// Where each of its keys stands, in the file that said the same last.
    pub lines: ArcSwap<KeyLines>,
    /// Where requests go, in the order of the settings.
    pub upstreams: Vec<Arc<Upstream>>,
    /// What several processes count together in, in the order of the settings.
    pub stores: Vec<Arc<Store>>,
    /// What is served, in the order of the settings.
    pub endpoints: Vec<Arc<Endpoint>>,
}

/// One endpoint, ready to serve.
#[derive(Debug)]
pub struct Endpoint {
    /// Its name in the configuration.
    pub name: Box<str>,
    /// Its path, as configured.
    pub path: Box<str>,
    /// The contract it is pinned to; on an ambiguous endpoint the first.
    pub first: Pin,
    /// On an ambiguous endpoint the others.
    pub others: Box<[Pin]>,
    /// What it asks of credentials. `None`: nothing.
    pub gate: Option<Box<Gate>>,
    /// Checked together.
    pub quotas: Box<[Quota]>,
    /// Those of them that stores keep, by store.
    pub groups: Box<[Group]>,
    /// Whether one of them needs to know what a call says of itself.
    pub quotas_look_inside: bool,
    /// How answers tell callers of those quotas.
    pub announcement: Announcement,
    /// Counters of those quotas, in the same order.
    pub quota_meters: Box<[QuotaMeters]>,
    /// What HTTP status carries its refusals.
    pub http_status: HttpStatus,
    /// Steps that only count and log.
    pub report: Steps,
    /// What those would have refused; none where there is no such step.
    pub findings: Option<Arc<Found>>,
    /// The methods it serves, where it lists them.
    pub methods: Option<Box<[Box<str>]>>,
    /// Its counters.
    pub meters: EndpointMeters,
    failed: AtomicU64,
}

/// A contract and where its calls go.
#[derive(Debug)]
pub struct Pin {
    /// What callers are held to.
    pub contract: Contract,
    /// Where calls go.
    pub upstream: Arc<Upstream>,
}

impl Endpoint {
    /// The pin at a place of the configured order; the first for any place that does not exist.
    #[must_use]
    pub fn pin(&self, index: usize) -> &Pin {
        match index.checked_sub(1) {
            None => &self.first,
            Some(index) => self.others.get(index).unwrap_or(&self.first),
        }
    }

    /// Notes how a request that began under this configuration ended.
    pub fn note(&self, outcome: Outcome) {
        if outcome.is_failure() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many such requests the gateway failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether it serves several contracts, so that nothing may be inferred.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        !self.others.is_empty()
    }
}

impl Routes<Arc<Endpoint>> {
    /// The endpoint whose dealer answers for a whole host: there is one upstream at this host.
    #[must_use]
    pub fn only_dealer_at(&self, host: Option<&str>) -> Option<&Arc<Endpoint>> {
        let mut at_host = self.at_host(host);
        let first = at_host.next()?;
        let upstream = &first.first.upstream;
        at_host
            .all(|other| Arc::ptr_eq(&other.first.upstream, upstream))
            .then_some(first)
    }
}

/// Makes a snapshot of valid settings, whose files the keyring holds.
#[must_use]
pub fn compile(
    settings: Arc<Settings>,
    generation: u64,
    shared: &Shared,
    keyring: &Keyring,
    previous: Option<&Snapshot>,
) -> Snapshot {
    let upstreams: Vec<Arc<Upstream>> = settings
        .upstreams
        .iter()
        .map(|wanted| {
            carried_over(wanted, previous)
                .unwrap_or_else(|| connectable(wanted, shared, keyring.secure(&wanted.name)))
        })
        .collect();
    let stores = stores::open(&settings, shared, previous);
    let mut routes = Routes::default();
    let mut endpoints = Vec::with_capacity(settings.endpoints.len());
    for (place, endpoint) in settings.endpoints.iter().enumerate() {
        let compiled = compile_endpoint((place, endpoint), &settings, &upstreams, &stores, shared);
        if let Some(compiled) = compiled.map(Arc::new) {
            routes.add(&endpoint.host, &endpoint.path, Arc::clone(&compiled));
            endpoints.push(compiled);
        }
    }
    let callers = settings
        .callers
        .identify
        .iter()
        .map(|source| match source {
            config::Identify::Header(name) => Source::Header(name.clone()),
            config::Identify::Address => Source::Address,
        })
        .collect();
    let known = settings.known.iter();
    let proven = known.map(|caller| limit::Caller::configured((*caller.name).into(), caller.plan));
    let key_header = settings.callers.key_header.clone();
    Snapshot {
        generation,
        routes,
        callers,
        credentials: credential::Callers::compile(&settings.known, key_header),
        proven: proven.collect(),
        issuers: Issuers::compile(&settings, keyring, &shared.metrics),
        effective: Effective::of(&settings),
        lines: ArcSwap::new(Arc::clone(&settings.lines)),
        settings,
        upstreams,
        stores,
        endpoints,
    }
}

/// `None` cannot happen with settings that were checked: every index is in range.
fn compile_endpoint(
    (place, endpoint): (usize, &config::Endpoint),
    settings: &Settings,
    upstreams: &[Arc<Upstream>],
    stores: &[Arc<Store>],
    shared: &Shared,
) -> Option<Endpoint> {
    let mut pins = endpoint.contracts.iter().map(|pin| {
        Some(Pin {
            contract: pin.contract.clone(),
            upstream: Arc::clone(upstreams.get(pin.upstream)?),
        })
    });
    let first = pins.next()??;
    let others = pins.collect::<Option<_>>()?;
    let rules = endpoint
        .quotas
        .iter()
        .map(|index| rule(*index, settings))
        .collect::<Option<Vec<_>>>()?;
    let quotas: Box<[Quota]> = rules
        .iter()
        .map(|rule| Quota::compile(rule, &endpoint.name))
        .collect();
    Some(Endpoint {
        name: endpoint.name.clone(),
        path: endpoint.path.clone(),
        first,
        others,
        gate: Gate::compile(place, endpoint, settings, &shared.metrics).map(Box::new),
        announcement: match endpoint.ratelimit_headers {
            config::RateLimitHeaders::Draft => Announcement::draft(&quotas),
            config::RateLimitHeaders::Legacy => Announcement::Legacy,
            config::RateLimitHeaders::Off => Announcement::Off,
        },
        quotas_look_inside: quotas.iter().any(Quota::looks_inside),
        quotas,
        quota_meters: rules
            .iter()
            .map(|rule| match rule.is_local {
                true => shared.metrics.quota(&rule.name),
                false => shared.metrics.stored_quota(&rule.name),
            })
            .collect(),
        groups: stores::groups(endpoint, &rules, settings, stores),
        http_status: endpoint.http_status,
        report: endpoint.report,
        findings: shared.findings.at(&endpoint.name, endpoint.report),
        methods: endpoint
            .methods
            .as_ref()
            .map(|methods| methods.clone().into()),
        meters: shared.metrics.endpoint(&endpoint.name),
        failed: AtomicU64::new(0),
    })
}

/// What a quota says, with what each plan puts in its place.
pub(super) fn rule(place: usize, settings: &Settings) -> Option<Rule> {
    let quota = settings.quotas.get(place)?;
    let changed = |plan: &config::Plan| {
        let changed = plan.quotas.iter().find(|(changed, _)| *changed == place);
        changed.map(|(_, allowance)| *allowance)
    };
    Some(Rule {
        name: quota.name.clone(),
        per: quota.per,
        allowance: quota.allowance,
        plans: settings.plans.iter().map(changed).collect(),
        shared: quota.shared,
        skills: quota.skills.clone(),
        methods: quota.methods.clone(),
        cost: quota.cost.clone(),
        is_local: quota.kept.is_none(),
    })
}

/// The previous snapshot's upstream when its configuration is the same.
fn carried_over(wanted: &config::Upstream, previous: Option<&Snapshot>) -> Option<Arc<Upstream>> {
    let previous = previous?;
    previous
        .settings
        .upstreams
        .iter()
        .zip(&previous.upstreams)
        .find_map(|(before, compiled)| (before == wanted).then(|| Arc::clone(compiled)))
}

fn connectable(
    wanted: &config::Upstream,
    shared: &Shared,
    secure: Option<Arc<Secure>>,
) -> Arc<Upstream> {
    let gauges = shared.metrics.upstream(&wanted.name);
    let value = |text: &str| HeaderValue::from_str(text).ok();
    Arc::new(Upstream::new(Parts {
        name: wanted.name.clone(),
        host: wanted.url.host.clone(),
        port: wanted.url.port,
        authority: value(&wanted.url.authority)
            .unwrap_or_else(|| HeaderValue::from_static("localhost")),
        path: wanted.url.path.clone(),
        trailing_slash: wanted.url.trailing_slash,
        http2: wanted.http2,
        preserve_host: wanted.preserve_host,
        headers: wanted
            .headers
            .iter()
            .filter_map(|(name, secret)| {
                let mut value = value(secret.expose())?;
                value.set_sensitive(true);
                Some((name.clone(), value))
            })
            .collect(),
        timeouts: Timeouts {
            connect: wanted.connect_timeout,
            response: wanted.response_timeout,
            idle: wanted.idle_timeout,
            keep_alive: wanted.keep_alive,
        },
        max_connections: wanted.max_connections,
        max_waiting: wanted.max_waiting,
        max_in_flight: wanted.max_in_flight,
        meters: Meters {
            active: gauges.active,
            idle: gauges.idle,
        },
        secure,
    }))
}
