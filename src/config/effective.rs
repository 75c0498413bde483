//! Decides how settings are shown: as a configuration in JSON, with every default filled in.
//!
//! What is shown can be read back: [`crate::config::parse`] makes the same settings of it, but for
//! the values of headers. Must never show a secret, and never a value in a spelling that the reader
//! would refuse.
//!
//! Tables stand in the order of the file. An endpoint shows every column of its contract, whether it
//! came from a release, from the operator's own contract or from an override.

mod issuer;
mod reload;
mod store;

use std::path::Path;

use ipnet::IpNet;
use serde::{Serialize, Serializer};

use crate::config::amount::{spell_duration, spell_percent, spell_size};
use crate::config::json::{Json, object, some};
use crate::config::per::Dimension;
use crate::config::settings::{
    AccessLog, Allowance, Authenticate, Caller, Clients, Endpoint, Identify, Limits, Listener, Log,
    NamedFile, PairFiles, Plan, Quota, Settings, Upstream,
};
use crate::config::web::Host;
use crate::protocol::{Contract, Step, releases};

impl Serialize for Settings {
    /// As a configuration in JSON. The values of headers are stars.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        whole(self).serialize(serializer)
    }
}

pub(in crate::config) fn whole(settings: &Settings) -> Json {
    let workers = settings.runtime.workers.map(|count| count.get().into());
    let shutdown = &settings.shutdown;
    let identify = settings.callers.identify.iter().map(source);
    object([
        ("runtime", some(object([("workers", workers)]))),
        ("listener", some(tables(&settings.listeners, listener))),
        ("admin", {
            let admin = &settings.admin;
            let tokens = admin.token_sha256.iter().map(ToString::to_string);
            some(object([
                ("address", some(admin.address.to_string())),
                (
                    "token_sha256",
                    (!admin.token_sha256.is_empty()).then(|| Json::list(tokens)),
                ),
            ]))
        }),
        ("callers", {
            let key_header = settings.callers.key_header.to_string();
            some(object([
                ("identify", Some(Json::list(identify))),
                ("key_header", some(key_header)),
            ]))
        }),
        (
            "caller",
            some(tables(&settings.known, |it| caller(it, settings))),
        ),
        ("issuer", {
            let issuers = &settings.issuers;
            (!issuers.is_empty()).then(|| tables(issuers, |it| issuer::issuer(it, settings)))
        }),
        (
            "quota",
            some(tables(&settings.quotas, |it| quota(it, settings))),
        ),
        ("store", some(tables(&settings.stores, store::store))),
        (
            "plan",
            some(tables(&settings.plans, |it| plan(it, settings))),
        ),
        ("upstream", some(tables(&settings.upstreams, upstream))),
        (
            "endpoint",
            some(tables(&settings.endpoints, |it| {
                (&it.name, endpoint(it, settings))
            })),
        ),
        ("contract", some(tables(own(settings), contract))),
        ("limits", some(limits(&settings.limits))),
        ("log", some(log(&settings.log))),
        (
            "shutdown",
            some(object([
                ("delay", some(spell_duration(shutdown.delay))),
                ("timeout", some(spell_duration(shutdown.timeout))),
            ])),
        ),
        ("reload", some(reload::reload(&settings.reload))),
    ])
}

/// Tables with names.
fn tables<'s, T>(all: impl IntoIterator<Item = T>, one: impl Fn(T) -> (&'s str, Json)) -> Json {
    object(all.into_iter().map(|it| {
        let (name, value) = one(it);
        (name, Some(value))
    }))
}

fn listener(listener: &Listener) -> (&str, Json) {
    let tls = listener.tls.as_ref().map(|tls| {
        let others = tls.others.iter().map(|it| object(pair(it)));
        let others = (!tls.others.is_empty()).then(|| Json::List(others.collect()));
        let clients = tls.clients.as_ref();
        let demand = |it: &Clients| {
            if it.is_required {
                "required"
            } else {
                "optional"
            }
        };
        object(pair(&tls.default).into_iter().chain([
            ("certificates", others),
            ("client_ca", clients.and_then(|it| some(named(&it.ca)))),
            (
                "client_certificate",
                clients.and_then(|it| some(demand(it))),
            ),
        ]))
    });
    let address = listener.address.to_string();
    let front = &listener.front;
    let networks = |all: &[IpNet]| Json::list(all.iter().map(ToString::to_string));
    let proxy_protocol = front.proxy_protocol.as_ref();
    let trusted = &front.trusted_proxies;
    let shown = object([
        ("address", some(address)),
        ("tls", tls),
        ("backlog", some(u32::from(listener.backlog))),
        (
            "health",
            front.health.as_ref().and_then(|path| some(literal(path))),
        ),
        (
            "proxy_protocol",
            proxy_protocol.map(|peers| object([("trusted", Some(networks(peers)))])),
        ),
        (
            "trusted_proxies",
            (!trusted.is_empty()).then(|| networks(trusted)),
        ),
        (
            "client_header",
            (!trusted.is_empty())
                .then(|| front.client_header.name())
                .map(Json::from),
        ),
    ]);
    (&listener.name, shown)
}

