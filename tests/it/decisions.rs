//! What was decided lately, and why: found by a request's id, by an error's, and by who was refused.

use serde_json::Value;

use crate::support::call::{call, lead};
use crate::support::gateway::dealer_with;
use crate::support::process::run;
use crate::support::{Gateway, Post, Upstream};

fn gateway(upstream: &Upstream) -> Gateway {
    Gateway::start(&configuration(upstream))
}

fn configuration(upstream: &Upstream) -> String {
    format!(
        "[quota.per-buyer]\nper = \"caller\"\nrate = \"1/day\"\n[callers]\n\
         identify = [\"header:x-buyer\", \"address\"]\n{}\
         [endpoint.other]\npath = \"/other\"\nupstream = \"lakeside\"\n",
        dealer_with(upstream, "", "quotas = [\"per-buyer\"]"),
    )
}

#[track_caller]
fn get(gateway: &Gateway, path: &str) -> Vec<Value> {
    // A decision is remembered when the last byte of its answer is out, as the line is written.
    gateway.inner.flush_access_log();
    let answer = gateway.admin_get(path);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["decisions"].as_array().unwrap().clone()
}

#[test]
fn a_refusal_is_found_by_both_of_its_ids() {
    let upstream = Upstream::recording();
    let gateway = gateway(&upstream);
    let post = Post::to("/a2a")
        .field(
            "X-Request-Id",
            "req 7/é".replace(' ', "-").replace('é', "e").as_str(),
        )
        .field("X-Buyer", "secret-buyer")
        .body(lead("\"1\"", None));
    assert_eq!(gateway.ask(post.bytes()).status, 200);
    let answer = gateway.ask(post.bytes());
    let error_id = answer.json()["error"]["data"][0]["metadata"]["error_id"].clone();
    let error_id = error_id.as_str().unwrap();
    let line = gateway.last_line();
    assert_eq!(line["error_id"], error_id);

    let [refused, sent] = &get(&gateway, "/decisions/req-7%2Fe")[..] else {
        panic!("both are known by this id")
    };
    for member in [
        "ts",
        "request_id",
        "endpoint",
        "contract",
        "caller",
        "rpc_method",
        "skill",
        "outcome",
        "status",
        "rpc_code",
        "error_id",
        "quota",
        "limit_source",
        "retry_after_ms",
        "generation",
    ] {
        assert_eq!(refused[member], line[member], "{member}");
    }
    assert_eq!(refused["step"], "quota");
    assert_eq!(refused["rules"][0]["key"], "quota.per-buyer.rate");
    let file = std::fs::read_to_string(gateway.path()).unwrap();
    let at = file
        .lines()
        .position(|line| line.starts_with("rate ="))
        .unwrap()
        + 1;
    assert_eq!(refused["rules"][0]["line"], at);
    assert!(
        refused["section"]
            .as_str()
            .unwrap()
            .contains("RATE_LIMITED")
    );
    assert_eq!(sent["outcome"], "ok");
    assert_eq!(sent["step"], Value::Null);
    assert_eq!(sent["upstream"], "lakeside");
    assert!(sent["upstream_ms"].as_f64().is_some());
    let normalized = serde_json::json!(["a2a-version", "a2a-extensions"]);
    assert_eq!(sent["normalized"], normalized);

    let [by_error] = &get(&gateway, &format!("/decisions/{error_id}"))[..] else {
        panic!("one answer has this error id")
    };
    assert_eq!(by_error, refused);
    assert!(!refused.to_string().contains("secret-buyer"));
    let missing = gateway.admin_get("/decisions/none");
    assert_eq!(missing.status, 404);

    let admin = format!("http://{}", gateway.inner.admin_address());
    let told = run(&["explain", "--admin", &admin, "--id", error_id]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    for wanted in [
        "rate_limited, request req-7/e",
        "quota      per-buyer",
        "quota.per-buyer.rate (",
    ] {
        assert!(told.stdout.contains(wanted), "{wanted}: {}", told.stdout);
    }
    let unknown = run(&["explain", "--admin", &admin, "--id", "none"]);
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("no decision"), "{}", unknown.stderr);
}

