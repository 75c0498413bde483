//! The admin socket's inside: the configuration that serves, the status, and who may see them.

use forecourt::config::{self, Format};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::call::call;
use crate::support::gateway::{NOW, PRELUDE, dealer, dealer_with};
use crate::support::{Answer, Gateway, Post, U, Upstream, wait_until};

/// What stands in the header that the operator sets, see `support::gateway`.
const SECRET: &str = "dealer-secret";

fn with_secret(upstream: &Upstream) -> String {
    let headers = "headers = { authorization = \"Bearer ${DEALER_TOKEN}\" }";
    dealer_with(upstream, headers, "")
}

/// Asks for a page under a `Host`.
fn ask(gateway: &Gateway, method: &str, path: &str, host: &str) -> Answer {
    let request = Post::method(method, path).field("Host", host);
    gateway.admin().ask(request.bytes())
}

fn get(gateway: &Gateway, path: &str) -> Value {
    let answer = gateway.admin_get(path);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.head.all("content-type"), ["application/json"]);
    assert_eq!(answer.head.all("cache-control"), ["no-store"]);
    assert!(!answer.text().contains(SECRET), "{}", answer.text());
    answer.json()
}

fn parse(gateway: &Gateway, configuration: &Value) -> config::Settings {
    let text = configuration.to_string();
    let parsed = config::parse(&text, Format::Json, &gateway.path(), &|_| None);
    parsed.unwrap_or_else(|problems| panic!("{text}\n{problems}"))
}

#[test]
fn the_configuration_is_shown_with_defaults_and_without_secrets() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&with_secret(&upstream));
    assert_eq!(gateway.post(call("1")).status, 200);
    let arrived = upstream.last().head.one("authorization");
    assert_eq!(arrived.unwrap(), format!("Bearer {SECRET}"));

    let shown = get(&gateway, "/config");
    assert_eq!(shown["generation"], 1);
    assert_eq!(shown["loaded"], NOW);
    assert_eq!(shown["file"], gateway.path().to_str().unwrap());
    let configuration = &shown["configuration"];
    let headers = &configuration["upstream"]["lakeside"]["headers"];
    assert_eq!(headers, &json!({ "authorization": "***" }));
    assert_eq!(configuration["limits"]["body"], "1MiB");
    assert_eq!(
        configuration["upstream"]["lakeside"]["connect_timeout"],
        "2s"
    );
    assert_eq!(configuration["endpoint"]["lakeside"]["extension"], U);

    let settings = parse(&gateway, configuration);
    assert_eq!(settings.listeners.len(), 1);
    assert_eq!(
        settings.log.access,
        config::AccessLog::File(gateway.directory.path().join("access.log"))
    );
}

#[test]
fn the_hash_is_of_what_is_shown_and_equal_in_every_process() {
    let upstream = Upstream::recording();
    // Where the access log stands is part of the configuration, and each has its own directory.
    let whole = format!("{PRELUDE}{}", with_secret(&upstream)).replace("access.log", "off");
    let one = Gateway::start_whole(&whole);
    // Spelled otherwise, it is the same configuration.
    let spelled = whole.replace("workers = 1", "workers = 1 # a comment\n\n");
    let spelled = format!("{spelled}\n[limits]\nbody = \"1024KiB\"\n");
    let two = Gateway::start_whole(&spelled);
    let hash = |gateway: &Gateway| get(gateway, "/config")["hash"].as_str().unwrap().to_owned();
    assert_eq!(hash(&one), hash(&two));

    let text = one.admin_get("/config").text();
    let (_, shown) = text.split_once("\"configuration\":").unwrap();
    let shown = shown.trim_end().strip_suffix('}').unwrap();
    let mut digest = "sha256:".to_owned();
    for byte in Sha256::digest(shown) {
        digest += &format!("{byte:02x}");
    }
    assert_eq!(hash(&one), digest);

    two.write_whole(&spelled.replace("1024KiB", "1025KiB"));
    two.inner.reload().unwrap();
    assert_ne!(hash(&one), hash(&two));
    assert_eq!(get(&two, "/status")["configuration"]["hash"], hash(&two));
    assert_eq!(get(&two, "/config")["generation"], 2);
}

