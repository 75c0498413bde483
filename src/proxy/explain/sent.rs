//! Decides what is told of a request that would go on: what became of each header line.
//!
//! Read off what would really be sent, line by line, beside what came. Must never show a value that is
//! the caller's, but for the two A2A headers, nor one of the operator's.

use super::rehearse::Sent;
use super::told::{Forward, Header};
use crate::http1::{Fields, Known};
use crate::proxy::hop;
use crate::state::{Lines, Rule};

/// What the gateway writes itself and may be told.
const OURS: [&str; 5] = [
    "a2a-extensions",
    "a2a-version",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-request-id",
];

pub(super) fn told(
    sent: &Sent,
    fields: &Fields,
    query: Option<&str>,
    lines: &Lines,
    (endpoint, contract): (&str, &str),
) -> Forward {
    let upstream = &sent.upstream;
    let name = &*upstream.name;
    let scheme = match upstream.is_secure() {
        true => "https",
        false => "http",
    };
    let (path, after) = match sent.target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (&*sent.target, None),
    };
    let authority = String::from_utf8_lossy(upstream.authority.as_bytes());
    let whose: Option<Rule> = lines.rule(&[
        &["endpoint", endpoint, "upstreams", contract],
        &["endpoint", endpoint, "upstream"],
    ]);
    let url = lines.rule(&[&["upstream", name, "url"]]);
    Forward {
        upstream: name.to_owned(),
        method: sent.method.to_string(),
        url: format!("{scheme}://{authority}{path}"),
        query: match (query, after) {
            (None, _) => "none",
            (before, after) if before == after => "as it came",
            _ => "without parameters named like the A2A headers",
        },
        headers: headers(sent, fields),
        body: sent.body,
        rules: whose.into_iter().chain(url).collect(),
    }
}

fn headers(sent: &Sent, fields: &Fields) -> Vec<Header> {
    let lower = |name: &[u8]| String::from_utf8_lossy(name).to_ascii_lowercase();
    let came: Vec<(String, &[u8])> = fields
        .iter()
        .map(|field| (lower(field.name), field.value))
        .collect();
    let mut all = Vec::new();
    let mut gone: Vec<String> = Vec::new();
    for line in sent.lines.as_bytes().split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(at) = memchr::memchr(b':', line) else {
            continue;
        };
        let name = lower(line.get(..at).unwrap_or_default());
        let value = line.get(at + 1..).unwrap_or_default().trim_ascii();
        let is_operators = sent.upstream.headers.iter().any(|(it, _)| *it == *name);
        let mut before = came.iter().filter(|(it, _)| *it == name);
        let (change, why) = match (is_operators, before.clone().next()) {
            (true, _) => ("set", "the operator's"),
            (false, None) => ("added", written(&name)),
            (false, Some(_)) if before.any(|(_, it)| *it == value) => ("kept", ""),
            (false, Some(_)) => ("replaced", written(&name)),
        };
        let is_told = OURS.contains(&&*name) || (name == "host" && change == "replaced");
        let value = match change {
            "set" => Some("***".to_owned()),
            "kept" if !name.starts_with("a2a-") => None,
            _ => is_told.then(|| String::from_utf8_lossy(value).into_owned()),
        };
        gone.push(name.clone());
        all.push(Header {
            name,
            change,
            value,
            why,
        });
    }
    let framed = Header {
        name: "content-length".into(),
        change: "replaced",
        value: Some(sent.body.to_string()),
        why: "the body is framed anew",
    };
    let mut removed: Vec<Header> = Vec::new();
    for field in fields.iter() {
        let name = lower(field.name);
        let is_there = gone.contains(&name) || removed.iter().any(|it| it.name == name);
        if is_there || field.known == Known::ContentLength {
            continue;
        }
        let why = if field.known.is_hop_by_hop() {
            "belongs to one connection"
        } else if hop::lists(fields, &field) {
            "named by Connection"
        } else {
            reason(field.known)
        };
        removed.push(Header {
            name,
            change: "removed",
            value: None,
            why,
        });
    }
    let has_body = sent.body > 0 || sent.method == http::Method::POST;
    all.extend(has_body.then_some(framed));
    all.extend(removed);
    all
}

/// Why the gateway writes a line itself.
fn written(name: &str) -> &'static str {
    match name {
        "a2a-version" | "a2a-extensions" => "absent, so the contract's value is filled in",
        "host" => "the upstream's",
        name if name.starts_with("x-forwarded-") => "who is asking is told, not believed",
        "x-request-id" => "under which the request is known",
        _ => "",
    }
}

/// Why a line stays here that belongs to no one connection.
fn reason(known: Known) -> &'static str {
    let reasons = [
        (
            Known::LookAlike,
            "CGI-style servers merge it with an A2A header",
        ),
        (Known::Expect, "met here"),
        (Known::Traceparent, "no valid place in a trace"),
        (
            Known::Tracestate,
            "without a valid traceparent it says nothing",
        ),
        (Known::Forwarded, "the client's own word on its way here"),
        (Known::OwnWay, "the client's own word on its way here"),
    ];
    let found = reasons.iter().find(|(it, _)| *it == known);
    found.map_or("a credential that goes no further", |(_, why)| *why)
}
