//! How connections are spread over the workers, and that none is lost on the way.

use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::support::call::{call, post};
use crate::support::gateway::{dealer, two_workers};
use crate::support::process::Process;
use crate::support::wait::elapse;
use crate::support::{Client, Gateway, Post, Upstream, Watch, wait_until};

/// The open connections of two workers, once there are this many.
#[track_caller]
fn split(gateway: &Gateway, total: f64) -> (f64, f64) {
    let mut found = (0.0, 0.0);
    wait_until("all are counted", || {
        let metrics = gateway.metrics();
        let of = |worker| metrics[&format!("forecourt_worker_connections{{worker=\"{worker}\"}}")];
        found = (of(0), of(1));
        found.0 + found.1 == total
    });
    found
}

#[track_caller]
fn is_even((one, other): (f64, f64)) {
    let most = one.max(other) / (one + other);
    assert!(most <= 0.6, "{one} : {other}");
}

#[test]
fn sixty_four_connections_at_two_workers() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_two(&dealer(&upstream));
    let mut clients: Vec<_> = (0..64).map(|_| gateway.client()).collect();
    is_even(split(&gateway, 64.0));
    for client in &mut clients {
        assert_eq!(client.ask(post(call("1"))).status, 200);
    }
    drop(clients);
    assert_eq!(split(&gateway, 0.0), (0.0, 0.0));
    assert_eq!(
        gateway.series("forecourt_connections{listener=\"public\"}"),
        0.0
    );
}

#[test]
fn when_those_of_one_worker_end_new_ones_level_it() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_two(&dealer(&upstream));
    let mut by_worker: [Vec<Client>; 2] = Default::default();
    let mut before = (0.0, 0.0);
    for gone in [0, 1, 0] {
        by_worker[gone].clear();
        let left = by_worker[1 - gone].len();
        wait_until("they have ended", || {
            let total = u32::try_from(left).unwrap();
            before = split(&gateway, f64::from(total));
            before.0.min(before.1) == 0.0
        });
        for count in left + 1..=64 {
            let client = gateway.client();
            let now = split(&gateway, f64::from(u32::try_from(count).unwrap()));
            by_worker[usize::from(now.1 > before.1)].push(client);
            before = now;
        }
        is_even(before);
    }
}

#[test]
fn a_socket_that_was_there_before_is_shared() {
    let upstream = Upstream::recording();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // It may have waiting clients already.
    let mut early = Client::connect(address);
    early.send(post(call("1")));
    let gateway = Gateway::start_two_on(socket, &dealer(&upstream));
    assert_eq!(gateway.address(), address);
    assert_eq!(early.answer().status, 200);
    let mut clients: Vec<_> = (0..63).map(|_| gateway.client()).collect();
    is_even(split(&gateway, 64.0));
    for client in &mut clients {
        assert_eq!(client.ask(post(call("2"))).status, 200);
    }
}

/// As a service manager passes a socket.
fn activated(socket: &TcpListener, file: &Path) -> Process {
    let line = "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\" 3<&0 </dev/null";
    let socket = OwnedFd::from(socket.try_clone().unwrap());
    Process::start_through(line, Stdio::from(socket), file)
}

#[test]
fn a_service_managers_socket_outlives_the_process() {
    let upstream = Upstream::recording();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let configuration =
        two_workers(&dealer(&upstream)).replacen("127.0.0.1:0", &address.to_string(), 1);
    fs::write(&file, &configuration).unwrap();
    for _ in 0..2 {
        let mut process = activated(&socket, &file);
        let (public, _) = process.addresses();
        assert_eq!(public, address);
        let mut client = Client::connect(address);
        assert_eq!(client.ask(post(call("1"))).status, 200);
        process.signal("TERM");
        assert_eq!(process.ended().code(), Some(0));
        // Whoever comes now waits for the next process.
        let mut between = Client::connect(address);
        between.send(post(call("2")));
        let mut next = activated(&socket, &file);
        assert_eq!(between.answer().status, 200);
        next.signal("TERM");
        assert_eq!(next.ended().code(), Some(0));
    }

    // A socket that nothing serves would let its clients wait for ever.
    fs::write(
        &file,
        configuration.replace(&address.to_string(), "127.0.0.1:0"),
    )
    .unwrap();
    let mut process = activated(&socket, &file);
    process.says(&format!("a socket at {address} was passed"));
    assert_eq!(process.ended().code(), Some(1));
}

#[test]
fn without_descriptors_accepting_pauses_and_goes_on() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    fs::write(&file, two_workers(&dealer(&upstream))).unwrap();
    let mut process = Process::start_through("ulimit -n 64; exec \"$@\"", Stdio::null(), &file);
    let (public, admin) = process.addresses();
    let refused = Post::to("/a2a").field("A2A-Version", "9.9").body(call("1"));
    let mut first = Client::connect(public);
    assert_eq!(first.ask(refused.bytes()).code(), -32009);
    // Each worker takes its own descriptors when it begins: one connection at each, to know it has.
    let mut scouts = Vec::new();
    wait_until("a connection at each worker", || {
        let mut scout = Client::connect(public);
        assert_eq!(scout.ask(refused.bytes()).code(), -32009);
        scouts.push(scout);
        let asked = Post::method("GET", "/metrics").field("Host", "127.0.0.1");
        let metrics = Client::connect(admin).ask(asked.bytes()).text();
        let is_idle =
            |line: &str| line.starts_with("forecourt_worker_connections{") && line.ends_with(" 0");
        !metrics.lines().any(is_idle)
            && metrics.matches("forecourt_worker_connections{").count() == 2
    });
    drop(scouts);

    let mut many: Vec<_> = (0..80).map(|_| Client::connect(public)).collect();
    process.says("cannot accept connections");
    let watch = Watch::start();
    elapse(Duration::from_millis(500));
    // Whoever was let in is served, and whoever is out waits.
    assert_eq!(first.ask(refused.bytes()).code(), -32009);
    let last = many.last_mut().unwrap();
    last.send(refused.bytes());
    assert!(last.is_quiet());
    many.drain(..79);
    assert_eq!(many[0].answer().code(), -32009);
    assert_eq!(Client::connect(public).ask(post(call("2"))).status, 200);
    let took = watch.elapsed();
    process.signal("TERM");
    assert_eq!(process.ended().code(), Some(0));
    let pauses = process
        .seen
        .iter()
        .filter(|line| line.contains("cannot accept"));
    let most = 2 * (usize::try_from(took.as_millis()).unwrap() / 100 + 2);
    let pauses = pauses.count();
    assert!((2..=most).contains(&pauses), "{pauses} in {took:?}");
}
