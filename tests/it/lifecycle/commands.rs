//! The commands that ask for a gateway's end, and for its health.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::support::call::{call, post};
use crate::support::gateway::{dealer, two_workers};
use crate::support::process::{Process, run, run_with};
use crate::support::wait::stays;
use crate::support::{Client, Nobody, Post, Upstream, Watch, upstream};

/// A process with a call in flight.
struct Busy {
    process: Process,
    client: Client,
    peer: crate::support::Peer,
    admin: SocketAddr,
    file: PathBuf,
    _dealer: Upstream,
    _directory: TempDir,
}

/// The configuration has the admin socket's real port.
fn busy(timeout: &str) -> Busy {
    let dealer_ = Upstream::manual();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let shutdown = format!("[shutdown]\ntimeout = \"{timeout}\"\n");
    let text = two_workers(&format!("{shutdown}{}", dealer(&dealer_)));
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let text = text.replacen(
        "[admin]\naddress = \"127.0.0.1:0\"",
        &format!("[admin]\naddress = \"{port}\""),
        1,
    );
    fs::write(&file, text).unwrap();
    let mut process = Process::start(&file);
    let (public, admin) = process.addresses();
    assert_eq!(admin, port);
    let mut client = Client::connect(public);
    client.send(post(call("1")));
    let mut peer = dealer_.accept();
    peer.request().unwrap();
    Busy {
        process,
        client,
        peer,
        admin,
        file,
        _dealer: dealer_,
        _directory: directory,
    }
}

fn ask(admin: SocketAddr, method: &str, path: &str) -> crate::support::Answer {
    let request = Post::method(method, path).field("Host", "127.0.0.1");
    Client::connect(admin).ask(request.bytes())
}

#[test]
fn drain_begins_what_sigterm_begins_and_the_signal_after_it_hurries_nothing() {
    let mut busy = busy("20s");
    let url = format!("http://{}", busy.admin);
    let asked = run(&["drain", "--admin", &url]);
    assert_eq!(
        (asked.code, &*asked.stdout),
        (Some(0), "draining, for 20s at most\n"),
        "{}",
        asked.stderr
    );
    busy.process.says("draining");
    assert_eq!(ask(busy.admin, "GET", "/readyz").status, 503);
    // To ask again, as the signal that follows a hook, changes nothing.
    let again = ask(busy.admin, "POST", "/drain");
    assert_eq!(again.status, 202);
    assert_eq!(
        again.json(),
        json!({ "draining": true, "at_most_ms": 20000 })
    );
    busy.process.signal("TERM");
    assert!(stays(Duration::from_millis(300), || busy
        .process
        .is_running()));
    busy.peer.send(upstream::ok());
    let answer = busy.client.answer();
    assert_eq!((answer.status, answer.closes()), (200, true));
    assert_eq!(busy.process.ended().code(), Some(0));
}

#[test]
fn after_drain_the_second_signal_cuts() {
    let mut busy = busy("600s");
    assert_eq!(ask(busy.admin, "POST", "/drain").status, 202);
    busy.process.says("draining");
    busy.process.signal("TERM");
    assert!(stays(Duration::from_millis(300), || busy
        .process
        .is_running()));
    busy.process.signal("TERM");
    assert_eq!(busy.process.ended().code(), Some(0));
    assert!(!matches!(busy.client.try_answer(), Ok(Some(_))));
}

#[test]
fn drain_waits_for_the_end_where_it_is_asked_to() {
    let mut busy = busy("20s");
    let url = format!("http://{}", busy.admin);
    let waiting = thread::spawn(move || run(&["drain", "--wait", "--admin", &url]));
    busy.process.says("draining");
    assert!(stays(Duration::from_millis(300), || !waiting.is_finished()));
    busy.peer.send(upstream::ok());
    assert_eq!(busy.client.answer().status, 200);
    let waited = waiting.join().unwrap();
    assert_eq!(
        (waited.code, &*waited.stdout),
        (Some(0), "drained\n"),
        "{}",
        waited.stderr
    );
    assert_eq!(busy.process.ended().code(), Some(0));
}

