//! What a change would do, told before it is done.
//!
//! `UPDATE_GOLDEN=1 cargo test --test it change` rewrites the fixture; review the difference.

use std::fs;
use std::path::Path;

use super::*;
use crate::support::call::call;
use crate::support::gateway::{PRELUDE, dealer, dealer_with};
use crate::support::process::{Process, run, run_with};
use crate::support::tls::{Authority, Issued};
use crate::support::{Upstream, fixture, wait_until};

/// The two configurations of the fixture and the files that they name.
struct Rich {
    gateway: Gateway,
    authority: Authority,
    candidate: String,
}

fn issue(authority: &Authority, serial: u64, names: &[&str], until: i32) -> Issued {
    authority.issue_with(names, |params| {
        params.serial_number = Some(serial.into());
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(until, 1, 1);
    })
}

fn text(name: &str) -> String {
    fs::read_to_string(fixture::path("diff").join(name)).unwrap()
}

impl Rich {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let authority = Authority::new("roots");
        issue(&authority, 17, &["gw.example"], 2027).write(at, "gw");
        fs::write(at.join("roots.pem"), authority.pem()).unwrap();
        let keys = "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"1\",\
                    \"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";
        fs::write(at.join("keys.json"), keys).unwrap();
        let path = at.join("forecourt.toml");
        fs::write(&path, text("before.toml")).unwrap();
        Self {
            gateway: Gateway::start_there(directory, path),
            authority,
            candidate: text("after.toml"),
        }
    }

    /// The answer with what differs from run to run replaced by its name.
    fn steady(&self, text: &str) -> String {
        let directory = self.gateway.directory.path().display().to_string();
        let text = text.replace(&directory, "DIRECTORY");
        let mut steady = String::new();
        let mut rest = &*text;
        while let Some((before, after)) = rest.split_once("sha256:") {
            let hash = after.trim_start_matches(|it: char| it.is_ascii_hexdigit());
            let name = if hash.len() < after.len() { "HASH" } else { "" };
            steady += &format!("{before}sha256:{name}");
            rest = hash;
        }
        steady + rest
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a switch for whoever rewrites the files"
)]
fn is_update() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

#[test]
fn a_rich_difference_reads_as_it_should() {
    let rich = Rich::new();
    let gateway = &rich.gateway;
    // Somebody has used up something.
    let request = Post::to("/a2a").field("X-Api-Key", "k").body(call("1"));
    gateway.ask(request.bytes());
    let directory = gateway.directory.path();
    // Not yet looked at by the gateway: the listener's certificate was renewed, a root came in.
    let renewed = issue(&rich.authority, 18, &["gw.example", "new.example"], 2028);
    let waiting = directory.join("waiting");
    fs::create_dir(&waiting).unwrap();
    renewed.write(&waiting, "gw");
    let more = format!("{}{}", rich.authority.pem(), Authority::new("more").pem());
    fs::write(waiting.join("roots.pem"), more).unwrap();
    fs::copy(directory.join("keys.json"), waiting.join("keys.json")).unwrap();
    // The same files in a directory of their own: all of them are others.
    let elsewhere = format!("/diff?directory={}", waiting.display());
    let told = order(gateway, "/diff", &rich.candidate);
    let there = order(gateway, &elsewhere, &rich.candidate);
    assert_eq!((told.status, there.status), (200, 200), "{}", there.text());
    let shown = format!(
        "# In the place of the gateway's own\n\n{}\n# Beside other files\n\n{}",
        rich.steady(&told.text()),
        rich.steady(&there.text())
    );
    let path = fixture::path("diff").join("told.txt");
    if is_update() {
        fs::write(&path, &shown).unwrap();
    }
    assert_eq!(shown, fs::read_to_string(&path).unwrap_or_default());
    assert!(!shown.contains("dealer-secret"), "{shown}");
    // The same for programs.
    let answer = order(gateway, "/diff?as=json", &rich.candidate);
    assert_eq!(answer.head.all("content-type"), ["application/json"]);
    let json = answer.json();
    assert_eq!(json["different"], true);
    assert_eq!(json["text"], told.text());
    assert_eq!(json["restart_needed"], serde_json::json!(["log.format"]));
    assert!(
        !answer.text().contains("dealer-secret"),
        "{}",
        answer.text()
    );
    let tables = json["tables"].as_array().unwrap();
    let lakeside = tables
        .iter()
        .find(|it| it["table"] == "upstream" && it["name"] == "lakeside");
    let secret = &lakeside.unwrap()["keys"][1];
    assert_eq!(secret["key"], "headers.authorization");
    assert_eq!(
        (&secret["secret"], &secret["after"]),
        (&true.into(), &"***".into())
    );
    // Nothing has happened.
    let told = configuration(gateway);
    assert_eq!(
        (&told["generation"], &told["last_reload"]),
        (&1.into(), &Value::Null)
    );
    assert_eq!(told["history"], serde_json::json!([]));
}

