//! Decides what one access-log line says, and in what order.
//!
//! A line is borrowed from the request and formatted at once. It has no field for a body, a key or
//! a header value that identifies; of a path it takes what stands before the query, which may carry
//! keys. Text from traffic is cut to a length and escaped.

use std::time::Duration;

use super::clock::{Rfc3339, Timestamp};
use super::json::{Object, key};
use crate::protocol::{Noted, Outcome, Step, Steps};

/// The most bytes of each text from traffic.
pub(super) mod most {
    pub(in crate::observe) const REQUEST_ID: usize = 128;
    pub(in crate::observe) const METHOD: usize = 32;
    pub(in crate::observe) const HOST: usize = 255;
    pub(in crate::observe) const PATH: usize = 1024;
    pub(in crate::observe) const RPC_METHOD: usize = 64;
    pub(in crate::observe) const RPC_ID: usize = 64;
    pub(in crate::observe) const SKILL: usize = 64;
    pub(in crate::observe) const USER_AGENT: usize = 128;
    pub(in crate::observe) const WHY: usize = 256;
}

/// One request, when its last byte is out. What is `None` or empty is left out of the line.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    /// When the request came.
    pub ts: Timestamp,
    /// The id that is also sent upstream and back.
    pub request_id: Option<&'a [u8]>,
    /// Its trace in hexadecimal: ours where spans are exported, else the caller's.
    pub trace_id: Option<&'a str>,
    /// Its span in that trace.
    pub span_id: Option<&'a str>,
    /// Who connected, by the rules for trusted proxies: an address as text.
    pub client_ip: Option<&'a str>,
    /// Who connected, where that may be another: a proxy.
    pub peer_ip: Option<&'a str>,
    /// The listener's name.
    pub listener: Option<&'a str>,
    /// `TLSv1.2`, `TLSv1.3`; none in clear.
    pub tls_version: Option<&'a str>,
    /// The name that the client asked for in its handshake.
    pub sni: Option<&'a str>,
    /// `HTTP/1.1`, `HTTP/2.0`.
    pub protocol: Option<&'a str>,
    /// The HTTP method.
    pub method: Option<&'a str>,
    /// The host that was asked for.
    pub host: Option<&'a [u8]>,
    /// The path that was asked for. A query is cut off.
    pub path: Option<&'a str>,
    /// The endpoint's name.
    pub endpoint: Option<&'a str>,
    /// The contract's name.
    pub contract: Option<&'a str>,
    /// The caller's loggable name, never the key.
    pub caller: Option<&'a str>,
    /// The JSON-RPC method.
    pub rpc_method: Option<&'a [u8]>,
    /// The JSON-RPC id as it stood in the request; the quotes of a string are left out.
    pub rpc_id: Option<&'a [u8]>,
    /// The AAP skill.
    pub skill: Option<&'a [u8]>,
    /// What was supplied under the two A2A headers, as far as a log tells. Nothing of it where the
    /// policy does not apply.
    pub supplied: Noted,
    /// The names of the headers that were filled in.
    pub normalized: &'a [&'a str],
    /// The HTTP status that was sent.
    pub status: Option<u16>,
    /// The JSON-RPC error number that was sent, if it was ours.
    pub rpc_code: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// The `error_id` of our answer.
    pub error_id: Option<&'a str>,
    /// The name of the quota that refused.
    pub quota: Option<&'a str>,
    /// What the call counted there, where that is not 1.
    pub cost: Option<u32>,
    /// On whose buckets that was decided.
    pub limit_source: Option<&'a str>,
    /// How much the caller has left of its tightest quota, where quotas were asked.
    pub limit_remaining: Option<u32>,
    /// The wait that was told, in ms.
    pub retry_after_ms: Option<u64>,
    /// The steps in report mode that would have refused.
    pub reported: Steps,
    /// Whether query parameters named like the A2A headers were not forwarded.
    pub stripped_query: bool,
    /// Why, in words of ours, where the outcome alone does not tell.
    pub why: Option<&'a str>,
    /// The upstream's name.
    pub upstream: Option<&'a str>,
    /// How often the request was put on a connection, where that is not once.
    pub attempts: Option<u8>,
    /// Body bytes received from the client.
    pub bytes_in: u64,
    /// Body bytes sent to the client.
    pub bytes_out: u64,
    /// From the request's head to the last byte of the answer.
    pub duration: Duration,
    /// From handing the request over to the head of the upstream's answer.
    pub upstream_duration: Option<Duration>,
    /// From the request's head to handing it over.
    pub overhead: Option<Duration>,
    /// The client's `User-Agent`.
    pub user_agent: Option<&'a [u8]>,
    /// The generation of the configuration that decided.
    pub generation: u64,
    /// The first digits of its hash.
    pub config_hash: [u8; 8],
    /// Of lines like this, so many in a million are written; none where all are.
    pub sampled: Option<u32>,
}

