//! HTTP/2 over TLS, as both sides agree in the handshake: with callers, and with dealers.

use std::time::Duration;

use crate::support::call::{call, lead, search};
use crate::support::frames::{DATA, Frames, GOAWAY, HEADERS, NO_ERROR, SETTINGS};
use crate::support::gateway::dealer_at;
use crate::support::http2::{Dealer, Http2};
use crate::support::tls::{Front, Place, put};
use crate::support::wait::stays;
use crate::support::ways::{SPEECHES, Ways};
use crate::support::{Gateway, Watch, upstream, wait_until};

#[test]
fn calls_of_one_connection_pass_on_one_connection() {
    let dealer = Dealer::start();
    let place = Place::new();
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    place.issue("own", &["gw.example"]);
    let own = place.authority.issue(&["127.0.0.1"]);
    let front = Front::new(dealer.address, &own, None);
    let keys = format!("http2 = true\nca = \"{}\"", place.at("ca.pem"));
    let gateway = Gateway::start(&dealer_at(front.address, &keys, "").replace("http:", "https:"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = Http2::connect(gateway.address()).await;
        let ask = |id: usize| {
            let client = client.clone();
            tokio::spawn(async move { client.post(&call(&id.to_string())).await })
        };
        let answers: Vec<_> = (0..50).map(ask).collect();
        for (id, answer) in answers.into_iter().enumerate() {
            assert_eq!(answer.await.unwrap().json()["id"], id);
        }
    });
    assert_eq!((dealer.count(), dealer.connections()), (50, 1));
    let seen = front.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].protocol.as_deref(), Some(&b"h2"[..]));
    let uri = dealer.last().head.uri.to_string();
    assert_eq!(uri, format!("https://{}/a2a", front.address));
}

#[test]
fn a_dealer_that_does_not_agree_is_told_nothing() {
    let dealer = Dealer::start();
    let place = Place::new();
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    let own = place.authority.issue(&["127.0.0.1"]);
    let front = Front::new(dealer.address, &own, None);
    let keys = format!("http2 = true\nca = \"{}\"", place.at("ca.pem"));
    let gateway = Gateway::start(&dealer_at(front.address, &keys, "").replace("http:", "https:"));
    // Refuses what it is offered, or speaks TLS and says nothing of protocols.
    for (protocols, outcome) in [
        (&["http/1.1"] as &[&str], "upstream_unreachable"),
        (&[], "upstream_invalid"),
    ] {
        front.agree_to(protocols);
        for body in [lead("\"a\"", None), search("\"a\"")] {
            let answer = gateway.post(&body);
            assert_eq!((answer.status, answer.code()), (502, -32603), "{outcome}");
            assert_eq!(answer.id(), "\"a\"");
            // Nothing was sent: even a lead may be sent again.
            let value = &answer.json()["error"]["data"][1]["value"];
            assert_eq!(value["retryable"], true, "{outcome}");
            assert_eq!(gateway.last_line()["outcome"], outcome);
        }
    }
    assert!(stays(Duration::from_millis(50), || dealer.count() == 0));
    // As soon as it agrees, all is well.
    front.agree_to(&["h2"]);
    assert_eq!(gateway.post(call("1")).status, 200);
}

#[test]
fn over_tls_out_and_over_http1_in_is_ordinary_http1() {
    let ways = Ways::to(SPEECHES[1], "", "");
    let tunnel = ways.tunnel(&["h2", "http/1.1"]);
    let mut client = Frames::client(tunnel.address, &[]);
    let fields = [("cookie", "a=1"), ("cookie", "b=2"), ("x-kept", "1")];
    client.head(1, &fields, false);
    client.send(DATA, 1, 1, call("1").as_bytes());
    let mut peer = ways.upstream.accept();
    let arrival = peer.request().unwrap();
    assert_eq!(arrival.head.start, "POST /a2a HTTP/1.1");
    assert_eq!(arrival.head.all("cookie"), ["a=1; b=2"]);
    assert_eq!(arrival.head.all("host").len(), 1);
    assert_eq!(arrival.head.one("x-forwarded-proto").unwrap(), "https");
    assert_eq!(arrival.head.one("x-forwarded-host").unwrap(), "gw.example");
    assert_eq!(arrival.head.length(), Some(call("1").len()));
    assert!(!arrival.head.is_chunked());
    let names = arrival.head.fields.iter();
    assert!(names.clone().all(|(name, _)| !name.starts_with(':')));
    assert_eq!(arrival.body, call("1").as_bytes());
    peer.send(upstream::ok());
    assert_eq!(client.until(HEADERS).payload[0], 0x88);
    assert_eq!(client.until(DATA).payload, upstream::RESULT.as_bytes());
    assert_eq!(ways.agreed(), [Some(b"http/1.1".to_vec())]);
    assert_eq!(ways.gateway.last_line()["protocol"], "HTTP/2.0");
}

#[test]
fn a_drain_says_goodbye_and_waits() {
    let ways = Ways::to(
        SPEECHES[0],
        "[shutdown]\ndelay = \"100ms\"\ntimeout = \"20s\"",
        "",
    );
    let tunnel = ways.tunnel(&["h2"]);
    let mut busy = Frames::client(tunnel.address, &[]);
    busy.post(1, &call("1"));
    let mut peer = ways.upstream.accept();
    peer.request().unwrap();
    let mut idle = Frames::client(tunnel.address, &[]);
    assert_eq!(idle.any().unwrap().kind, SETTINGS);
    let watch = Watch::start();
    std::thread::scope(|scope| {
        let draining = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(ways.gateway.inner.drain(std::future::pending()));
        });
        assert_eq!(idle.until(GOAWAY).word(4), NO_ERROR);
        while idle.next().is_some() {}
        assert_eq!(busy.until(GOAWAY).word(4), NO_ERROR);
        assert_eq!(busy.until(GOAWAY).word(0), 1);
        wait_until("the listener is closed", || {
            watch.elapsed() > Duration::from_millis(300)
        });
        assert!(!draining.is_finished());
        peer.send(upstream::ok());
        assert_eq!(busy.until(HEADERS).stream, 1);
        assert!(busy.until(DATA).ends_stream());
        assert!(busy.next().is_none());
        draining.join().unwrap();
    });
    assert!(watch.elapsed() < Duration::from_secs(10));
    assert_eq!(ways.outcome(1), "ok");
}
