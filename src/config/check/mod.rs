//! Decides the rules that look at more than one key, and turns the shapes of the file into
//! [`Settings`]. One file per kind of table; this one holds the order and the whole-file rules.
//!
//! Must never stop at the first problem, and must never complain about what is missing because of a
//! mistake that was reported already.

mod admin;
mod allowance;
mod caller;
mod contract;
mod endpoint;
mod files;
mod front;
mod issuer;
mod listener;
mod log;
mod names;
mod quota;
mod reload;
mod store;
mod upstream;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

use crate::config::amount::{NonZeroDuration, Size};
use crate::config::file::{self, File};
use crate::config::problem::Problems;
use crate::config::read::{At, Field};
use crate::config::report::{Finding, Report};
use crate::config::settings::{
    Authenticate, Callers, Identify, Limits, Origin, Runtime, Settings, Shutdown,
};
use crate::config::web::Host;
use crate::config::word::Integer;
use endpoint::Rooms;
use files::Files;
use names::Names;

/// The settings, or `None` when something was reported that fails the load.
pub(crate) fn check(file: File, directory: &Path, report: &Report<'_>) -> Option<Settings> {
    least(&file, report);
    let admin = admin::check(&file.admin, report);
    let listeners = listener::check(&file, admin.address, directory, report);
    let limits = limits(&file.limits, report);
    let reload = reload::check(&file.reload, report);
    let callers = callers(&file, report);
    let stores = store::check(&file.stores, directory, report);
    let store_names = Names::of("store", &file.stores);
    let quotas = quota::check(&file.quotas, &store_names, report);
    let upstreams = upstream::check(&file.upstreams, directory, report);
    let contracts = contract::check(&file.contracts, report);
    let rooms = Rooms {
        quotas: Names::of("quota", &file.quotas),
        upstreams: Names::of("upstream", &file.upstreams),
        contracts: Names::of("contract", &file.contracts),
        own: &contracts,
        report,
    };
    let plans = allowance::plans(&file.plans, &rooms.quotas, &quotas, report);
    let endpoints: Vec<_> = file
        .endpoints
        .iter()
        .map(|named| endpoint::check(named, &rooms))
        .collect();
    let (plan_names, endpoint_names) = (
        Names::of("plan", &file.plans),
        Names::of("endpoint", &file.endpoints),
    );
    let askers = caller::Rooms {
        plans: &plan_names,
        endpoints: &endpoint_names,
    };
    let known = caller::check(&file.callers, &askers, report);
    let issuers = issuer::check(&file, &askers, directory, report);
    caller::demands(&file, report);
    same_place(&file, report);
    front::shadows(&file, report);
    if report.has_errors() {
        return None;
    }
    admin::unprotected(&file.admin, &admin, report);
    for names in [&rooms.quotas, &rooms.upstreams, &rooms.contracts] {
        names.warn_unused("no endpoint names this", report);
    }
    // Tokens may name any.
    if !file
        .issuers
        .iter()
        .any(|it| !it.value.plan_claim.is_absent())
    {
        plan_names.warn_unused("no caller has this", report);
    }
    store_names.warn_unused("no quota names this", report);
    let settings = Settings {
        runtime: Runtime {
            workers: file.workers.value().and_then(Integer::some),
        },
        listeners: listeners.into_iter().collect::<Option<_>>()?,
        admin,
        limits,
        log: log::log(&file.log, Files { directory, report }),
        shutdown: Shutdown {
            delay: file.delay.or(Duration::ZERO),
            timeout: file.timeout.or(Duration::from_secs(25)),
        },
        reload,
        callers,
        known: known.into_iter().collect::<Option<_>>()?,
        issuers: issuers.into_iter().collect::<Option<_>>()?,
        quotas: quotas.into_iter().collect::<Option<_>>()?,
        plans: plans.into_iter().collect::<Option<_>>()?,
        stores: stores.into_iter().collect::<Option<_>>()?,
        upstreams: upstreams.into_iter().collect::<Option<_>>()?,
        endpoints: endpoints.into_iter().collect::<Option<_>>()?,
        warnings: Problems::default(),
        lines: Arc::default(),
        origin: Origin::default(),
    };
    warn_unverified(&settings, &file.endpoints, report);
    caller::warn(&settings, &file, report);
    Some(settings)
}

/// An emptied or half-written file must not wipe the routes.
fn least(file: &File, report: &Report<'_>) {
    if file.listeners.is_complete && file.listeners.entries.is_empty() {
        let hint = "add [listener.public] with address = \"0.0.0.0:8080\"".to_owned();
        report.add(Finding::error(None, "", "no listener: nothing would be accepted").hint(hint));
    }
    if file.endpoints.is_complete && file.endpoints.entries.is_empty() {
        let hint = "add [endpoint.NAME] with path and upstream".to_owned();
        report.add(Finding::error(None, "", "no endpoint: nothing would be served").hint(hint));
    }
}

