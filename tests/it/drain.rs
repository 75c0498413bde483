//! How the gateway stops: in order, finishing what is in flight, and never longer than allowed.

use std::fs;
use std::future::pending;
use std::time::Duration;

use crate::support::call::{call, post};
use crate::support::gateway::{PRELUDE, dealer, two_workers};
use crate::support::process::Process;
use crate::support::wait::stays;
use crate::support::{Client, Gateway, PATIENCE, Post, Upstream, Watch, upstream, wait_until};

/// Drains on the current thread until everything has finished or the timeout is over.
fn drain(gateway: &Gateway) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(gateway.inner.drain(pending()));
}

fn shutdown(delay: &str, timeout: &str, upstream: &Upstream) -> String {
    two_workers(&format!(
        "[shutdown]\ndelay = \"{delay}\"\ntimeout = \"{timeout}\"\n{}",
        dealer(upstream)
    ))
}

#[test]
fn in_order() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start_whole(&shutdown("300ms", "20s", &upstream));
    assert_eq!(gateway.admin_get("/readyz").status, 200);

    // One call that its dealer thinks about, one stream, one connection between two calls.
    let mut waiting = gateway.client();
    waiting.send(post(call("1")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    let mut streaming = gateway.client();
    streaming.send(post(call("2")));
    let mut stream = upstream.accept();
    stream.request().unwrap();
    stream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    stream.chunk("one");
    streaming.head();
    assert_eq!(streaming.bytes(3), b"one");
    let mut idle = gateway.client();
    let refused = Post::to("/a2a").field("A2A-Version", "9.9").body(call("3"));
    assert_eq!(idle.ask(refused.bytes()).code(), -32009);

    let mut silent = gateway.client();

    std::thread::scope(|scope| {
        let draining = scope.spawn(|| drain(&gateway));
        // At first only readiness says so, and new calls are still served.
        wait_until("not ready", || gateway.admin_get("/readyz").status == 503);
        assert_eq!(gateway.admin_get("/livez").status, 200);
        assert_eq!(gateway.ask(refused.bytes()).code(), -32009);
        // Then nobody new is let in, and quiet connections end.
        wait_until("closed to new connections", || {
            Client::try_connect(gateway.address()).is_err()
        });
        assert!(idle.is_closed());
        assert!(silent.is_closed());
        assert!(!draining.is_finished());
        // What is in flight goes on.
        stream.chunk("two");
        assert_eq!(streaming.bytes(3), b"two");
        peer.send(upstream::ok());
        let answer = waiting.answer();
        assert_eq!(answer.status, 200);
        assert!(answer.closes(), "{:?}", answer.head);
        assert!(waiting.is_closed());
        assert!(!draining.is_finished());
        stream.send("0\r\n\r\n");
        assert_eq!(streaming.chunk().unwrap(), None);
        assert!(streaming.is_closed());
        // With the last of them it is over, long before the timeout. Metrics tell until the end.
        draining.join().unwrap();
        assert_eq!(gateway.series("forecourt_requests_in_flight"), 0.0);
    });
    let Gateway {
        inner, directory, ..
    } = gateway;
    inner.stop();
    let log = fs::read_to_string(directory.path().join("access.log")).unwrap();
    assert_eq!(log.lines().count(), 4, "every line is written out");
}

#[test]
fn from_the_first_moment_each_answer_ends_its_connection() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_whole(&shutdown("20s", "1s", &upstream));
    let forwarded = post(call("1"));
    let refused = Post::to("/a2a").field("A2A-Version", "9.9").body(call("2"));
    // Each worker is told in its own time: one connection at least at each, to know when.
    let mut scouts = Vec::new();
    wait_until("a connection at each worker", || {
        let mut scout = gateway.client();
        assert!(!scout.ask(refused.bytes()).closes());
        scouts.push(scout);
        let metrics = gateway.metrics();
        let at = |worker| metrics[&format!("forecourt_worker_connections{{worker=\"{worker}\"}}")];
        at(0) >= 1.0 && at(1) >= 1.0
    });
    let (mut kept, mut other) = (gateway.client(), gateway.client());
    assert!(!kept.ask(&forwarded).closes());
    assert!(!other.ask(refused.bytes()).closes());
    std::thread::scope(|scope| {
        let (hurry, hurried) = tokio::sync::oneshot::channel::<()>();
        let gateway = &gateway;
        let draining = scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(gateway.inner.drain(async move {
                let _ = hurried.await;
            }));
        });
        for scout in &mut scouts {
            wait_until("leaving", || scout.ask(refused.bytes()).closes());
        }
        for (client, bytes) in [
            (&mut kept, &forwarded[..]),
            (&mut other, &refused.bytes()[..]),
        ] {
            let answer = client.ask(bytes);
            assert_eq!((answer.status, answer.closes()), (200, true));
            assert!(client.is_closed());
        }
        // A new connection is still let in, and told the same.
        let answer = gateway.ask(&forwarded);
        assert_eq!((answer.status, answer.closes()), (200, true));
        hurry.send(()).unwrap();
        draining.join().unwrap();
    });
}

