//! The same fixtures through a running gateway. What fails only here is the rim.

use serde_json::Value;

use crate::support::call::call;
use crate::support::{Gateway, Post, Upstream, fixture};

/// The URI each contract of the vectors activates, with the path it is served at here.
const CONTRACTS: [(&str, &str, &str); 5] = [
    (
        "aap/3.0",
        "/30",
        "https://autoagentprotocol.org/extensions/aap/v3.0",
    ),
    ("draft/2.0", "/20", "https://dealer.example/ext/aap/v2.0"),
    (
        "aap/1.3",
        "/13",
        "https://autoagentprotocol.org/extensions/aap/v1.3",
    ),
    (
        "aap/1.1",
        "/11",
        "https://autoagentprotocol.org/extensions/aap/v1.1",
    ),
    (
        "aap/1.0",
        "/10",
        "https://autoagentprotocol.org/extensions/a2a-automotive-retail/v1.0",
    ),
];

fn gateway(upstream: &Upstream) -> Gateway {
    let mut configuration = format!(
        r#"
        [upstream.lakeside]
        url = "http://{}/a2a"
        [contract.draft]
        extension = "https://dealer.example/ext/aap/v2.0"
        absent = "refuse"
        require_extension = true
        dialect = "tagged"
        "#,
        upstream.address
    );
    for (name, path, _) in CONTRACTS {
        let contract = if name == "draft/2.0" { "draft" } else { name };
        configuration += &format!(
            "[endpoint.e{}]\npath = \"{path}\"\nupstream = \"lakeside\"\ncontract = \"{contract}\"\n",
            &path[1..]
        );
    }
    Gateway::start(&configuration)
}

#[test]
fn header_vectors() {
    let upstream = Upstream::recording();
    let gateway = gateway(&upstream);
    // One connection for all of them: a refusal whose body was read keeps it.
    let mut client = gateway.client();
    for case in fixture::cases("vectors/headers.json", 37) {
        let name = &case["name"];
        println!("{name}");
        let contract = case["contract"].as_str().unwrap();
        let (_, path, uri) = CONTRACTS.iter().find(|it| it.0 == contract).unwrap();
        let query = case["query"].as_str();
        let target = query.map_or_else(|| (*path).to_owned(), |query| format!("{path}?{query}"));
        let mut post = Post::to(&target).body(call(r#""req_001""#));
        for line in case["headers"].as_array().unwrap() {
            post = post.field(line[0].as_str().unwrap(), line[1].as_str().unwrap());
        }
        let answer = client.ask(post.bytes());
        assert_eq!(answer.status, 200, "{name}");
        let expect = &case["expect"];
        let forward = &expect["forward"];
        if forward.is_null() {
            assert_eq!(upstream.count(), 0, "{name} was forwarded");
            let json = answer.json();
            assert_eq!(json["error"]["code"], expect["refuse"]["code"], "{name}");
            assert_eq!(answer.id(), r#""req_001""#, "{name}");
            assert!(!answer.head.has("a2a-extensions"), "{name}");
            let metadata = &json["error"]["data"][0]["metadata"];
            for known in ["requestedVersion", "extensionUri"] {
                let wanted = &expect["refuse"][known];
                if !wanted.is_null() {
                    assert_eq!(&metadata[known], wanted, "{name}");
                }
            }
            continue;
        }
        let arrival = upstream.take();
        assert_eq!(
            arrival.head.all("a2a-version"),
            [forward["A2A-Version"].as_str().unwrap()],
            "{name}"
        );
        assert_eq!(
            serde_json::to_value(arrival.head.all("a2a-extensions")).unwrap(),
            forward["A2A-Extensions"],
            "{name}"
        );
        assert_eq!(arrival.body, call(r#""req_001""#).as_bytes(), "{name}");
        let echoed = answer.head.all("a2a-extensions");
        match forward["activated"].as_bool().unwrap() {
            true => assert_eq!(echoed, [*uri], "{name}"),
            false => assert!(echoed.is_empty(), "{name}"),
        }
        let target = match query {
            Some(query) if query.contains("x=1") => "/a2a?x=1",
            _ => "/a2a",
        };
        assert_eq!(arrival.target(), target, "{name}");
        for line in case["headers"].as_array().unwrap() {
            let field = line[0].as_str().unwrap();
            let unrelated = field.starts_with("X-");
            if unrelated {
                let sent = line[1].as_str().unwrap();
                assert_eq!(arrival.head.all(field), [sent], "{name}");
            }
            assert!(!field.contains('_') || !arrival.head.has(field), "{name}");
        }
    }
    assert_eq!(
        gateway.ended_at("e30", "version_not_supported"),
        11.0,
        "of the vectors, these name a version that is not served"
    );
}

#[test]
fn envelope_vectors() {
    let upstream = Upstream::recording();
    let gateway = gateway(&upstream);
    let mut client = gateway.client();
    for case in fixture::cases("vectors/envelopes.json", 25) {
        let name = &case["name"];
        println!("{name}");
        let mut post = Post::to("/30").body(case["body"].as_str().unwrap());
        if let Some(version) = case["version"].as_str() {
            post = post.field("A2A-Version", version);
        }
        let answer = client.ask(post.bytes());
        assert_eq!(answer.status, 200, "{name}");
        assert_eq!(answer.head.one("content-type").unwrap(), "application/json");
        assert_eq!(Value::from(answer.code()), case["code"], "{name}");
        assert_eq!(answer.id(), case["id"].as_str().unwrap(), "{name}");
    }
    assert_eq!(upstream.count(), 0);
    let line = gateway.last_line();
    assert_eq!(line["endpoint"], "e30");
}
