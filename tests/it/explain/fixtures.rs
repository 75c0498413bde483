//! Every fixture on the wire, and explained: by the running gateway and by its file.

use crate::explain::{ask, by_file, masked, told, wire};
use crate::golden;
use crate::support::gateway::dealer_with;
use crate::support::head::Head;
use crate::support::{Gateway, Nobody, Post, Upstream, fixture};
use serde_json::Value;

/// Explains a request both ways, sends it, and holds all three together.
#[track_caller]
fn same(gateway: &Gateway, upstream: &Upstream, name: &str, request: &[u8]) -> bool {
    let explained = ask(gateway, request);
    let by_file = by_file(&gateway.path(), request);
    assert_eq!(upstream.count(), 0, "{name}: the dealer was asked");
    let answer = wire(gateway.address(), request);
    let Some(expected) = told(&explained) else {
        assert_eq!(explained["verdict"], "forward", "{name}: {explained}");
        match explained["forward"]["upstream"].as_str() {
            Some("down") => assert!(answer.starts_with("HTTP/1.1 502"), "{name}: {answer}"),
            _ => arrived(upstream, &explained, name),
        }
        assert_eq!(forwarded(&by_file), forwarded(&explained), "{name}");
        return false;
    };
    assert_eq!(masked(&expected), masked(&answer), "{name}");
    assert_eq!(explained["verdict"], "refuse", "{name}");
    let line = gateway.last_line();
    assert_eq!(explained["outcome"], line["outcome"], "{name}");
    // A file knows nothing of who came before.
    if line["outcome"] != "rate_limited" {
        assert_eq!(masked(&told(&by_file).unwrap()), masked(&answer), "{name}");
    }
    assert_eq!(upstream.count(), 0, "{name}: refused, and yet sent");
    true
}

/// What would be sent, but for ids.
fn forwarded(explained: &Value) -> Value {
    let mut forward = explained["forward"].clone();
    for header in forward["headers"].as_array_mut().unwrap() {
        if header["name"] == "x-request-id" {
            header["value"].take();
        }
    }
    forward
}

/// The dealer received what was told: the same lines, the values of those that are shown.
#[track_caller]
fn arrived(upstream: &Upstream, explained: &Value, name: &str) {
    let arrival = upstream.take();
    let head: &Head = &arrival.head;
    let headers = explained["forward"]["headers"].as_array().unwrap();
    let sent: Vec<_> = headers
        .iter()
        .filter(|it| it["change"] != "removed")
        .collect();
    let mut names: Vec<_> = sent.iter().map(|it| it["name"].as_str().unwrap()).collect();
    let mut came: Vec<_> = head
        .fields
        .iter()
        .map(|it| it.0.to_ascii_lowercase())
        .collect();
    names.sort_unstable();
    came.sort_unstable();
    assert_eq!(names, came, "{name}");
    for header in sent {
        let (field, value) = (header["name"].as_str().unwrap(), header["value"].as_str());
        if let Some(value) = value
            && !["x-request-id", "a2a-version", "a2a-extensions"].contains(&field)
        {
            assert_eq!(head.all(field), [value], "{name} {field}");
        }
    }
    for field in ["a2a-version", "a2a-extensions"] {
        let told = headers.iter().filter(|it| it["name"] == field);
        let told: Vec<_> = told.map(|it| it["value"].as_str().unwrap()).collect();
        let told: Vec<String> = told.iter().map(|it| (*it).to_owned()).collect();
        let came = head
            .fields
            .iter()
            .filter(|it| it.0.eq_ignore_ascii_case(field));
        let came: Vec<_> = came
            .map(|it| String::from_utf8_lossy(&it.1).into_owned())
            .collect();
        assert_eq!(told, came, "{name} {field}");
    }
    let target = arrival.target();
    let url = explained["forward"]["url"].as_str().unwrap();
    let path = target.split('?').next().unwrap();
    assert_eq!(url, format!("http://{}{path}", upstream.address), "{name}");
    assert_eq!(explained["forward"]["body"], arrival.body.len(), "{name}");
}

#[test]
fn the_same_requests_under_each_contract() {
    let requests = fixture::files("contract/requests", 7);
    let mut refused = 0;
    for (release, uri) in golden::RELEASES {
        let (upstream, nobody) = (Upstream::recording(), Nobody::new());
        let gateway = golden::gateway(release, uri, &upstream, &nobody);
        for (name, text) in &requests {
            let bytes = golden::request(std::str::from_utf8(text).unwrap(), uri);
            if name.starts_with("second-") {
                // Asking a hundred times is not coming once.
                for _ in 0..3 {
                    assert_eq!(ask(&gateway, &bytes)["verdict"], "forward");
                }
                assert_eq!(gateway.ask(&bytes).status, 200);
                upstream.take();
            }
            let name = format!("{release} {name}");
            refused += usize::from(same(&gateway, &upstream, &name, &bytes));
        }
    }
    assert_eq!(refused, 12, "of 28");
}

#[test]
fn header_vectors() {
    let upstream = Upstream::recording();
    let contracts = ["aap/1.0", "aap/1.1", "aap/1.3", "aap/3.0"];
    let mut text = dealer_with(&upstream, "", "");
    for contract in contracts {
        let name = contract.replace(['/', '.'], "-");
        text += &format!(
            "[endpoint.{name}]\npath = \"/{name}\"\nupstream = \"lakeside\"\ncontract = \"{contract}\"\n"
        );
    }
    text += "[contract.draft]\nextension = \"https://dealer.example/ext/aap/v2.0\"\n\
             absent = \"refuse\"\nrequire_extension = true\ndialect = \"tagged\"\n\
             a2a_version = \"1.0\"\n\
             [endpoint.draft-2-0]\npath = \"/draft-2-0\"\nupstream = \"lakeside\"\n\
             contract = \"draft\"\n";
    let gateway = Gateway::start(&text);
    let body = crate::support::call::call("1");
    let mut refused = 0;
    for case in fixture::cases("vectors/headers.json", 37) {
        let path = case["contract"].as_str().unwrap().replace(['/', '.'], "-");
        let mut post = Post::to(&format!("/{path}")).body(&body);
        for line in case["headers"].as_array().unwrap() {
            post = post.field(line[0].as_str().unwrap(), line[1].as_str().unwrap());
        }
        let name = case["name"].as_str().unwrap();
        let is_refused = same(&gateway, &upstream, name, &post.bytes());
        assert_eq!(is_refused, case["expect"]["forward"].is_null(), "{name}");
        refused += usize::from(is_refused);
    }
    assert!((10..30).contains(&refused), "{refused}");
}

#[test]
fn envelope_vectors() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    for case in fixture::cases("vectors/envelopes.json", 25) {
        let mut post = Post::to("/a2a").body(case["body"].as_str().unwrap());
        if let Some(version) = case["version"].as_str() {
            post = post.field("A2A-Version", version);
        }
        let name = case["name"].as_str().unwrap();
        assert!(same(&gateway, &upstream, name, &post.bytes()), "{name}");
    }
}

#[test]
fn request_bodies() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let mut refused = Vec::new();
    for (name, body) in fixture::files("requests", 8) {
        let post = Post::to("/a2a").body(&body);
        if same(&gateway, &upstream, &name, &post.bytes()) {
            refused.push(name);
        }
    }
    // That of an older client.
    assert_eq!(refused, ["07-v0.3-message-stream-id-first.json"]);
}
