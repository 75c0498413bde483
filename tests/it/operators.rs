//! Who is let in at the admin socket, the page for people, and what the status tells them.

use std::fs;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::call::call;
use crate::support::gateway::{PRELUDE, dealer, dealer_at, dealer_with};
use crate::support::process::{run, run_with};
use crate::support::{Answer, Gateway, Post, Upstream, wait_until};

const OLD: &str = "fc_old-token-of-the-operators";
const NEW: &str = "fc_new-token-of-the-operators";

fn digest(token: &str) -> String {
    let digest = Sha256::digest(token);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A configuration whose admin socket has this address and asks for these tokens.
fn with(address: &str, tokens: &[&str], rest: &str) -> String {
    let digests: Vec<_> = tokens
        .iter()
        .map(|it| format!("\"{}\"", digest(it)))
        .collect();
    let line = match digests.is_empty() {
        true => String::new(),
        false => format!("token_sha256 = [{}]\n", digests.join(", ")),
    };
    let admin = format!("[admin]\naddress = \"{address}:0\"\n");
    let prelude = PRELUDE.replace(
        "[admin]\naddress = \"127.0.0.1:0\"\n",
        &format!("{admin}{line}"),
    );
    assert!(prelude.contains(&admin));
    format!("{prelude}{rest}")
}

/// Asks on a new connection over loopback, whatever the socket's address.
fn ask(gateway: &Gateway, method: &str, path: &str, fields: &[(&str, &str)]) -> Answer {
    let port = gateway.inner.admin_address().port();
    let mut client = crate::support::Client::connect(([127, 0, 0, 1], port).into());
    let mut request = Post::method(method, path);
    for (name, value) in fields {
        request = request.field(name, value);
    }
    client.ask(request.bytes())
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

const HOST: (&str, &str) = ("Host", "127.0.0.1");

const INSIDE: [(&str, &str); 9] = [
    ("GET", "/config"),
    ("GET", "/status"),
    ("GET", "/limits"),
    ("GET", "/limits/nobody"),
    ("DELETE", "/limits/nobody"),
    ("GET", "/generations"),
    ("POST", "/reload"),
    ("POST", "/diff"),
    ("POST", "/rollback"),
];

#[test]
fn where_others_reach_it_and_no_token_is_known_the_inside_is_closed() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_whole(&with("0.0.0.0", &[], &dealer(&upstream)));
    for (method, path) in INSIDE.into_iter().chain([("GET", "/")]) {
        for sent in [&[HOST][..], &[HOST, ("Authorization", "Bearer x")]] {
            let answer = ask(&gateway, method, path, sent);
            assert_eq!(answer.status, 403, "{method} {path}");
            let text = answer.text();
            assert!(text.contains("[admin] token_sha256"), "{text}");
            assert!(!text.contains("lakeside"), "{text}");
        }
    }
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(
            ask(&gateway, "GET", path, &[("Host", "any")]).status,
            200,
            "{path}"
        );
    }
    let refused = "forecourt_admin_refused_total{reason=\"unprotected\"}";
    assert_eq!(gateway_metric(&gateway, refused), 20.0);
}

