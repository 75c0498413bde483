//! Decides which keys there are and what kind of value each takes: the shapes of the file.
//!
//! Must never hold a rule that looks at two keys: those are in `check`. A new key is added here, in
//! `settings`, in `config/forecourt.toml` and in `docs/configuration.md`; tests compare them.

mod admin;
mod issuer;
mod quota;
mod reload;
mod store;

use std::net::SocketAddr;
use std::time::Duration;

use ipnet::IpNet;

use crate::config::amount::{NonZeroDuration, Percent, Size};
use crate::config::include::Pattern;
use crate::config::proof::KeyHeader;
use crate::config::read::{At, Field, List};
use crate::config::report::Span;
use crate::config::settings::{
    AccessFormat, Authenticate, CertificateName, ClientHeader, Identify, KeySha256, Level,
    LogFormat, RateLimitHeaders, Secret,
};
use crate::config::table::{Named, Table, Tables};
use crate::config::web::{Host, Path, ServerName, UpstreamUrl};
use crate::config::word::{Demand, Filled, Integer, Name};
use crate::protocol::{Absence, Dialect, ExtensionUri, HttpStatus, Step, Version};

pub(crate) use admin::Admin;
pub(crate) use issuer::Issuer;
pub(crate) use quota::{Allowance, Plan, Quota};
pub(crate) use reload::{Guard, Reload};
pub(crate) use store::Store;

/// A number of things of which there must be one.
pub(crate) type AtLeastOne = Integer<1, { u32::MAX as u64 }>;

/// Header names and their values, as they stand in the file.
pub(crate) type Pairs<T> = Field<Vec<(At<String>, Field<T>)>>;

/// The whole file.
pub(crate) struct File {
    pub(crate) workers: Field<Integer<1, 1024>>,
    pub(crate) listeners: Tables<Listener>,
    pub(crate) admin: Admin,
    pub(crate) limits: Limits,
    pub(crate) log: Log,
    pub(crate) delay: Field<Duration>,
    pub(crate) timeout: Field<Duration>,
    pub(crate) reload: Reload,
    pub(crate) identify: Field<List<Identify>>,
    pub(crate) key_header: Field<KeyHeader>,
    pub(crate) callers: Tables<Caller>,
    pub(crate) issuers: Tables<Issuer>,
    pub(crate) quotas: Tables<Quota>,
    pub(crate) stores: Tables<Store>,
    pub(crate) plans: Tables<Plan>,
    pub(crate) upstreams: Tables<Upstream>,
    pub(crate) endpoints: Tables<Endpoint>,
    pub(crate) contracts: Tables<Contract>,
}

pub(crate) struct Listener {
    pub(crate) address: Field<SocketAddr>,
    pub(crate) tls: Option<Tls>,
    pub(crate) backlog: Field<Integer<1, 65535>>,
    pub(crate) health: Field<Path>,
    pub(crate) proxy_protocol: Option<ProxyProtocol>,
    pub(crate) trusted_proxies: Field<List<IpNet>>,
    pub(crate) client_header: Field<ClientHeader>,
}

pub(crate) struct ProxyProtocol {
    pub(crate) span: Option<Span>,
    pub(crate) trusted: Field<List<IpNet>>,
}

pub(crate) struct Tls {
    pub(crate) default: PairFiles,
    pub(crate) others: Vec<PairFiles>,
    pub(crate) client_ca: Field<Filled>,
    pub(crate) client_certificate: Field<Demand>,
}

/// A certificate and its key.
pub(crate) struct PairFiles {
    pub(crate) certificate: Field<Filled>,
    pub(crate) key: Field<Filled>,
}

pub(crate) struct Limits {
    pub(crate) body: Field<Size>,
    pub(crate) header_bytes: Field<Size>,
    pub(crate) header_count: Field<Integer<1, 1000>>,
    pub(crate) header_timeout: Field<NonZeroDuration>,
    pub(crate) body_timeout: Field<NonZeroDuration>,
    pub(crate) idle_timeout: Field<NonZeroDuration>,
    pub(crate) connections: Field<AtLeastOne>,
    pub(crate) concurrent_streams: Field<Integer<1, 1000>>,
    pub(crate) in_flight_requests: Field<AtLeastOne>,
    pub(crate) in_flight_bytes: Field<Size>,
    pub(crate) limiter_keys: Field<AtLeastOne>,
}

pub(crate) struct Log {
    pub(crate) access: Field<Filled>,
    pub(crate) access_format: Field<AccessFormat>,
    pub(crate) access_ok_sample: Field<Percent>,
    pub(crate) format: Field<LogFormat>,
    pub(crate) level: Field<Level>,
}

