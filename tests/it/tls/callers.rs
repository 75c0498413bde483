//! Callers over TLS: which certificate they are shown, what is negotiated, and who is turned away.

use std::io::ErrorKind::UnexpectedEof;
use std::io::{Read, Write};
use std::time::Duration;

use rustls::version::{TLS12, TLS13};

use crate::support::call::{call, post};
use crate::support::frames;
use crate::support::gateway::dealer;
use crate::support::tls::{Place, Speaker, secured};
use crate::support::wait::stays;
use crate::support::{Client, Gateway, Post, Upstream, Watch, upstream, wait_until};

/// A gateway with one certificate, and who trusts it.
fn usual(upstream: &Upstream, rest: &str) -> (Place, Gateway, Speaker) {
    let place = Place::new();
    place.issue("usual", &["gw.example"]);
    let rest = format!("{rest}\n{}", dealer(upstream));
    let gateway = Gateway::start_whole(&secured(&place.pair("usual"), &rest));
    let speaker = Speaker::trusting(&place.authority);
    (place, gateway, speaker)
}

#[track_caller]
fn failures(gateway: &Gateway, reason: &str) -> f64 {
    gateway.series(&format!(
        "forecourt_tls_handshake_failures_total{{listener=\"public\",reason=\"{reason}\"}}"
    ))
}

fn all_failures(gateway: &Gateway) -> f64 {
    let metrics = gateway.metrics();
    let failures = metrics
        .iter()
        .filter(|(series, _)| series.contains("handshake_failures"));
    failures.map(|(_, count)| count).sum()
}

#[test]
fn a_call_goes_through_in_both_versions() {
    let upstream = Upstream::recording();
    let (place, gateway, _) = usual(&upstream, "");
    for (version, told) in [
        (&TLS12, rustls::ProtocolVersion::TLSv1_2),
        (&TLS13, rustls::ProtocolVersion::TLSv1_3),
    ] {
        let speaker = Speaker::version(&place.authority, version);
        let mut client = speaker.connect(gateway.address(), "gw.example");
        let answer = client.ask(post(call("\"req_001\"")));
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(client.version(), told);
        assert_eq!(client.protocol().unwrap(), b"http/1.1");
        let arrival = upstream.take();
        assert_eq!(arrival.head.one("x-forwarded-proto").unwrap(), "https");
        // The connection is kept, and a refusal is what it is in clear.
        let refused = Post::to("/a2a").field("A2A-Version", "9.9").body(call("2"));
        let answer = client.ask(refused.bytes());
        assert_eq!((answer.code(), &*answer.id()), (-32009, "2"));
        assert_eq!(client.ask(post(call("3"))).status, 200);
        upstream.take();
    }
    assert_eq!(all_failures(&gateway), 0.0);
}

#[test]
fn the_certificate_is_the_one_that_is_asked_for() {
    let upstream = Upstream::recording();
    let place = Place::new();
    let usual = place.issue("usual", &["gw.example"]);
    let exact = place.issue("exact", &["east.dealers.example", "Upper.Example"]);
    let wild = place.issue("wild", &["*.dealers.example", "127.0.0.1"]);
    let tls = format!(
        "{}, certificates = [{{ {} }}, {{ {} }}]",
        place.pair("usual"),
        place.pair("exact"),
        place.pair("wild")
    );
    let gateway = Gateway::start_whole(&secured(&tls, &dealer(&upstream)));
    let anyone = Speaker::trusting_anyone();
    for (name, shown) in [
        ("gw.example", &usual),
        ("GW.EXAMPLE", &usual),
        ("east.dealers.example", &exact),
        ("upper.example", &exact),
        ("west.dealers.example", &wild),
        // One label, no more and no less.
        ("a.west.dealers.example", &usual),
        ("dealers.example", &usual),
        ("stranger.example", &usual),
        // An address is no name that can be asked for.
        ("127.0.0.1", &usual),
    ] {
        let mut client = anyone.connect(gateway.address(), name);
        assert_eq!(client.shown(), shown.der(), "{name}");
    }
    // Who verifies what is shown is content.
    let speaker = Speaker::trusting(&place.authority);
    for name in ["gw.example", "east.dealers.example", "west.dealers.example"] {
        assert_eq!(
            speaker
                .connect(gateway.address(), name)
                .ask(post(call("1")))
                .status,
            200
        );
    }
    assert!(
        speaker
            .try_connect(gateway.address(), "stranger.example")
            .is_err()
    );
    wait_until("the alert is counted", || {
        failures(&gateway, "alert") == 1.0
    });

    let status = gateway.admin_get("/status").json();
    let certificates = &status["listeners"][0]["certificates"];
    let names: Vec<_> = (0..3)
        .map(|at| certificates[at]["names"][0].as_str())
        .collect();
    assert_eq!(
        names,
        [
            Some("gw.example"),
            Some("east.dealers.example"),
            Some("*.dealers.example")
        ]
    );
    assert_eq!(certificates[2]["addresses"][0], "127.0.0.1");
    assert_eq!(certificates[1]["file"], place.at("exact.pem"));
    assert!(certificates[0]["refused"].is_null());
    for name in names {
        let name = name.unwrap();
        let until = gateway.series(&format!(
            "forecourt_tls_certificate_expiry_timestamp_seconds{{listener=\"public\",name=\"{name}\"}}"
        ));
        // What the test's library gives where nothing is said: 4096-01-01.
        assert_eq!(until, 67_090_118_400.0);
    }
}

