//! Report mode, summed up: what would have been refused, by whom, for which rule.

use serde_json::{Value, json};

use crate::support::call::call;
use crate::support::gateway::{NOW, dealer_with};
use crate::support::{Gateway, Post, Upstream};

const TABLES: &str = "[callers]\nidentify = [\"header:x-api-key\", \"address\"]\n\
    [quota.few]\nper = \"caller\"\nrate = \"1/day\"\nburst = 1\n";

fn configuration(upstream: &Upstream, report: &str) -> String {
    let lines = format!("report = {report}\nquotas = [\"few\"]\nmethods = [\"SendMessage\"]");
    format!("{TABLES}{}", dealer_with(upstream, "", &lines))
}

fn findings(gateway: &Gateway) -> Value {
    gateway.admin_get("/status").json()["report_findings"].take()
}

fn ask(gateway: &Gateway, id: &str, fields: &[(&str, &str)], body: &str) -> u16 {
    let mut request = Post::to("/a2a").field("X-Request-Id", id);
    for (name, value) in fields {
        request = request.field(name, value);
    }
    gateway.ask(request.body(body).bytes()).status
}

#[test]
fn what_would_have_been_refused_is_summed_up_by_rule_and_caller() {
    let upstream = Upstream::recording();
    let all = "[\"version\", \"extension\", \"quota\", \"capability\"]";
    let gateway = Gateway::start(&configuration(&upstream, all));
    assert_eq!(findings(&gateway), json!([]));
    let old = ("A2A-Version", "0.3");
    ask(&gateway, "good", &[], &call("1"));
    assert_eq!(findings(&gateway), json!([]));
    // Over its quota: the second of this address.
    ask(&gateway, "over", &[], &call("1"));
    for (id, key) in [("first", "k1"), ("second", "k2"), ("third", "k2")] {
        ask(&gateway, id, &[old, ("X-Api-Key", key)], &call("1"));
    }
    let unknown = ("A2A-Extensions", "https://x.example/y");
    let streaming = call("1").replace("SendMessage", "SendStreamingMessage");
    gateway.wall.set(crate::support::gateway::NOW_MS + 60_000);
    ask(
        &gateway,
        "both",
        &[unknown, ("X-Api-Key", "k3")],
        &streaming,
    );
    assert_eq!(upstream.count(), 6);

    let found = findings(&gateway);
    let rules: Vec<_> = found.as_array().unwrap().iter().collect();
    let shown: Vec<_> = rules
        .iter()
        .map(|rule| {
            let text = |member: &str| rule[member].as_str().unwrap().to_owned();
            assert_eq!(
                (&rule["endpoint"], &rule["generation"]),
                (&json!("lakeside"), &json!(1))
            );
            (
                text("step"),
                text("outcome"),
                rule["count"].as_u64().unwrap(),
                text("request_id"),
            )
        })
        .collect();
    let rule = |step: &str, outcome: &str, count, id: &str| {
        (step.to_owned(), outcome.to_owned(), count, id.to_owned())
    };
    assert_eq!(
        shown[0],
        rule("version", "version_not_supported", 3, "third")
    );
    assert!(
        shown.contains(&rule("quota", "rate_limited", 2, "third")),
        "{shown:?}"
    );
    assert!(shown.contains(&rule("extension", "extension_required", 1, "both")));
    assert!(shown.contains(&rule("capability", "unsupported_operation", 1, "both")));
    assert_eq!(shown.len(), 4);
    let version = rules[0];
    assert_eq!(
        (&version["quota"], &version["first"]),
        (&Value::Null, &json!(NOW))
    );
    let callers = version["callers"].as_array().unwrap();
    let counts: Vec<_> = callers
        .iter()
        .map(|it| it["count"].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [2, 1]);
    assert!(
        callers[0]["caller"]
            .as_str()
            .unwrap()
            .starts_with("x-api-key#")
    );
    let over = rules.iter().find(|rule| rule["step"] == "quota").unwrap();
    assert_eq!(over["quota"], "few");
    let late = rules
        .iter()
        .find(|rule| rule["step"] == "capability")
        .unwrap();
    assert_eq!(late["first"], "2026-11-30T16:54:23.042Z");
}