#[test]
fn certificates_that_changed_are_told_with_both() {
    let rich = Rich::new();
    let gateway = &rich.gateway;
    let directory = gateway.directory.path();
    // The watch looks twice before it takes one: a dry run is told of it first, but for bad luck.
    let mut found = None;
    for serial in 18..38 {
        issue(
            &rich.authority,
            serial,
            &["gw.example", "new.example"],
            2028,
        )
        .write(directory, "gw");
        let json = order(gateway, "/reload?dry-run&as=json", "").json();
        found = json["files"].as_array().unwrap().first().cloned();
        if found.is_some() {
            assert_eq!(json["tables"], serde_json::json!([]));
            assert_eq!(
                (&json["different"], &json["reordered"]),
                (&true.into(), &false.into())
            );
            break;
        }
    }
    let file = found.expect("the watch was faster every time");
    assert_eq!(
        (&file["kind"], &file["change"]),
        (&"certificate".into(), &"changed".into())
    );
    assert_ne!(file["before"]["serial"], file["after"]["serial"]);
    assert_eq!(file["before"]["subjects"][0], "gw.example");
    assert_eq!(file["after"]["not_after"], "2028-01-01T00:00:00.000Z");
    assert_eq!(
        file["after"]["subjects"],
        serde_json::json!(["gw.example", "new.example"])
    );
    wait_until("it is in force", || {
        let json = order(gateway, "/reload?dry-run&as=json", "").json();
        json["different"] == false
    });
}

#[test]
fn a_dry_run_says_what_a_reload_does_and_changes_nothing() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let good = fs::read_to_string(gateway.path()).unwrap();
    let dry = || order(&gateway, "/reload?dry-run", "");
    assert_eq!(
        dry().text(),
        "no difference to generation 1, which serves\n"
    );
    // The watch must not be faster: the change stands where nobody follows it.
    let candidate = good.replace("path = \"/a2a\"", "path = \"/b2b\"");
    let before = gateway.metrics();
    for (text, status, wanted) in [
        (
            candidate.clone(),
            200,
            "~ endpoint.lakeside\n    path: \"/a2a\" -> \"/b2b\"\n",
        ),
        (format!("# a word\n{good}"), 200, "no difference"),
        (
            good.replace("workers = 1", "workers = 2"),
            200,
            "! restart needed: [runtime]",
        ),
        (
            good.replace("upstream = ", "upstrem = "),
            422,
            "did you mean `upstream`?",
        ),
        ("[".to_owned(), 422, "candidate:1:"),
        (String::new(), 422, "the file is empty"),
    ] {
        let answer = order(&gateway, "/diff", &text);
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(
            answer.text().contains(wanted),
            "{wanted}: {}",
            answer.text()
        );
    }
    let json = order(&gateway, "/diff?as=json", "[").json();
    assert_eq!(json["result"], "rejected");
    assert_eq!(json["problems"][0]["line"], 1);
    assert_eq!(order(&gateway, "/diff?format=json", "{}").status, 422);
    let whole = gateway.admin_get("/config").json()["configuration"].to_string();
    let answer = order(&gateway, "/diff?format=json", &whole);
    assert!(
        answer.text().starts_with("no difference"),
        "{}",
        answer.text()
    );
    // What needs a restart would be rejected.
    gateway.write_whole(&good.replace("workers = 1", "workers = 2"));
    let answer = dry();
    assert_eq!(answer.status, 422);
    assert!(
        answer.text().contains("a reload would be rejected"),
        "{}",
        answer.text()
    );
    let after = gateway.metrics();
    for series in [
        "forecourt_config_generation",
        "forecourt_config_last_reload_success_timestamp_seconds",
    ] {
        assert_eq!(before[series], after[series]);
    }
    assert_eq!(configuration(&gateway)["generation"], 1);
}