fn gateway_metric(gateway: &Gateway, series: &str) -> f64 {
    let text = ask(gateway, "GET", "/metrics", &[HOST]).text();
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line.unwrap_or_else(|| panic!("no {series} in {text}"))
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn a_token_lets_in_everywhere_and_changes_live() {
    let upstream = Upstream::recording();
    let rest = dealer(&upstream);
    for address in ["0.0.0.0", "127.0.0.1"] {
        let gateway = Gateway::start_whole(&with(address, &[OLD], &rest));
        let status = |token: Option<&str>| {
            let value = token.map(bearer);
            let mut sent = vec![("Host", "gateway.example")];
            sent.extend(value.as_deref().map(|it| ("Authorization", it)));
            ask(&gateway, "GET", "/status", &sent)
        };
        for (method, path) in INSIDE {
            let answer = ask(&gateway, method, path, &[HOST]);
            assert_eq!(answer.status, 401, "{method} {path}");
            let challenge = answer.head.one("www-authenticate").unwrap();
            assert!(challenge.starts_with("Bearer realm="), "{challenge}");
            let wrong = ask(&gateway, method, "/nowhere", &[HOST]);
            assert_eq!(wrong.status, 404);
        }
        assert_eq!(status(Some(NEW)).status, 401);
        assert_eq!(status(Some(OLD)).status, 200);
        for path in ["/livez", "/readyz", "/metrics"] {
            assert_eq!(ask(&gateway, "GET", path, &[("Host", "any")]).status, 200);
        }

        // Both while it is changed, then the new one alone: no restart.
        gateway.write_whole(&with(address, &[OLD, NEW], &rest));
        gateway.inner.reload().unwrap();
        assert_eq!(status(Some(OLD)).status, 200);
        assert_eq!(status(Some(NEW)).status, 200);
        gateway.write_whole(&with(address, &[NEW], &rest));
        gateway.inner.reload().unwrap();
        assert_eq!(status(Some(OLD)).status, 401);
        let shown = status(Some(NEW)).text();
        assert!(!shown.contains(NEW) && !shown.contains(OLD));
        assert_eq!(
            gateway_metric(
                &gateway,
                "forecourt_admin_refused_total{reason=\"wrong_token\"}"
            ),
            2.0
        );
        assert_eq!(
            gateway_metric(
                &gateway,
                "forecourt_admin_refused_total{reason=\"no_token\"}"
            ),
            9.0
        );

        let config = ask(
            &gateway,
            "GET",
            "/config",
            &[HOST, ("Authorization", &bearer(NEW))],
        );
        let shown = config.json()["configuration"]["admin"]["token_sha256"].clone();
        assert_eq!(shown, json!([digest(NEW)]));

        // Where it is bound cannot change.
        let moved = with(address, &[NEW], &rest).replace(":0\"\ntoken", ":1\"\ntoken");
        gateway.write_whole(&moved);
        let rejected = gateway.inner.reload().unwrap_err().to_string();
        assert!(rejected.contains("admin.address"), "{rejected}");
    }
}

#[test]
fn of_strangers_no_body_is_read_and_guesses_end() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_whole(&with("127.0.0.1", &[OLD], &dealer(&upstream)));
    // Of a body that is announced not a byte is waited for.
    let head = "POST /diff HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n";
    assert_eq!(gateway.admin().ask(head).status, 401);
    let wrong = bearer("wrong");
    for _ in 0..10 {
        let answer = ask(
            &gateway,
            "GET",
            "/status",
            &[HOST, ("Authorization", &wrong)],
        );
        assert_eq!(answer.status, 401);
        assert!(!answer.text().contains("wrong"), "{}", answer.text());
    }
    let answer = ask(
        &gateway,
        "GET",
        "/status",
        &[HOST, ("Authorization", &bearer(OLD))],
    );
    assert_eq!(answer.status, 429);
    let wait: u64 = answer.head.one("retry-after").unwrap().parse().unwrap();
    assert!((1..=61).contains(&wait), "{wait}");
    assert_eq!(
        gateway_metric(
            &gateway,
            "forecourt_admin_refused_total{reason=\"too_many\"}"
        ),
        1.0
    );
    assert_eq!(ask(&gateway, "GET", "/livez", &[HOST]).status, 200);
}

