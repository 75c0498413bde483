//! What a reader of OTLP sees of a call.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{ScopeSpans, Span};
use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::observe::Timestamp;

fn recorded() -> Recorded {
    Recorded {
        call: Context {
            trace: [1; 16],
            span: [2; 8],
            flags: 1,
        },
        parent: Some([3; 8]),
        exchange: Some(([4; 8], Duration::from_millis(2))),
    }
}

fn decoded(line: &Line<'_>, recorded: &Recorded) -> Vec<Span> {
    let (mut out, mut scratch) = (Vec::new(), Vec::new());
    let count = append(&mut out, &mut scratch, line, recorded);
    // As a reader of OTLP sees it.
    let spans = ScopeSpans::decode(&*out).unwrap().spans;
    assert_eq!(spans.len(), count);
    spans
}

fn attributes(span: &Span) -> BTreeMap<String, String> {
    let shown = |value: &Value| {
        if let Value::StringValue(text) = value {
            text.clone()
        } else if let Value::IntValue(number) = value {
            number.to_string()
        } else if let Value::DoubleValue(number) = value {
            number.to_string()
        } else {
            panic!("{value:?}")
        }
    };
    let pair = |it: &opentelemetry_proto::tonic::common::v1::KeyValue| {
        (
            it.key.clone(),
            shown(it.value.as_ref().unwrap().value.as_ref().unwrap()),
        )
    };
    span.attributes.iter().map(pair).collect()
}

fn line() -> Line<'static> {
    let mut line = Line::new(
        Timestamp::from_millisecond(1_796_057_603_042).unwrap(),
        Outcome::RateLimited,
    );
    line.request_id = Some(b"r9");
    line.client_ip = Some("10.0.0.7");
    line.protocol = Some("HTTP/2.0");
    line.method = Some("POST");
    line.host = Some(b"user:secret@lakeside.example.com:8443");
    line.path = Some("/a2a?key=secret");
    line.endpoint = Some("lakeside");
    line.contract = Some("aap/3.0");
    line.caller = Some("acme");
    line.rpc_method = Some(b"SendMessage");
    line.rpc_id = Some(b"secret");
    line.skill = Some(b"lead.submit");
    line.status = Some(200);
    line.rpc_code = Some(-32029);
    line.error_id = Some("0190");
    line.quota = Some("per-buyer");
    line.upstream = Some("dealer");
    line.duration = Duration::from_millis(5);
    line.upstream_duration = Some(Duration::from_micros(2500));
    line.user_agent = Some(b"buyer/1");
    line.generation = 7;
    line
}

#[test]
fn two_spans_that_belong_together() {
    let spans = decoded(&line(), &recorded());
    let [call, exchange] = &*spans else { panic!() };
    assert_eq!(
        (&*call.trace_id, &*call.span_id, &*call.parent_span_id),
        (&[1; 16][..], &[2; 8][..], &[3; 8][..])
    );
    assert_eq!(
        (&*exchange.trace_id, &*exchange.parent_span_id),
        (&[1; 16][..], &[2; 8][..])
    );
    assert_eq!(&*exchange.span_id, &[4; 8]);
    assert_eq!((&*call.name, call.kind), ("POST lakeside", 2));
    assert_eq!((&*exchange.name, exchange.kind), ("POST", 3));
    let start = 1_796_057_603_042_000_000;
    assert_eq!(
        (call.start_time_unix_nano, call.end_time_unix_nano),
        (start, start + 5_000_000)
    );
    assert_eq!(
        (exchange.start_time_unix_nano, exchange.end_time_unix_nano),
        (start + 2_000_000, start + 5_000_000)
    );
    assert_eq!((call.flags, exchange.flags), (0x301, 0x101));
    let told = attributes(call);
    for (key, value) in [
        ("client.address", "10.0.0.7"),
        ("error.type", "rate_limited"),
        ("forecourt.caller", "acme"),
        ("forecourt.contract", "aap/3.0"),
        ("forecourt.endpoint", "lakeside"),
        ("forecourt.error_id", "0190"),
        ("forecourt.generation", "7"),
        ("forecourt.outcome", "rate_limited"),
        ("forecourt.quota", "per-buyer"),
        ("forecourt.request_id", "r9"),
        ("forecourt.skill", "lead.submit"),
        ("http.request.method", "POST"),
        ("http.response.status_code", "200"),
        ("network.protocol.version", "2"),
        ("rpc.jsonrpc.error_code", "-32029"),
        ("rpc.method", "SendMessage"),
        ("rpc.system", "jsonrpc"),
        ("server.address", "lakeside.example.com"),
        ("url.path", "/a2a"),
        ("user_agent.original", "buyer/1"),
    ] {
        assert_eq!(told.get(key).map(|it| &**it), Some(value), "{key}");
    }
    assert_eq!(told.len(), 20, "{told:?}");
    let told = attributes(exchange);
    for (key, value) in [
        ("error.type", "rate_limited"),
        ("forecourt.contract", "aap/3.0"),
        ("forecourt.endpoint", "lakeside"),
        ("forecourt.outcome", "rate_limited"),
        ("forecourt.skill", "lead.submit"),
        ("forecourt.upstream", "dealer"),
        ("http.request.method", "POST"),
        ("http.response.status_code", "200"),
        ("rpc.method", "SendMessage"),
        ("rpc.system", "jsonrpc"),
    ] {
        assert_eq!(told.get(key).map(|it| &**it), Some(value), "{key}");
    }
    assert_eq!(attributes(exchange)["forecourt.upstream_ms"], "2.5");
    assert!(!format!("{spans:?}").contains("secret"));
    // A caller's mistake is no failure of ours.
    assert_eq!(call.status, None);
}