#[test]
fn only_operators_compare_and_roll_back() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    for (method, path) in [
        ("POST", "/diff"),
        ("POST", "/rollback"),
        ("GET", "/generations"),
        ("POST", "/reload?dry-run"),
    ] {
        let ask = |method: &str, host: &str| {
            let request = Post::method(method, path).field("Host", host).body("");
            gateway.admin().ask(request.bytes()).status
        };
        assert_eq!(ask(method, "evil.example"), 403, "{path}");
        let page = Post::method(method, path)
            .field("Host", "127.0.0.1")
            .field("Origin", "null");
        assert_eq!(
            gateway.admin().ask(page.body("").bytes()).status,
            403,
            "{path}"
        );
        assert_eq!(ask("PUT", "127.0.0.1"), 405, "{path}");
    }
    let large = "#".repeat((4 << 20) + 1);
    assert_eq!(order(&gateway, "/diff", &large).status, 413);
    let request = Post::method("POST", "/diff")
        .field("Host", "127.0.0.1")
        .body(b"\xff");
    assert_eq!(gateway.admin().ask(request.bytes()).status, 400);
}

#[test]
fn what_the_gateways_environment_holds_is_not_told() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let good = fs::read_to_string(gateway.path()).unwrap();
    // As whoever may ask, but not read the environment, would try.
    for (from, to) in [
        ("path = \"/a2a\"", "path = \"/${DEALER_TOKEN}\""),
        (
            "path = \"/a2a\"",
            "path = \"/a2a\"\nhost = \"${DEALER_TOKEN}.example.com\"",
        ),
        (
            "path = \"/a2a\"",
            "path = \"/a2a\"\nmethods = [\"x${DEALER_TOKEN}\"]",
        ),
        ("access.log", "/${DEALER_TOKEN}/access.log"),
        (
            "address = \"127.0.0.1:0\"\n[admin]",
            "address = \"127.0.0.1:0\"\ntls = { certificate = \"/${DEALER_TOKEN}.pem\", key = \"k\" }\n[admin]",
        ),
        (
            "/a2a\"\n\n",
            "/${DEALER_TOKEN}\"\nheaders = { x-a = \"${DEALER_TOKEN}\" }\n",
        ),
        ("http://", "https://${DEALER_TOKEN}.example.com/"),
    ] {
        assert!(good.contains(from), "{from}: {good}");
        let text = good.replacen(from, to, 1);
        for target in ["/diff", "/diff?as=json"] {
            let answer = order(&gateway, target, &text);
            assert!([200, 422].contains(&answer.status));
            let told = answer.text();
            assert!(
                !told.to_lowercase().contains("dealer-secret"),
                "{to}: {told}"
            );
            assert!(told.contains("DEALER_TOKEN"), "{to}: {told}");
        }
    }
    // Nor is the hash of it, which could be tried out.
    let told = order(
        &gateway,
        "/diff?as=json",
        &good.replace("/a2a\"\nup", "/${DEALER_TOKEN}\"\nup"),
    );
    assert_eq!(told.json()["hash_after"], Value::Null);
    let told = order(
        &gateway,
        "/diff?as=json",
        &good.replace("path = \"/a2a\"", "path = \"/b\""),
    );
    assert!(
        told.json()["hash_after"]
            .as_str()
            .unwrap()
            .starts_with("sha256:")
    );
}

#[test]
fn the_hash_that_is_told_is_the_one_that_serves_then() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let next = format!(
        "{PRELUDE}{}",
        dealer_with(&upstream, "", "contract = \"aap/1.2\"")
    );
    let told = order(&gateway, "/diff?as=json", &next).json();
    assert_eq!(told["hash_before"], configuration(&gateway)["hash"]);
    gateway.write_whole(&next);
    gateway.inner.reload().unwrap();
    assert_eq!(told["hash_after"], configuration(&gateway)["hash"]);
}

