//! Traces: whose context travels on, and what a collector is told of a real call.

use std::collections::BTreeMap;
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use prost::Message;

use crate::support::call::{call, search};
use crate::support::gateway::{dealer, dealer_at, dealer_with};
use crate::support::http2::Http2;
use crate::support::tls::{Authority, Front};
use crate::support::upstream::{Arrival, Nobody, answer};
use crate::support::{Gateway, Post, Upstream, wait_until};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

fn parent(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

fn post() -> Post {
    Post::to("/a2a")
}

/// A collector that takes everything and remembers it.
struct Collector {
    upstream: Upstream,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    spans: Vec<Span>,
    resources: Vec<Resource>,
    metrics: Vec<ExportMetricsServiceRequest>,
    requests: Vec<Arrival>,
}

impl Collector {
    fn start() -> Self {
        Self::answering(vec![answer(
            "200 OK",
            "Content-Type: application/x-protobuf\r\n",
            "",
        )])
    }

    /// Answers in this way, the last time and again.
    fn answering(answers: Vec<Vec<u8>>) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let theirs = Arc::clone(&seen);
        let next = Mutex::new(0_usize);
        let upstream = Upstream::scripted(move |mut peer| {
            while let Some(arrival) = peer.request() {
                let place = {
                    let mut next = next.lock();
                    *next += 1;
                    (*next - 1).min(answers.len() - 1)
                };
                let bytes = &answers[place];
                if bytes.starts_with(b"HTTP/1.1 200") {
                    theirs.lock().take(&arrival);
                }
                theirs.lock().requests.push(arrival);
                if peer.try_send(bytes).is_err() {
                    return;
                }
            }
        });
        Self { upstream, seen }
    }

    fn url(&self) -> String {
        format!("http://{}", self.upstream.address)
    }

    /// The spans of a gateway that has told everything.
    fn spans_of(&self, gateway: &Gateway) -> Vec<Span> {
        gateway.inner.flush_telemetry();
        self.seen.lock().spans.clone()
    }
}

impl Seen {
    fn take(&mut self, arrival: &Arrival) {
        assert_eq!(arrival.head.all("content-type"), ["application/x-protobuf"]);
        match arrival.target() {
            "/v1/traces" => {
                let request = ExportTraceServiceRequest::decode(&*arrival.body).unwrap();
                for of_resource in request.resource_spans {
                    self.resources.extend(of_resource.resource);
                    for scoped in of_resource.scope_spans {
                        assert_eq!(scoped.scope.unwrap().name, "forecourt");
                        self.spans.extend(scoped.spans);
                    }
                }
            }
            "/v1/metrics" => {
                self.metrics
                    .push(ExportMetricsServiceRequest::decode(&*arrival.body).unwrap());
            }
            other => panic!("{other}"),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn told(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let shown = |it: &KeyValue| {
        let value = it.value.as_ref().unwrap().value.as_ref().unwrap();
        let value = if let Value::StringValue(text) = value {
            text.clone()
        } else {
            format!("{value:?}")
        };
        (it.key.clone(), value)
    };
    attributes.iter().map(shown).collect()
}

/// A gateway that exports to this collector.
fn exporting(collector: &Collector, configuration: &str, more: &[(&str, &str)]) -> Gateway {
    let url = collector.url();
    let mut variables = vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*url),
        // Only when it is asked to: the tests do.
        ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
    ];
    variables.extend_from_slice(more);
    Gateway::start_in_environment(configuration, &variables)
}

/// The two spans of the one call, the call's first.
fn pair(spans: Vec<Span>) -> (Span, Span) {
    let [call, exchange] = <[Span; 2]>::try_from(spans).unwrap();
    assert_eq!((call.kind, exchange.kind), (2, 3));
    assert_eq!(exchange.parent_span_id, call.span_id);
    assert_eq!(exchange.trace_id, call.trace_id);
    assert!(exchange.start_time_unix_nano >= call.start_time_unix_nano);
    (call, exchange)
}

#[test]
fn a_valid_context_passes_byte_for_byte_and_no_other_does() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let good = parent("01");
    let arrives = |post: Post| {
        let answered = gateway.ask(post.body(call("1")).bytes());
        assert_eq!(answered.status, 200);
        let head = upstream.take().head;
        let all = |name| {
            head.all(name)
                .iter()
                .map(|it| (*it).to_owned())
                .collect::<Vec<_>>()
        };
        (all("traceparent"), all("tracestate"))
    };
    // Also of a version that is yet to come, with all of it.
    let later = format!("01-{TRACE}-{CALLER}-ff-more");
    for valid in [&good, &parent("00"), &later] {
        let (parents, states) = arrives(
            post()
                .field("Traceparent", valid)
                .field("tracestate", "a=1, b=2"),
        );
        assert_eq!(
            (parents, states),
            (vec![valid.clone()], vec!["a=1, b=2".to_owned()])
        );
    }
    let several = post()
        .field("traceparent", &good)
        .field("tracestate", "a=1")
        .field("TraceState", "b=2");
    assert_eq!(arrives(several).1, ["a=1", "b=2"]);
    let (parents, states) = arrives(
        post()
            .field("traceparent", &good)
            .field("tracestate", "a=1,a=2"),
    );
    assert_eq!((parents.len(), states.len()), (1, 0));

