//! Quotas through the wire, on a clock that moves only when it is told to.

use std::time::Duration;

use crate::support::call::call;
use crate::support::gateway::dealer_with;
use crate::support::{Answer, Client, Gateway, Post, U, Upstream};

mod places;
mod plans;
mod seen;
mod terms;

fn asked(client: &mut Client, path: &str, fields: &[(&str, &str)]) -> Answer {
    let mut post = Post::to(path).body(call("1"));
    for (name, value) in fields {
        post = post.field(name, value);
    }
    client.ask(post.bytes())
}

/// The wait that a refusal tells, the same in body, message and header; `None` where it was admitted.
#[track_caller]
fn wait(answer: &Answer) -> Option<u64> {
    if !answer.text().contains("\"error\"") {
        assert_eq!(answer.status, 200);
        return None;
    }
    assert_eq!(answer.code(), -32000);
    let json = answer.json();
    let ms = json["error"]["data"][1]["value"]["details"]["retry_after_ms"]
        .as_u64()
        .unwrap();
    assert!(ms >= 1);
    assert_eq!(
        answer.head.all("retry-after"),
        [ms.div_ceil(1000).to_string()]
    );
    Some(ms)
}

fn gateway(upstream: &Upstream, tables: &str, quotas: &str) -> Gateway {
    Gateway::start_two(&format!(
        "[callers]\nidentify = [\"header:x-api-key\", \"header:authorization\", \"address\"]\n\
         {tables}\n{}\n\
         [endpoint.other]\npath = \"/other\"\nupstream = \"lakeside\"\nquotas = [{quotas}]\n",
        dealer_with(upstream, "", &format!("quotas = [{quotas}]"))
    ))
}

const KEY: (&str, &str) = ("X-Api-Key", "buyer-1");
const OTHER_KEY: (&str, &str) = ("X-Api-Key", "buyer-2");

#[test]
fn the_wait_is_exact() {
    let upstream = Upstream::recording();
    for (rate, interval) in [
        ("5/s", 200),
        ("2/min", 30_000),
        // 142.857142 ms: told rounded up.
        ("7/s", 143),
        ("3/min", 20_000),
        ("1000000000/s", 1),
    ] {
        let quota = format!("[quota.q]\nper = \"caller\"\nrate = \"{rate}\"\nburst = 1");
        let gateway = gateway(&upstream, &quota, "\"q\"");
        let mut client = gateway.client();
        assert_eq!(wait(&asked(&mut client, "/a2a", &[KEY])), None, "{rate}");
        assert_eq!(
            wait(&asked(&mut client, "/a2a", &[KEY])),
            Some(interval),
            "{rate}"
        );
        if interval > 1 {
            // One less than told is too early, and costs nothing.
            gateway.clock.advance(Duration::from_millis(interval - 1));
            assert_eq!(wait(&asked(&mut client, "/a2a", &[KEY])), Some(1), "{rate}");
        }
        gateway.clock.advance(Duration::from_millis(1));
        assert_eq!(wait(&asked(&mut client, "/a2a", &[KEY])), None, "{rate}");
    }
}

#[test]
fn a_burst_refills_one_by_one() {
    let upstream = Upstream::recording();
    let gateway = gateway(
        &upstream,
        "[quota.q]\nper = \"caller\"\nrate = \"60/min\"\nburst = 20",
        "\"q\"",
    );
    // On several connections, which two workers share.
    let mut clients: Vec<_> = (0..4).map(|_| gateway.client()).collect();
    for index in 0..20 {
        assert_eq!(wait(&asked(&mut clients[index % 4], "/a2a", &[KEY])), None);
    }
    for client in &mut clients {
        assert_eq!(wait(&asked(client, "/a2a", &[KEY])), Some(1000));
    }
    gateway.clock.advance(Duration::from_millis(2500));
    assert_eq!(wait(&asked(&mut clients[0], "/a2a", &[KEY])), None);
    assert_eq!(wait(&asked(&mut clients[1], "/a2a", &[KEY])), None);
    assert_eq!(wait(&asked(&mut clients[2], "/a2a", &[KEY])), Some(500));
    assert_eq!(upstream.count(), 22);
    let series = |decision: &str| {
        gateway.series(&format!(
            "forecourt_ratelimit_decisions_total{{quota=\"q\",decision=\"{decision}\",source=\"local\"}}"
        ))
    };
    assert_eq!((series("admitted"), series("refused")), (22.0, 5.0));
}

