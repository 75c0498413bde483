//! What operators see of quotas and callers, and that forgiving reaches all of one and nobody else.

use serde_json::{Value, json};

use super::*;

fn ask(gateway: &Gateway, method: &str, path: &str) -> Answer {
    let request = Post::method(method, path).field("Host", "127.0.0.1");
    gateway.admin().ask(request.bytes())
}

fn get(gateway: &Gateway, path: &str) -> Value {
    let answer = ask(gateway, "GET", path);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.head.all("content-type"), ["application/json"]);
    assert_eq!(answer.head.all("cache-control"), ["no-store"]);
    answer.json()
}

fn path(caller: &Value) -> String {
    let name = caller.as_str().unwrap();
    let name = name
        .replace('%', "%25")
        .replace('#', "%23")
        .replace(' ', "%20");
    format!("/limits/{name}")
}

/// Members of an object, in the order in which they are written.
fn members(value: &Value) -> Vec<&str> {
    let object = value.as_object();
    object.unwrap().keys().map(String::as_str).collect()
}

const TABLES: &str = "[quota.mine]\nper = \"caller\"\nrate = \"1/min\"\nburst = 3\n\
    [quota.wide]\nper = [\"caller\", \"tenant\", \"skill\"]\nrate = \"100/day\"\nshared = true\n\
    [quota.place]\nper = \"address\"\nrate = \"1000/h\"\nshared = true\n\
    [quota.all]\nper = \"all\"\nrate = \"1000/h\"";
const QUOTAS: &str = "\"mine\", \"wide\", \"place\", \"all\"";

fn tenant(text: &str) -> Vec<u8> {
    let body = call("1").replace(
        "\"params\":{",
        &format!("\"params\":{{\"tenant\":\"{text}\","),
    );
    Post::to("/a2a").field(KEY.0, KEY.1).body(body).bytes()
}

#[test]
fn who_asks_most_and_who_is_refused_is_told() {
    let upstream = Upstream::recording();
    let gateway = gateway(&upstream, TABLES, QUOTAS);
    let mut client = gateway.client();
    for _ in 0..10 {
        asked(&mut client, "/a2a", &[KEY]);
    }
    asked(&mut client, "/other", &[OTHER_KEY]);
    let caller = gateway.access_log()[0]["caller"].clone();
    let shown = get(&gateway, "/limits");
    let mut known = members(&shown);
    known.sort_unstable();
    assert_eq!(
        known,
        ["callers", "keys", "most_keys", "overflow", "quotas"]
    );
    assert_eq!(
        (&shown["most_keys"], &shown["overflow"]),
        (&json!(1 << 20), &json!(0))
    );
    assert_eq!(shown["keys"], 6);
    let quota = |name: &str| {
        let quotas = shown["quotas"].as_array().unwrap().iter();
        quotas
            .clone()
            .find(|it| it["name"] == name)
            .unwrap()
            .clone()
    };
    let told = |name, admitted, refused, in_use| {
        let expected = json!({
            "name": name, "admitted": admitted, "refused": refused, "in_use": in_use, "overflow": [],
        });
        assert_eq!(quota(name), expected);
    };
    told("mine", 4, 7, 2);
    told("wide", 4, 0, 2);
    told("place", 4, 0, 1);
    told("all", 4, 0, 1);
    let most = &shown["callers"]["most_refused"];
    let expected = json!([{ "caller": caller, "calls": 0, "refused": 7, "quota": "mine" }]);
    assert_eq!(most, &expected);
    assert_eq!(shown["callers"]["sampled"], 16);
    // The busiest are told from samples.
    for _ in 0..90 {
        gateway.clock.advance(Duration::from_secs(60));
        asked(&mut client, "/a2a", &[OTHER_KEY]);
    }
    let other = gateway.last_line()["caller"].clone();
    let busiest = get(&gateway, "/limits")["callers"]["busiest"].clone();
    assert_eq!(busiest[0]["caller"], other);
    // Five minutes halve what was noted, so that it is those of the last minutes.
    let calls = busiest[0]["calls"].as_u64().unwrap();
    assert!((1..=32).contains(&calls), "{calls}");
}

