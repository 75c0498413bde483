//! What is told beside the answer: rules with their lines, who is asking, quotas, headers; and that no
//! secret is.

use serde_json::{Value, json};

use crate::explain::{ask, ask_as};
use crate::support::call::{call, lead};
use crate::support::gateway::{PRELUDE, dealer_with};
use crate::support::process::{Ended, feed, run, run_with};
use crate::support::{Gateway, Post, U, Upstream};

fn digest(key: &str) -> String {
    forecourt::credential::fresh::digest(key).to_string()
}

/// A step of an explanation.
fn step<'e>(explained: &'e Value, name: &str) -> &'e Value {
    let steps = explained["steps"].as_array().unwrap();
    steps.iter().find(|it| it["step"] == name).unwrap()
}

/// The line on which a text stands in the gateway's file.
fn line_of(gateway: &Gateway, text: &str) -> usize {
    let file = std::fs::read_to_string(gateway.path()).unwrap();
    file.lines().position(|line| line.contains(text)).unwrap() + 1
}

/// The first rule of something: its key and line.
fn rule(told: &Value) -> (&str, Option<u64>) {
    let rule = &told["rules"][0];
    (rule["key"].as_str().unwrap(), rule["line"].as_u64())
}

const OPERATORS: &str = "headers = { authorization = \"Bearer ${DEALER_TOKEN}\" }";

fn gateway(upstream: &Upstream) -> Gateway {
    Gateway::start(&format!(
        "[caller.acme]\nkey_sha256 = \"{}\"\nplan = \"gold\"\n\
         [plan.gold]\nquotas = {{ per-buyer = {{ rate = \"5/min\" }} }}\n\
         [quota.per-buyer]\nper = \"caller\"\nrate = \"2/min\"\n\
         [quota.leads]\nper = \"caller\"\nconcurrent = 1\nskills = [\"lead.submit\"]\n{}\
         [endpoint.hill]\nhost = \"hill.example\"\npath = \"/a2a\"\nupstream = \"lakeside\"\n\
         [endpoint.deep]\npath = \"/a2a/deep\"\nupstream = \"lakeside\"\n",
        digest("k-acme"),
        dealer_with(
            upstream,
            OPERATORS,
            "authenticate = \"optional\"\nforward_credential = false\n\
             quotas = [\"per-buyer\", \"leads\"]\ncontract = \"aap/3.0\"\nreport = [\"version\"]",
        ),
    ))
}