#[test]
fn what_is_counted_apart() {
    let upstream = Upstream::recording();
    // Which of these four have a bucket of their own after the first was spent:
    // the same call again, another caller, another endpoint, both.
    for (per, shared, [again, other_caller, other_endpoint, both]) in [
        ("\"caller\"", false, [false, true, true, true]),
        ("\"caller\"", true, [false, true, false, false]),
        ("\"endpoint\"", false, [false, false, true, false]),
        ("\"all\"", true, [false, false, false, false]),
        ("\"address\"", true, [false, false, false, false]),
        (
            "[\"caller\", \"address\"]",
            true,
            [false, true, false, false],
        ),
    ] {
        let quota =
            format!("[quota.q]\nper = {per}\nrate = \"1/day\"\nburst = 1\nshared = {shared}");
        let gateway = gateway(&upstream, &quota, "\"q\"");
        let mut client = gateway.client();
        let mut passes = |path, key| wait(&asked(&mut client, path, &[key])).is_none();
        assert!(passes("/a2a", KEY));
        assert_eq!(passes("/a2a", KEY), again, "{per} {shared}");
        assert_eq!(passes("/a2a", OTHER_KEY), other_caller, "{per} {shared}");
        assert_eq!(passes("/other", KEY), other_endpoint, "{per} {shared}");
        assert_eq!(passes("/other", OTHER_KEY), both, "{per} {shared}");
    }
}

#[test]
fn several_quotas_admit_together_or_charge_none() {
    let upstream = Upstream::recording();
    let gateway = gateway(
        &upstream,
        "[quota.wide]\nper = \"all\"\nrate = \"3/day\"\nshared = true\n\
         [quota.narrow]\nper = \"caller\"\nrate = \"1/min\"\nshared = true",
        "\"wide\", \"narrow\"",
    );
    let mut client = gateway.client();
    let mut ask = |key: &str| wait(&asked(&mut client, "/a2a", &[("X-Api-Key", key)]));
    assert_eq!(ask("a"), None);
    // Refused by the narrow one: the wide one is not charged.
    for _ in 0..10 {
        assert_eq!(ask("a"), Some(60_000));
    }
    assert_eq!(gateway.last_line()["quota"], "narrow");
    assert_eq!(ask("b"), None);
    assert_eq!(ask("c"), None);
    // Now the wide one refuses; the one that holds longest is told.
    assert_eq!(ask("d"), Some(24 * 3600 * 1000 / 3));
    assert_eq!(ask("a"), Some(24 * 3600 * 1000 / 3));
    gateway.clock.advance(Duration::from_secs(24 * 3600 / 3));
    assert_eq!(ask("d"), None);
}

#[test]
fn refused_and_unreadable_calls_cost() {
    let upstream = Upstream::recording();
    let quota =
        "[limits]\nbody = \"1KiB\"\n[quota.q]\nper = \"caller\"\nrate = \"1/day\"\nburst = 1";
    for (what, post) in [
        (
            "version",
            Post::to("/a2a").field("A2A-Version", "9.9").body(call("1")),
        ),
        (
            "extension",
            Post::to("/a2a")
                .field("A2A-Extensions", "x")
                .body(call("1")),
        ),
        (
            "method",
            Post::to("/a2a").body(call("1").replace("SendMessage", "tasks/get")),
        ),
        ("not JSON", Post::to("/a2a").body("{")),
        ("batch", Post::to("/a2a").body("[]")),
        (
            "media",
            Post::bare("/a2a")
                .field("Host", "gw")
                .field("Content-Type", "text/plain")
                .body("x"),
        ),
        ("large", Post::to("/a2a").body("x".repeat(1025))),
    ] {
        let gateway = gateway(&upstream, quota, "\"q\"");
        let answer = gateway.ask(post.field(KEY.0, KEY.1).bytes());
        assert_ne!(answer.code(), -32000, "{what}");
        let mut client = gateway.client();
        assert!(
            wait(&asked(&mut client, "/a2a", &[KEY])).is_some(),
            "{what}"
        );
        assert_eq!(
            wait(&asked(&mut client, "/a2a", &[OTHER_KEY])),
            None,
            "{what}"
        );
        // What is asked without policy costs nothing and is never refused by a quota.
        let card = Post::method("GET", "/a2a/.well-known/agent-card.json");
        assert_eq!(
            client
                .ask(card.field("Host", "gw").field(KEY.0, KEY.1).bytes())
                .status,
            200
        );
    }
}