#[test]
fn protocols_are_negotiated() {
    let upstream = Upstream::recording();
    let (_place, gateway, speaker) = usual(&upstream, "");
    let connect = |offered: &[&str]| {
        let speaker = speaker.offering(offered);
        speaker.try_connect(gateway.address(), "gw.example")
    };
    for offered in [&["h2", "http/1.1"] as &[&str], &["http/1.1", "h2"], &["h2"]] {
        let mut client = connect(offered).unwrap();
        assert_eq!(client.protocol().unwrap(), b"h2", "{offered:?}");
        // And that is what is spoken: the gateway's settings come first.
        client
            .send(frames::PREFACE)
            .send([0, 0, 0, 4, 0, 0, 0, 0, 0]);
        let mut first = [0; 4];
        client.stream().read_exact(&mut first).unwrap();
        assert_eq!(first[3], frames::SETTINGS);
        // Nothing else is.
        let mut client = connect(offered).unwrap();
        client.send(post(call("1")));
        let mut told = Vec::new();
        let _ = client.stream().read_to_end(&mut told);
        assert!(!told.starts_with(b"HTTP/1.1"), "{offered:?}");
    }
    assert_eq!(upstream.count(), 0);
    for (offered, chosen) in [
        (&["http/1.1"] as &[&str], Some(b"http/1.1".to_vec())),
        (&["spdy/3", "http/1.1"], Some(b"http/1.1".to_vec())),
        (&[], None),
    ] {
        let mut client = connect(offered).unwrap();
        assert_eq!(client.protocol(), chosen, "{offered:?}");
        assert_eq!(client.ask(post(call("1"))).status, 200);
        // Whoever has not agreed to HTTP/2 is not served it.
        let mut client = connect(offered).unwrap();
        assert_eq!(client.ask(frames::PREFACE).status, 505, "{offered:?}");
    }
    assert!(connect(&["spdy/3"]).is_err());
    wait_until("counted", || failures(&gateway, "protocol") == 1.0);
}

#[test]
fn sessions_are_resumed_by_every_worker_and_after_a_reload() {
    let upstream = Upstream::recording();
    let (place, gateway, _) = usual(&upstream, "");
    for version in [&TLS12, &TLS13] {
        let speaker = Speaker::version(&place.authority, version);
        let connect = || {
            let mut client = speaker.connect(gateway.address(), "gw.example");
            assert_eq!(client.ask(post(call("1"))).status, 200);
            client.is_resumed()
        };
        assert!(!connect());
        // Enough of them to meet both workers.
        for _ in 0..16 {
            assert!(connect());
        }
        let before = place.issue("usual", &["gw.example"]);
        gateway.inner.reload().unwrap();
        let fresh = Speaker::version(&place.authority, version);
        assert_eq!(
            fresh.connect(gateway.address(), "gw.example").shown(),
            before.der()
        );
        assert!(connect());
    }
}

/// A `ClientHello` as a client of TLS 1.1 or older sends it.
fn old_hello(minor: u8) -> Vec<u8> {
    let mut body = vec![3, minor];
    body.extend([7; 32]);
    // No session, two suites, no compression, no extensions.
    body.extend([0, 0, 4, 0xc0, 0x14, 0x00, 0x35, 1, 0]);
    let mut handshake = vec![1, 0, 0, u8::try_from(body.len()).unwrap()];
    handshake.extend(body);
    let mut record = vec![0x16, 3, 1, 0, u8::try_from(handshake.len()).unwrap()];
    record.extend(handshake);
    record
}

