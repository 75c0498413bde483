//! What stands in front of the gateway: load balancers that probe, that name the client in a PROXY
//! header, and proxies that name it in a header of the request.

use std::future::pending;
use std::io::Write;
use std::time::Duration;

use crate::support::call::{call, post};
use crate::support::gateway::{PRELUDE, dealer, dealer_with};
use crate::support::wait::elapse;
use crate::support::{Client, Gateway, Post, Upstream, wait_until};

/// The usual dealer behind a listener with these lines, one call a minute for each address.
fn fronted(lines: &str, upstream: &Upstream) -> Gateway {
    let listener = format!("[listener.public]\n{lines}\n");
    Gateway::start_whole(&format!(
        "{}[quota.each]\nper = \"address\"\nrate = \"1/min\"\n{}",
        PRELUDE.replace("[listener.public]\n", &listener),
        dealer_with(upstream, "", "quotas = [\"each\"]")
    ))
}

const PROXY: &str = "proxy_protocol = { trusted = [\"127.0.0.1\"] }";
const TRUSTED: &str = "trusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]";

fn get(path: &str) -> Post {
    Post::method("GET", path).field("Host", "gw.example")
}

fn probes(gateway: &Gateway) -> f64 {
    gateway.series("forecourt_health_probes_total{listener=\"public\"}")
}

fn unproxied(gateway: &Gateway, reason: &str) -> f64 {
    gateway.series(&format!(
        "forecourt_proxy_protocol_refused_total{{listener=\"public\",reason=\"{reason}\"}}"
    ))
}

#[test]
fn a_probe_is_answered_and_is_no_request() {
    let upstream = Upstream::recording();
    let gateway = fronted("health = \"/healthz\"", &upstream);
    let mut client = gateway.client();
    let requests = || -> f64 {
        let metrics = gateway.metrics().into_iter();
        let requests = metrics.filter(|it| it.0.starts_with("forecourt_http_requests_total"));
        requests.map(|it| it.1).sum()
    };
    for probe in [
        get("/healthz"),
        get("/healthz?from=elb"),
        Post::method("GET", "/healthz").field("Host", "10.0.0.1:8080"),
        get("/healthz").field("Content-Length", "0"),
    ] {
        let answer = client.ask(probe.bytes());
        assert_eq!((answer.status, &*answer.text()), (200, "ok\n"));
        assert_eq!(answer.head.one("cache-control").unwrap(), "no-store");
        assert!(!answer.head.has("x-request-id"));
    }
    client.send(Post::method("HEAD", "/healthz").field("Host", "x").bytes());
    assert!(client.head().start.contains(" 200 "));
    let old = gateway.ask("GET /healthz HTTP/1.0\r\n\r\n");
    assert_eq!(old.status, 200);
    assert_eq!(probes(&gateway), 6.0);
    assert_eq!((requests(), upstream.count()), (0.0, 0));
    assert_eq!(gateway.series("forecourt_requests_in_flight"), 0.0);
    assert!(gateway.access_log().is_empty());

    // The connection serves calls as well, and what is no probe is looked for as ever.
    assert_eq!(client.ask(post(call("1"))).status, 200);
    for other in [
        get("/healthz/"),
        get("/healthz/x"),
        get("/HEALTHZ"),
        get("/%68ealthz"),
        Post::to("/healthz").body(call("1")),
        Post::method("OPTIONS", "/healthz").field("Host", "x"),
        Post::method("GET", "/healthz")
            .field("Host", "x")
            .field("Content-Length", "5")
            .body("hello"),
        Post::method("GET", "/healthz")
            .field("Host", "x")
            .field("Transfer-Encoding", "chunked")
            .body("0\r\n\r\n"),
    ] {
        let head = String::from_utf8(other.head()).unwrap();
        assert_eq!(gateway.ask(other.bytes()).status, 404, "{head}");
    }
    assert_eq!((probes(&gateway), upstream.count()), (6.0, 1));
    assert_eq!(gateway.access_log().len(), 9);
}

#[test]
fn without_a_path_nothing_is_a_probe() {
    let upstream = Upstream::recording();
    let gateway = fronted("", &upstream);
    assert_eq!(gateway.ask(get("/healthz").bytes()).status, 404);
    assert_eq!(probes(&gateway), 0.0);
}