#[test]
fn the_status_tells_what_serves_and_what_happened() {
    let upstream = Upstream::recording();
    let table = dealer_with(
        &upstream,
        "",
        "host = \"gw.example\"\nquotas = [\"few\"]\nreport = [\"extension\"]",
    );
    let quota = "[quota.few]\nper = [\"caller\", \"address\"]\nrate = \"60/min\"\nburst = 1\n";
    let gateway = Gateway::start(&format!("{table}{quota}"));
    let mut client = gateway.client();
    assert_eq!(
        client.ask(Post::to("/a2a").body(call("1")).bytes()).status,
        200
    );
    client.ask(Post::to("/a2a").body(call("2")).bytes());
    wait_until("both are counted", || gateway.ended("rate_limited") == 1.0);

    let status = get(&gateway, "/status");
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["started"], NOW);
    assert_eq!(
        (&status["ready"], &status["workers"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(status["admin"], gateway.inner.admin_address().to_string());
    let configuration = &status["configuration"];
    assert_eq!(configuration["generation"], 1);
    assert_eq!(configuration["loaded"], NOW);
    assert_eq!(configuration["last_reload"], Value::Null);
    assert_eq!(
        status["listeners"],
        json!([{
            "name": "public", "address": gateway.address().to_string(),
            "connections": 1, "refused": 0, "certificates": [],
        }])
    );
    assert_eq!(status["refused_files"], json!({}));
    let mut endpoints = status["endpoints"].clone();
    // How long they took has a test of its own.
    for taken in ["latency", "upstream_latency"] {
        assert!(
            endpoints[0]
                .as_object_mut()
                .unwrap()
                .remove(taken)
                .is_some()
        );
    }
    assert_eq!(
        endpoints,
        json!([{
            "name": "lakeside", "host": "gw.example", "path": "/a2a",
            "contracts": [{
                "name": "aap/3.0", "a2a_version": "1.0", "extension": U, "upstream": "lakeside",
            }],
            "quotas": ["few"], "report": ["extension"],
            "requests": { "ok": 1, "rate_limited": 1 },
        }])
    );
    assert_eq!(
        status["quotas"],
        json!([{
            "name": "few", "per": ["caller", "address"], "rate": "1/s", "burst": 1, "concurrent": null,
            "shared": false, "admitted": 1, "refused": 1,
        }])
    );
    let url = format!("http://{}/a2a", upstream.address);
    assert_eq!(
        status["upstreams"],
        json!([{
            "name": "lakeside", "url": url, "active": 0, "idle": 1,
            "connections": 1, "max_connections": 1024, "waiting": 0, "max_waiting": 1024,
            "in_flight": null, "max_in_flight": null, "failures": {}, "last_failure": null,
        }])
    );
    assert_eq!(
        status["limiter"],
        json!({ "keys": 1, "most_keys": 1 << 20, "overflow": 0 })
    );
    assert_eq!(status["requests_in_flight"], 0);
    assert_eq!(status["in_flight_bytes"], 0);
}

#[test]
fn the_status_tells_of_calls_in_flight() {
    let upstream = Upstream::manual();
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    client.send(Post::to("/a2a").body(call("1")).bytes());
    let mut peer = upstream.accept();
    peer.request().unwrap();
    let status = get(&gateway, "/status");
    assert_eq!(status["requests_in_flight"], 1);
    assert_eq!(status["upstreams"][0]["active"], 1);
    drop(peer);
}

#[test]
fn the_status_remembers_the_last_reload_with_every_problem() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&with_secret(&upstream));
    let last = || get(&gateway, "/status")["configuration"]["last_reload"].clone();

    let wrong = with_secret(&upstream)
        .replace("path = \"/a2a\"", "path = \"a2a\"")
        .replace(
            "authorization =",
            "te = \"${DEALER_TOKEN}\", Authorization =",
        );
    gateway.write(&wrong);
    assert!(gateway.inner.reload().is_err());
    let rejected = last();
    assert_eq!(
        (&rejected["at"], &rejected["result"]),
        (&json!(NOW), &json!("rejected"))
    );
    let problems = rejected["problems"].as_array().unwrap();
    let paths: Vec<_> = problems
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    assert_eq!(
        paths,
        ["upstream.lakeside.headers.te", "endpoint.lakeside.path"]
    );
    assert_eq!(problems[1]["hint"], "write \"/a2a\"");
    assert!(problems[1]["line"].as_u64().unwrap() > 5);

    let moved = PRELUDE.replace("[log]", "[log]\nformat = \"text\"");
    gateway.write_whole(&format!("{moved}{}", with_secret(&upstream)));
    assert!(gateway.inner.reload().is_err());
    assert_eq!(
        last(),
        json!({
            "at": NOW, "order": "reload", "result": "rejected", "generation": null, "of": null,
            "restart_needed": ["log.format"], "problems": [], "guard": null,
            "text": "restart needed: [log.format] changed"
        })
    );

    gateway.write(&with_secret(&upstream));
    gateway.inner.reload().unwrap();
    assert_eq!(last()["result"], "unchanged");
    gateway.write(&dealer(&upstream));
    gateway.inner.reload().unwrap();
    assert_eq!(last()["result"], "applied");
    assert_eq!(last()["problems"], json!([]));
}