    for invalid in [
        good.to_uppercase(),
        good.replacen("00", "ff", 1),
        format!("00-{}-{CALLER}-01", "0".repeat(32)),
        "x".to_owned(),
    ] {
        let (parents, states) = arrives(
            post()
                .field("traceparent", &invalid)
                .field("tracestate", "a=1"),
        );
        assert_eq!((parents.len(), states.len()), (0, 0), "{invalid}");
    }
    let twice = post()
        .field("traceparent", &good)
        .field("traceparent", &good);
    assert_eq!(arrives(twice).0, [""; 0]);
    assert_eq!(arrives(post().field("tracestate", "a=1")), (vec![], vec![]));
    // Nothing is invented.
    assert_eq!(arrives(post()), (vec![], vec![]));
}

#[test]
fn the_log_names_the_trace() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    gateway.ask(
        post()
            .field("traceparent", &parent("01"))
            .body(call("1"))
            .bytes(),
    );
    let line = gateway.last_line();
    assert_eq!(
        (&line["trace_id"], &line["span_id"]),
        (&TRACE.into(), &CALLER.into())
    );
    // A refusal as well.
    let refused = post()
        .field("traceparent", &parent("01"))
        .field("A2A-Version", "99.0");
    gateway.ask(refused.body(call("1")).bytes());
    assert_eq!(gateway.last_line()["trace_id"], TRACE);
    gateway.ask(post().body(call("1")).bytes());
    assert!(gateway.last_line().get("trace_id").is_none());
}