fn pair(pair: &PairFiles) -> [(&'static str, Option<Json>); 2] {
    [
        ("certificate", some(named(&pair.certificate))),
        ("key", some(named(&pair.key))),
    ]
}

fn source(identify: &Identify) -> String {
    match identify {
        Identify::Header(name) => format!("header:{name}"),
        Identify::Address => "address".to_owned(),
    }
}

/// The digests of keys are shown: they are no keys, and no way back to random ones.
fn caller<'s>(caller: &'s Caller, settings: &'s Settings) -> (&'s str, Json) {
    let listed = |all: Vec<String>| (!all.is_empty()).then(|| Json::list(all));
    let keys = caller.key_sha256.iter().map(ToString::to_string);
    let certificates = caller.certificates.iter().map(ToString::to_string);
    let plan = caller.plan.and_then(|at| settings.plans.get(at));
    let endpoints = caller.endpoints.as_ref().map(|all| {
        let names = all.iter().filter_map(|at| settings.endpoints.get(*at));
        Json::list(names.map(|it| &*it.name))
    });
    let shown = object([
        ("key_sha256", listed(keys.collect())),
        (
            "certificate",
            listed(certificates.map(|it| literal(&it)).collect()),
        ),
        ("plan", plan.and_then(|it| some(&*it.name))),
        ("endpoints", endpoints),
    ]);
    (&caller.name, shown)
}

fn quota<'s>(quota: &'s Quota, settings: &'s Settings) -> (&'s str, Json) {
    let per: Vec<_> = quota.per.iter().map(Dimension::name).collect();
    let per = match per.as_slice() {
        [one] => (*one).into(),
        several => Json::list(several.iter().copied()),
    };
    let kept = quota.kept.as_ref();
    let shown = [
        ("per", Some(per)),
        ("shared", some(quota.shared)),
        ("skills", words(quota.skills.as_deref())),
        ("methods", words(quota.methods.as_deref())),
        ("cost", {
            let cost = tables(&quota.cost, |(name, cost)| (&**name, cost.get().into()));
            (!quota.cost.is_empty()).then_some(cost)
        }),
        (
            "store",
            kept.and_then(|it| some(&*settings.stores.get(it.store)?.name)),
        ),
        (
            "on_store_error",
            kept.and_then(|it| some(it.on_error.name())),
        ),
    ];
    (
        &quota.name,
        object(allowance(&quota.allowance).into_iter().chain(shown)),
    )
}

fn allowance(allowance: &Allowance) -> [(&'static str, Option<Json>); 3] {
    [
        ("rate", allowance.rate().and_then(some)),
        ("burst", allowance.burst().and_then(|it| some(it.get()))),
        (
            "concurrent",
            allowance.concurrent().and_then(|it| some(it.get())),
        ),
    ]
}

fn plan<'s>(plan: &'s Plan, settings: &'s Settings) -> (&'s str, Json) {
    let quotas = tables(&plan.quotas, |(place, changed)| {
        let quota = settings.quotas.get(*place);
        (quota.map_or("", |it| &*it.name), object(allowance(changed)))
    });
    (&plan.name, object([("quotas", Some(quotas))]))
}

/// A list of texts, where there is one.
fn words(words: Option<&[Box<str>]>) -> Option<Json> {
    words.map(|all| Json::list(all.iter().map(|it| literal(it))))
}

fn upstream(upstream: &Upstream) -> (&str, Json) {
    let headers = tables(&upstream.headers, |(name, secret)| {
        (name.as_str(), secret.to_string().into())
    });
    let tls = upstream.tls.as_ref();
    let client = tls.and_then(|it| it.client.as_ref());
    let shown = object([
        ("url", some(literal(&upstream.url.to_string()))),
        (
            "ca",
            tls.and_then(|it| it.ca.as_ref())
                .and_then(|it| some(named(it))),
        ),
        ("server_name", tls.and_then(|it| some(&*it.server_name))),
        (
            "client_certificate",
            client.and_then(|it| some(named(&it.certificate))),
        ),
        ("client_key", client.and_then(|it| some(named(&it.key)))),
        (
            "connect_timeout",
            some(spell_duration(upstream.connect_timeout)),
        ),
        (
            "response_timeout",
            some(spell_duration(upstream.response_timeout)),
        ),
        ("idle_timeout", some(spell_duration(upstream.idle_timeout))),
        ("keep_alive", some(spell_duration(upstream.keep_alive))),
        ("http2", some(upstream.http2)),
        ("max_connections", some(upstream.max_connections)),
        ("max_waiting", some(upstream.max_waiting)),
        ("max_in_flight", upstream.max_in_flight.map(Json::from)),
        ("preserve_host", some(upstream.preserve_host)),
        ("headers", Some(headers)),
    ]);
    (&upstream.name, shown)
}