#[test]
fn an_operator_starts_from_who_was_refused() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_two(&configuration(&upstream));
    let ask = |path: &str, id: &str| {
        let post = Post::to(path).field("X-Request-Id", id);
        gateway.ask(post.body(call("1")).bytes())
    };
    for (path, id) in [
        ("/a2a", "a"),
        ("/a2a", "b"),
        ("/other", "c"),
        ("/nowhere", "d"),
        ("/a2a", "e"),
    ] {
        ask(path, id);
    }
    let ids = |query: &str| {
        let found = get(&gateway, &format!("/decisions{query}"));
        let ids = found
            .iter()
            .map(|it| it["request_id"].as_str().unwrap().to_owned());
        let mut ids: Vec<_> = ids.collect();
        // Two workers on a clock that stands still: which came first, nobody knows.
        ids.sort();
        ids
    };
    assert_eq!(ids(""), ["a", "b", "c", "d", "e"]);
    assert_eq!(ids("?outcome=rate_limited"), ["b", "e"]);
    assert_eq!(ids("?outcome=ok&endpoint=other"), ["c"]);
    assert_eq!(ids("?caller=address%20127.0.0.1"), ["a", "b", "c", "e"]);
    assert_eq!(ids("?caller=nobody"), [""; 0]);
    assert_eq!(ids("?limit=2").len(), 2);
    for wrong in ["?outcome=none", "?limit=x"] {
        assert_eq!(gateway.admin_get(&format!("/decisions{wrong}")).status, 400);
    }
    let found = get(&gateway, "/decisions?outcome=no_route");
    assert_eq!(found[0]["step"], "route");
    assert_eq!(found[0]["why"], Value::Null);
    // Strangers are told nothing.
    for path in ["/decisions", "/decisions/a"] {
        let request = Post::method("GET", path).field("Host", "evil.example");
        assert_eq!(gateway.admin().ask(request.bytes()).status, 403);
        let request = Post::method("POST", path).field("Host", "127.0.0.1");
        assert_eq!(gateway.admin().ask(request.bytes()).status, 405);
    }
}

#[test]
fn a_decision_is_told_by_the_lines_of_its_time_as_long_as_they_are_kept() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&format!("[reload]\nkeep = 2\n{}", configuration(&upstream)));
    let post = Post::to("/a2a")
        .field("X-Request-Id", "old")
        .field("A2A-Version", "9.9");
    gateway.ask(post.body(call("1")).bytes());
    let old = || get(&gateway, "/decisions/old").remove(0);
    let before = old();
    assert_eq!(before["generation_is_known"], true);
    assert_eq!(before["step"], "version");
    let file = std::fs::read_to_string(gateway.path()).unwrap();
    let moved = format!("# One.\n# Two.\n{file}");
    for (generation, rate) in [(2, "2/day"), (3, "3/day")] {
        gateway.write_whole(&moved.replace("1/day", rate));
        gateway.inner.reload().unwrap();
        let after = old();
        for member in [
            "generation",
            "outcome",
            "step",
            "section",
            "endpoint",
            "contract",
            "caller",
        ] {
            assert_eq!(after[member], before[member], "{member}");
        }
        let is_kept = generation == 2;
        assert_eq!(after["generation_is_known"], is_kept);
        let rules = if is_kept {
            before["rules"].clone()
        } else {
            serde_json::json!([])
        };
        assert_eq!(after["rules"], rules, "{generation}");
    }
    let admin = format!("http://{}", gateway.inner.admin_address());
    let told = run(&["explain", "--admin", &admin, "--id", "old"]);
    let wanted = "generation 1, which is no longer kept";
    assert!(told.stdout.contains(wanted), "{}", told.stdout);
}