#[test]
fn a_collector_receives_the_joined_spans_of_a_call() {
    let collector = Collector::start();
    let upstream = Upstream::recording();
    let more = [
        ("OTEL_SERVICE_NAME", "front"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=collector-secret"),
    ];
    let gateway = exporting(&collector, &dealer(&upstream), &more);
    let asked = post()
        .field("traceparent", &parent("01"))
        .field("tracestate", "a=1")
        .body(search("7"));
    assert_eq!(gateway.ask(asked.bytes()).status, 200);

    let (call, exchange) = pair(collector.spans_of(&gateway));
    assert_eq!(hex(&call.trace_id), TRACE);
    assert_eq!(hex(&call.parent_span_id), CALLER);
    // The dealer's parent is the span of the way to it.
    let arrived = upstream.last().head;
    let wanted = format!("00-{TRACE}-{}-01", hex(&exchange.span_id));
    assert_eq!(arrived.all("traceparent"), [&*wanted]);
    assert_eq!(arrived.all("tracestate"), ["a=1"]);
    let line = gateway.last_line();
    assert_eq!(line["trace_id"], TRACE);
    assert_eq!(line["span_id"], *hex(&call.span_id));

    assert_eq!(call.name, "POST lakeside");
    let attributes = told(&call.attributes);
    for (key, value) in [
        ("forecourt.endpoint", "lakeside"),
        ("forecourt.contract", "aap/3.0"),
        ("rpc.method", "SendMessage"),
        ("forecourt.skill", "inventory.search"),
        ("forecourt.outcome", "ok"),
        ("http.response.status_code", "IntValue(200)"),
        ("url.path", "/a2a"),
    ] {
        assert_eq!(attributes.get(key).map(|it| &**it), Some(value), "{key}");
    }
    assert_eq!(told(&exchange.attributes)["forecourt.upstream"], "lakeside");

    let seen = collector.seen.lock();
    let resource = told(&seen.resources[0].attributes);
    assert_eq!(resource["service.name"], "front");
    assert_eq!(seen.requests[0].head.all("api-key"), ["collector-secret"]);
    // What the operator sets there is shown nowhere.
    for page in ["/config", "/status", "/metrics"] {
        assert!(
            !gateway.admin_get(page).text().contains("collector-secret"),
            "{page}"
        );
    }
}

#[test]
fn what_does_not_go_well_is_told_as_well() {
    let collector = Collector::start();
    let nobody = Nobody::new();
    let limited = "[quota.one]\nper = \"caller\"\nrate = \"1/min\"\nburst = 1\n";
    let configuration = format!(
        "{limited}{}",
        dealer_at(nobody.address, "", "quotas = [\"one\"]")
    );
    let gateway = exporting(&collector, &configuration, &[]);
    // Refused by its headers, failed at the dealer, refused by its quota, and not found.
    gateway.ask(Post::to("/nowhere").body(call("1")).bytes());
    gateway.ask(post().body(call("2")).bytes());
    gateway.ask(post().body(call("3")).bytes());
    let spans = collector.spans_of(&gateway);
    let calls: Vec<_> = spans.iter().filter(|span| span.kind == 2).collect();
    let outcomes: Vec<_> = calls
        .iter()
        .map(|span| told(&span.attributes)["error.type"].clone())
        .collect();
    assert_eq!(
        outcomes,
        ["no_route", "upstream_unreachable", "rate_limited"]
    );
    let codes: Vec<_> = calls
        .iter()
        .map(|span| span.status.as_ref().map(|it| it.code))
        .collect();
    assert_eq!(codes, [None, Some(2), None]);
    // Only one of them went anywhere.
    let exchanges: Vec<_> = spans.iter().filter(|span| span.kind == 3).collect();
    assert_eq!(exchanges.len(), 1);
    assert_eq!(exchanges[0].parent_span_id, calls[1].span_id);
    assert_eq!(told(&calls[2].attributes)["forecourt.quota"], "one");
    // Each began a trace of its own.
    let traces: std::collections::BTreeSet<_> = calls.iter().map(|span| &span.trace_id).collect();
    assert_eq!(traces.len(), 3);
}

#[test]
fn an_invalid_context_begins_a_new_trace() {
    let collector = Collector::start();
    let upstream = Upstream::recording();
    let gateway = exporting(&collector, &dealer(&upstream), &[]);
    let asked = post()
        .field("traceparent", "00-zz")
        .field("tracestate", "a=1");
    gateway.ask(asked.body(call("1")).bytes());
    let (call, exchange) = pair(collector.spans_of(&gateway));
    assert!(call.parent_span_id.is_empty());
    let arrived = upstream.last().head;
    let wanted = format!("00-{}-{}-03", hex(&call.trace_id), hex(&exchange.span_id));
    assert_eq!(arrived.all("traceparent"), [&*wanted]);
    assert_eq!(arrived.all("tracestate"), [""; 0]);
}

#[test]
fn who_samples_decides_and_the_dealer_is_told() {
    let upstream = Upstream::recording();
    for (sampler, flags, recorded) in [
        ("parentbased_always_on", "00", 0),
        ("parentbased_always_off", "01", 2),
        ("always_off", "01", 0),
        ("always_on", "00", 2),
    ] {
        let collector = Collector::start();
        let gateway = exporting(
            &collector,
            &dealer(&upstream),
            &[("OTEL_TRACES_SAMPLER", sampler)],
        );
        let asked = post().field("traceparent", &parent(flags)).body(call("1"));
        assert_eq!(gateway.ask(asked.bytes()).status, 200);
        assert_eq!(collector.spans_of(&gateway).len(), recorded, "{sampler}");
        let arrived = upstream.take().head.one("traceparent").unwrap().to_owned();
        let is_sampled = arrived.ends_with("-01");
        assert_eq!(is_sampled, recorded > 0, "{sampler} {arrived}");
        // The log names what can be found: the caller's trace, recorded here or not.
        assert_eq!(gateway.last_line()["trace_id"], TRACE);
        gateway.post(call("2"));
        let is_found = gateway.last_line().get("trace_id").is_some();
        assert_eq!(is_found, sampler.ends_with("always_on"), "{sampler}");
        upstream.take();
        assert!(
            arrived.contains(TRACE) && !arrived.contains(CALLER),
            "{arrived}"
        );
    }
}

#[test]
fn the_span_of_a_stream_ends_with_the_stream() {
    let collector = Collector::start();
    let upstream = Upstream::manual();
    let gateway = exporting(&collector, &dealer(&upstream), &[]);
    let mut client = gateway.client();
    client.send(post().body(call("1")).bytes());
    let mut dealer = upstream.accept();
    dealer.request().unwrap();
    dealer.send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    dealer.chunk("data: 1\n\n");
    client.head();
    client.chunk().unwrap();
    assert_eq!(collector.spans_of(&gateway), []);
    dealer.send("0\r\n\r\n");
    assert_eq!(client.chunk().unwrap(), None);
    wait_until("the stream's spans are told", || {
        collector.spans_of(&gateway).len() == 2
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http2_as_well() {
    let collector = Collector::start();
    let upstream = Upstream::recording();
    let gateway = exporting(&collector, &dealer(&upstream), &[]);
    let http2 = Http2::connect(gateway.address()).await;
    let request = Http2::call().header("traceparent", parent("01"));
    assert_eq!(http2.ask(request, &call("1")).await.status(), 200);
    let spans = tokio::task::spawn_blocking(move || collector.spans_of(&gateway))
        .await
        .unwrap();
    let (call, _) = pair(spans);
    assert_eq!(hex(&call.parent_span_id), CALLER);
    assert_eq!(told(&call.attributes)["network.protocol.version"], "2");
}

#[test]
fn over_tls_to_the_collector() {
    let collector = Collector::start();
    let upstream = Upstream::recording();
    let authority = Authority::new("roots");
    let own = authority.issue(&["localhost"]);
    let front = Front::new(collector.upstream.address, &own, None);
    let directory = tempfile::tempdir().unwrap();
    let roots = directory.path().join("roots.pem");
    std::fs::write(&roots, authority.pem()).unwrap();
    let port = front.address.port();
    let url = format!("https://localhost:{port}");
    let gateway = Gateway::start_in_environment(
        &dealer(&upstream),
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &url),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", roots.to_str().unwrap()),
        ],
    );
    gateway.ask(post().body(call("1")).bytes());
    pair(collector.spans_of(&gateway));
}

#[test]
fn a_mistake_in_telemetry_keeps_nobody_from_being_served() {
    let upstream = Upstream::recording();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere.pem"),
        ("OTEL_METRICS_EXPORTER", "otlp"),
    ];
    let gateway = Gateway::start_in_environment(&dealer(&upstream), &variables);
    assert_eq!(gateway.post(call("1")).status, 200);
    assert!(upstream.last().head.all("traceparent").is_empty());
}

#[test]
fn a_collector_that_is_away_costs_its_spans_and_nothing_else() {
    let upstream = Upstream::recording();
    let nobody = Nobody::new();
    let url = format!("http://{}", nobody.address);
    let gateway = Gateway::start_in_environment(
        &dealer(&upstream),
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &url),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "10"),
            ("OTEL_BSP_EXPORT_TIMEOUT", "1"),
        ],
    );
    for id in 0..20 {
        assert_eq!(gateway.post(call(&id.to_string())).status, 200);
    }
    gateway.inner.flush_telemetry();
    wait_until("all spans are counted as lost", || {
        gateway.series("forecourt_spans_dropped_total") == 40.0
    });
}