#[test]
fn commands_show_a_token_of_a_file_or_of_the_environment() {
    let upstream = Upstream::recording();
    let made = run(&["key", "admin"]);
    assert_eq!(made.code, Some(0));
    let token = made.stdout.trim();
    let line = format!("[admin]\ntoken_sha256 = [\"{}\"]\n", digest(token));
    assert!(made.stderr.ends_with(&line), "{}", made.stderr);
    assert!(!made.stderr.contains(token));

    let gateway = Gateway::start_whole(&with("127.0.0.1", &[token], &dealer(&upstream)));
    let admin = format!("http://{}", gateway.inner.admin_address());
    let file = gateway.directory.path().join("token");
    let reload = ["reload", "--admin", &admin];
    let from_file = [&reload[..], &["--admin-token-file", file.to_str().unwrap()]].concat();

    let ended = run(&reload);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("Authorization: Bearer TOKEN"),
        "{}",
        ended.stderr
    );
    let ended = run(&from_file);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("No such file"), "{}", ended.stderr);

    fs::write(&file, format!("{token}\n")).unwrap();
    let ended = run(&from_file);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    let ended = run_with(&reload, "FORECOURT_ADMIN_TOKEN", token);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    // A file that is named wins, and what is wrong with it is said without it.
    fs::write(&file, "two words of a secret\n").unwrap();
    let ended = run_with(&from_file, "FORECOURT_ADMIN_TOKEN", token);
    assert_eq!(ended.code, Some(1));
    assert!(
        !ended.stderr.contains("secret\n") && ended.stderr.contains("token in"),
        "{}",
        ended.stderr
    );
    let ended = run_with(&reload, "FORECOURT_ADMIN_TOKEN", "another-token");
    assert_eq!(ended.code, Some(1));
    assert!(!ended.stderr.contains("another-token"), "{}", ended.stderr);
    // There is no such argument: others can read it.
    let ended = run(&[&reload[..], &["--admin-token", token]].concat());
    assert_eq!(ended.code, Some(2));
}

#[test]
fn check_warns_of_a_socket_that_nobody_can_look_into() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let check = |text: String| {
        fs::write(&file, text).unwrap();
        run(&["check", file.to_str().unwrap()])
    };
    let rest = dealer(&upstream);
    let warned = check(with("0.0.0.0", &[], &rest));
    assert_eq!(warned.code, Some(0));
    let said = format!("{}{}", warned.stdout, warned.stderr);
    assert!(
        said.contains("admin.address: is not loopback, and there is no token"),
        "{said}"
    );
    for fine in [with("0.0.0.0", &[OLD], &rest), with("[::1]", &[], &rest)] {
        let ended = check(fine);
        assert!(
            ended.stdout.ends_with(": ok\n") && ended.stderr.is_empty(),
            "{}",
            ended.stderr
        );
    }
    for (bad, what) in [
        (with("127.0.0.1", &[OLD, OLD], &rest), "is listed twice"),
        (
            with("127.0.0.1", &[], &rest).replace("[log]", "token_sha256 = []\n[log]"),
            "is empty",
        ),
        (
            with("127.0.0.1", &[], &rest).replace("[log]", "token_sha256 = \"my-secret\"\n[log]"),
            "SHA-256",
        ),
    ] {
        let ended = check(bad);
        assert_eq!(ended.code, Some(78));
        assert!(ended.stderr.contains(what), "{}", ended.stderr);
        assert!(!ended.stderr.contains("my-secret"), "{}", ended.stderr);
    }
}

#[test]
fn a_browser_gets_the_page_with_its_policy_and_a_program_json() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let browser = (
        "Accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    );
    for (path, sent) in [("/", &[HOST][..]), ("/status", &[HOST, browser][..])] {
        let answer = ask(&gateway, "GET", path, sent);
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.head.all("content-type"),
            ["text/html; charset=utf-8"]
        );
        let policy = answer
            .head
            .one("content-security-policy")
            .unwrap()
            .to_owned();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'sha256-"),
            "{policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(answer.head.all(name), [value], "{path} {name}");
        }
        assert!(answer.text().starts_with("<!doctype html>"));
        // It holds nothing of the inside.
        assert!(!answer.text().contains("lakeside"));
        let evil = [&[("Host", "evil.example")][..], &sent[1..]].concat();
        assert_eq!(ask(&gateway, "GET", path, &evil).status, 403, "{path}");
        assert_eq!(ask(&gateway, "POST", path, sent).status, 405);
    }
    for accept in ["*/*", "application/json", "text/html;q=0.1, */*"] {
        let answer = ask(&gateway, "GET", "/status", &[HOST, ("Accept", accept)]);
        assert_eq!(
            answer.head.all("content-type"),
            ["application/json"],
            "{accept}"
        );
        assert_eq!(answer.head.all("x-content-type-options"), ["nosniff"]);
    }
    for site in ["cross-site", "same-site"] {
        let answer = ask(
            &gateway,
            "GET",
            "/status",
            &[HOST, ("Sec-Fetch-Site", site)],
        );
        assert_eq!(answer.status, 403, "{site}");
    }
    // With a token the page itself can be had by any name: it asks for the token.
    gateway.write_whole(&with("127.0.0.1", &[OLD], &dealer(&upstream)));
    gateway.inner.reload().unwrap();
    let named = ("Host", "gateway.example");
    assert_eq!(ask(&gateway, "GET", "/", &[named]).status, 200);
    assert_eq!(
        ask(&gateway, "GET", "/status", &[named, browser]).status,
        200
    );
    assert_eq!(ask(&gateway, "GET", "/status", &[named]).status, 401);
}

