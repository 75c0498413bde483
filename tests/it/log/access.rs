//! The access log: what a line says of a real call, and how the log changes while it is written.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Command;

use forecourt::state::Rejected;
use serde_json::{Value, json};

use crate::support::call::{call, post};
use crate::support::frames::{Frames, REFUSED_STREAM};
use crate::support::gateway::{PRELUDE, dealer, dealer_with};
use crate::support::process::Process;
use crate::support::tls::{Place, Speaker, secured};
use crate::support::upstream::RESULT;
use crate::support::{Client, Gateway, Post, U, Upstream, wait_until};

const OTHER: &str = "https://ext.example/secret-extension";

fn line_of(gateway: &Gateway, request: Post) -> Value {
    let before = gateway.access_log().len();
    gateway.ask(request.body(call("1")).bytes());
    wait_until("a line is written", || gateway.access_log().len() > before);
    gateway.last_line()
}

#[test]
fn a_line_tells_what_was_supplied_and_repeats_no_value() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let line = line_of(&gateway, Post::to("/a2a"));
    for field in ["a2a_version", "a2a_extensions", "other_extensions"] {
        assert_eq!(line.get(field), None, "{field}");
    }
    for (version, told) in [
        ("1.0.3", "1.0"),
        ("0.3", "0.3"),
        ("", "empty"),
        ("secret-1", "invalid"),
    ] {
        let line = line_of(&gateway, Post::to("/a2a").field("A2A-Version", version));
        assert_eq!(line["a2a_version"], told, "{version}");
    }
    let twice = Post::to("/a2a")
        .field("A2A-Version", "1.0")
        .field("A2A-Version", "1.0");
    assert_eq!(line_of(&gateway, twice)["a2a_version"], "several");
    let list = |list: &str| line_of(&gateway, Post::to("/a2a").field("A2A-Extensions", list));
    let line = list(&format!("{U}, {OTHER}, {OTHER}"));
    assert_eq!(line["a2a_extensions"], json!(["aap/3.0"]));
    assert_eq!(line["other_extensions"], 2);
    let line = list("");
    assert_eq!(line["a2a_extensions"], json!([]));
    assert_eq!(line.get("other_extensions"), None);
    let text = fs::read_to_string(gateway.directory.path().join("access.log")).unwrap();
    assert!(!text.contains("secret"), "{text}");
    // What is no call says nothing of it.
    let card = Post::method("GET", "/a2a/.well-known/agent-card.json").field("Host", "gw.example");
    gateway.ask(card.field("A2A-Version", "1.0").bytes());
    assert_eq!(gateway.last_line().get("a2a_version"), None);
}

#[test]
fn an_own_extension_is_told_as_pinned() {
    let upstream = Upstream::recording();
    let contract = format!(
        "[contract.house]\na2a_version = \"1.0\"\nextension = \"{OTHER}\"\nabsent = \"infer\"\n\
         require_extension = true\ndialect = \"wrapped\"\n"
    );
    let with = dealer_with(&upstream, "", "contract = \"house\"");
    let gateway = Gateway::start(&format!("{contract}{with}"));
    let line = line_of(&gateway, Post::to("/a2a").field("A2A-Extensions", OTHER));
    assert_eq!(line["a2a_extensions"], json!(["pinned"]));
    assert_eq!(line["outcome"], "ok");
}

#[test]
fn a_line_tells_of_tls_of_quotas_and_of_the_configuration() {
    let upstream = Upstream::recording();
    let place = Place::new();
    place.issue("own", &["gw.example"]);
    let quotas = "[quota.many]\nper = \"all\"\nrate = \"100/day\"\nburst = 50\n\
                  [quota.few]\nper = \"caller\"\nrate = \"3/day\"\nburst = 3\n";
    let with = dealer_with(&upstream, "", "quotas = [\"many\", \"few\"]");
    let gateway = Gateway::start_whole(&secured(&place.pair("own"), &format!("{quotas}{with}")));
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let speaker = Speaker::version(&place.authority, version);
        let mut client = speaker.connect(gateway.address(), "gw.example");
        assert_eq!(client.ask(post(call("1"))).status, 200);
        drop(client);
    }
    let mut client = Speaker::trusting(&place.authority).connect(gateway.address(), "gw.example");
    for _ in 0..2 {
        client.ask(post(call("1")));
    }
    wait_until("all are written", || gateway.access_log().len() == 4);
    let mut lines = gateway.access_log();
    lines.sort_by_key(|line| {
        let remaining = line["limit_remaining"].as_u64().unwrap();
        (std::cmp::Reverse(remaining), line["outcome"] != "ok")
    });
    let of = |field: &str| -> Vec<_> { lines.iter().map(|line| line[field].clone()).collect() };
    let versions = of("tls_version");
    assert!(versions.contains(&json!("TLSv1.2")) && versions.contains(&json!("TLSv1.3")));
    assert!(of("sni").iter().all(|name| name == "gw.example"));
    // The tightest of the two, and of who was refused what it has left.
    assert_eq!(of("outcome")[..3], ["ok", "ok", "ok"]);
    assert_eq!(of("limit_remaining"), [2, 1, 0, 0]);
    assert_eq!(of("outcome")[3], "rate_limited");
    let shown = gateway.admin_get("/config").json();
    let hash = shown["hash"]
        .as_str()
        .unwrap()
        .strip_prefix("sha256:")
        .unwrap()
        .to_owned();
    assert!(of("config_hash").iter().all(|it| *it == hash[..8]));
    for line in &lines {
        let is_forwarded = line["outcome"] == "ok";
        assert_eq!(line.get("overhead_ms").is_some(), is_forwarded, "{line}");
        if is_forwarded {
            let ms = |field: &str| line[field].as_f64().unwrap();
            assert!(
                ms("overhead_ms") + ms("upstream_ms") <= ms("duration_ms"),
                "{line}"
            );
        }
    }
}