#[test]
fn what_is_refused_for_now_is_sent_again_and_what_is_refused_for_good_is_not() {
    let upstream = Upstream::recording();
    let full = ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans: 1,
            error_message: "full".to_owned(),
        }),
    };
    let mut partial = answer("200 OK", "", &"x".repeat(full.encoded_len()));
    let at = partial.len() - full.encoded_len();
    partial.splice(at.., full.encode_to_vec());
    let busy = answer("503 Service Unavailable", "Retry-After: 1\r\n", "");
    let wrong = answer("400 Bad Request", "", "");
    for (answers, requests, lost) in [(vec![busy, partial], 2, 1.0), (vec![wrong], 1, 2.0)] {
        let collector = Collector::answering(answers);
        let gateway = exporting(&collector, &dealer(&upstream), &[]);
        gateway.post(call("1"));
        gateway.inner.flush_telemetry();
        wait_until("the collector was asked", || {
            collector.seen.lock().requests.len() == requests
        });
        wait_until("what was lost is counted", || {
            gateway.series("forecourt_spans_dropped_total") == lost
        });
    }
}

#[test]
fn metrics_are_pushed_where_they_are_asked_for() {
    let collector = Collector::start();
    let upstream = Upstream::recording();
    let gateway = exporting(
        &collector,
        &dealer(&upstream),
        &[("OTEL_METRICS_EXPORTER", "otlp")],
    );
    gateway.post(call("1"));
    gateway.access_log();
    gateway.inner.flush_telemetry();
    let seen = collector.seen.lock();
    let metrics = &seen.metrics[0].resource_metrics[0].scope_metrics[0].metrics;
    let names: Vec<_> = metrics.iter().map(|metric| &*metric.name).collect();
    for name in [
        "forecourt_http_requests_total",
        "forecourt_http_request_duration_seconds",
        "forecourt_build_info",
    ] {
        assert!(names.contains(&name), "{name} not in {names:?}");
    }
}