fn limits(file: &file::Limits, report: &Report<'_>) -> Limits {
    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    const HEADER: std::ops::RangeInclusive<u64> = 8 * KIB..=MIB;
    if let Some(at) = file.header_bytes.given()
        && !HEADER.contains(&at.value.0)
    {
        let what = "is out of bounds: 8KiB to 1MiB";
        report.add(Finding::error(at.span.clone(), at.path.clone(), what));
    }
    let body = size(&file.body, MIB);
    let in_flight_bytes = size(&file.in_flight_bytes, 256 * MIB);
    if let (Some(body), Some(in_flight)) = (body, in_flight_bytes)
        && body > in_flight
        && let Some(at) = file.body.given().or(file.in_flight_bytes.given())
    {
        let what =
            format!("a body of {body} bytes never fits into in_flight_bytes ({in_flight} bytes)");
        let hint = "make body smaller or in_flight_bytes larger".to_owned();
        report.add(Finding::error(at.span.clone(), at.path.clone(), what).hint(hint));
    }
    let duration = |field: &Field<NonZeroDuration>, seconds| {
        field
            .value()
            .map_or(Duration::from_secs(seconds), |given| given.0)
    };
    let header_bytes = size(&file.header_bytes, 32 * KIB).unwrap_or_default();
    Limits {
        body: body.unwrap_or_default(),
        header_bytes: usize::try_from(header_bytes).unwrap_or(usize::MAX),
        header_count: file.header_count.or(Integer(100)).count(),
        header_timeout: duration(&file.header_timeout, 10),
        body_timeout: duration(&file.body_timeout, 30),
        idle_timeout: duration(&file.idle_timeout, 75),
        connections: file.connections.or(Integer(10_000)).count(),
        concurrent_streams: u32::try_from(file.concurrent_streams.or(Integer(100)).0)
            .unwrap_or(u32::MAX),
        in_flight_requests: file.in_flight_requests.or(Integer(100_000)).count(),
        in_flight_bytes: in_flight_bytes.unwrap_or_default(),
        limiter_keys: file.limiter_keys.or(Integer(1 << 20)).count(),
    }
}

/// The bytes given or the default; `None` where what was given is wrong.
const fn size(field: &Field<Size>, default: u64) -> Option<u64> {
    match field {
        Field::Absent => Some(default),
        Field::Wrong => None,
        Field::Given(at) => Some(at.value.0),
    }
}

fn callers(file: &File, report: &Report<'_>) -> Callers {
    let key_header = file.key_header.value().map(|it| it.0);
    let key_header = key_header.unwrap_or(HeaderName::from_static("x-api-key"));
    let Field::Given(list) = &file.identify else {
        return Callers {
            identify: vec![Identify::Address],
            key_header,
        };
    };
    if list.value.is_empty() {
        let hint = "leave it out, or write identify = [\"address\"]".to_owned();
        let what = "is empty: nobody could be told apart";
        report.add(Finding::error(list.span.clone(), list.path.clone(), what).hint(hint));
    }
    let mut seen: Vec<Identify> = Vec::new();
    for at in list.value.iter().filter_map(Field::given) {
        if seen.contains(&at.value) {
            report.add(Finding::error(
                at.span.clone(),
                at.path.clone(),
                "is listed twice",
            ));
        } else if seen.contains(&Identify::Address) {
            let what = "is never asked: an address is always present, so nothing after it counts";
            let hint = "put \"address\" last".to_owned();
            report.add(Finding::error(at.span.clone(), at.path.clone(), what).hint(hint));
        } else {
            seen.push(at.value.clone());
        }
    }
    Callers {
        identify: seen,
        key_header,
    }
}

/// Two endpoints on one host and path: which of them answered would be an accident.
fn same_place(file: &File, report: &Report<'_>) {
    let mut taken = HashMap::new();
    for named in file.endpoints.iter() {
        let host = match &named.value.host {
            Field::Absent => Host::Any,
            Field::Wrong => continue,
            Field::Given(at) => at.value.clone(),
        };
        let Some(path) = named.value.path.given() else {
            continue;
        };
        let place = (host, path.value.0.clone());
        match taken.entry(place) {
            Entry::Vacant(entry) => {
                entry.insert((named.path.as_str(), &path.span));
            }
            Entry::Occupied(entry) => {
                let (other, span) = entry.get();
                let line = report.line(span, &path.span);
                let what = format!("has the same host and path as {other} on {line}");
                let hint = "give one of them another host or path".to_owned();
                report.add(Finding::error(path.span.clone(), path.path.clone(), what).hint(hint));
            }
        }
    }
}

/// A header that nobody verified, and a tenant, tell calls apart only as long as callers are honest.
fn warn_unverified(
    settings: &Settings,
    endpoints: &crate::config::table::Tables<file::Endpoint>,
    report: &Report<'_>,
) {
    use crate::config::per::Dimension::{Address, Caller, Tenant};
    let by_header = settings
        .callers
        .identify
        .iter()
        .any(|identify| matches!(identify, Identify::Header(_)));
    for (endpoint, named) in settings.endpoints.iter().zip(endpoints.iter()) {
        let warn = |what: &str, hint: &str| {
            let span = named.value.quotas.given().map(|at: &At<_>| at.span.clone());
            let path = format!("{}.quotas", named.path);
            report.add(Finding::warning(span, path, what).hint(hint.to_owned()));
        };
        let quotas = || {
            endpoint
                .quotas
                .iter()
                .filter_map(|at| settings.quotas.get(*at))
        };
        let per = |dimension| quotas().any(|quota| quota.per.contains(dimension));
        // What catches whoever changes its name at every call.
        let mut whole =
            quotas().filter(|quota| quota.is_for_every_call() && !quota.per.contains(Tenant));
        let catches_address = whole.clone().any(|quota| quota.per.contains(Address));
        let is_proven = endpoint.authenticate == Authenticate::Required;
        if by_header && !is_proven && per(Caller) && !catches_address {
            warn(
                "callers are told apart by a header that nobody verifies: who changes it gets a new \
                 bucket",
                "add a quota with per = \"address\" to this endpoint",
            );
        }
        if per(Tenant) && whole.next().is_none() {
            warn(
                "a tenant is whatever the caller writes: who changes it gets a new bucket",
                "add a quota that counts no tenant, such as one with per = \"caller\"",
            );
        }
    }
}