#[test]
fn a_probe_is_told_at_once_that_the_gateway_leaves() {
    let upstream = Upstream::recording();
    let prelude = PRELUDE.replace(
        "[listener.public]\n",
        "[shutdown]\ndelay = \"60s\"\n[listener.public]\nhealth = \"/\"\n",
    );
    let gateway = Gateway::start_whole(&format!("{prelude}{}", dealer(&upstream)));
    let mut kept = gateway.client();
    assert_eq!(kept.ask(get("/").bytes()).status, 200);
    let (hurry, hurried) = tokio::sync::oneshot::channel::<()>();
    std::thread::scope(|scope| {
        let gateway = &gateway;
        let draining = scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(gateway.inner.drain(async {
                let _ = hurried.await;
            }));
        });
        wait_until("not ready", || gateway.ask(get("/").bytes()).status == 503);
        let answer = kept.ask(get("/").bytes());
        assert_eq!((answer.status, &*answer.text()), (503, "not ready\n"));
        assert!(answer.closes());
        // Calls are still served: that is what the delay is for.
        assert_eq!(gateway.post(call("1")).status, 200);
        hurry.send(()).unwrap();
        draining.join().unwrap();
    });
}

#[test]
fn a_kept_connection_of_a_prober_is_quiet_between_probes() {
    let upstream = Upstream::recording();
    let configuration = format!(
        "{}[limits]\nheader_timeout = \"400ms\"\n{}",
        PRELUDE.replace(
            "[listener.public]\n",
            "[listener.public]\nhealth = \"/up\"\n"
        ),
        dealer(&upstream)
    );
    let gateway = Gateway::start_whole(&configuration);
    let mut client = gateway.client();
    for _ in 0..3 {
        assert_eq!(client.ask(get("/up").bytes()).status, 200);
        elapse(Duration::from_millis(500));
    }
}

/// Sends this first, then a call, and a second call on the same connection.
fn introduced(gateway: &Gateway, header: &[u8]) -> Client {
    let mut client = gateway.client();
    client.send([header, &post(call("1"))].concat());
    client
}

#[test]
fn the_client_is_whom_a_proxy_header_names() {
    let upstream = Upstream::recording();
    let gateway = fronted(PROXY, &upstream);
    let version_2 = |address: [u8; 4]| {
        let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0f".to_vec();
        header.extend(address);
        header.extend([10, 0, 0, 1, 0x1f, 0x90, 0, 80, 0x04, 0, 0]);
        header
    };
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\0\0".to_vec();
    for (header, client) in [
        (
            b"PROXY TCP4 192.0.2.1 10.0.0.1 8080 80\r\n".to_vec(),
            "192.0.2.1",
        ),
        (version_2([192, 0, 2, 2]), "192.0.2.2"),
        (
            b"PROXY TCP6 2001:db8::7 ::1 8080 80\r\n".to_vec(),
            "2001:db8::7",
        ),
        (
            b"PROXY TCP6 ::ffff:192.0.2.3 ::1 8080 80\r\n".to_vec(),
            "192.0.2.3",
        ),
        // The balancer's own connections are from the balancer.
        (local, "127.0.0.1"),
    ] {
        let mut connection = introduced(&gateway, &header);
        assert_eq!(
            connection.answer().json()["result"]["kind"],
            "message",
            "{client}"
        );
        let arrival = upstream.take();
        assert_eq!(arrival.head.one("x-forwarded-for").unwrap(), client);
        let line = gateway.last_line();
        assert_eq!(line["client_ip"], client);
        let via = (client != "127.0.0.1").then_some("127.0.0.1");
        assert_eq!(line["peer_ip"].as_str(), via);
        // Each has a bucket of its own, which the second call finds empty.
        let again = connection.ask(
            Post::to("/a2a")
                .field("X-Forwarded-For", "9.9.9.9")
                .body(call("2"))
                .bytes(),
        );
        assert!(again.text().contains("RATE_LIMITED"), "{client}");
    }
    // `UNKNOWN` is the balancer too: its bucket is empty.
    let mut connection = introduced(&gateway, b"PROXY UNKNOWN\r\n");
    assert!(connection.answer().text().contains("RATE_LIMITED"));
    assert_eq!(upstream.count(), 0);
}