#[test]
fn a_recorded_request_is_the_example_of_its_bucket() {
    let collector = Collector::start();
    let upstream = Upstream::recording();
    let gateway = exporting(&collector, &dealer_with(&upstream, "", ""), &[]);
    gateway.ask(
        post()
            .field("traceparent", &parent("01"))
            .body(call("1"))
            .bytes(),
    );
    gateway.access_log();
    let ask = |accept: &str| {
        let request = Post::method("GET", "/metrics").field("Accept", accept);
        gateway.admin().ask(request.bytes()).text()
    };
    let open = ask("application/openmetrics-text");
    let wanted = format!("# {{trace_id=\"{TRACE}\"}} ");
    let examples: Vec<_> = open.lines().filter(|line| line.contains(&wanted)).collect();
    assert_eq!(examples.len(), 1, "{open}");
    let (bucket, example) = examples[0].split_once(&wanted).unwrap();
    assert!(
        bucket.starts_with("forecourt_http_request_duration_seconds_bucket{"),
        "{bucket}"
    );
    assert!(bucket.trim_end().ends_with('1'), "{bucket}");
    let (value, at) = example.split_once(' ').unwrap();
    assert!(value.parse::<f64>().unwrap() > 0.0);
    assert_eq!(at, "1796057603.042");
    assert!(!ask("text/plain").contains("trace_id"));
}