#[test]
fn a_caller_is_shown_and_forgiven_by_its_name_in_the_log() {
    let upstream = Upstream::recording();
    let gateway = gateway(&upstream, TABLES, QUOTAS);
    let mut client = gateway.client();
    for text in ["east", "west"] {
        assert_eq!(wait(&client.ask(tenant(text))), None);
    }
    for _ in 0..2 {
        asked(&mut client, "/a2a", &[KEY]);
        asked(&mut client, "/other", &[KEY]);
        asked(&mut client, "/a2a", &[OTHER_KEY]);
    }
    let lines = gateway.access_log();
    let (caller, other) = (&lines[0]["caller"], &lines[4]["caller"]);
    assert_ne!(caller, other);
    let shown = get(&gateway, &path(caller));
    assert_eq!(
        (&shown["caller"], &shown["plan"], &shown["more"]),
        (caller, &Value::Null, &json!(0))
    );
    assert_eq!(shown["refused"], 1);
    let buckets = shown["buckets"].as_array().unwrap();
    let told: Vec<_> = buckets
        .iter()
        .map(|it| {
            (
                &it["quota"],
                &it["endpoint"],
                &it["skill"],
                &it["untold"],
                &it["remaining"],
            )
        })
        .map(|it| serde_json::to_value(it).unwrap())
        .collect();
    assert_eq!(
        told,
        [
            json!(["mine", "lakeside", null, [], 0]),
            json!(["mine", "other", null, [], 1]),
            json!(["wide", null, "dealer.information", [], 97]),
            json!(["wide", null, null, ["tenant", "skill"], 99]),
            json!(["wide", null, null, ["tenant", "skill"], 99]),
        ]
    );
    assert_eq!(
        (&buckets[0]["most"], &buckets[0]["full_in_ms"]),
        (&json!(3), &json!(180_000))
    );

    let before = get(&gateway, &path(other));
    let answer = ask(&gateway, "DELETE", &path(caller));
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json(),
        json!({ "caller": caller, "forgiven": 5, "still_open": 0, "stores": [] })
    );
    assert_eq!(get(&gateway, &path(caller))["buckets"], json!([]));
    assert_eq!(get(&gateway, &path(other)), before, "nobody else");
    for _ in 0..3 {
        assert_eq!(wait(&asked(&mut client, "/a2a", &[KEY])), None);
    }
    assert!(wait(&asked(&mut client, "/a2a", &[KEY])).is_some());
    // What everybody shares is not one caller's to be forgiven.
    let shown = get(&gateway, "/limits");
    assert_eq!(shown["quotas"][3]["in_use"], 1);
    // The address is another name, of what is counted by address.
    let answer = ask(&gateway, "DELETE", "/limits/address%20127.0.0.1");
    assert_eq!(answer.json()["forgiven"], 1);
    assert_eq!(
        ask(&gateway, "DELETE", "/limits/nobody").json()["forgiven"],
        0
    );
}

#[test]
fn only_operators_see_and_forgive() {
    let upstream = Upstream::recording();
    let gateway = gateway(&upstream, TABLES, QUOTAS);
    let mut client = gateway.client();
    asked(&mut client, "/a2a", &[KEY]);
    let caller = path(&gateway.last_line()["caller"]);
    for (method, at) in [("GET", "/limits"), ("GET", &*caller), ("DELETE", &caller)] {
        for (host, origin) in [
            ("evil.example", None),
            ("127.0.0.1", Some("http://evil.example")),
        ] {
            let mut post = Post::method(method, at).field("Host", host);
            if let Some(origin) = origin {
                post = post.field("Origin", origin);
            }
            assert_eq!(
                gateway.admin().ask(post.bytes()).status,
                403,
                "{method} {at}"
            );
        }
    }
    for (method, at, status) in [
        ("DELETE", "/limits", 405),
        ("POST", &*caller, 405),
        ("PUT", &caller, 405),
        ("GET", "/limits/", 404),
        ("GET", "/limitsx", 404),
        ("GET", "/limits/%ff", 400),
        ("DELETE", "/limits/%ff", 400),
    ] {
        assert_eq!(ask(&gateway, method, at).status, status, "{method} {at}");
    }
    let allowed = ask(&gateway, "POST", &caller).head.one("allow");
    assert_eq!(allowed.as_deref(), Some("GET, HEAD, DELETE"));
    let buckets = get(&gateway, &caller)["buckets"].as_array().unwrap().len();
    assert_eq!(buckets, 2, "nothing was forgiven");
}

/// Whoever makes up tenants makes up buckets, and gets no page without an end for it.
#[test]
fn what_is_shown_of_a_caller_is_bounded() {
    let upstream = Upstream::recording();
    let tables = "[quota.wide]\nper = [\"caller\", \"tenant\"]\nrate = \"1/day\"";
    let gateway = gateway(&upstream, tables, "\"wide\"");
    let mut client = gateway.client();
    for number in 0..150 {
        assert_eq!(wait(&client.ask(tenant(&format!("t{number}")))), None);
    }
    let caller = path(&gateway.last_line()["caller"]);
    let shown = get(&gateway, &caller);
    assert_eq!(shown["buckets"].as_array().unwrap().len(), 100);
    assert_eq!(shown["more"], 50);
    assert_eq!(ask(&gateway, "DELETE", &caller).json()["forgiven"], 150);
}

/// The examples on the page have the members that the answers have.
#[test]
fn the_examples_on_the_page_have_the_shape_of_the_answers() {
    let upstream = Upstream::recording();
    let gateway = gateway(&upstream, TABLES, QUOTAS);
    let mut client = gateway.client();
    for _ in 0..20 {
        asked(&mut client, "/a2a", &[KEY]);
        gateway.clock.advance(Duration::from_secs(20));
    }
    let page = std::fs::read_to_string("docs/operations.md").unwrap();
    let examples: Vec<Value> = page
        .split("```json,limits\n")
        .skip(1)
        .map(|rest| serde_json::from_str(rest.split("```").next().unwrap()).unwrap())
        .collect();
    let caller = path(&gateway.last_line()["caller"]);
    let answers = [
        get(&gateway, "/limits"),
        get(&gateway, &caller),
        ask(&gateway, "DELETE", &caller).json(),
    ];
    assert_eq!(examples.len(), answers.len());
    for (example, answer) in examples.iter().zip(&answers) {
        alike("", example, answer);
    }
}

/// Whether two values have the same members, all the way down; lists by their first items.
fn alike(at: &str, one: &Value, other: &Value) {
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => {
            let names =
                |it: &serde_json::Map<String, Value>| it.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(left), names(right), "{at}");
            for (name, value) in left {
                alike(&format!("{at}.{name}"), value, &right[name]);
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            if let (Some(left), Some(right)) = (left.first(), right.first()) {
                alike(&format!("{at}[]"), left, right);
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        (one, other) => {
            let kind = std::mem::discriminant(one);
            assert_eq!(kind, std::mem::discriminant(other), "{at}");
        }
    }
}