pub(crate) struct Caller {
    pub(crate) key_sha256: Field<List<KeySha256>>,
    pub(crate) certificate: Field<List<CertificateName>>,
    pub(crate) plan: Field<Name>,
    pub(crate) endpoints: Field<List<Name>>,
}

pub(crate) struct Upstream {
    pub(crate) url: Field<UpstreamUrl>,
    pub(crate) ca: Field<Filled>,
    pub(crate) server_name: Field<ServerName>,
    pub(crate) client_certificate: Field<Filled>,
    pub(crate) client_key: Field<Filled>,
    pub(crate) connect_timeout: Field<NonZeroDuration>,
    pub(crate) response_timeout: Field<NonZeroDuration>,
    pub(crate) idle_timeout: Field<NonZeroDuration>,
    pub(crate) keep_alive: Field<Duration>,
    pub(crate) http2: Field<bool>,
    pub(crate) max_connections: Field<AtLeastOne>,
    pub(crate) max_waiting: Field<Integer<0, { u32::MAX as u64 }>>,
    pub(crate) max_in_flight: Field<AtLeastOne>,
    pub(crate) preserve_host: Field<bool>,
    pub(crate) headers: Pairs<Secret>,
}

pub(crate) struct Endpoint {
    pub(crate) host: Field<Host>,
    pub(crate) path: Field<Path>,
    pub(crate) contract: Field<Name>,
    pub(crate) contracts: Field<List<Name>>,
    pub(crate) overrides: Columns,
    pub(crate) upstream: Field<Name>,
    pub(crate) upstreams: Pairs<Name>,
    pub(crate) authenticate: Field<Authenticate>,
    pub(crate) forward_credential: Field<bool>,
    pub(crate) quotas: Field<List<Name>>,
    pub(crate) ratelimit_headers: Field<RateLimitHeaders>,
    pub(crate) http_status: Field<HttpStatus>,
    pub(crate) report: Field<List<Step>>,
    pub(crate) methods: Field<List<Filled>>,
}

/// The columns of a contract that can be set.
pub(crate) struct Columns {
    pub(crate) a2a_version: Field<Version>,
    pub(crate) extension: Field<ExtensionUri>,
    pub(crate) absent: Field<Absence>,
    pub(crate) require_extension: Field<bool>,
}

pub(crate) struct Contract {
    pub(crate) columns: Columns,
    pub(crate) dialect: Field<Dialect>,
}

impl File {
    /// Takes everything out of the document.
    pub(crate) fn take(mut root: Table<'_>) -> Self {
        // Whoever read the files followed it already; what is wrong with it is reported here.
        let _: Field<List<Pattern>> = root.one_or_list("include");
        let mut runtime = root.table_or_empty("runtime", "[runtime]");
        let workers = runtime.field("workers");
        runtime.finish();
        let listeners = root.named("listener", "[listener.NAME]", listener);
        root.at_least_one("listener");
        let admin = Admin::take(root.table_or_empty("admin", "[admin]"));
        let limits = limits(root.table_or_empty("limits", "[limits]"));
        let log = log(root.table_or_empty("log", "[log]"));
        let mut shutdown = root.table_or_empty("shutdown", "[shutdown]");
        let delay = shutdown.field("delay");
        let timeout = shutdown.field("timeout");
        shutdown.finish();
        let reload = Reload::take(root.table_or_empty("reload", "[reload]"));
        let mut callers = root.table_or_empty("callers", "[callers]");
        let identify = callers.list("identify");
        let key_header = callers.field("key_header");
        callers.finish();
        root.at_least_one("endpoint");
        let file = Self {
            workers,
            listeners,
            admin,
            limits,
            log,
            delay,
            timeout,
            reload,
            identify,
            key_header,
            callers: root.named("caller", "[caller.NAME]", caller),
            issuers: root.named("issuer", "[issuer.NAME]", Issuer::take),
            quotas: root.named("quota", "[quota.NAME]", quota::quota),
            stores: root.named("store", "[store.NAME]", store::store),
            plans: root.named("plan", "[plan.NAME]", quota::plan),
            upstreams: root.named("upstream", "[upstream.NAME]", upstream),
            endpoints: root.named("endpoint", "[endpoint.NAME]", endpoint),
            contracts: root.named("contract", "[contract.NAME]", contract),
        };
        root.finish();
        file
    }
}

