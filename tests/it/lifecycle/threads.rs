//! A gateway that is not whole does not go on as if it were.

use std::fs;
use std::process::Stdio;

use crate::support::call::{call, post};
use crate::support::gateway::{PRELUDE, dealer, dealer_with, two_workers};
use crate::support::process::Process;
use crate::support::{Client, Gateway, Post, Upstream, wait_until};

#[test]
fn with_few_descriptors_it_serves_or_it_ends() {
    let dealer_ = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let configuration = PRELUDE.replace("workers = 1", "workers = 4");
    fs::write(&file, format!("{configuration}{}", dealer(&dealer_))).unwrap();
    let (mut ended, mut served) = (0, 0);
    // From too few for the sockets over too few for the workers to enough.
    for most in (8..80).step_by(3) {
        let line = format!("ulimit -n {most}; exec \"$@\"");
        let mut process = Process::start_through(&line, Stdio::null(), &file);
        let mut status = None;
        wait_until("it serves, or has ended", || {
            if !process.is_running() {
                status = Some(process.ended());
                return true;
            }
            process.has_said("ready")
        });
        match status {
            Some(status) => {
                // With too few for the configuration file, that is what cannot be read.
                let code = status.code();
                assert!(
                    matches!(code, Some(1 | 78)),
                    "{most}: {code:?} {:?}",
                    process.seen
                );
                ended += 1;
            }
            None => {
                // Whoever says that it is ready is whole.
                let mut threads = process.threads();
                threads.retain(|it| it.starts_with("worker-") || it == "control");
                threads.sort();
                // A thread without a name of its own has its parent's.
                threads.dedup();
                let all = ["control", "worker-0", "worker-1", "worker-2", "worker-3"];
                assert_eq!(threads, all, "{most}");
                served += 1;
            }
        }
    }
    assert!(ended > 0 && served > 0, "{ended} {served}");
}

#[test]
fn every_thread_turns() {
    let dealer_ = Upstream::recording();
    let gateway = Gateway::start_whole(&two_workers(&dealer(&dealer_)));
    let mut pulse = gateway.inner.pulse();
    for _ in 0..3 {
        wait_until("all have turned", || pulse.still().next().is_none());
        pulse.feel();
        let still: Vec<_> = pulse.still().collect();
        assert!(
            still.len() <= 3
                && still
                    .iter()
                    .all(|it| ["worker-0", "worker-1", "control"].contains(it))
        );
    }
    assert_eq!(gateway.post(call("1")).status, 200);
}

#[test]
fn a_worker_that_hangs_holds_up_no_end() {
    let dealer_ = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let quota = "[quota.all]\nper = \"all\"\nrate = \"1000/s\"\nburst = 1000\n";
    let configuration = format!(
        "[shutdown]\ntimeout = \"200ms\"\n{quota}{}",
        dealer_with(&dealer_, "", "quotas = [\"all\"]")
    );
    fs::write(&file, two_workers(&configuration)).unwrap();
    let mut process = Process::start_test("lifecycle::as_a_process", &file, &[]);
    let (public, _) = process.addresses();
    process.says("ready");
    fs::write(directory.path().join("block"), "").unwrap();
    let mut client = Client::connect(public);
    client.send(post(call("1")));
    let block = directory.path().join("hangs");
    wait_until("a worker hangs", || block.exists());
    process.signal("TERM");
    process.says("a thread does not end");
    assert_eq!(process.ended().code(), Some(0));
    assert!(!matches!(client.try_answer(), Ok(Some(_))));
}

#[test]
fn an_orchestrator_that_grants_too_little_is_told_of_at_the_start() {
    let dealer_ = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let shutdown = "[shutdown]\ndelay = \"5s\"\ntimeout = \"25s\"\n";
    fs::write(
        &file,
        two_workers(&format!("{shutdown}{}", dealer(&dealer_))),
    )
    .unwrap();
    for (granted, is_told) in [("34", true), ("35", false), ("60", false), ("soon", true)] {
        let variable = [("TERMINATION_GRACE_PERIOD_SECONDS", granted)];
        let mut process = Process::start_with(&file, &variable);
        process.addresses();
        process.signal("TERM");
        process.signal("INT");
        process.ended();
        let told = process
            .seen
            .iter()
            .any(|line| line.contains("TERMINATION_GRACE_PERIOD_SECONDS"));
        assert_eq!(told, is_told, "{granted}: {:?}", process.seen);
    }
}

#[test]
fn a_named_socket_is_its_listeners_whatever_its_address() {
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;

    let dealer_ = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let configuration = two_workers(&dealer(&dealer_));
    fs::write(&file, &configuration).unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let passed = || Stdio::from(OwnedFd::from(socket.try_clone().unwrap()));
    let line = |name: &str| {
        format!("LISTEN_FDS=1 LISTEN_FDNAMES={name} LISTEN_PID=$$ exec \"$@\" 3<&0 </dev/null")
    };
    let mut process = Process::start_through(&line("public"), passed(), &file);
    let (public, admin) = process.addresses();
    assert_eq!(public, address);
    assert_eq!(Client::connect(public).ask(post(call("1"))).status, 200);
    // A reload does not take it for another listener's.
    fs::write(
        &file,
        configuration.replace("path = \"/a2a\"", "path = \"/b2b\""),
    )
    .unwrap();
    let reload = Post::method("POST", "/reload").field("Host", "localhost");
    assert_eq!(Client::connect(admin).ask(reload.bytes()).status, 200);
    let moved = Post::to("/b2b").body(call("2"));
    assert_eq!(Client::connect(public).ask(moved.bytes()).status, 200);
    process.signal("TERM");
    assert_eq!(process.ended().code(), Some(0));
    // One that nobody has the name or the address of.
    let mut process = Process::start_through(&line("elsewhere"), passed(), &file);
    process.says(&format!("a socket at {address} was passed"));
    assert_eq!(process.ended().code(), Some(1));
}