#[test]
fn without_a_proxy_header_a_connection_is_closed_and_counted() {
    let upstream = Upstream::recording();
    let gateway = fronted(PROXY, &upstream);
    let mut none = introduced(&gateway, b"");
    assert!(none.is_closed());
    let mut broken = introduced(&gateway, b"PROXY TCP4 192.0.2.1 10.0.0.1 8080\r\n");
    assert!(broken.is_closed());
    let mut half = gateway.client();
    half.send("PROXY TCP4 192");
    half.socket().shutdown(std::net::Shutdown::Write).unwrap();
    assert!(half.is_closed());
    // Who only looks whether somebody listens is no offender.
    let mut look = gateway.client();
    look.socket().shutdown(std::net::Shutdown::Write).unwrap();
    assert!(look.is_closed());
    wait_until("counted", || unproxied(&gateway, "malformed") == 3.0);
    assert_eq!(
        (
            unproxied(&gateway, "untrusted"),
            unproxied(&gateway, "late")
        ),
        (0.0, 0.0)
    );
    assert_eq!(upstream.count(), 0);
    wait_until("closed", || {
        gateway.series("forecourt_connections{listener=\"public\"}") == 0.0
    });
    assert!(gateway.access_log().is_empty());
}

#[test]
fn who_may_not_send_a_proxy_header_is_not_served() {
    let upstream = Upstream::recording();
    let gateway = fronted("proxy_protocol = { trusted = [\"10.0.0.0/8\"] }", &upstream);
    for header in [&b"PROXY TCP4 192.0.2.1 10.0.0.1 8080 80\r\n"[..], b""] {
        let mut client = gateway.client();
        // It may be closed before all of it is sent.
        drop(client.try_send([header, &post(call("1"))].concat()));
        assert!(!matches!(client.try_answer(), Ok(Some(_))));
    }
    wait_until("counted", || unproxied(&gateway, "untrusted") == 2.0);
    assert_eq!(
        (unproxied(&gateway, "malformed"), upstream.count()),
        (0.0, 0)
    );
    assert_eq!(
        gateway.series("forecourt_connections{listener=\"public\"}"),
        0.0
    );
}