impl Line<'_> {
    /// A line that says when and how, and nothing else yet.
    #[must_use]
    pub const fn new(ts: Timestamp, outcome: Outcome) -> Self {
        Self {
            ts,
            request_id: None,
            trace_id: None,
            span_id: None,
            client_ip: None,
            peer_ip: None,
            listener: None,
            tls_version: None,
            sni: None,
            protocol: None,
            method: None,
            host: None,
            path: None,
            endpoint: None,
            contract: None,
            caller: None,
            rpc_method: None,
            rpc_id: None,
            skill: None,
            supplied: Noted::NOTHING,
            normalized: &[],
            status: None,
            rpc_code: None,
            outcome,
            error_id: None,
            quota: None,
            cost: None,
            limit_source: None,
            limit_remaining: None,
            retry_after_ms: None,
            reported: Steps::NONE,
            stripped_query: false,
            why: None,
            upstream: None,
            attempts: None,
            bytes_in: 0,
            bytes_out: 0,
            duration: Duration::ZERO,
            upstream_duration: None,
            overhead: None,
            user_agent: None,
            generation: 0,
            config_hash: *b"00000000",
            sampled: None,
        }
    }

    /// Appends the line as one JSON object and a line feed.
    pub fn append(&self, out: &mut Vec<u8>, spelled: &mut Rfc3339) {
        let mut line = Object::new(out);
        line.plain(key!("ts"), |out| spelled.append(out, self.ts));
        bytes(
            &mut line,
            key!("request_id"),
            self.request_id,
            most::REQUEST_ID,
        );
        word(&mut line, key!("trace_id"), self.trace_id);
        word(&mut line, key!("span_id"), self.span_id);
        word(&mut line, key!("client_ip"), self.client_ip);
        word(&mut line, key!("peer_ip"), self.peer_ip);
        word(&mut line, key!("listener"), self.listener);
        word(&mut line, key!("tls_version"), self.tls_version);
        text(&mut line, key!("sni"), self.sni, most::HOST);
        word(&mut line, key!("protocol"), self.protocol);
        text(&mut line, key!("method"), self.method, most::METHOD);
        bytes(
            &mut line,
            key!("host"),
            self.host.map(without_user),
            most::HOST,
        );
        text(
            &mut line,
            key!("path"),
            self.path.map(without_query),
            most::PATH,
        );
        word(&mut line, key!("endpoint"), self.endpoint);
        word(&mut line, key!("contract"), self.contract);
        word(&mut line, key!("caller"), self.caller);
        bytes(
            &mut line,
            key!("rpc_method"),
            self.rpc_method,
            most::RPC_METHOD,
        );
        let rpc_id = self.rpc_id.map(without_quotes);
        bytes(&mut line, key!("rpc_id"), rpc_id, most::RPC_ID);
        bytes(&mut line, key!("skill"), self.skill, most::SKILL);
        word(&mut line, key!("a2a_version"), self.supplied.version());
        if let Some(listed) = self.supplied.extensions() {
            line.list_or_empty(key!("a2a_extensions"), listed);
            if self.supplied.others() > 0 {
                line.number(key!("other_extensions"), self.supplied.others().into());
            }
        }
        line.list(key!("normalized"), self.normalized.iter().copied());
        if let Some(status) = self.status {
            line.number(key!("status"), u64::from(status));
        }
        if let Some(code) = self.rpc_code {
            line.signed(key!("rpc_code"), code);
        }
        word(&mut line, key!("outcome"), Some(self.outcome.label()));
        word(&mut line, key!("error_id"), self.error_id);
        word(&mut line, key!("quota"), self.quota);
        if let Some(cost) = self.cost {
            line.number(key!("cost"), cost.into());
        }
        word(&mut line, key!("limit_source"), self.limit_source);
        if let Some(remaining) = self.limit_remaining {
            line.number(key!("limit_remaining"), remaining.into());
        }
        if let Some(wait) = self.retry_after_ms {
            line.number(key!("retry_after_ms"), wait);
        }
        let steps = Step::ALL.into_iter();
        let reported = steps.filter(|step| self.reported.contains(*step));
        line.list(key!("reported"), reported.map(Step::name));
        if self.stripped_query {
            line.flag(key!("stripped_query"));
        }
        text(&mut line, key!("why"), self.why, most::WHY);
        word(&mut line, key!("upstream"), self.upstream);
        if let Some(attempts) = self.attempts {
            line.number(key!("attempts"), attempts.into());
        }
        line.number(key!("bytes_in"), self.bytes_in);
        line.number(key!("bytes_out"), self.bytes_out);
        line.millis(key!("duration_ms"), self.duration);
        if let Some(duration) = self.upstream_duration {
            line.millis(key!("upstream_ms"), duration);
        }
        if let Some(overhead) = self.overhead {
            line.millis(key!("overhead_ms"), overhead);
        }
        bytes(
            &mut line,
            key!("user_agent"),
            self.user_agent,
            most::USER_AGENT,
        );
        line.number(key!("generation"), self.generation);
        line.text(
            key!("config_hash"),
            &self.config_hash,
            self.config_hash.len(),
        );
        if let Some(millionths) = self.sampled {
            line.percent(key!("sampled"), millionths);
        }
        line.close();
    }
}

