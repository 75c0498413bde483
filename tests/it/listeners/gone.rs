//! A listener that goes: nobody new, and whoever is there is served to the end.

use std::net::TcpListener;
use std::time::Duration;

use crate::support::call::{call, post};
use crate::support::frames::{Frames, GOAWAY, NO_ERROR, SETTINGS};
use crate::support::gateway::dealer;
use crate::support::wait::stays;
use crate::support::{Client, Gateway, Upstream, Watch, upstream, wait_until};

use super::{at, is_refused, more, reload, with};

#[test]
fn requests_end_streams_go_on_and_its_series_are_dropped() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start_whole(&with(&upstream, &more("127.0.0.1:0", "")));
    let address = at(&gateway, "more");
    let mut other = gateway.client();
    let mut waiting = Client::connect(address);
    waiting.send(post(call("1")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    let mut streaming = Client::connect(address);
    streaming.send(post(call("2")));
    let mut stream = upstream.accept();
    stream.request().unwrap();
    stream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    stream.chunk("one");
    streaming.head();
    assert_eq!(streaming.bytes(3), b"one");
    let mut idle = Client::connect(address);
    let refused = crate::support::Post::to("/a2a").field("A2A-Version", "9.9");
    let refused = refused.body(call("3")).bytes();
    assert_eq!(idle.ask(&refused).code(), -32009);
    let mut multiplexed = Frames::client(address, &[]);
    assert_eq!(multiplexed.any().unwrap().kind, SETTINGS);

    reload(&gateway, &with(&upstream, ""));
    assert_eq!(gateway.inner.address("more"), None);
    // Who is between two requests is told to go.
    assert!(idle.is_closed());
    assert_eq!(multiplexed.until(GOAWAY).word(4), NO_ERROR);
    wait_until("closed to new connections", || is_refused(address));
    let text = gateway.admin_get("/metrics").text();
    assert!(!text.contains("listener=\"more\""), "{text}");
    let status = gateway.admin_get("/status").json();
    assert_eq!(status["listeners"].as_array().unwrap().len(), 1);
    // Who is in the middle of something finishes it.
    stream.chunk("two");
    assert_eq!(streaming.bytes(3), b"two");
    peer.send(upstream::ok());
    let answer = waiting.answer();
    assert_eq!(answer.status, 200);
    assert!(answer.closes() && waiting.is_closed());
    stream.send("0\r\n\r\n");
    assert_eq!(streaming.chunk().unwrap(), None);
    assert!(streaming.is_closed());
    // Where nothing changed, nothing happened.
    let answer = other.ask(&refused);
    assert!(answer.code() == -32009 && !answer.closes());
    wait_until("every connection is counted off", || {
        let busy = gateway.metrics();
        let of = |worker| busy[&format!("forecourt_worker_connections{{worker=\"{worker}\"}}")];
        of(0) + of(1) == 1.0
    });
}

#[test]
fn what_does_not_end_is_cut_after_the_shutdown_timeout() {
    let upstream = Upstream::manual();
    let limited = |listeners: &str| {
        format!(
            "{}[shutdown]\ntimeout = \"700ms\"\n",
            with(&upstream, listeners)
        )
    };
    let gateway = Gateway::start_whole(&limited(&more("127.0.0.1:0", "")));
    let mut streaming = Client::connect(at(&gateway, "more"));
    streaming.send(post(call("1")));
    let mut stream = upstream.accept();
    stream.request().unwrap();
    stream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    stream.chunk("one");
    streaming.head();
    assert_eq!(streaming.bytes(3), b"one");
    let watch = Watch::start();
    reload(&gateway, &limited(""));
    // A visible cut: not the end of a body.
    assert!(streaming.chunk().is_err());
    assert!(
        watch.elapsed() >= Duration::from_millis(650),
        "{:?}",
        watch.elapsed()
    );
}

#[test]
fn one_that_comes_back_does_so_at_once() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_whole(&with(&upstream, &more("127.0.0.1:0", "")));
    let address = at(&gateway, "more");
    let fixed = with(&upstream, &more(address, ""));
    // With its port written out it is the same socket.
    let mut kept = Client::connect(address);
    assert_eq!(kept.ask(post(call("1"))).status, 200);
    reload(&gateway, &fixed);
    assert_eq!(kept.ask(post(call("2"))).status, 200);
    for _ in 0..3 {
        reload(&gateway, &with(&upstream, ""));
        reload(&gateway, &fixed);
        let mut client = Client::connect(address);
        assert_eq!(client.ask(post(call("3"))).status, 200);
        assert_eq!(at(&gateway, "more"), address);
    }
    assert_eq!(
        gateway.series("forecourt_connections_refused_total{listener=\"more\"}"),
        0.0
    );
}

#[test]
fn a_service_managers_socket_is_left_alone_and_taken_again() {
    let upstream = Upstream::recording();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let passed = socket.try_clone().unwrap();
    let gateway = Gateway::start_two_on(passed, &dealer(&upstream));
    let whole = std::fs::read_to_string(gateway.path()).unwrap();
    let without = whole.replace("[listener.public]", "[listener.other]");
    let without = without.replace(&address.to_string(), "127.0.0.1:0");
    let mut kept = Client::connect(address);
    assert_eq!(kept.ask(post(call("1"))).status, 200);

    reload(&gateway, &without);
    let other = at(&gateway, "other");
    assert_eq!(Client::connect(other).ask(post(call("2"))).status, 200);
    assert!(kept.is_closed());
    // It is the service manager's: it listens, and nobody here accepts.
    wait_until("nobody accepts", || {
        let mut client = Client::connect(address);
        client.send(post(call("3")));
        stays(Duration::from_millis(300), || client.is_quiet())
    });
    let mut early = Client::connect(address);
    early.send(post(call("4")));
    reload(&gateway, &whole);
    // Who waited is served, and so is who comes.
    assert_eq!(early.answer().status, 200);
    assert_eq!(Client::connect(address).ask(post(call("5"))).status, 200);
    drop(socket);
}