fn status(gateway: &Gateway) -> Value {
    gateway.admin_get("/status").json()
}

#[test]
fn the_status_tells_who_is_near_a_limit_and_how_long_calls_took() {
    let upstream = Upstream::recording();
    let quotas = "[quota.tight]\nper = \"caller\"\nrate = \"1/min\"\nburst = 2\n\
                  [quota.wide]\nper = \"caller\"\nrate = \"60/min\"\nburst = 50\n\
                  [callers]\nidentify = [\"header:x-buyer\", \"address\"]\n";
    let table = dealer_with(
        &upstream,
        "max_in_flight = 7",
        "quotas = [\"tight\", \"wide\"]",
    );
    let gateway = Gateway::start(&format!("{table}{quotas}"));
    assert_eq!(status(&gateway)["callers"], json!([]));
    let post = |buyer: &str| {
        let post = Post::to("/a2a").field("X-Buyer", buyer).body(call("1"));
        gateway.ask(post.bytes())
    };
    for _ in 0..3 {
        post("greedy");
    }
    wait_until("it is counted", || gateway.ended("rate_limited") == 1.0);
    let told = status(&gateway);
    let greedy = &told["callers"][0];
    assert!(
        greedy["caller"].as_str().unwrap().starts_with("x-buyer#"),
        "{greedy}"
    );
    assert_eq!(
        (&greedy["refused"], &greedy["refused_by"]),
        (&json!(1), &json!("tight"))
    );
    assert_eq!(
        greedy["tightest"],
        json!({
            "quota": "tight", "endpoint": "lakeside", "remaining": 0, "most": 2, "full_in_ms": 120_000,
        })
    );
    assert!(!told.to_string().contains("greedy"));

    let endpoint = &told["endpoints"][0];
    let latency = &endpoint["latency"];
    assert_eq!(latency["count"], 3);
    let buckets: Vec<u64> = serde_json::from_value(latency["buckets"].clone()).unwrap();
    assert_eq!(buckets.iter().sum::<u64>(), 3);
    let bounds = told["latency_bounds_ms"].as_array().unwrap();
    assert_eq!((bounds.len() + 1, &bounds[0]), (buckets.len(), &json!(0.5)));
    assert!(latency["p99_ms"].as_f64() >= latency["p50_ms"].as_f64());
    assert_eq!(endpoint["upstream_latency"]["count"], 2);

    let upstream = &told["upstreams"][0];
    assert_eq!(upstream["max_in_flight"], 7);
    assert_eq!(
        (&upstream["in_flight"], &upstream["waiting"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(
        (&upstream["connections"], &upstream["failures"]),
        (&json!(1), &json!({}))
    );
    assert_eq!(upstream["last_failure"], Value::Null);

    gateway.ask(Post::to("/elsewhere").body(call("1")).bytes());
    wait_until("it is counted", || gateway.ended_at("", "no_route") == 1.0);
    assert_eq!(status(&gateway)["elsewhere"], json!({ "no_route": 1 }));
}

#[test]
fn the_status_tells_of_an_upstream_that_fails() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let gateway = Gateway::start(&dealer_at(address, "", ""));
    for _ in 0..2 {
        gateway.post(call("1"));
    }
    let upstream = status(&gateway)["upstreams"][0].clone();
    assert_eq!(upstream["failures"], json!({ "no connection": 2 }));
    assert_eq!(upstream["last_failure"]["cause"], "no connection");
    assert!(upstream["last_failure"]["ago_ms"].as_u64().unwrap() < 60_000);
}