#[test]
fn a_second_attempt_is_told() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&dealer_with(&upstream, "http2 = true", ""));
    let accept = || Frames::dealer(&upstream.accept(), &[]);
    let mut client = gateway.client();
    client.send(post(call("1")));
    let mut first = accept();
    let (stream, _) = first.request().unwrap();
    first.reset(stream, REFUSED_STREAM);
    let mut second = accept();
    let (stream, _) = second.request().unwrap();
    second.answer(stream, RESULT);
    assert_eq!(client.answer().status, 200);
    client.send(post(call("2")));
    let (stream, _) = second.request().unwrap();
    second.answer(stream, RESULT);
    assert_eq!(client.answer().status, 200);
    let lines = gateway.access_log();
    assert_eq!(lines[0]["attempts"], 2);
    assert_eq!(lines[1].get("attempts"), None);
}

#[test]
fn everything_but_the_format_of_diagnostics_changes_with_a_reload() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let path = |name: &str| gateway.directory.path().join(name);
    let put = |log: &str| {
        let whole = PRELUDE.replace("access = \"access.log\"", log);
        gateway.write_whole(&format!("{whole}{}", dealer(&upstream)));
        gateway.inner.reload().unwrap();
    };
    let ask = |id: &str| {
        let request = Post::to("/a2a")
            .field("X-Request-Id", id)
            .field("User-Agent", "a \"b\"");
        assert_eq!(gateway.ask(request.body(call("1")).bytes()).status, 200);
    };
    ask("one");
    put("access = \"other.log\"\naccess_format = \"combined\"");
    ask("two");
    put("access = \"off\"");
    ask("three");
    put("access = \"other.log\"\nlevel = \"debug\"\naccess_ok_sample = \"0%\"");
    ask("four");
    let bad = Post::to("/a2a").field("A2A-Version", "0.3").body(call("1"));
    gateway.ask(bad.bytes());
    put("access = \"other.log\"");
    ask("five");
    gateway.inner.flush_access_log();
    let first = fs::read_to_string(path("access.log")).unwrap();
    assert_eq!(first.lines().count(), 1);
    assert!(first.contains("\"request_id\":\"one\""));
    let other = fs::read_to_string(path("other.log")).unwrap();
    let lines: Vec<_> = other.lines().collect();
    assert_eq!(lines.len(), 3, "{other}");
    let expected = "127.0.0.1 - - [30/Nov/2026:16:53:23 +0000] \"POST /a2a HTTP/1.1\" 200 60 \"-\" \
                    \"a \\x22b\\x22\" \"two\" ok";
    assert_eq!(lines[0], expected);
    let outcome = |line: &str| serde_json::from_str::<Value>(line).unwrap()["outcome"].clone();
    assert_eq!(
        [outcome(lines[1]), outcome(lines[2])],
        ["version_not_supported", "ok"]
    );
    assert!(lines[2].contains("\"five\""));
    assert_eq!(
        gateway.admin_get("/status").json()["log"]["configured"],
        "info"
    );
}

#[test]
fn a_log_that_cannot_be_opened_is_a_problem_and_the_old_one_is_written_on() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    gateway.post(call("1"));
    let fifo = gateway.directory.path().join("nobody-reads");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    for wrong in ["no/such/directory/access.log", "nobody-reads", "."] {
        let whole = PRELUDE.replace("access.log", wrong);
        // What stands beside it is not applied.
        gateway.write_whole(&format!(
            "{whole}{}",
            dealer(&upstream).replace("/a2a\"\nup", "/b\"\nup")
        ));
        let Err(Rejected::Problems(problems)) = gateway.inner.reload() else {
            panic!("{wrong}: taken");
        };
        let problem = problems.iter().next().unwrap();
        assert_eq!(
            (problems.len(), &*problem.path),
            (1, "log.access"),
            "{problems}"
        );
        assert!(
            problem.line > 0 && problem.what.contains("cannot be opened"),
            "{problems}"
        );
        assert_eq!(gateway.post(call("2")).status, 200);
    }
    assert_eq!(gateway.access_log().len(), 4);
    let status = gateway.admin_get("/status").json();
    assert_eq!(status["configuration"]["generation"], 1);
}