#[test]
fn a_proxy_header_is_due_in_time_and_in_a_drain_at_once() {
    let upstream = Upstream::recording();
    let with = |timeout: &str| {
        Gateway::start_whole(&format!(
            "{}[limits]\nheader_timeout = \"{timeout}\"\n{}",
            PRELUDE.replace(
                "[listener.public]\n",
                &format!("[listener.public]\n{PROXY}\n")
            ),
            dealer(&upstream)
        ))
    };
    let gateway = with("100ms");
    let mut slow = gateway.client();
    slow.send("PROXY TCP4 192.0.2.1 ");
    assert!(slow.is_closed());
    wait_until("counted", || unproxied(&gateway, "late") == 1.0);

    let gateway = with("60s");
    let mut slow = gateway.client();
    slow.send("PROXY TCP4 192.0.2.1 ");
    wait_until("accepted", || {
        gateway.series("forecourt_connections{listener=\"public\"}") == 1.0
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(gateway.inner.drain(pending()));
    assert!(slow.is_closed());
}

#[test]
fn a_dripped_proxy_header_is_read_and_nothing_behind_it() {
    let upstream = Upstream::recording();
    let gateway = fronted(PROXY, &upstream);
    let client = gateway.client();
    let whole = [
        b"PROXY TCP6 2001:db8:1:2::7 ::1 8080 80\r\n".to_vec(),
        post(call("1")),
    ]
    .concat();
    for byte in whole.chunks(1) {
        client.socket().write_all(byte).unwrap();
    }
    let mut client = client;
    assert_eq!(client.answer().status, 200);
    assert_eq!(upstream.take().body, call("1").as_bytes());
    // The next of the same /64 is the same caller.
    let mut next = introduced(&gateway, b"PROXY TCP6 2001:db8:1:2:ffff::1 ::1 8080 80\r\n");
    assert!(next.answer().text().contains("RATE_LIMITED"));
    let mut other = introduced(&gateway, b"PROXY TCP6 2001:db8:1:3::7 ::1 8080 80\r\n");
    assert!(!other.answer().text().contains("RATE_LIMITED"));
}

#[test]
fn the_client_is_whom_a_trusted_proxy_names() {
    let upstream = Upstream::recording();
    let gateway = fronted(TRUSTED, &upstream);
    let mut connection = gateway.client();
    let ask = |connection: &mut Client, lines: &[(&str, &str)]| {
        let post = lines.iter().fold(Post::to("/a2a"), |post, (name, value)| {
            post.field(name, value)
        });
        connection.ask(post.body(call("1")).bytes())
    };
    // One connection of the proxy carries the requests of many.
    for (lines, client) in [
        (
            &[("X-Forwarded-For", "6.6.6.6, 192.0.2.1")][..],
            "192.0.2.1",
        ),
        (
            &[
                ("X-Forwarded-For", "6.6.6.6"),
                ("x-forwarded-for", "192.0.2.2, 10.1.1.1"),
            ],
            "192.0.2.2",
        ),
        (
            &[
                ("X-Forwarded-For", "2001:db8::7"),
                ("Forwarded", "for=6.6.6.6"),
            ],
            "2001:db8::7",
        ),
        (&[("X-Forwarded-For", "192.0.2.1, unknown")], "127.0.0.1"),
    ] {
        let answer = ask(&mut connection, lines);
        assert!(!answer.text().contains("RATE_LIMITED"), "{lines:?}");
        let head = upstream.take().head;
        assert_eq!(head.one("x-forwarded-for").unwrap(), client);
        assert!(!head.has("forwarded"));
        let line = gateway.last_line();
        assert_eq!(
            (line["client_ip"].as_str(), line["peer_ip"].as_str()),
            (Some(client), Some("127.0.0.1"))
        );
        assert_eq!(
            line["caller"]
                .as_str()
                .unwrap()
                .split('/')
                .next()
                .unwrap()
                .trim_end_matches("::"),
            format!("address {client}").replace("::7", "")
        );
        let again = ask(&mut connection, lines);
        assert!(again.text().contains("RATE_LIMITED"), "{lines:?}");
    }
    // Left of what the proxy wrote may stand anything: it makes nobody another.
    for forged in ["192.0.2.99", "unknown", "\"", "10.9.9.9"] {
        let line = format!("{forged}, 192.0.2.1");
        let answer = ask(&mut connection, &[("X-Forwarded-For", &line)]);
        assert!(answer.text().contains("RATE_LIMITED"), "{forged}");
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn scheme_and_host_pass_from_a_trusted_proxy_only() {
    let upstream = Upstream::recording();
    let told = [
        ("X-Forwarded-For", "192.0.2.1"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "dealer.example.com"),
        ("X-Forwarded-Port", "443"),
        ("X-Real-IP", "6.6.6.6"),
        (
            "Forwarded",
            "for=192.0.2.2;proto=http;host=\"other.example:80\"",
        ),
    ];
    let forwarded = format!("{TRUSTED}\nclient_header = \"forwarded\"");
    for (lines, expected) in [
        ("", ["127.0.0.1", "http", "gw.example"]),
        (
            "trusted_proxies = [\"10.0.0.0/8\"]",
            ["127.0.0.1", "http", "gw.example"],
        ),
        (TRUSTED, ["192.0.2.1", "https", "dealer.example.com"]),
        (&forwarded, ["192.0.2.2", "http", "other.example:80"]),
    ] {
        let gateway = fronted(lines, &upstream);
        let post = Post::bare("/a2a").field("Host", "gw.example");
        let post = told
            .iter()
            .fold(post, |post, (name, value)| post.field(name, value));
        assert_eq!(gateway.ask(post.body(call("1")).bytes()).status, 200);
        let head = upstream.take().head;
        let found = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"]
            .map(|name| head.one(name).unwrap());
        assert_eq!(found, expected, "{lines}");
        for gone in ["x-forwarded-port", "x-real-ip", "forwarded"] {
            assert!(!head.has(gone), "{lines}: {gone}");
        }
    }
}

#[test]
fn a_proxy_header_and_trusted_proxies_together() {
    let upstream = Upstream::recording();
    let gateway = fronted(
        &format!("{PROXY}\ntrusted_proxies = [\"10.0.0.0/8\"]"),
        &upstream,
    );
    let told = Post::to("/a2a")
        .field("X-Forwarded-For", "192.0.2.1")
        .body(call("1"));
    // The balancer in front of a proxy of ours names the proxy, and the proxy its client.
    for (source, client) in [("10.0.0.5", "192.0.2.1"), ("192.0.2.50", "192.0.2.50")] {
        let header = format!("PROXY TCP4 {source} 10.0.0.1 8080 80\r\n");
        let mut connection = gateway.client();
        connection.send([header.as_bytes(), &told.bytes()].concat());
        assert_eq!(connection.answer().status, 200);
        let head = upstream.take().head;
        assert_eq!(head.one("x-forwarded-for").unwrap(), client);
        assert_eq!(gateway.last_line()["peer_ip"], "127.0.0.1");
    }
}
