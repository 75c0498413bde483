//! The level of the diagnostics, changed in a running process and back again.

use std::fs;
use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::support::call::call;
use crate::support::gateway::{PRELUDE, dealer};
use crate::support::process::{Ended, Process, run_with};
use crate::support::{Answer, Client, Gateway, Post, Upstream, wait_until};

fn ask(admin: SocketAddr, method: &str, body: &str) -> Answer {
    let request = Post::method(method, "/log").field("Host", "127.0.0.1");
    let length = body.len().to_string();
    let request = request.field("Content-Length", &length).body(body);
    Client::connect(admin).ask(request.bytes())
}

fn command(admin: SocketAddr, arguments: &[&str]) -> Ended {
    let arguments: Vec<_> = ["log-level"].iter().chain(arguments).copied().collect();
    run_with(&arguments, "FORECOURT_ADMIN", &format!("http://{admin}"))
}

fn gauge(admin: SocketAddr) -> String {
    let request = Post::method("GET", "/metrics").field("Host", "x");
    let text = Client::connect(admin).ask(request.bytes()).text();
    let series = "forecourt_log_level_changed ";
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line.unwrap().to_owned()
}

#[test]
fn another_level_for_a_time() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let with = |level: &str| format!("{PRELUDE}level = \"{level}\"\n{}", dealer(&upstream));
    fs::write(&file, with("info")).unwrap();
    let mut process = Process::start(&file);
    let (address, admin) = process.addresses();
    let ended = command(admin, &[]);
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "info\n"),
        "{}",
        ended.stderr
    );
    assert_eq!(gauge(admin), "0");

    let ended = command(admin, &["debug", "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&shown["level"], &shown["configured"]),
        (&json!("debug"), &json!("info"))
    );
    assert!(shown["until"].as_str().unwrap().ends_with('Z'));
    assert_eq!(gauge(admin), "1");
    process.says("log level changed");
    // It is in force: what is said at `debug` is heard.
    let mut client = Client::connect(address);
    client.ask(Post::to("/a2a").body(call("1")).bytes());
    drop(client);
    process.says("client connection ended");

    // What is refused changes nothing.
    for (body, told) in [
        ("", "expected"),
        ("{}", "expected"),
        ("{\"level\":\"loud\"}", "there is no level"),
        ("{\"level\":\"trace\",\"for\":\"25h\"}", "at most 24h"),
        ("{\"level\":\"trace\",\"for\":\"0s\"}", "at least 1s"),
        ("{\"level\":\"trace\",\"for\":\"ten\"}", "is not a duration"),
        ("{\"level\":\"trace\",\"more\":1}", "expected"),
    ] {
        let answer = ask(admin, "PUT", body);
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.text().contains(told), "{body}: {}", answer.text());
    }
    let large = format!("{{\"level\":\"{}\"}}", "x".repeat(5000));
    assert_eq!(ask(admin, "PUT", &large).status, 413);
    assert_eq!(ask(admin, "POST", "{\"level\":\"trace\"}").status, 405);
    assert_eq!(ask(admin, "GET", "").json()["level"], "debug");
    let ended = command(admin, &["loud"]);
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(2), ""),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("there is no level"));

    // A reload in between changes what it goes back to.
    fs::write(&file, with("warn")).unwrap();
    process.signal("HUP");
    process.says("configuration applied");
    let shown = ask(admin, "GET", "").json();
    assert_eq!(
        (&shown["level"], &shown["configured"]),
        (&json!("debug"), &json!("warn"))
    );

    let ended = command(admin, &["info,forecourt=trace", "--for", "1s"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.contains("then warn"), "{}", ended.stdout);
    wait_until("the level is the configured one", || gauge(admin) == "0");
    assert_eq!(
        ask(admin, "GET", "").json(),
        json!({ "level": "warn", "configured": "warn", "until": null })
    );
}

#[test]
fn nobody_who_is_no_operator_changes_it() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let put = |host: &str, more: &str| {
        let request = Post::method("PUT", "/log").field("Host", host).line(more);
        let body = "{\"level\":\"trace\"}";
        let length = body.len().to_string();
        let request = request.field("Content-Length", &length).body(body);
        gateway.admin().ask(request.bytes()).status
    };
    assert_eq!(put("gw.example", "X: y"), 403);
    assert_eq!(put("127.0.0.1", "Origin: http://127.0.0.1"), 403);
    assert_eq!(gateway.admin_get("/log").json()["until"], Value::Null);
}

#[test]
fn nobody_is_there_to_be_asked() {
    let ended = run_with(&["log-level"], "FORECOURT_ADMIN", "http://127.0.0.1:1");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let ended = run_with(
        &["log-level", "--for", "1m"],
        "FORECOURT_ADMIN",
        "http://127.0.0.1:1",
    );
    assert_eq!(ended.code, Some(2), "a time of nothing: {}", ended.stderr);
}