#[test]
fn going_back_goes_back_to_the_log_of_then_and_a_dry_run_makes_no_file() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let order = |target: &str| {
        let request = Post::method("POST", target).field("Host", "127.0.0.1");
        gateway.admin().ask(request.bytes())
    };
    let put = |log: &str| {
        let whole = PRELUDE.replace("access.log", log);
        gateway.write_whole(&format!("{whole}{}", dealer(&upstream)));
    };
    let lines = |log: &str| {
        gateway.inner.flush_access_log();
        let text = fs::read_to_string(gateway.directory.path().join(log));
        text.map_or(0, |text| text.lines().count())
    };
    gateway.post(call("1"));
    put("no/such/directory/other.log");
    let told = order("/reload?dry-run");
    assert_eq!(told.status, 422);
    assert!(told.text().contains("cannot be opened"), "{}", told.text());
    put("other.log");
    assert_eq!(order("/reload?dry-run").status, 200);
    assert!(!gateway.directory.path().join("other.log").exists());
    gateway.inner.reload().unwrap();
    gateway.post(call("2"));
    assert_eq!(order("/rollback").status, 200);
    gateway.post(call("3"));
    gateway.post(call("4"));
    assert_eq!((lines("access.log"), lines("other.log")), (3, 1));
}

/// A whole configuration for a process, its log in this file.
fn written(directory: &Path, upstream: &Upstream, log: &str) -> std::path::PathBuf {
    let file = directory.join("forecourt.toml");
    let whole = PRELUDE.replace("access = \"access.log\"", log);
    fs::write(&file, format!("{whole}{}", dealer(upstream))).unwrap();
    file
}

#[test]
fn after_a_rotation_the_file_is_opened_anew_and_no_line_is_lost() {
    const ROUNDS: usize = 5;
    const CALLS: usize = 40;
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let file = written(directory.path(), &upstream, "access = \"access.log\"");
    let mut process = Process::start(&file);
    let (address, _) = process.addresses();
    let log = directory.path().join("access.log");
    let mut client = Client::connect(address);
    for round in 0..ROUNDS {
        for call_ in 0..CALLS {
            let id = format!("{round}-{call_}");
            let request = Post::to("/a2a").field("X-Request-Id", &id).body(call("1"));
            assert_eq!(client.ask(request.bytes()).status, 200);
            if call_ == CALLS / 2 {
                fs::rename(&log, directory.path().join(format!("access.log.{round}"))).unwrap();
                process.signal("USR1");
                process.says("access log opened anew");
            }
        }
    }
    process.signal("TERM");
    assert!(process.ended().success());
    let mut ids: Vec<String> = Vec::new();
    for entry in fs::read_dir(directory.path()).unwrap() {
        let path = entry.unwrap().path();
        if path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("access.log")
        {
            let text = fs::read_to_string(path).unwrap();
            assert!(!text.is_empty());
            ids.extend(text.lines().map(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                line["request_id"].as_str().unwrap().to_owned()
            }));
        }
    }
    ids.sort();
    let mut all: Vec<_> = (0..ROUNDS)
        .flat_map(|round| (0..CALLS).map(move |call| format!("{round}-{call}")))
        .collect();
    all.sort();
    assert_eq!(ids, all);
}

#[test]
fn a_pipe_that_takes_nothing_stops_nobody_and_its_lines_are_counted() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("stuck");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    // Somebody has it open, and reads nothing.
    let held = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&fifo)
        .unwrap();
    let log = format!("access = \"{}\"", fifo.display());
    let whole = PRELUDE.replace("access = \"access.log\"", &log);
    let gateway = Gateway::start_whole(&format!("{whole}{}", dealer(&upstream)));
    let long = format!("/a2a/{}", "x".repeat(1000));
    let request = Post::to(&long).body(call("1")).bytes();
    let mut client = gateway.client();
    let dropped = || gateway.series("forecourt_access_log_dropped_total");
    let mut count = 0;
    wait_until("lines are lost", || {
        for _ in 0..20 {
            assert_eq!(client.ask(&request).status, 200);
            count += 1;
        }
        dropped() > 0.0
    });
    // More than the pipe takes was answered meanwhile.
    assert!(count > 60, "{count}");
    let status = gateway.admin_get("/status").json();
    assert!(status["access_log_dropped"].as_u64().unwrap() > 0);
    drop(held);
}