fn endpoint(endpoint: &Endpoint, settings: &Settings) -> Json {
    let host = match &endpoint.host {
        Host::Any => None,
        Host::Exact(_) | Host::OneLabel(_) => some(endpoint.host.to_string()),
    };
    let upstream = |at: usize| settings.upstreams.get(at).map_or("", |it| &*it.name);
    let quotas = endpoint.quotas.iter();
    let quotas = quotas.filter_map(|at| settings.quotas.get(*at).map(|it| &*it.name));
    let mut members = vec![("host", host), ("path", some(literal(&endpoint.path)))];
    match endpoint.contracts.as_slice() {
        [pin] => {
            members.push(("contract", some(&*pin.contract.name)));
            members.extend(columns(&pin.contract));
            members.push(("upstream", some(upstream(pin.upstream))));
        }
        pins => {
            let names = pins.iter().map(|pin| &*pin.contract.name);
            members.push(("contracts", Some(Json::list(names))));
            let by_contract = tables(pins, |pin| {
                (&*pin.contract.name, upstream(pin.upstream).into())
            });
            members.push(("upstreams", Some(by_contract)));
        }
    }
    members.extend([
        ("authenticate", some(endpoint.authenticate.name())),
        (
            "forward_credential",
            // Alone it would be a problem: there is nothing to keep back.
            (endpoint.authenticate != Authenticate::Off)
                .then(|| endpoint.forward_credential.into()),
        ),
        ("quotas", Some(Json::list(quotas))),
        ("ratelimit_headers", some(endpoint.ratelimit_headers.name())),
        ("http_status", some(endpoint.http_status.name())),
        (
            "report",
            Some(Json::list(endpoint.report.iter().map(Step::name))),
        ),
        ("methods", words(endpoint.methods.as_deref())),
    ]);
    object(members)
}

/// The columns that an endpoint can change.
fn columns(contract: &Contract) -> [(&'static str, Option<Json>); 4] {
    [
        ("a2a_version", some(contract.a2a_version.to_string())),
        ("extension", some(literal(contract.extension.as_str()))),
        ("absent", some(contract.absent.name())),
        ("require_extension", some(contract.require_extension)),
    ]
}

fn contract(contract: &Contract) -> (&str, Json) {
    let mut members = columns(contract).to_vec();
    members.push(("dialect", some(contract.dialect.name())));
    (&contract.name, object(members))
}

/// The operator's own contracts that an endpoint names, each once.
///
/// Where several are listed, each is as it was described; alone it may have been changed by its
/// endpoint, which then shows its own columns anyway.
fn own(settings: &Settings) -> Vec<&Contract> {
    let pins = |alone: bool| {
        let endpoints = settings.endpoints.iter();
        endpoints
            .filter(move |endpoint| (endpoint.contracts.len() == 1) == alone)
            .flat_map(|endpoint| endpoint.contracts.iter().map(|pin| &pin.contract))
            .filter(|contract| releases::find(&contract.name).is_none())
    };
    let mut seen = std::collections::HashSet::new();
    pins(false)
        .chain(pins(true))
        .filter(|contract| seen.insert(&*contract.name))
        .collect()
}

fn limits(limits: &Limits) -> Json {
    object([
        ("body", some(spell_size(limits.body))),
        ("header_bytes", some(spell_size(limits.header_bytes as u64))),
        ("header_count", some(limits.header_count)),
        (
            "header_timeout",
            some(spell_duration(limits.header_timeout)),
        ),
        ("body_timeout", some(spell_duration(limits.body_timeout))),
        ("idle_timeout", some(spell_duration(limits.idle_timeout))),
        ("connections", some(limits.connections)),
        ("concurrent_streams", some(limits.concurrent_streams)),
        ("in_flight_requests", some(limits.in_flight_requests)),
        ("in_flight_bytes", some(spell_size(limits.in_flight_bytes))),
        ("limiter_keys", some(limits.limiter_keys)),
    ])
}

fn log(log: &Log) -> Json {
    let access = match &log.access {
        AccessLog::Stdout => "stdout".to_owned(),
        AccessLog::Off => "off".to_owned(),
        AccessLog::File(path) => file(path),
    };
    object([
        ("access", some(access)),
        ("access_format", some(log.access_format.name())),
        (
            "access_ok_sample",
            some(spell_percent(log.access_ok_millionths)),
        ),
        ("format", some(log.format.name())),
        ("level", some(log.level.name())),
    ])
}

fn named(file: &NamedFile) -> String {
    self::file(&file.path)
}

fn file(path: &Path) -> String {
    literal(&path.display().to_string())
}

/// A string in which the reader must not see a variable.
fn literal(text: &str) -> String {
    text.replace("${", "$${")
}