#[test]
fn quota_is_asked_before_the_headers_and_after_the_envelope() {
    let upstream = Upstream::recording();
    let gateway = gateway(
        &upstream,
        "[quota.q]\nper = \"caller\"\nrate = \"1/day\"\nburst = 1",
        "\"q\"",
    );
    let mut client = gateway.client();
    assert_eq!(wait(&asked(&mut client, "/a2a", &[KEY])), None);
    let bad = [KEY, ("A2A-Version", "9.9")];
    assert_eq!(asked(&mut client, "/a2a", &bad).code(), -32000);
    let unreadable = Post::to("/a2a").field(KEY.0, KEY.1).body("{");
    assert_eq!(client.ask(unreadable.bytes()).code(), -32700);
}

#[test]
fn the_first_source_that_is_present_names_the_caller() {
    let upstream = Upstream::recording();
    let gateway = gateway(
        &upstream,
        "[quota.q]\nper = \"caller\"\nrate = \"1/day\"\nburst = 1\nshared = true",
        "\"q\"",
    );
    let mut client = gateway.client();
    let mut first = |fields: &[(&str, &str)]| wait(&asked(&mut client, "/a2a", fields)).is_none();
    assert!(first(&[KEY, ("Authorization", "Bearer t")]));
    let name = |gateway: &Gateway| {
        let log = gateway.access_log();
        log.last().unwrap()["caller"].as_str().unwrap().to_owned()
    };
    let by_key = name(&gateway);
    assert!(by_key.starts_with("x-api-key#"), "{by_key}");
    assert!(!first(&[("Authorization", "Bearer other"), KEY]));
    // An empty header names nobody.
    assert!(first(&[("X-Api-Key", ""), ("Authorization", "Bearer t")]));
    assert!(name(&gateway).starts_with("authorization#"));
    assert!(!first(&[("Authorization", " Bearer t ")]));
    assert!(first(&[]));
    assert_eq!(name(&gateway), "address 127.0.0.1");
    assert!(!first(&[("X-Forwarded-For", "203.0.113.9")]));
    assert!(!first(&[("X-Api-Key", " ")]));
}

#[test]
fn report_counts_and_never_refuses() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&format!(
        "[quota.q]\nper = \"all\"\nrate = \"1/day\"\nburst = 1\n{}",
        dealer_with(
            &upstream,
            "",
            "quotas = [\"q\"]\nreport = [\"quota\", \"version\", \"extension\", \"capability\"]\n\
             methods = [\"SendMessage\"]"
        )
    ));
    let mut client = gateway.client();
    assert_eq!(wait(&asked(&mut client, "/a2a", &[])), None);
    let line = gateway.last_line();
    assert!(line["reported"].is_null());
    assert_eq!(
        line["normalized"],
        serde_json::json!(["a2a-version", "a2a-extensions"])
    );
    upstream.take();

    // Over quota, a version and a list that are not served: forwarded as they came.
    let fields = [
        ("A2A-Version", "9.9"),
        ("A2A-Extensions", "https://ext.example/v1"),
        ("A2A-Extensions", "x"),
    ];
    let answer = asked(&mut client, "/a2a", &fields);
    assert_eq!(answer.text(), crate::support::upstream::RESULT);
    assert!(!answer.head.has("a2a-extensions"), "nothing was activated");
    let head = upstream.take().head;
    assert_eq!(head.all("a2a-version"), ["9.9"]);
    assert_eq!(head.all("a2a-extensions"), ["https://ext.example/v1", "x"]);
    let line = gateway.last_line();
    assert_eq!(
        line["reported"],
        serde_json::json!(["version", "extension", "quota"])
    );
    assert_eq!(line["outcome"], "ok");
    let task = Post::to("/a2a").body(call("1").replace("SendMessage", "GetTask"));
    assert_eq!(
        client.ask(task.bytes()).text(),
        crate::support::upstream::RESULT
    );
    upstream.take();
    // Two version lines and an empty one go on as they are, too.
    asked(
        &mut client,
        "/a2a",
        &[
            ("A2A-Version", "1.0"),
            ("A2A-Version", "1.0"),
            ("A2A-Extensions", U),
        ],
    );
    assert_eq!(upstream.take().head.all("a2a-version"), ["1.0", "1.0"]);
    asked(&mut client, "/a2a", &[("A2A-Version", "")]);
    assert_eq!(upstream.take().head.all("a2a-version"), [""]);
    for (step, count) in [
        ("version", 3.0),
        ("extension", 1.0),
        ("quota", 4.0),
        ("capability", 1.0),
        ("tenant", 0.0),
    ] {
        let series = format!("forecourt_reported_total{{endpoint=\"lakeside\",step=\"{step}\"}}");
        assert_eq!(gateway.series(&series), count, "{step}");
    }
    for outcome in [
        "rate_limited",
        "version_not_supported",
        "extension_required",
    ] {
        assert_eq!(gateway.ended(outcome), 0.0);
    }
}