#[test]
fn whoever_connected_before_the_listener_closed_is_answered() {
    const CLIENTS: usize = 60;
    for _ in 0..5 {
        let upstream = Upstream::recording();
        let gateway = Gateway::start_whole(&shutdown("0s", "20s", &upstream));
        let mut clients: Vec<Client> = Vec::with_capacity(CLIENTS);
        for _ in 0..CLIENTS {
            let mut client = gateway.client();
            client.send(post(call("1")));
            clients.push(client);
        }
        std::thread::scope(|scope| {
            // Some of them still stand in the queue of the listener.
            let draining = scope.spawn(|| drain(&gateway));
            for client in &mut clients {
                assert_eq!(client.answer().status, 200);
            }
            draining.join().unwrap();
        });
    }
}

#[test]
fn a_stream_is_cut_at_the_timeout_and_looks_cut() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start_whole(&shutdown("0s", "200ms", &upstream));
    let mut client = gateway.client();
    client.send(post(call("1")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    peer.chunk("one");
    client.head();
    assert_eq!(client.bytes(3), b"one");
    let watch = Watch::start();
    drain(&gateway);
    assert!(watch.elapsed() >= Duration::from_millis(200));
    // Up to here it was served.
    peer.chunk("two");
    assert_eq!(client.bytes(3), b"two");
    let Gateway {
        inner, directory, ..
    } = gateway;
    inner.stop();
    assert!(client.chunk().is_err(), "a clean end");
    assert!(peer.is_closed_within(PATIENCE));
    let log = fs::read_to_string(directory.path().join("access.log")).unwrap();
    assert_eq!(log.lines().count(), 1, "what was cut is logged");
}

#[test]
fn a_request_on_a_kept_connection_during_the_drain() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start_whole(&shutdown("0s", "20s", &upstream));
    let mut client = gateway.client();
    client.send(post(call("1")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    std::thread::scope(|scope| {
        let draining = scope.spawn(|| drain(&gateway));
        wait_until("closed", || Client::try_connect(gateway.address()).is_err());
        // A second call that is already on the wire behind the first one.
        drop(client.try_send(post(call("2"))));
        peer.send(upstream::ok());
        let answer = client.answer();
        assert_eq!((answer.status, answer.closes()), (200, true));
        // It is not served, so that it can safely go elsewhere.
        assert!(!matches!(client.try_answer(), Ok(Some(_))));
        draining.join().unwrap();
    });
    assert_eq!(upstream.count(), 1);
}

#[test]
fn the_process_ends_well_on_sigterm() {
    let upstream = Upstream::manual();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    fs::write(&file, shutdown("0s", "20s", &upstream)).unwrap();
    for name in ["TERM", "INT"] {
        let mut process = Process::start(&file);
        let (public, admin) = process.addresses();
        let mut client = Client::connect(public);
        client.send(post(call("1")));
        let mut peer = upstream.accept();
        peer.request().unwrap();
        process.signal(name);
        process.says("draining");
        let ready = Post::method("GET", "/readyz").field("Host", "localhost");
        assert_eq!(Client::connect(admin).ask(ready.bytes()).status, 503);
        assert!(stays(Duration::from_millis(50), || process.is_running()));
        peer.send(upstream::ok());
        let answer = client.answer();
        assert_eq!((answer.status, answer.closes()), (200, true));
        assert_eq!(process.ended().code(), Some(0), "{:?}", process.seen);
    }
    let log = fs::read_to_string(directory.path().join("access.log")).unwrap();
    assert_eq!(log.lines().count(), 2);
}

#[test]
fn too_few_open_files_are_told_at_the_start() {
    let upstream = Upstream::manual();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    // More than any system grants.
    let many = "[limits]\nconnections = 4000000000\n";
    fs::write(&file, format!("{many}{}", shutdown("0s", "1s", &upstream))).unwrap();
    let mut process = Process::start(&file);
    let told = process.says("the limit of open files is below");
    assert_eq!(told["sockets"], 4_000_000_000_u64 + 1024, "{told}");
}

#[test]
fn a_second_sigterm_ends_it_at_once() {
    let upstream = Upstream::manual();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    fs::write(&file, shutdown("60s", "600s", &upstream)).unwrap();
    let mut process = Process::start(&file);
    let (public, _) = process.addresses();
    let mut client = Client::connect(public);
    client.send(post(call("1")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    process.signal("TERM");
    process.says("draining");
    process.signal("TERM");
    assert_eq!(process.ended().code(), Some(0));
    assert!(!matches!(client.try_answer(), Ok(Some(_))));
    assert!(peer.is_closed_within(PATIENCE));
}

#[test]
fn sighup_reloads() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let configuration = format!("{PRELUDE}{}", dealer(&upstream));
    fs::write(&file, &configuration).unwrap();
    let mut process = Process::start(&file);
    let (public, _) = process.addresses();
    let mut client = Client::connect(public);
    assert_eq!(client.ask(post(call("1"))).status, 200);
    process.signal("HUP");
    process.says("configuration unchanged");
    fs::write(
        &file,
        configuration.replace("path = \"/a2a\"", "path = \"/b2b\""),
    )
    .unwrap();
    process.signal("HUP");
    process.says("configuration applied");
    assert_eq!(client.ask(post(call("1"))).status, 404);
    fs::write(&file, configuration.replace("path = ", "pth = ")).unwrap();
    process.signal("HUP");
    let rejected = process.says("configuration rejected");
    let text = rejected["problems"].as_str().unwrap();
    assert!(
        text.contains("forecourt.toml:") && text.contains("pth"),
        "{text}"
    );
    process.signal("TERM");
    assert_eq!(process.ended().code(), Some(0));
}