#[test]
fn who_where_how_much_and_by_which_line() {
    let upstream = Upstream::recording();
    let gateway = gateway(&upstream);
    let request = Post::to("/a2a/x?a2a-version=1&k=v")
        .field("X-Api-Key", "k-acme")
        .field("Connection", "X-Mine")
        .field("X-Mine", "secret-of-mine")
        .field("Cookie", "secret-cookie")
        .field("A2A_Version", "1.0")
        .field("X-Forwarded-For", "192.0.2.99")
        .field("A2A-Version", "0.9")
        .body(lead("7", None))
        .bytes();
    for _ in 0..3 {
        let explained = ask(&gateway, &request);
        assert_eq!(explained["verdict"], "forward", "{explained}");
        assert_eq!(explained["generation"], 1);
        assert_eq!(explained["call"]["skill"], "lead.submit");
        assert_eq!(explained["call"]["id"], "7");
        let endpoint = &explained["route"]["endpoint"];
        assert_eq!(endpoint["name"], "lakeside");
        let path = line_of(&gateway, "path = \"/a2a\"") as u64;
        assert_eq!(rule(endpoint), ("endpoint.lakeside.path", Some(path)));
        let others = &explained["route"]["others"];
        assert_eq!(others[0]["name"], "deep");
        assert_eq!(others[0]["why"], "its path is another one");
        assert_eq!(others[1]["name"], "hill");
        assert_eq!(others[1]["why"], "its host is another one");

        let caller = &explained["caller"];
        assert_eq!(caller["name"], "acme");
        assert_eq!(caller["by"], "header:x-api-key");
        assert_eq!(caller["plan"], "gold");
        let acme = line_of(&gateway, "[caller.acme]") as u64;
        assert_eq!(rule(caller), ("caller.acme", Some(acme)));

        let [buyer, leads] = &explained["quotas"].as_array().unwrap()[..] else {
            panic!("{explained}")
        };
        let gold = line_of(&gateway, "per-buyer = { rate = \"5/min\" }") as u64;
        assert_eq!(rule(buyer), ("plan.gold.quotas.per-buyer", Some(gold)));
        assert_eq!(
            (&buyer["remaining"], &buyer["limit"]),
            (&json!(5), &json!(5))
        );
        assert_eq!(
            (&buyer["cost"], &buyer["kept_in"]),
            (&json!(1), &json!("local"))
        );
        let concurrent = line_of(&gateway, "concurrent = 1") as u64;
        assert_eq!(rule(leads), ("quota.leads.concurrent", Some(concurrent)));

        let version = step(&explained, "version");
        assert_eq!(version["verdict"], "report");
        let report = line_of(&gateway, "report = ") as u64;
        assert_eq!(rule(version), ("endpoint.lakeside.report", Some(report)));
        let contract = line_of(&gateway, "contract = \"aap/3.0\"") as u64;
        let extension = step(&explained, "extension");
        assert_eq!(extension["verdict"], "pass");
        assert_eq!(extension["why"], format!("absent, filled in with {U}"));
        assert_eq!(
            rule(extension),
            ("endpoint.lakeside.contract", Some(contract))
        );
        assert_eq!(rule(step(&explained, "body")), ("limits.body", None));

        let forward = &explained["forward"];
        let url = format!("http://{}/a2a/x", upstream.address);
        assert_eq!(forward["url"], url);
        assert_eq!(
            forward["query"],
            "without parameters named like the A2A headers"
        );
        let header = |name: &str| {
            let all = forward["headers"].as_array().unwrap();
            let one = all.iter().find(|it| it["name"] == name).unwrap();
            (one["change"].as_str().unwrap(), one["value"].as_str())
        };
        assert_eq!(header("authorization"), ("set", Some("***")));
        assert_eq!(header("a2a-extensions"), ("added", Some(U)));
        assert_eq!(header("a2a-version"), ("kept", Some("0.9")));
        assert_eq!(header("x-forwarded-for"), ("replaced", Some("127.0.0.1")));
        assert_eq!(
            header("host"),
            ("replaced", Some(&*upstream.address.to_string()))
        );
        assert_eq!(header("cookie"), ("kept", None));
        for name in ["x-api-key", "connection", "x-mine", "a2a_version"] {
            assert_eq!(header(name), ("removed", None), "{name}");
        }
        let text = explained.to_string();
        for secret in [
            "k-acme",
            "secret-of-mine",
            "secret-cookie",
            "dealer-secret",
            "k=v",
        ] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
    assert_eq!(upstream.count(), 0);
    assert!(gateway.access_log().is_empty());
    assert_eq!(gateway.series("forecourt_ratelimit_keys"), 0.0);
}

#[test]
fn a_caller_that_is_over_is_told_when() {
    let upstream = Upstream::recording();
    let gateway = gateway(&upstream);
    let request = Post::to("/a2a").body(call("1")).bytes();
    for _ in 0..2 {
        assert_eq!(gateway.ask(&request).status, 200);
    }
    let explained = ask(&gateway, &request);
    assert_eq!(explained["outcome"], "rate_limited");
    let [buyer, leads] = &explained["quotas"].as_array().unwrap()[..] else {
        panic!("{explained}")
    };
    assert_eq!(buyer["remaining"], 0);
    assert_eq!(buyer["admits"], false);
    assert_eq!(buyer["retry_after_ms"], 30_000);
    assert_eq!(leads["looks_at_it"], false);
    let caller = &explained["caller"];
    assert_eq!(caller["name"], "address 127.0.0.1");
    assert_eq!(
        (&caller["by"], &caller["plan"]),
        (&json!("address"), &Value::Null)
    );
    let quota = step(&explained, "quota");
    assert_eq!(quota["verdict"], "refuse");
    let rate = line_of(&gateway, "rate = \"2/min\"") as u64;
    assert_eq!(rule(quota), ("quota.per-buyer.rate", Some(rate)));
    assert_eq!(step(&explained, "version")["verdict"], "not reached");
    // Another client has a bucket of its own.
    let other = ask_as(&gateway, &request, "?client=192.0.2.7");
    assert_eq!(other["verdict"], "forward");
    assert_eq!(other["client"]["address"], "192.0.2.7");
    gateway.clock.advance(std::time::Duration::from_secs(30));
    assert_eq!(ask(&gateway, &request)["verdict"], "forward");
}

#[test]
fn a_trusted_proxy_tells_who_the_client_is() {
    let upstream = Upstream::recording();
    let trusted = "trusted_proxies = [\"127.0.0.0/8\"]\nhealth = \"/healthz\"\n[admin]";
    let gateway = Gateway::start_whole(&format!(
        "{}{}",
        PRELUDE.replacen("[admin]", trusted, 1),
        dealer_with(&upstream, "", "")
    ));
    let request = Post::to("/a2a")
        .field("X-Forwarded-For", "203.0.113.5, 192.0.2.7, 127.0.0.9")
        .body(call("1"))
        .bytes();
    let client = |query: &str| ask_as(&gateway, &request, query)["client"].clone();
    let told = client("");
    assert_eq!(told["address"], "192.0.2.7");
    assert_eq!(told["told_by"], "x-forwarded-for");
    assert_eq!(told["peer"], "127.0.0.1");
    let line = line_of(&gateway, "trusted_proxies") as u64;
    assert_eq!(rule(&told), ("listener.public.trusted_proxies", Some(line)));
    let stranger = client("?client=198.51.100.1&listener=public");
    assert_eq!(stranger["address"], "198.51.100.1");
    assert_eq!(stranger["told_by"], "the connection");
    assert_eq!(stranger["rules"], json!([]));

    let probe = Post::method("GET", "/healthz").field("Host", "x").bytes();
    let explained = ask(&gateway, &probe);
    assert_eq!(explained["verdict"], "probe");
    let told = crate::explain::told(&explained).unwrap();
    let wire = crate::explain::wire(gateway.address(), &probe);
    assert_eq!(crate::explain::masked(&told), crate::explain::masked(&wire));
    let probes = r#"forecourt_health_probes_total{listener="public"}"#;
    assert_eq!(gateway.series(probes), 1.0);
}

#[test]
fn what_cannot_be_explained_is_said_and_strangers_are_told_nothing() {
    let upstream = Upstream::recording();
    let gateway = gateway(&upstream);
    let explain = |query: &str, host: &str, body: &[u8]| {
        let post = Post::method("POST", &format!("/explain{query}")).field("Host", host);
        let length = body.len().to_string();
        let post = post.field("Content-Length", &length).body(body);
        let answer = gateway.admin().ask(post.bytes());
        (answer.status, answer.text())
    };
    let request = Post::to("/a2a").body(call("1")).bytes();
    for (query, body, why) in [
        ("?listener=none", &request[..], "no listener"),
        ("?client=me", &request, "no address"),
        ("", b"", "not complete"),
        ("", b"POST /a2a HTTP/1.1\r\nHost: x\r\n", "not complete"),
    ] {
        let (status, text) = explain(query, "127.0.0.1", body);
        assert_eq!(status, 400, "{query} {text}");
        assert!(text.contains(why), "{text}");
    }
    assert_eq!(explain("", "evil.example", &request).0, 403);
    // No more than a request can have.
    let large = vec![b'x'; (1 << 20) + (32 << 10) + (64 << 10) + 1];
    assert_eq!(explain("", "127.0.0.1", &large).0, 413);
    assert_eq!(gateway.admin_get("/explain").status, 405);
}

#[test]
fn lines_follow_a_comment_and_a_reload() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let request = Post::to("/a2a").body(call("1")).bytes();
    let line = || {
        let explained = ask(&gateway, &request);
        let endpoint = &explained["route"]["endpoint"];
        (explained["generation"].clone(), rule(endpoint).1.unwrap())
    };
    let (generation, before) = line();
    assert_eq!(generation, 1);
    let file = std::fs::read_to_string(gateway.path()).unwrap();
    gateway.write_whole(&format!("# One.\n# Two.\n{file}"));
    gateway.inner.reload().unwrap();
    assert_eq!(line(), (json!(1), before + 2));
    gateway.write_whole(&file.replace("[endpoint", "[limits]\nbody = \"2KiB\"\n[endpoint"));
    gateway.inner.reload().unwrap();
    assert_eq!(line(), (json!(2), before + 2));
}

