//! Decides what operators are told of one request: what would become of it, or what was decided on it.
//!
//! Must never show a header's value, a key or a body of a caller's; what the gateway would answer is its
//! own. Must never change anything.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use http::StatusCode;
use percent_encoding::percent_decode_str;
use serde::Serialize;

use super::Office;
use super::answer::{Answer, json, text};
use super::query::{Query, Wrong};
use crate::observe::{Decision, rfc3339};
use crate::protocol::{Outcome, Step};
use crate::proxy::explain::{Ground, Question, Recalled, explain, recall};
use crate::state::Lines;
use crate::state::reload::Generation;

/// What a request may be longer than its head and body may be: the framing of chunks.
const FRAMING: usize = 64 << 10;

/// How many decisions are listed where nothing else is said, and at most.
const LISTED: usize = 50;
const MOST_LISTED: usize = 1000;

/// `GET /decisions`, `GET /decisions/{id}`.
#[derive(Serialize)]
struct Decided {
    /// Newest first.
    decisions: Vec<Told>,
}

#[derive(Serialize)]
struct Told {
    ts: String,
    request_id: String,
    endpoint: Option<String>,
    contract: Option<String>,
    caller: Option<String>,
    rpc_method: Option<String>,
    skill: Option<String>,
    outcome: &'static str,
    why: Option<String>,
    status: Option<u16>,
    rpc_code: Option<i32>,
    error_id: Option<String>,
    /// Where it stopped, what decided, and what that follows.
    #[serde(flatten)]
    recalled: Recalled,
    quota: Option<String>,
    cost: Option<u32>,
    limit_source: Option<String>,
    retry_after_ms: Option<u64>,
    normalized: Vec<&'static str>,
    reported: Vec<&'static str>,
    stripped_query: bool,
    upstream: Option<String>,
    duration_ms: f64,
    upstream_ms: Option<f64>,
    generation: u64,
    /// Whether the configuration of its time is still known: else nothing is told of its lines.
    generation_is_known: bool,
}

/// How many bytes a question takes at most.
pub(super) fn takes(office: &Office) -> usize {
    let snapshot = office.reloader.live().load();
    let limits = &snapshot.settings.limits;
    let body = usize::try_from(limits.body).unwrap_or(usize::MAX);
    body.saturating_add(limits.header_bytes)
        .saturating_add(FRAMING)
}

/// `POST /explain?client=ADDRESS&listener=NAME`: the body is a request to the byte.
pub(super) async fn ask(
    office: &Office,
    query: Option<&str>,
    request: &Bytes,
) -> Result<Answer, Wrong> {
    let query = Query::read(query, &["client", "listener"])?;
    let client = match query.value("client").map(str::parse) {
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(Ok(client)) => client,
        Some(Err(_)) => return Err(Wrong::because("client is no address")),
    };
    let snapshot = office.reloader.live().load();
    let ground = Ground {
        snapshot: &snapshot,
        shared: &office.shared,
        keyring: office.reloader.keyring(),
        readiness: &office.readiness,
        wall: &office.wall,
    };
    let question = Question {
        request: request.clone(),
        client,
        listener: query.value("listener").map(Into::into),
    };
    match explain(&ground, question).await {
        Ok(explanation) => Ok(json(&explanation)),
        Err(error) => Err(Wrong::because(error.to_string())),
    }
}

/// `GET /decisions/{id}`: a request id, or the error id of an answer.
pub(super) fn one(office: &Office, id: &str) -> Answer {
    let Ok(id) = percent_decode_str(id).decode_utf8() else {
        return text(StatusCode::BAD_REQUEST, "the id is not UTF-8\n");
    };
    let found = office.decisions.of(&id);
    if found.is_empty() {
        let what = "no decision of this request or error is remembered\n";
        return text(StatusCode::NOT_FOUND, what);
    }
    told(office, found.into_iter().take(MOST_LISTED))
}

/// `GET /decisions?outcome=LABEL&endpoint=NAME&caller=NAME&limit=N`: the newest that fit.
pub(super) fn newest(office: &Office, query: Option<&str>) -> Result<Answer, Wrong> {
    let query = Query::read(query, &["outcome", "endpoint", "caller", "limit"])?;
    let known = |label: &str| Outcome::ALL.into_iter().find(|it| it.label() == label);
    let outcome = match query.value("outcome") {
        None => None,
        Some(label) => Some(known(label).ok_or_else(|| Wrong::because("no such outcome"))?),
    };
    let limit = match query.value("limit").map(str::parse::<usize>) {
        None => LISTED,
        Some(Ok(limit)) => limit.min(MOST_LISTED),
        Some(Err(_)) => return Err(Wrong::because("limit is no number")),
    };
    let (endpoint, caller) = (query.value("endpoint"), query.value("caller"));
    let found = office.decisions.find(limit, |it| {
        outcome.is_none_or(|outcome| it.outcome == outcome)
            && endpoint.is_none_or(|name| it.endpoint == name.as_bytes())
            && caller.is_none_or(|name| it.caller == name.as_bytes())
    });
    Ok(told(office, found.into_iter()))
}

fn told(office: &Office, decisions: impl Iterator<Item = Decision>) -> Answer {
    let live = office.reloader.live().load();
    let kept = office.reloader.generations();
    let lines = |generation| {
        if live.generation == generation {
            return Some(live.key_lines());
        }
        let of_its_time = kept.iter().find(|it| it.number == generation);
        of_its_time.map(Generation::key_lines)
    };
    json(&Decided {
        decisions: decisions.map(|it| tell(lines(it.generation), it)).collect(),
    })
}

fn tell(lines: Option<Lines>, decision: Decision) -> Told {
    let millis = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
    Told {
        ts: rfc3339(decision.ts),
        recalled: recall(&decision, lines.as_ref()),
        request_id: decision.request_id,
        endpoint: decision.endpoint,
        contract: decision.contract,
        caller: decision.caller,
        rpc_method: decision.rpc_method,
        skill: decision.skill,
        outcome: decision.outcome.label(),
        why: decision.why,
        status: decision.status,
        rpc_code: decision.rpc_code,
        error_id: decision.error_id,
        quota: decision.quota,
        cost: decision.cost,
        limit_source: decision.limit_source,
        retry_after_ms: decision.retry_after_ms,
        normalized: decision.normalized,
        reported: decision.reported.iter().map(Step::name).collect(),
        stripped_query: decision.stripped_query,
        upstream: decision.upstream,
        duration_ms: millis(decision.duration),
        upstream_ms: decision.upstream_duration.map(millis),
        generation: decision.generation,
        generation_is_known: lines.is_some(),
    }
}
