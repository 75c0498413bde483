//! A panic inside a request costs that request, and nothing else. Planted where a request asks for the
//! time, and where it writes to the log.

use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::{Fuse, SECRET, fused};
use crate::support::call::{call, lead, post};
use crate::support::gateway::{dealer_at, dealer_with};
use crate::support::http2::{Http2, piece, whole};
use crate::support::process::Process;
use crate::support::{Client, Gateway, Nobody, Post, Upstream, upstream, wait_until};

const QUOTA: &str = "[quota.all]\nper = \"all\"\nrate = \"1000/s\"\nburst = 1000\n";

/// A log that panics where it is told of a request that says so.
struct Explosive;

/// The start of the ids of such requests.
const EXPLODES: &str = "explodes-";

#[derive(Default)]
struct Heard {
    message: String,
    request_id: String,
}

impl Visit for Heard {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "request_id" => self.request_id = format!("{value:?}").replace('"', ""),
            _ => {}
        }
    }
}

impl Subscriber for Explosive {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut heard = Heard::default();
        event.record(&mut heard);
        let is_about_a_dealer = matches!(&*heard.message, "upstream failed" | "answer cut");
        if is_about_a_dealer && heard.request_id.starts_with(EXPLODES) {
            panic!("{SECRET}");
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Makes the log of this whole process explosive.
fn with_explosive_log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Explosive).unwrap());
}

#[track_caller]
fn nothing_is_left(gateway: &Gateway) {
    for series in ["forecourt_requests_in_flight", "forecourt_in_flight_bytes"] {
        wait_until(series, || gateway.series(series) == 0.0);
    }
}

fn panics(gateway: &Gateway, caught: &str) -> f64 {
    gateway.series(&format!("forecourt_panics_total{{caught=\"{caught}\"}}"))
}

#[test]
fn it_is_answered_in_the_contracts_dialect_with_the_callers_id() {
    let upstream = Upstream::recording();
    let fuse = Fuse::of("worker-");
    // No id is so long that it would be cut.
    let id = format!("\"{}\"", "x".repeat(500));
    for (contract, tells) in [
        ("aap/0.1", "INTERNAL_ERROR"),
        ("aap/1.3", "INTERNAL_ERROR"),
        ("aap/3.0", "INTERNAL_ERROR"),
    ] {
        let endpoint = format!("contract = \"{contract}\"\nquotas = [\"all\"]");
        let configuration = format!("{QUOTA}{}", dealer_with(&upstream, "", &endpoint));
        let gateway = fused(&configuration, &fuse, &Fuse::of(""));
        let before = upstream.count();
        let mut client = gateway.client();
        for (body, retryable) in [(call(&id), true), (lead(&id, None), true)] {
            fuse.light();
            let answer = client.ask(post(body));
            assert!(!fuse.is_lit());
            assert_eq!((answer.code(), answer.id()), (-32603, id.clone()));
            let text = answer.text();
            assert!(text.contains(tells), "{contract}: {text}");
            assert!(!text.contains(SECRET), "{text}");
            // Nothing was sent.
            let told = format!("\"retryable\":{retryable}");
            assert!(text.replace(' ', "").contains(&told), "{text}");
            assert!(!answer.closes());
            // The connection goes on.
            assert_eq!(client.ask(post(call("2"))).status, 200);
        }
        assert_eq!(upstream.count(), before + 2);
        assert_eq!(
            (panics(&gateway, "request"), gateway.ended("internal")),
            (2.0, 2.0)
        );
        let lines = gateway.access_log();
        assert_eq!(lines.len(), 4);
        let line = &lines[0];
        assert_eq!(
            (line["outcome"].as_str(), line["why"].as_str()),
            (Some("internal"), Some("a panic"))
        );
        assert!(!line.to_string().contains(SECRET));
        nothing_is_left(&gateway);
    }
}

