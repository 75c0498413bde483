//! Decides what an upstream is: where, how long, how many, and which headers are set.

use std::time::Duration;

use http::HeaderName;

use crate::config::amount::NonZeroDuration;
use crate::config::file;
use crate::config::problem::Problem;
use crate::config::read::Field;
use crate::config::report::{Finding, Report};
use crate::config::settings::{Secret, Upstream};
use crate::config::table::{Named, Tables};
use crate::config::word::{Integer, header_name};

/// Headers that are the gateway's own business: framing, the connection, and what it judges.
const OWNED: [&str; 13] = [
    "a2a-extensions",
    "a2a-version",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-type",
];

/// The upstreams, in the order of the file; `None` where something was reported.
pub(crate) fn check(
    tables: &Tables<file::Upstream>,
    report: &Report<'_>,
    unserved: &mut Vec<Problem>,
) -> Vec<Option<Upstream>> {
    tables
        .iter()
        .map(|named| upstream(named, report, unserved))
        .collect()
}

fn upstream(
    named: &Named<file::Upstream>,
    report: &Report<'_>,
    unserved: &mut Vec<Problem>,
) -> Option<Upstream> {
    let file = &named.value;
    let headers = headers(&file.headers, report);
    let url = file.url.given()?;
    if url.value.https {
        let what = "this version does not speak TLS to an upstream";
        let finding = Finding::error(url.span.clone(), url.path.clone(), what)
            .hint("use http, on a network that you trust".to_owned());
        unserved.push(report.problem(&finding));
    }
    Some(Upstream {
        name: named.name.clone(),
        url: url.value.clone(),
        connect_timeout: seconds(&file.connect_timeout, 2),
        response_timeout: seconds(&file.response_timeout, 120),
        idle_timeout: seconds(&file.idle_timeout, 300),
        keep_alive: file.keep_alive.or(Duration::from_secs(4)),
        http2: file.http2.or(false),
        max_connections: file.max_connections.or(Integer(1024)).count(),
        max_waiting: file.max_waiting.or(Integer(1024)).count(),
        max_in_flight: file.max_in_flight.value().map(|given| given.count()),
        preserve_host: file.preserve_host.or(false),
        headers,
    })
}

fn seconds(field: &Field<NonZeroDuration>, default: u64) -> Duration {
    field.or(NonZeroDuration(Duration::from_secs(default))).0
}

fn headers(field: &file::Pairs<Secret>, report: &Report<'_>) -> Vec<(HeaderName, Secret)> {
    let mut headers: Vec<(HeaderName, Secret)> = Vec::new();
    let Some(pairs) = field.given() else {
        return headers;
    };
    for (key, value) in &pairs.value {
        let problem = |what: &str, hint: Option<String>| {
            report.add(Finding::error(key.span.clone(), key.path.clone(), what).hint(hint));
        };
        let Ok(name) = header_name(&key.value) else {
            let hint = "letters, digits and hyphens; no spaces, no colon";
            problem("is no header name", Some(hint.to_owned()));
            continue;
        };
        if OWNED.contains(&name.as_str()) {
            let hint = match name.as_str() {
                "host" => Some("the URL decides, or preserve_host = true".to_owned()),
                "a2a-version" | "a2a-extensions" => {
                    Some("the endpoint's contract decides".to_owned())
                }
                _ => None,
            };
            problem("is a header that the gateway sets itself", hint);
        }
        if headers.iter().any(|(given, _)| *given == name) {
            let hint = "header names are the same in upper and lower case";
            problem("is set twice", Some(hint.to_owned()));
        }
        if let Some(at) = value.given() {
            headers.push((name, at.value.clone()));
        }
    }
    headers
}