#[test]
fn a_rule_in_an_included_file_is_told_by_that_file() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("forecourt.toml");
    std::fs::create_dir(directory.path().join("conf.d")).unwrap();
    let own = "# A dealer of its own.\n[endpoint.own]\npath = \"/own\"\nupstream = \"lakeside\"\n";
    std::fs::write(directory.path().join("conf.d/own.toml"), own).unwrap();
    let dealer = dealer_with(&upstream, "", "");
    let main = format!("include = [\"conf.d/*.toml\"]\n{PRELUDE}{dealer}");
    std::fs::write(&path, &main).unwrap();
    let gateway = Gateway::start_at(path.clone());
    let request = |path: &str| Post::to(path).body(call("1")).bytes();
    let own = ask(&gateway, &request("/own"));
    let rule = &own["route"]["endpoint"]["rules"][0];
    assert_eq!(rule["key"], "endpoint.own.path");
    assert!(
        rule["file"].as_str().unwrap().ends_with("conf.d/own.toml"),
        "{rule}"
    );
    assert_eq!(rule["line"], 3);
    let usual = ask(&gateway, &request("/a2a"));
    let rule = &usual["route"]["endpoint"]["rules"][0];
    assert_eq!(rule["file"], path.to_str().unwrap());
    let at = main
        .lines()
        .position(|line| line == "path = \"/a2a\"")
        .unwrap()
        + 1;
    assert_eq!(rule["line"], at);
}

#[track_caller]
fn fine(ended: Ended) -> String {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr, "");
    ended.stdout
}

