//! Decides what an upstream is: where, how long, how many, and which headers are set.

use std::path::Path;
use std::time::Duration;

use http::HeaderName;

use crate::config::amount::NonZeroDuration;
use crate::config::file;
use crate::config::read::{At, Field};
use crate::config::report::{Finding, Report, Span};
use crate::config::settings::{PairFiles, Secret, Upstream, UpstreamTls};
use crate::config::table::{Named, Tables};
use crate::config::web::UpstreamUrl;
use crate::config::word::{Integer, header_name};

use super::files::Files;

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
    directory: &Path,
    report: &Report<'_>,
) -> Vec<Option<Upstream>> {
    let files = Files { directory, report };
    tables.iter().map(|named| upstream(named, files)).collect()
}

fn upstream(named: &Named<file::Upstream>, files: Files<'_, '_>) -> Option<Upstream> {
    let file = &named.value;
    let headers = headers(&file.headers, files.report);
    let url = file.url.given();
    let tls = tls(file, url, files);
    Some(Upstream {
        name: named.name.clone(),
        url: url?.value.clone(),
        tls: tls?,
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

/// How it is spoken to over TLS, where it is; `None` where something was reported.
fn tls(
    file: &file::Upstream,
    url: Option<&At<UpstreamUrl>>,
    files: Files<'_, '_>,
) -> Option<Option<UpstreamTls>> {
    let url = url?;
    let problem = |span: &Span, path: &str, what: &str, hint: &str| {
        let finding = Finding::error(span.clone(), path, what).hint(hint.to_owned());
        files.report.add(finding);
    };
    if !url.value.https {
        let mut stray = 0;
        let mut check = |at: Option<(&Span, &str)>| {
            if let Some((span, path)) = at {
                stray += 1;
                let what = "is for TLS, and the URL is in clear";
                problem(span, path, what, "write url = \"https://..\"");
            }
        };
        for field in [&file.ca, &file.client_certificate, &file.client_key] {
            check(field.given().map(|at| (&at.span, &*at.path)));
        }
        check(file.server_name.given().map(|at| (&at.span, &*at.path)));
        return (stray == 0).then_some(None);
    }
    let client = match (&file.client_certificate, &file.client_key) {
        (Field::Absent, Field::Absent) => Some(None),
        (Field::Given(certificate), Field::Given(key)) => Some(Some(PairFiles {
            certificate: files.named(certificate),
            key: files.named(key),
        })),
        (Field::Given(at), Field::Absent) => {
            let hint = "add client_key = \"key.pem\"";
            problem(&at.span, &at.path, "has no key", hint);
            None
        }
        (Field::Absent, Field::Given(at)) => {
            let hint = "add client_certificate = \"cert.pem\"";
            problem(&at.span, &at.path, "has no certificate", hint);
            None
        }
        (Field::Wrong, _) | (_, Field::Wrong) => None,
    };
    let (server_name, place) = match &file.server_name {
        Field::Given(at) => (at.value.0.clone(), files.place(&at.span, &at.path)),
        Field::Absent => {
            let host = url.value.host.trim_end_matches('.');
            (host.into(), files.place(&url.span, &url.path))
        }
        Field::Wrong => return None,
    };
    Some(Some(UpstreamTls {
        server_name,
        place,
        ca: files.one(&file.ca),
        client: client?,
    }))
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