#[test]
fn it_outlives_reloads_for_as_long_as_its_endpoint_reports_its_step() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&configuration(&upstream, "[\"version\", \"extension\"]"));
    let put = |configuration: &str| {
        gateway.write(configuration);
        gateway.inner.reload().unwrap();
    };
    let wrong = [
        ("A2A-Version", "0.3"),
        ("A2A-Extensions", "x:y"),
        ("X-Api-Key", "a"),
    ];
    ask(&gateway, "a", &wrong, &call("1"));
    let steps = || -> Vec<(String, u64, u64)> {
        let found = findings(&gateway);
        let mut steps: Vec<_> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|rule| {
                let step = rule["step"].as_str().unwrap().to_owned();
                (
                    step,
                    rule["count"].as_u64().unwrap(),
                    rule["generation"].as_u64().unwrap(),
                )
            })
            .collect();
        steps.sort();
        steps
    };
    let step = |name: &str, count, generation| (name.to_owned(), count, generation);
    assert_eq!(steps(), [step("extension", 1, 1), step("version", 1, 1)]);
    // Another thing changes.
    put(&configuration(&upstream, "[\"version\", \"extension\"]").replace("1/day", "2/day"));
    let wrong = [
        ("A2A-Version", "0.3"),
        ("A2A-Extensions", "x:y"),
        ("X-Api-Key", "b"),
    ];
    ask(&gateway, "b", &wrong, &call("1"));
    assert_eq!(steps(), [step("extension", 2, 2), step("version", 2, 2)]);
    // One step refuses now.
    put(&configuration(&upstream, "[\"version\"]"));
    assert_eq!(steps(), [step("version", 2, 2)]);
    // The endpoint goes; when it comes back it begins anew.
    put(&configuration(&upstream, "[\"version\"]").replace("endpoint.lakeside", "endpoint.other"));
    assert_eq!(steps(), []);
    put(&configuration(&upstream, "[\"version\"]"));
    assert_eq!(steps(), []);
    ask(
        &gateway,
        "c",
        &[("A2A-Version", "0.3"), ("X-Api-Key", "c")],
        &call("1"),
    );
    assert_eq!(steps(), [step("version", 1, 5)]);
}

#[test]
fn what_is_only_explained_is_no_finding() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&configuration(&upstream, "[\"version\"]"));
    let asked = Post::to("/a2a").field("A2A-Version", "0.3").body(call("1"));
    let asked = String::from_utf8(asked.bytes()).unwrap();
    let order = Post::method("POST", "/explain").field("Host", "127.0.0.1");
    let answer = gateway.admin().ask(order.body(&asked).bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["verdict"], "forward");
    assert_eq!(findings(&gateway), json!([]));
    gateway.ask(&asked);
    assert_eq!(findings(&gateway)[0]["count"], 1);
}

#[test]
fn the_page_shows_what_there_is() {
    let page = include_str!("../../../docs/operations.md");
    let block = |language: &str| -> Value {
        let (_, after) = page.split_once(&format!("```json,{language}\n")).unwrap();
        serde_json::from_str(after.split("```").next().unwrap()).unwrap()
    };
    let members =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&configuration(&upstream, "[\"version\"]"));
    ask(&gateway, "a", &[("A2A-Version", "0.3")], &call("1"));
    let (found, shown) = (findings(&gateway), block("findings"));
    assert_eq!(members(&found[0]), members(&shown[0]));
    assert_eq!(
        members(&found[0]["callers"][0]),
        members(&shown[0]["callers"][0])
    );
    let told = gateway.admin_get("/log").json();
    assert_eq!(members(&told), members(&block("log")));
    assert_eq!(told, gateway.admin_get("/status").json()["log"]);
}