#[test]
fn pages_are_for_operators_and_probes_for_everyone() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    for path in ["/config", "/status"] {
        for host in ["127.0.0.1", "127.0.0.1:9901", "localhost", "[::1]:9901"] {
            assert_eq!(
                ask(&gateway, "GET", path, host).status,
                200,
                "{path} {host}"
            );
        }
        for host in ["evil.example", "127.0.0.1.evil.example:9901", "forecourt"] {
            let answer = ask(&gateway, "GET", path, host);
            assert_eq!(answer.status, 403, "{path} {host}");
            assert!(!answer.text().contains("lakeside"));
        }
        let two = Post::method("GET", path)
            .field("Host", "127.0.0.1")
            .field("Host", "localhost");
        assert_eq!(gateway.admin().ask(two.bytes()).status, 403);
        let from_page = Post::method("GET", path)
            .field("Host", "127.0.0.1")
            .field("Origin", "http://evil.example");
        assert_eq!(gateway.admin().ask(from_page.bytes()).status, 403);
    }
    for path in ["/livez", "/readyz", "/metrics"] {
        assert_eq!(
            ask(&gateway, "GET", path, "forecourt.dealers").status,
            200,
            "{path}"
        );
    }
    let reload = ask(&gateway, "POST", "/reload", "evil.example");
    assert_eq!(reload.status, 403);
}

#[test]
fn methods_and_queries() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    for path in ["/config", "/status"] {
        let query = ask(&gateway, "GET", &format!("{path}?pretty=1&x"), "127.0.0.1");
        assert_eq!(query.status, 200);
        let mut admin = gateway.admin();
        let request = |method| {
            Post::method(method, path)
                .field("Host", "127.0.0.1")
                .bytes()
        };
        let head = admin.send(request("HEAD")).head();
        assert_eq!(head.start, "HTTP/1.1 200 OK");
        assert!(head.length().unwrap() > 100);
        assert_eq!(head.all("cache-control"), ["no-store"]);
        // The connection goes on, so no body was sent.
        assert_eq!(admin.ask(request("GET")).status, 200);
        for method in ["POST", "PUT", "DELETE"] {
            let answer = ask(&gateway, method, path, "127.0.0.1");
            assert_eq!(answer.status, 405);
            assert_eq!(answer.head.all("allow"), ["GET, HEAD"]);
        }
    }
}

#[test]
fn the_command_prints_the_schema() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_forecourt"))
        .arg("schema")
        .output()
        .unwrap();
    assert!(output.status.success());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/config/forecourt.schema.json");
    let committed = std::fs::read_to_string(path).unwrap();
    assert!(String::from_utf8(output.stdout).unwrap() == committed);
}