#[test]
fn the_command_asks_a_gateway_or_reads_a_file() {
    let upstream = Upstream::recording();
    let gateway = gateway(&upstream);
    let admin = format!("http://{}", gateway.inner.admin_address());
    let file = gateway.path();
    let file = file.to_str().unwrap();
    let written = gateway.directory.path().join("req.http");
    // As people write it: an editor's line ends, no length.
    let text = format!(
        "POST /a2a HTTP/1.1\nHost: gw.example\nContent-Type: application/json\n\
         A2A-Version: 1.0\nA2A-Extensions: none\nX-Request-Id: mine\n\n{}\n",
        call("\"abc\"")
    );
    std::fs::write(&written, &text).unwrap();
    let written = written.to_str().unwrap();
    let wire = text.replacen(
        "\n\n",
        &format!("\nContent-Length: {}\n\n", call("\"abc\"").len() + 1),
        1,
    );
    let (head, body) = wire.split_once("\n\n").unwrap();
    let wire = format!("{}\r\n\r\n{body}", head.replace('\n', "\r\n"));
    let live = ["explain", "--admin", &admin, "--request", written];
    let offline = ["explain", "-c", file, "--request", written];
    let ways = [&live[..], &offline[..]];
    let told = ways.map(|arguments| {
        let json = fine(run(&[arguments, &["--format", "json"]].concat()));
        let explained: Value = serde_json::from_str(&json).unwrap();
        crate::explain::masked(&crate::explain::told(&explained).unwrap())
    });
    for arguments in ways {
        let text = fine(run(arguments));
        assert!(text.starts_with("refuse: "), "{text}");
        for wanted in [
            "endpoint   lakeside (any host, /a2a), contract aap/3.0",
            "refuse       extension",
            "A2A 1.0, 3.2.6",
            "endpoint.lakeside.contract (",
            "forecourt.toml:",
            "HTTP/1.1 200 OK\ncache-control: no-store\nx-request-id: mine\n",
            "\"id\":\"abc\"",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
    }
    let answer = crate::explain::wire(gateway.address(), wire.as_bytes());
    let expected = crate::explain::masked(&answer);
    assert_eq!(told, [&*expected, &*expected]);
    let from_pipe = fine(feed(
        &["explain", "-c", file, "--request", "-"],
        text.as_bytes(),
    ));
    assert!(from_pipe.starts_with("refuse: "), "{from_pipe}");
    // Put together from arguments, asked of the gateway that the environment names.
    let put_together = [
        "explain",
        "--path",
        "/a2a",
        "--host",
        "gw.example",
        "--header",
        "A2A-Version: 1.0",
        "--header",
        "X-Api-Key: k-acme",
        "--body",
        &call("1"),
        "--client",
        "192.0.2.7",
    ];
    let text = fine(run_with(&put_together, "FORECOURT_ADMIN", &admin));
    assert!(text.starts_with("forward: "), "{text}");
    for wanted in [
        "client     192.0.2.7, told by the connection",
        "caller     acme, by header:x-api-key, plan gold",
        "quota      per-buyer: 5 of 5 left, local, this costs 1",
        "added     a2a-extensions: https://",
        "set       authorization: ***",
        "removed   x-api-key  (a credential that goes no further)",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!text.contains("k-acme"), "{text}");
    assert_eq!(upstream.count(), 0);
    // As it is, an editor's line ends are refused.
    let exact = fine(run(&[&offline[..], &["--exact"]].concat()));
    assert!(
        exact.contains("a line that does not end in CR LF"),
        "{exact}"
    );
}

#[test]
fn the_command_says_what_it_cannot_do() {
    let upstream = Upstream::recording();
    let gateway = gateway(&upstream);
    let file = gateway.path();
    let file = file.to_str().unwrap();
    for (arguments, code, why) in [
        (&["explain"][..], 2, "required"),
        (
            &["explain", "--request", "x", "--path", "/"],
            2,
            "cannot be used with",
        ),
        (
            &["explain", "-c", file, "--id", "x"],
            2,
            "cannot be used with",
        ),
        (&["explain", "-c", file, "--request", "/none"], 1, "/none"),
        (
            &["explain", "-c", "/none.toml", "--path", "/"],
            78,
            "cannot be read",
        ),
        (
            &["explain", "-c", file, "--path", "/", "--header", "x"],
            1,
            "no header line",
        ),
        (
            &["explain", "-c", file, "--path", "/", "--listener", "x"],
            1,
            "no listener",
        ),
        (
            &["explain", "--admin", "http://127.0.0.1:1", "--path", "/"],
            1,
            "-c FILE",
        ),
    ] {
        let ended = run(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(why),
            "{arguments:?}: {}",
            ended.stderr
        );
        assert_eq!(ended.stdout, "", "{arguments:?}");
    }
}