#[test]
fn failures_are_marked() {
    let mut line = line();
    line.outcome = Outcome::UpstreamTimeout;
    line.why = Some("no answer in 120 s");
    let spans = decoded(&line, &recorded());
    for span in spans {
        let status = span.status.unwrap();
        assert_eq!((status.code, &*status.message), (2, "no answer in 120 s"));
    }
    line.why = None;
    line.outcome = Outcome::UpstreamError;
    // An error of the dealer's own: a failure on the way there, and none here.
    let spans = decoded(&line, &recorded());
    assert_eq!(spans[0].status, None);
    assert_eq!(spans[1].status.clone().unwrap().code, 2);
    line.status = Some(503);
    assert_eq!(
        decoded(&line, &recorded())[0].status.clone().unwrap().code,
        2
    );
}

#[test]
fn a_request_that_went_nowhere_has_one_span() {
    let line = Line::new(Timestamp::UNIX_EPOCH, Outcome::NoRoute);
    let mut recorded = recorded();
    recorded.exchange = None;
    recorded.parent = None;
    let spans = decoded(&line, &recorded);
    assert_eq!(spans.len(), 1);
    assert_eq!(
        (&*spans[0].name, &*spans[0].parent_span_id),
        ("HTTP", &[][..])
    );
    assert_eq!(spans[0].flags, 0x101);
}

#[test]
fn what_whoever_calls_made_up_is_no_name() {
    let mut line = line();
    let long = "X".repeat(9000);
    for (method, name, told) in [("GET", "GET", "GET"), (&*long, "HTTP", "_OTHER")] {
        line.method = Some(method);
        let spans = decoded(&line, &recorded());
        assert_eq!(spans[0].name, format!("{name} lakeside"));
        assert_eq!(spans[1].name, name);
        for span in &spans {
            assert_eq!(attributes(span)["http.request.method"], told);
        }
    }
}

#[test]
fn a_host_is_told_without_its_port_and_whoever_stands_before_it() {
    let mut line = line();
    for (host, told) in [
        ("gw.example", "gw.example"),
        ("gw.example:80", "gw.example"),
        ("[::1]:80", "[::1]"),
        ("[::1]", "[::1]"),
        ("a:b@gw.example:1", "gw.example"),
        (":1", ""),
        ("7", "7"),
        ("", ""),
    ] {
        line.host = Some(host.as_bytes());
        assert_eq!(
            attributes(&decoded(&line, &recorded())[0])["server.address"],
            told,
            "{host}"
        );
    }
}

#[test]
fn a_cut_leaves_no_half_letter() {
    let mut line = line();
    let long = format!("{}\u{e9}", "x".repeat(MOST - 1));
    line.user_agent = Some(long.as_bytes());
    let told = attributes(&decoded(&line, &recorded())[0]);
    assert_eq!(told["user_agent.original"], "x".repeat(MOST - 1));
}

proptest! {
    #[test]
    fn whatever_came_in_is_told_in_valid_text_of_bounded_length(
        host: Vec<u8>,
        method: Vec<u8>,
        why in ".{0,400}",
        path in ".{0,400}",
    ) {
        let mut line = Line::new(Timestamp::UNIX_EPOCH, Outcome::Internal);
        line.host = Some(&host);
        line.rpc_method = Some(&method);
        line.path = Some(&path);
        line.why = Some(&why);
        for span in decoded(&line, &recorded()) {
            for value in attributes(&span).values() {
                prop_assert!(value.len() <= MOST + 3);
            }
            prop_assert!(span.status.unwrap().message.len() <= MOST);
        }
    }
}

#[test]
fn texts_of_every_length_are_whole() {
    for length in 0..=MOST {
        let text = "x".repeat(length);
        let mut line = Line::new(Timestamp::UNIX_EPOCH, Outcome::Ok);
        line.caller = Some(&text);
        assert_eq!(
            attributes(&decoded(&line, &recorded())[0])["forecourt.caller"],
            text
        );
    }
}