#[test]
fn older_versions_are_refused() {
    let upstream = Upstream::recording();
    let (_place, gateway, _) = usual(&upstream, "");
    for (count, minor) in [(1.0, 0), (2.0, 1), (3.0, 2)] {
        let mut client = gateway.client();
        client.send(old_hello(minor));
        let mut told = Vec::new();
        client.stream().read_to_end(&mut told).unwrap();
        // Fatal: protocol version, or handshake failure for want of what came with TLS 1.2.
        assert_eq!((told.len(), told[0], told[5]), (7, 0x15, 2), "{told:x?}");
        assert!(matches!(told[6], 40 | 70), "{told:x?}");
        wait_until("counted", || failures(&gateway, "version") == count);
    }
}

#[test]
fn what_is_not_tls_is_closed_and_counted() {
    let upstream = Upstream::recording();
    let (_place, gateway, speaker) = usual(&upstream, "");
    for (count, bytes) in [
        (1.0, post(call("1"))),
        (2.0, b"GET / HTTP/1.0\r\n\r\n".to_vec()),
    ] {
        let mut client = gateway.client();
        client.send(bytes);
        let mut told = Vec::new();
        // A reset, where not all was read.
        drop(client.stream().read_to_end(&mut told));
        let text = String::from_utf8_lossy(&told);
        assert!(!text.contains("HTTP"), "answered in clear: {text}");
        wait_until("counted", || failures(&gateway, "not_tls") == count);
    }
    drop(gateway.client());
    wait_until("counted", || failures(&gateway, "closed") == 1.0);
    assert_eq!(all_failures(&gateway), 3.0);
    // Nobody else notices, and nothing was taken for a request.
    let mut client = speaker.connect(gateway.address(), "gw.example");
    assert_eq!(client.ask(post(call("1"))).status, 200);
    assert_eq!((upstream.count(), gateway.access_log().len()), (1, 1));
    assert_eq!(gateway.ended_at("", "bad_http"), 0.0);
    drop(client);
    wait_until("every place is given back", || {
        gateway.series("forecourt_connections{listener=\"public\"}") == 0.0
    });
}

#[test]
fn a_slow_handshake_is_cut_and_holds_up_nobody() {
    let upstream = Upstream::recording();
    let limits = "[limits]\nheader_timeout = \"400ms\"\nidle_timeout = \"20s\"";
    let (_place, gateway, speaker) = usual(&upstream, limits);
    let watch = Watch::start();
    let mut silent = gateway.client();
    let mut dripping = gateway.client();
    // A record that would be long enough, a byte at a time.
    dripping.send([0x16, 3, 1, 2, 0]);
    let mut client = speaker.connect(gateway.address(), "gw.example");
    assert_eq!(client.ask(post(call("1"))).status, 200);
    let ended = stays(Duration::from_secs(5), || {
        drop(dripping.try_send([0]));
        !dripping.has_ended()
    });
    assert!(!ended, "a dripping handshake goes on and on");
    assert!(silent.is_closed());
    assert!(watch.elapsed() >= Duration::from_millis(400));
    wait_until("counted", || failures(&gateway, "timeout") == 2.0);
    // The head of a request has its own time, from the handshake on.
    assert_eq!(client.ask(post(call("2"))).status, 200);
    let mut slow = speaker.connect(gateway.address(), "gw.example");
    slow.send("POST /a2a HTTP/1.1\r\n");
    let cut = slow.try_answer();
    assert!(matches!(cut, Ok(None)) || cut.is_err_and(|it| it.kind() == UnexpectedEof));
    wait_until("counted", || gateway.ended_at("", "bad_http") == 1.0);
}

#[test]
fn handshakes_count_among_the_connections() {
    let upstream = Upstream::recording();
    let (_place, gateway, speaker) = usual(&upstream, "[limits]\nconnections = 1");
    let held = gateway.client();
    wait_until("one is open", || {
        gateway.series("forecourt_connections{listener=\"public\"}") == 1.0
    });
    // In clear there would be an answer: here it would be taken for a broken handshake.
    let mut second = gateway.client();
    assert!(second.is_closed());
    assert_eq!(
        gateway.series("forecourt_connections_refused_total{listener=\"public\"}"),
        1.0
    );
    drop(held);
    wait_until("there is room", || {
        speaker
            .try_connect(gateway.address(), "gw.example")
            .is_ok_and(|mut client| client.ask(post(call("1"))).status == 200)
    });
}