/// A configured name, a constant or a token: the configuration and the HTTP parser let nothing into
/// them that JSON would have to escape.
#[inline(always)]
fn word(line: &mut Object<'_>, key: &'static str, value: Option<&str>) {
    if let Some(value) = value {
        line.word(key, value);
    }
}

fn text(line: &mut Object<'_>, key: &'static str, value: Option<&str>, most: usize) {
    bytes(line, key, value.map(str::as_bytes), most);
}

#[inline(always)]
fn bytes(line: &mut Object<'_>, key: &'static str, value: Option<&[u8]>, most: usize) {
    if let Some(value) = value {
        line.text(key, value, most);
    }
}

pub(super) fn without_query(path: &str) -> &str {
    path.split_once(['?', '#']).map_or(path, |(path, _)| path)
}

/// A `Host` with user and password is refused, and what stands before its `@` is told to nobody.
fn without_user(host: &[u8]) -> &[u8] {
    let user = host.iter().rposition(|byte| *byte == b'@');
    user.map_or(host, |at| host.get(at + 1..).unwrap_or_default())
}

fn without_quotes(id: &[u8]) -> &[u8] {
    match id {
        [b'"', inner @ .., b'"'] => inner,
        id => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn full(text: &str) -> Line<'_> {
        Line {
            request_id: Some(text.as_bytes()),
            client_ip: Some("192.0.2.7"),
            peer_ip: Some("10.0.0.1"),
            listener: Some("public"),
            tls_version: Some("TLSv1.3"),
            sni: Some("lakeside.example.com"),
            protocol: Some("HTTP/1.1"),
            method: Some("POST"),
            host: Some(b"user:secret@lakeside.example.com"),
            path: Some("/a2a?key=secret"),
            endpoint: Some("lakeside"),
            contract: Some("aap/3.0"),
            caller: Some("x-api-key#1a2b3c4d"),
            rpc_method: Some(b"SendMessage"),
            rpc_id: Some(b"\"req-1\""),
            skill: Some(b"lead.submit"),
            supplied: Noted::read(Some("1.0"), Some(["aap/3.0"].into_iter()), 2),
            normalized: &["a2a-version", "a2a-extensions"],
            status: Some(200),
            rpc_code: Some(-32000),
            error_id: Some("0190b3a4-0000-7000-8000-000000000000"),
            quota: Some("per-buyer"),
            cost: Some(10),
            limit_source: Some("local"),
            limit_remaining: Some(7),
            retry_after_ms: Some(1500),
            reported: [Step::Version, Step::Quota].into_iter().collect(),
            stripped_query: true,
            why: Some("connection closed"),
            upstream: Some("lakeside"),
            attempts: Some(2),
            bytes_in: 1024,
            bytes_out: 2048,
            duration: Duration::from_micros(12_345),
            upstream_duration: Some(Duration::from_micros(11_040)),
            overhead: Some(Duration::from_micros(1_305)),
            user_agent: Some(text.as_bytes()),
            generation: 3,
            config_hash: *b"1f40fc92",
            sampled: Some(105_000),
            ..Line::new(
                Timestamp::from_millisecond(1_796_057_603_042).unwrap(),
                Outcome::RateLimited,
            )
        }
    }

    fn written(line: &Line<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        line.append(&mut out, &mut Rfc3339::default());
        out
    }

    #[test]
    fn every_field_in_its_order() {
        let line = written(&full("curl/8"));
        let expected = r#"{"ts":"2026-11-30T16:53:23.042Z","request_id":"curl/8","client_ip":"192.0.2.7","peer_ip":"10.0.0.1","listener":"public","tls_version":"TLSv1.3","sni":"lakeside.example.com","protocol":"HTTP/1.1","method":"POST","host":"lakeside.example.com","path":"/a2a","endpoint":"lakeside","contract":"aap/3.0","caller":"x-api-key#1a2b3c4d","rpc_method":"SendMessage","rpc_id":"req-1","skill":"lead.submit","a2a_version":"1.0","a2a_extensions":["aap/3.0"],"other_extensions":2,"normalized":["a2a-version","a2a-extensions"],"status":200,"rpc_code":-32000,"outcome":"rate_limited","error_id":"0190b3a4-0000-7000-8000-000000000000","quota":"per-buyer","cost":10,"limit_source":"local","limit_remaining":7,"retry_after_ms":1500,"reported":["version","quota"],"stripped_query":true,"why":"connection closed","upstream":"lakeside","attempts":2,"bytes_in":1024,"bytes_out":2048,"duration_ms":12.345,"upstream_ms":11.040,"overhead_ms":1.305,"user_agent":"curl/8","generation":3,"config_hash":"1f40fc92","sampled":10.5}"#;
        assert_eq!(String::from_utf8(line).unwrap(), format!("{expected}\n"));
    }

    #[test]
    fn what_is_absent_is_left_out() {
        let line = written(&Line::new(Timestamp::UNIX_EPOCH, Outcome::NoRoute));
        let value: Value = serde_json::from_slice(&line).unwrap();
        let expected = json!({
            "ts": "1970-01-01T00:00:00.000Z", "outcome": "no_route", "bytes_in": 0,
            "bytes_out": 0, "duration_ms": 0.0, "generation": 0, "config_hash": "00000000",
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn text_from_traffic_is_cut() {
        let long = "x".repeat(100_000);
        let line = written(&Line {
            host: Some(long.as_bytes()),
            path: Some(&long),
            method: Some(&long),
            rpc_method: Some(long.as_bytes()),
            rpc_id: Some(long.as_bytes()),
            skill: Some(long.as_bytes()),
            ..full(&long)
        });
        let value: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["rpc_id"].as_str().unwrap().len(), 64);
        assert_eq!(value["user_agent"].as_str().unwrap().len(), 128);
        assert!(line.len() < 3000, "{}", line.len());
    }

    proptest! {
        #[test]
        fn any_line_is_one_line_of_json(text in any::<String>(), id in any::<Vec<u8>>()) {
            let line = written(&Line { rpc_id: Some(&id), path: Some(&text), ..full(&text) });
            prop_assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            let value: Value = serde_json::from_slice(&line).unwrap();
            prop_assert!(text.starts_with(value["user_agent"].as_str().unwrap()));
            prop_assert!(!value["path"].as_str().unwrap().contains('?'));
        }
    }
}