#[test]
fn over_http2_only_its_stream_ends() {
    let dealer = Upstream::manual();
    let fuse = Fuse::of("worker-");
    let configuration = format!("{QUOTA}{}", dealer_with(&dealer, "", "quotas = [\"all\"]"));
    let gateway = fused(&configuration, &fuse, &Fuse::of(""));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let http2 = Http2::connect(gateway.address()).await;
        let waiting = http2.send(Http2::call(), &call("1")).await.unwrap();
        let mut peer = dealer.accept();
        peer.request().unwrap();
        fuse.light();
        let answer = http2.post(&call("\"two\"")).await;
        let json = answer.json();
        assert_eq!(
            (json["id"].as_str(), json["error"]["code"].as_i64()),
            (Some("two"), Some(-32603))
        );
        // The other goes on, and so does the connection.
        peer.send(upstream::ok());
        assert_eq!(whole(waiting.await.unwrap()).await.unwrap().status(), 200);
        let third = http2.send(Http2::call(), &call("3")).await.unwrap();
        peer.request().unwrap();
        peer.send(upstream::ok());
        assert_eq!(third.await.unwrap().status(), 200);
    });
    assert_eq!(panics(&gateway, "request"), 1.0);
    nothing_is_left(&gateway);
}

#[test]
fn what_it_held_is_given_back() {
    with_explosive_log();
    let nobody = Nobody::new();
    let quota = "[quota.one]\nper = \"all\"\nconcurrent = 1\n";
    let configuration = format!(
        "{quota}{}",
        dealer_at(nobody.address, "max_in_flight = 1", "quotas = [\"one\"]")
    );
    let gateway = Gateway::start_two(&configuration);
    let mut client = gateway.client();
    let request = |id: &str, body: &str| {
        let request = Post::to("/a2a").field("X-Request-Id", id);
        request.body(body).bytes()
    };
    // It holds a seat, a place at its dealer and its body. What may have reached the dealer must not be
    // repeated; a question may.
    for (body, retryable) in [(call("1"), true), (lead("1", None), false)] {
        let answer = client.ask(request("explodes-1", &body));
        assert_eq!((answer.code(), &*answer.id()), (-32603, "1"));
        let told = format!("\"retryable\":{retryable}");
        assert!(
            answer.text().replace(' ', "").contains(&told),
            "{}",
            answer.text()
        );
    }
    assert_eq!(
        (panics(&gateway, "request"), gateway.ended("internal")),
        (2.0, 2.0)
    );
    nothing_is_left(&gateway);
    // Whoever is next is not turned away for want of either.
    assert_eq!(client.ask(request("quiet", &call("2"))).code(), -32603);
    assert_eq!(gateway.ended("upstream_unreachable"), 1.0);
}

#[test]
fn within_an_answer_it_cuts_that_answer() {
    with_explosive_log();
    let dealer = Upstream::manual();
    let gateway = Gateway::before(&dealer);
    let begin = |peer: &mut crate::support::Peer| {
        peer.request().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        peer.chunk("one");
    };
    let mut client = gateway.client();
    let request = Post::to("/a2a").field("X-Request-Id", "explodes-1");
    client.send(request.body(call("1")).bytes());
    let mut peer = dealer.accept();
    begin(&mut peer);
    client.head();
    assert_eq!(client.bytes(3), b"one");
    peer.reset();
    assert!(client.chunk().is_err(), "a clean end");

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let http2 = Http2::connect(gateway.address()).await;
        let request = Http2::call().header("x-request-id", "explodes-2");
        let cut = http2.send(request, &call("2")).await.unwrap();
        let mut peer = dealer.accept();
        begin(&mut peer);
        let mut cut = cut.await.unwrap().into_body();
        assert_eq!(piece(&mut cut).await.unwrap().unwrap(), "one");
        let other = http2.send(Http2::call(), &call("3")).await.unwrap();
        let mut well = dealer.accept();
        begin(&mut well);
        let mut other = other.await.unwrap().into_body();
        assert_eq!(piece(&mut other).await.unwrap().unwrap(), "one");
        peer.reset();
        assert!(piece(&mut cut).await.unwrap().is_err(), "a clean end");
        well.chunk("two");
        assert_eq!(piece(&mut other).await.unwrap().unwrap(), "two");
        well.send("0\r\n\r\n");
        assert!(piece(&mut other).await.is_none());
    });
    assert_eq!(
        (panics(&gateway, "request"), gateway.ended("internal")),
        (2.0, 2.0)
    );
    nothing_is_left(&gateway);
}