#[test]
fn a_client_that_is_gone_ends_its_call_at_the_dealer() {
    let upstream = Upstream::manual();
    let (_place, gateway, speaker) = usual(&upstream, "");
    for is_polite in [true, false] {
        let mut client = speaker.connect(gateway.address(), "gw.example");
        client.send(post(call("1")));
        let mut peer = upstream.accept();
        peer.request().unwrap();
        if is_polite {
            client.stream().conn.send_close_notify();
            client.stream().flush().unwrap();
        }
        drop(client);
        assert!(peer.is_closed_within(Duration::from_secs(1)));
    }
    wait_until("both are counted", || gateway.ended("client_gone") == 2.0);
}

#[test]
fn large_bodies_pass_both_ways_and_unchanged() {
    let large: String = (0..40_000).map(|at| format!("{at:07} ")).collect();
    let told = large.clone();
    let upstream = Upstream::scripted(move |mut peer| {
        while peer.request().is_some() {
            peer.send(upstream::answer("200 OK", "", &told));
        }
    });
    let (_place, gateway, speaker) = usual(&upstream, "");
    let body = call("1").replace("\"m-1\"", &format!("\"{large}\""));
    let mut client = speaker.connect(gateway.address(), "gw.example");
    for _ in 0..3 {
        let answer = client.ask(post(&body));
        assert_eq!((answer.status, answer.text() == large), (200, true));
        assert_eq!(upstream.take().body, body.as_bytes());
    }
}

#[test]
fn balancers_in_front_introduce_clients_and_probe() {
    let upstream = Upstream::recording();
    let place = Place::new();
    place.issue("usual", &["gw.example"]);
    let keys = "proxy_protocol = { trusted = [\"127.0.0.1\"] }\nhealth = \"/healthz\"\n[admin]";
    let text = secured(&place.pair("usual"), &dealer(&upstream)).replace("[admin]", keys);
    let gateway = Gateway::start_whole(&text);
    let speaker = Speaker::trusting(&place.authority);
    let introduction = b"PROXY TCP4 192.0.2.7 192.0.2.1 4000 443\r\n";
    let connect = |before| speaker.try_connect_after(before, gateway.address(), "gw.example");
    let mut client = connect(introduction).unwrap();
    assert_eq!(client.ask(post(call("1"))).status, 200);
    let arrival = upstream.take();
    assert_eq!(arrival.head.one("x-forwarded-for").unwrap(), "192.0.2.7");
    assert_eq!(arrival.head.one("x-forwarded-proto").unwrap(), "https");
    let probe = Post::method("GET", "/healthz").field("Host", "gw.example");
    assert_eq!(client.ask(probe.bytes()).text(), "ok\n");
    // Without the header before it, a handshake is none.
    assert!(connect(b"").is_err());
    assert_eq!(all_failures(&gateway), 0.0);
}

#[test]
fn a_drain_ends_connections_in_order() {
    let upstream = Upstream::manual();
    // A handshake would have longer than the test waits.
    let rest =
        "[shutdown]\ndelay = \"300ms\"\ntimeout = \"90s\"\n[limits]\nheader_timeout = \"90s\"";
    let (_place, gateway, speaker) = usual(&upstream, rest);
    let connect = || speaker.connect(gateway.address(), "gw.example");
    let mut waiting = connect();
    waiting.send(post(call("1")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    let refused = Post::to("/a2a").field("A2A-Version", "9.9").body(call("3"));
    let mut idle = connect();
    assert!(!idle.ask(refused.bytes()).closes());
    let mut silent = gateway.client();
    std::thread::scope(|scope| {
        let draining = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(gateway.inner.drain(std::future::pending()));
        });
        wait_until("not ready", || gateway.admin_get("/readyz").status == 503);
        // Each worker is told in its own time.
        wait_until("leaving", || {
            let answer = connect().ask(refused.bytes());
            assert_eq!(answer.code(), -32009);
            answer.closes()
        });
        wait_until("closed to new connections", || {
            Client::try_connect(gateway.address()).is_err()
        });
        assert!(idle.is_closed());
        // Who has not even begun is not waited for.
        assert!(silent.is_closed());
        assert!(!draining.is_finished());
        peer.send(upstream::ok());
        let answer = waiting.answer();
        assert_eq!((answer.status, answer.closes()), (200, true));
        assert!(waiting.is_closed());
        draining.join().unwrap();
    });
}