fn listener(mut table: Table<'_>) -> Listener {
    let address = table.required("address");
    let tls = table.table("tls", "`tls`").map(|mut tls| {
        let read = Tls {
            default: pair(&mut tls),
            others: tls.tables("certificates", "`certificates`", |mut table| {
                let read = pair(&mut table);
                table.finish();
                read
            }),
            client_ca: tls.field("client_ca"),
            client_certificate: tls.field("client_certificate"),
        };
        tls.finish();
        read
    });
    let proxy_protocol = table
        .table("proxy_protocol", "`proxy_protocol`")
        .map(|mut below| {
            let trusted = below.list("trusted");
            let read = ProxyProtocol {
                span: below.span().cloned(),
                trusted: below.unless_misspelt(trusted, "trusted", &[]),
            };
            below.finish();
            read
        });
    let listener = Listener {
        address,
        tls,
        backlog: table.field("backlog"),
        health: table.field("health"),
        proxy_protocol,
        trusted_proxies: table.list("trusted_proxies"),
        client_header: table.field("client_header"),
    };
    table.finish();
    listener
}

fn pair(table: &mut Table<'_>) -> PairFiles {
    PairFiles {
        certificate: table.required_beside("certificate", &["certificates", "client_certificate"]),
        key: table.required("key"),
    }
}

fn limits(mut table: Table<'_>) -> Limits {
    let limits = Limits {
        body: table.field("body"),
        header_bytes: table.field("header_bytes"),
        header_count: table.field("header_count"),
        header_timeout: table.field("header_timeout"),
        body_timeout: table.field("body_timeout"),
        idle_timeout: table.field("idle_timeout"),
        connections: table.field("connections"),
        concurrent_streams: table.field("concurrent_streams"),
        in_flight_requests: table.field("in_flight_requests"),
        in_flight_bytes: table.field("in_flight_bytes"),
        limiter_keys: table.field("limiter_keys"),
    };
    table.finish();
    limits
}

fn log(mut table: Table<'_>) -> Log {
    let log = Log {
        access: table.field("access"),
        access_format: table.field("access_format"),
        access_ok_sample: table.field("access_ok_sample"),
        format: table.field("format"),
        level: table.field("level"),
    };
    table.finish();
    log
}

fn caller(mut table: Table<'_>) -> Caller {
    let keys = table.one_or_list("key_sha256");
    let caller = Caller {
        key_sha256: table.unless_misspelt(keys, "key_sha256", &["certificate"]),
        certificate: table.one_or_list("certificate"),
        plan: table.field("plan"),
        endpoints: table.list("endpoints"),
    };
    table.finish();
    caller
}

fn upstream(mut table: Table<'_>) -> Upstream {
    let upstream = Upstream {
        url: table.required("url"),
        ca: table.field("ca"),
        server_name: table.field("server_name"),
        client_certificate: table.field("client_certificate"),
        client_key: table.field("client_key"),
        connect_timeout: table.field("connect_timeout"),
        response_timeout: table.field("response_timeout"),
        idle_timeout: table.field("idle_timeout"),
        keep_alive: table.field("keep_alive"),
        http2: table.field("http2"),
        max_connections: table.field("max_connections"),
        max_waiting: table.field("max_waiting"),
        max_in_flight: table.field("max_in_flight"),
        preserve_host: table.field("preserve_host"),
        headers: table.pairs("headers", "`headers`"),
    };
    table.finish();
    upstream
}

fn endpoint(mut table: Table<'_>) -> Endpoint {
    let upstream = table.field("upstream");
    let endpoint = Endpoint {
        host: table.field("host"),
        path: table.required("path"),
        contract: table.field("contract"),
        contracts: table.list("contracts"),
        overrides: columns(&mut table),
        upstream: table.unless_misspelt(upstream, "upstream", &["upstreams"]),
        upstreams: table.pairs("upstreams", "`upstreams`"),
        authenticate: table.field("authenticate"),
        forward_credential: table.field("forward_credential"),
        quotas: table.list("quotas"),
        ratelimit_headers: table.field("ratelimit_headers"),
        http_status: table.field("http_status"),
        report: table.list("report"),
        methods: table.list("methods"),
    };
    table.finish();
    endpoint
}

fn contract(mut table: Table<'_>) -> Contract {
    let mut columns = columns(&mut table);
    columns.extension = table.unless_misspelt(columns.extension, "extension", &[]);
    let contract = Contract {
        columns,
        dialect: table.field("dialect"),
    };
    table.finish();
    contract
}

fn columns(table: &mut Table<'_>) -> Columns {
    Columns {
        a2a_version: table.field("a2a_version"),
        extension: table.field("extension"),
        absent: table.field("absent"),
        require_extension: table.field("require_extension"),
    }
}

impl<T> Tables<T> {
    /// The entries with their places, in the order of the file.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Named<T>> {
        self.entries.iter()
    }
}