#[test]
fn strangers_share_when_the_table_is_full() {
    let upstream = Upstream::recording();
    let gateway = gateway(
        &upstream,
        "[limits]\nlimiter_keys = 64\n[quota.q]\nper = \"caller\"\nrate = \"1/day\"\nburst = 5\nshared = true",
        "\"q\"",
    );
    let mut client = gateway.client();
    for index in 0..1000 {
        let key = format!("stranger-{index}");
        asked(&mut client, "/a2a", &[("X-Api-Key", &key)]);
    }
    let metrics = gateway.metrics();
    assert!(metrics["forecourt_ratelimit_keys"] <= 128.0);
    assert!(metrics["forecourt_ratelimit_overflow_total"] > 0.0);
    // No metric and no line names a caller.
    assert!(!gateway.admin_get("/metrics").text().contains("stranger"));
    assert!(!format!("{:?}", gateway.access_log()).contains("stranger"));
}

#[test]
fn answers_tell_how_the_caller_stands() {
    let upstream = Upstream::answering(crate::support::upstream::answer(
        "200 OK",
        "RateLimit: \"dealer\";r=1\r\n",
        "{}",
    ));
    let quotas = "[quota.per-buyer]\nper = \"caller\"\nrate = \"2/min\"\nshared = true\n";
    let gateway = Gateway::start(&format!(
        "{quotas}{}[endpoint.old]\npath = \"/old\"\nupstream = \"lakeside\"\n\
         quotas = [\"per-buyer\"]\nratelimit_headers = \"x-ratelimit\"\n\
         [endpoint.off]\npath = \"/off\"\nupstream = \"lakeside\"\n\
         quotas = [\"per-buyer\"]\nratelimit_headers = \"off\"\n",
        dealer_with(&upstream, "", "quotas = [\"per-buyer\"]")
    ));
    let mut client = gateway.client();
    let answer = asked(&mut client, "/a2a", &[]);
    assert_eq!(
        answer.head.all("ratelimit-policy"),
        ["\"per-buyer\";q=2;w=60"]
    );
    // Beside what the dealer says of its own.
    assert_eq!(
        answer.head.all("ratelimit"),
        ["\"dealer\";r=1", "\"per-buyer\";r=1;t=30"]
    );
    let answer = asked(&mut client, "/old", &[]);
    assert!(!answer.head.has("ratelimit-policy"));
    for (name, value) in [("limit", "2"), ("remaining", "0"), ("reset", "60")] {
        assert_eq!(answer.head.all(&format!("x-ratelimit-{name}")), [value]);
    }
    let answer = asked(&mut client, "/a2a", &[]);
    assert_eq!(wait(&answer), Some(30_000));
    assert_eq!(answer.head.all("ratelimit"), ["\"per-buyer\";r=0;t=30"]);
    let answer = asked(&mut client, "/off", &[]);
    assert_eq!(wait(&answer), Some(30_000));
    assert!(!answer.head.has("ratelimit") && !answer.head.has("x-ratelimit-limit"));
}

#[test]
fn a_repeated_credential_is_nobody_s() {
    let upstream = Upstream::recording();
    let quota = "[quota.q]\nper = \"caller\"\nrate = \"1/min\"";
    let gateway = gateway(&upstream, quota, "\"q\"");
    let mut client = gateway.client();
    assert_eq!(wait(&asked(&mut client, "/a2a", &[KEY])), None);
    assert!(wait(&asked(&mut client, "/a2a", &[KEY])).is_some());
    // Another line beside it must not make another caller of the same one.
    let authorization = ("Authorization", "Bearer a");
    for fields in [
        [KEY, OTHER_KEY],
        [OTHER_KEY, KEY],
        [KEY, KEY],
        [KEY, ("x-api-key", "")],
        [authorization, authorization],
    ] {
        let answer = asked(&mut gateway.client(), "/a2a", &fields);
        assert_eq!(answer.status, 400, "{fields:?}");
        assert!(answer.closes());
    }
    let log = gateway.access_log();
    let bad = log.iter().filter(|line| line["outcome"] == "bad_http");
    assert_eq!((bad.count(), upstream.count()), (5, 1));
}