#[test]
fn where_nothing_is_known_of_it_yet_it_is_answered_plainly() {
    let upstream = Upstream::recording();
    let fuse = Fuse::of("worker-");
    let configuration = dealer_with(&upstream, "", "");
    let gateway = fused(&configuration, &Fuse::of(""), &fuse);
    let mut client = gateway.client();
    fuse.light();
    let answer = client.ask(post(call("1")));
    assert_eq!(
        (answer.status, &*answer.text()),
        (500, "the gateway failed\n")
    );
    assert!(client.is_closed());
    assert_eq!(panics(&gateway, "request"), 1.0);
    assert_eq!(gateway.post(call("2")).status, 200);
    nothing_is_left(&gateway);
}

#[test]
fn while_an_error_is_spelled_it_is_answered_plainly_and_counted_once() {
    let upstream = Upstream::recording();
    let fuse = Fuse::of("worker-");
    // Its credential is judged by the time of day, and its answer is stamped with it.
    let gateway = fused(&dealer_with(&upstream, "", ""), &Fuse::of(""), &fuse);
    let mut client = gateway.client();
    let request = Post::to("/a2a").field("A2A-Version", "9.9");
    // The record has begun when the body comes: what asks for the time then is the answer.
    let request = request.body(call("1"));
    client.send(request.head());
    wait_until("it has begun", || {
        gateway.series("forecourt_requests_in_flight") == 1.0
    });
    fuse.light();
    client.send(call("1"));
    let answer = client.answer();
    assert_eq!(
        (answer.status, &*answer.text()),
        (500, "the gateway failed\n")
    );
    assert!(client.is_closed());
    assert_eq!(
        (panics(&gateway, "request"), gateway.ended("internal")),
        (1.0, 1.0)
    );
    assert_eq!(gateway.last_line()["outcome"], "internal");
    nothing_is_left(&gateway);
}

#[test]
fn beside_requests_what_panicked_is_begun_anew() {
    let upstream = Upstream::recording();
    let fuse = Fuse::of("control");
    let gateway = fused(&dealer_with(&upstream, "", ""), &fuse, &Fuse::of(""));
    fuse.light();
    wait_until("it panics", || panics(&gateway, "loop") == 1.0);
    let mut pulse = gateway.inner.pulse();
    pulse.feel();
    wait_until("every thread turns", || pulse.still().next().is_none());
    assert_eq!(gateway.admin_get("/readyz").status, 200);
    assert_eq!(gateway.post(call("1")).status, 200);
    assert_eq!(panics(&gateway, "loop"), 1.0);
}

#[test]
fn it_is_logged_by_where_it_happened_and_never_by_what_it_said() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let configuration = dealer_with(&upstream, "", "quotas = [\"all\"]");
    let prelude = crate::support::gateway::PRELUDE;
    std::fs::write(&file, format!("{prelude}{QUOTA}{configuration}")).unwrap();
    let mut process = Process::start_test("lifecycle::as_a_process", &file, &[]);
    let (public, _) = process.addresses();
    let mut client = Client::connect(public);
    assert_eq!(client.ask(post(call("1"))).status, 200);
    std::fs::write(directory.path().join("panic"), "").unwrap();
    let request = Post::to("/a2a").field("X-Request-Id", "it-was-this");
    assert_eq!(client.ask(request.body(call("2")).bytes()).code(), -32603);
    let told = process.says("a thread panicked");
    assert_eq!(told["thread"], "worker-0");
    let at = told["at"].as_str().unwrap();
    assert!(at.starts_with("tests/it/lifecycle.rs:"), "{at}");
    let told = process.says("a request panicked");
    assert_eq!(
        (told["request_id"].as_str(), told["at"].as_str()),
        (Some("it-was-this"), Some(at))
    );
    process.signal("TERM");
    process.ended();
    let seen = process.seen.join("\n");
    assert!(!seen.contains(SECRET), "{seen}");
}