#[test]
fn tables_in_another_order_are_said_to_be_that() {
    let upstream = Upstream::recording();
    let more = "[endpoint.more]\npath = \"/more\"\nupstream = \"lakeside\"\n";
    let gateway = Gateway::start(&format!("{}{more}", dealer(&upstream)));
    let told = order(
        &gateway,
        "/diff",
        &format!("{PRELUDE}{more}{}", dealer(&upstream)),
    );
    assert!(
        told.text().contains("tables stand in another order"),
        "{}",
        told.text()
    );
}

#[test]
fn the_command_exits_as_diff_does() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let file = |path: &str| {
        let dealer = dealer(&upstream).replace("path = \"/a2a\"", &format!("path = \"{path}\""));
        format!("{PRELUDE}{dealer}")
    };
    let write = |name: &str, text: &str| {
        fs::write(at(name), text).unwrap();
        at(name).display().to_string()
    };
    write("forecourt.toml", &file("/one"));
    let mut process = Process::start(&at("forecourt.toml"));
    let (_, admin) = process.addresses();
    let admin = format!("http://{admin}");
    fs::create_dir(at("elsewhere")).unwrap();
    let same = write(
        "elsewhere/same.toml",
        &format!("# the same\n{}", file("/one")),
    );
    let other = write("elsewhere/other.toml", &file("/two"));
    let bad = write(
        "elsewhere/bad.toml",
        &file("/two").replace("upstream = ", "upstrem = "),
    );

    let ended = run(&["diff", &same, "--admin", &admin]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    assert_eq!(
        ended.stdout,
        "no difference to generation 1, which serves\n"
    );
    let ended = run_with(&["diff", &other], "FORECOURT_ADMIN", &admin);
    assert_eq!((ended.code, &*ended.stderr), (Some(1), ""));
    assert!(
        ended
            .stdout
            .contains("~ endpoint.lakeside\n    path: \"/one\" -> \"/two\"\n")
    );
    // Not on a terminal.
    assert!(!ended.stdout.contains('\x1b'));
    let ended = run(&["diff", &other, "--format", "json", "--admin", &admin]);
    assert_eq!(ended.code, Some(1));
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["tables"][0]["name"], "lakeside");
    let ended = run(&["diff", &bad, "--admin", &admin]);
    assert_eq!((ended.code, &*ended.stdout), (Some(78), ""));
    assert!(
        ended.stderr.contains("did you mean `upstream`?"),
        "{}",
        ended.stderr
    );
    let ended = run(&["diff", &bad, "--format", "json", "--admin", &admin]);
    assert_eq!(ended.code, Some(78));
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["result"], "rejected");
    let ended = run(&["diff", "/nowhere/at/all.toml", "--admin", &admin]);
    assert_eq!(ended.code, Some(78));
    assert!(ended.stderr.contains("cannot be read"), "{}", ended.stderr);
    // Nobody answers: that is no difference.
    let ended = run(&["diff", &other, "--admin", "http://127.0.0.1:1"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(69), ""));
    // Relative paths begin where they are said to.
    let log = write("elsewhere/log.toml", &file("/one"));
    let beside = at("elsewhere").display().to_string();
    let ended = run(&["diff", &log, "--directory", &beside, "--admin", &admin]);
    assert_eq!(ended.code, Some(1));
    let there = Path::new(&beside).join("access.log").display().to_string();
    assert!(ended.stdout.contains(&there), "{}", ended.stdout);

    write("forecourt.toml", &file("/two"));
    let ended = run(&["reload", "--dry-run", "--admin", &admin]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let ended = run(&["reload", "--admin", &admin]);
    assert_eq!(ended.code, Some(0));
    write(
        "forecourt.toml",
        &file("/two").replace("upstream = ", "upstrem = "),
    );
    for arguments in [
        ["reload", "--dry-run", "--admin"].as_slice(),
        &["reload", "--admin"],
    ] {
        let ended = run(&[arguments, &[&*admin]].concat());
        assert_eq!(
            (ended.code, &*ended.stdout),
            (Some(78), ""),
            "{arguments:?}"
        );
        assert!(
            ended.stderr.contains("did you mean `upstream`?"),
            "{}",
            ended.stderr
        );
    }
    let ended = run(&["reload", "--format", "json", "--admin", &admin]);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (ended.code, &json["result"]),
        (Some(78), &"rejected".into())
    );
}