#[test]
fn drain_waits_no_longer_than_the_gateway_has() {
    let mut busy = busy("300ms");
    let url = format!("http://{}", busy.admin);
    let watch = Watch::start();
    assert_eq!(run(&["drain", "--wait", "--admin", &url]).code, Some(0));
    assert!(watch.elapsed() >= Duration::from_millis(300));
    assert_eq!(busy.process.ended().code(), Some(0));
    assert!(!matches!(busy.client.try_answer(), Ok(Some(_))));

    // Nobody there, and somebody who is no gateway.
    let nobody = Nobody::new();
    let ended = run(&["drain", "--admin", &format!("http://{}", nobody.address)]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.starts_with("no gateway answers at"),
        "{}",
        ended.stderr
    );
    let other = Upstream::recording();
    let ended = run(&["drain", "--admin", &format!("http://{}", other.address)]);
    assert_eq!(ended.code, Some(1));
}

#[test]
fn no_page_can_end_a_gateway() {
    let mut busy = busy("20s");
    for (host, origin) in [
        ("evil.example", None),
        ("127.0.0.1", Some("http://evil.example")),
    ] {
        let mut request = Post::method("POST", "/drain").field("Host", host);
        if let Some(origin) = origin {
            request = request.field("Origin", origin);
        }
        let answer = Client::connect(busy.admin).ask(request.bytes());
        assert_eq!(answer.status, 403);
    }
    assert_eq!(ask(busy.admin, "GET", "/drain").status, 405);
    assert_eq!(ask(busy.admin, "GET", "/readyz").status, 200);
    assert!(busy.process.is_running());
}

#[test]
fn health_is_told_by_the_exit_code() {
    let mut busy = busy("20s");
    let file = busy.file.display().to_string();
    let url = format!("http://{}", busy.admin);
    for arguments in [
        &["healthcheck", "-c", &file][..],
        &["healthcheck", "--ready", "-c", &file],
        &["healthcheck", "--admin", &url],
    ] {
        let ended = run(arguments);
        assert_eq!(
            (ended.code, &*ended.stdout, &*ended.stderr),
            (Some(0), "", ""),
            "{arguments:?}"
        );
    }
    // As a container has it: no argument at all.
    assert_eq!(
        run_with(&["healthcheck"], "FORECOURT_CONFIG", &file).code,
        Some(0)
    );

    // A file that became bad: what serves is as healthy as before.
    let good = fs::read_to_string(&busy.file).unwrap();
    fs::write(&busy.file, good.replace("path = ", "pth = ")).unwrap();
    assert_eq!(run(&["healthcheck", "-c", &file]).code, Some(0));

    assert_eq!(ask(busy.admin, "POST", "/drain").status, 202);
    busy.process.says("draining");
    let ended = run(&["healthcheck", "--ready", "-c", &file]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("503"), "{}", ended.stderr);
    // It turns while it drains.
    assert_eq!(run(&["healthcheck", "-c", &file]).code, Some(0));
    busy.peer.send(upstream::ok());
    assert_eq!(busy.process.ended().code(), Some(0));
    assert_eq!(run(&["healthcheck", "-c", &file]).code, Some(1));
}

#[test]
fn whoever_does_not_answer_is_not_well() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let watch = Watch::start();
    let ended = run(&["healthcheck", "--admin", &url]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("within 2s"), "{}", ended.stderr);
    let took = watch.elapsed();
    assert!(
        Duration::from_secs(2) <= took && took < Duration::from_secs(15),
        "{took:?}"
    );
    // Where to ask has to be known.
    let directory = tempfile::tempdir().unwrap();
    let any = directory.path().join("any.toml");
    fs::write(&any, "[admin]\naddress = \"127.0.0.1:0\"\n").unwrap();
    let any = any.display().to_string();
    for (arguments, why) in [
        (&["healthcheck", "-c", &any][..], "any port"),
        (&["healthcheck", "-c", "/nowhere.toml"], "/nowhere.toml"),
    ] {
        let ended = run(arguments);
        assert_eq!(ended.code, Some(1));
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
    }
}
