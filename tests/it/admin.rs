//! The admin socket, and that no secret comes out of any of our mouths.

use std::fs;

use crate::support::call::{call, post};
use crate::support::gateway::{PRELUDE, dealer, dealer_with};
use crate::support::process::Process;
use crate::support::{Client, Gateway, Nobody, Post, Upstream};

fn get(path: &str) -> Post {
    Post::method("GET", path).field("Host", "127.0.0.1:9901")
}

#[test]
fn what_it_answers() {
    let upstream = Upstream::recording();
    // A quota has series as soon as an endpoint names it, credentials as soon as one asks.
    let gateway = Gateway::start(&format!(
        "[quota.q]\nper = \"all\"\nrate = \"1/day\"\n[caller.c]\nkey_sha256 = \"{:064}\"\n{}",
        0,
        dealer_with(
            &upstream,
            "",
            "quotas = [\"q\"]\nauthenticate = \"optional\""
        )
    ));
    let mut admin = gateway.admin();
    for (path, body) in [
        ("/livez", "ok\n"),
        ("/readyz", "ready\n"),
        ("/livez?verbose", "ok\n"),
        ("/healthz", "ok\n"),
        ("/readyz?verbosely", "ready\n"),
    ] {
        let answer = admin.ask(get(path).bytes());
        assert_eq!((answer.status, &*answer.text()), (200, body));
        assert_eq!(
            answer.head.all("content-type"),
            ["text/plain; charset=utf-8"]
        );
        assert_eq!(answer.head.all("cache-control"), ["no-store"]);
    }
    let verbose = admin.ask(get("/readyz?verbose").bytes());
    assert_eq!(verbose.status, 200);
    let text = verbose.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "ready");
    assert!(
        lines[1].starts_with("configuration: generation 1, sha256:"),
        "{text}"
    );
    assert_eq!(
        lines[2..],
        ["listeners: 1", "last reload: none since the start"]
    );
    let answer = admin.ask(get("/metrics").bytes());
    assert_eq!(
        answer.head.all("content-type"),
        ["text/plain; version=0.0.4; charset=utf-8"]
    );
    let text = answer.text();
    for (name, _) in forecourt::observe::metrics::NAMES {
        // This gateway is in clear, believes no issuer and has no store.
        let absent = [
            "forecourt_tls_",
            "forecourt_token",
            "forecourt_jwks_",
            "forecourt_ratelimit_store_",
        ];
        let is_there = text.contains(&format!("# TYPE {name} "));
        let is_needed = !absent.iter().any(|it| name.starts_with(it));
        assert_eq!(is_there, is_needed, "{name}");
    }
    let open = get("/metrics").field("Accept", "application/openmetrics-text; version=1.0.0");
    let answer = admin.ask(open.bytes());
    let type_ = answer.head.one("content-type").unwrap();
    assert!(type_.starts_with("application/openmetrics-text"), "{type_}");
    assert!(answer.text().ends_with("# EOF\n"));
    for path in ["/livez", "/readyz", "/metrics"] {
        let mut admin = gateway.admin();
        let head = Post::method("HEAD", path).field("Host", "127.0.0.1");
        let head = admin.send(head.bytes()).head();
        assert_eq!(head.start, "HTTP/1.1 200 OK", "{path}");
        for method in ["POST", "PUT", "DELETE"] {
            let request = Post::method(method, path).field("Host", "127.0.0.1");
            let answer = gateway.admin().ask(request.bytes());
            assert_eq!(answer.status, 405, "{method} {path}");
            assert_eq!(answer.head.all("allow"), ["GET, HEAD"]);
        }
    }
    for path in ["/index.html", "/x", "/livez/", "/metrics/x", "/a2a"] {
        assert_eq!(gateway.admin_get(path).status, 404, "{path}");
    }
    let answer = gateway.admin_get("/reload");
    assert_eq!(
        (answer.status, answer.head.all("allow")),
        (405, vec!["POST".to_owned()])
    );
    // The admin socket is not reached through a listener.
    assert_eq!(gateway.ask(get("/metrics").bytes()).status, 404);
}

#[test]
fn no_page_can_reload() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let reload = |fields: &[(&str, &str)]| {
        let mut request = Post::method("POST", "/reload");
        for (name, value) in fields {
            request = request.field(name, value);
        }
        gateway.admin().ask(request.bytes())
    };
    for fields in [
        &[("Host", "evil.example")][..],
        &[("Host", "127.0.0.1.evil.example")][..],
        &[("Host", "127.0.0.1"), ("Host", "127.0.0.1")][..],
        &[("Host", "127.0.0.1"), ("Origin", "http://127.0.0.1:9901")][..],
        &[("Host", "127.0.0.1"), ("Origin", "null")][..],
        &[("Host", "")][..],
    ] {
        let answer = reload(fields);
        assert!(
            matches!(answer.status, 403 | 400),
            "{fields:?}: {}",
            answer.status
        );
    }
    let count =
        |gateway: &Gateway| gateway.series(r#"forecourt_config_reloads_total{result="success"}"#);
    assert_eq!(count(&gateway), 0.0);
    for (round, host) in ["127.0.0.1:9901", "[::1]:9901", "localhost", "10.0.0.7"]
        .iter()
        .enumerate()
    {
        let answer = reload(&[("Host", host)]);
        assert_eq!(
            (answer.status, &*answer.text()),
            (200, "unchanged, generation 1\n")
        );
        assert_eq!(count(&gateway), (round + 1) as f64);
    }
    gateway.write(&dealer(&upstream).replace("/a2a\"\nupstream", "/b2b\"\nupstream"));
    assert_eq!(
        reload(&[("Host", "localhost")]).text(),
        "applied, generation 2\n"
    );
}

#[test]
fn secrets_are_told_to_nobody() {
    let secrets = [
        "dealer-secret",
        "caller-key-77",
        "bearer-token-88",
        "cookie-99",
        "query-secret",
        "vin-1HGCM82633A004352",
        "userinfo-secret",
    ];
    let upstream = Upstream::recording();
    let down = Nobody::new();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let configuration = format!(
        "{}[callers]\nidentify = [\"header:x-api-key\", \"address\"]\n\
         [quota.q]\nper = \"caller\"\nrate = \"1/day\"\nshared = true\n{}\
         [upstream.down]\nurl = \"http://{}\"\nheaders = {{ authorization = \"Bearer ${{DEALER_TOKEN}}\" }}\n\
         [endpoint.down]\npath = \"/down\"\nupstream = \"down\"\nreport = [\"version\", \"quota\"]\nquotas = [\"q\"]\n\
         [endpoint.limited]\npath = \"/limited\"\nupstream = \"lakeside\"\nquotas = [\"q\"]\n",
        PRELUDE.replace("access = ", "level = \"trace\"\naccess = "),
        dealer_with(
            &upstream,
            "headers = { x-dealer-key = \"${DEALER_TOKEN}\" }",
            ""
        ),
        down.address
    );
    fs::write(&file, &configuration).unwrap();
    let mut process = Process::start(&file);
    let (public, admin) = process.addresses();
    let mut client = Client::connect(public);
    let body = call("1").replace("m-1", "vin-1HGCM82633A004352");
    for (path, version) in [
        ("/a2a", "1.0"),
        ("/a2a", "9.9"),
        ("/down", "9.9"),
        ("/limited", "1.0"),
        ("/limited", "1.0"),
        ("/nowhere", "1.0"),
    ] {
        let request = Post::to(&format!("{path}?key=query-secret&A2A-Version=query-secret"))
            .field("X-Api-Key", "caller-key-77")
            .field("Authorization", "Bearer bearer-token-88")
            .field("Cookie", "session=cookie-99")
            .field("X-Request-Id", "r-9")
            .field("A2A-Version", version)
            .body(&body);
        let answer = client.ask(request.bytes());
        assert!(!answer.text().contains("secret"), "{}", answer.text());
    }
    // What failed can be found by the id that the caller was told.
    assert_eq!(process.says("upstream failed")["request_id"], "r-9");
    let mut client = Client::connect(public);
    let request = Post::bare("/a2a?query-secret").field("Host", "userinfo-secret@gw");
    assert_eq!(client.ask(request.bytes()).status, 400);
    // What is no HTTP at all is told at the debug level.
    let mut client = Client::connect(public);
    client.send("GET /?query-secret HTTP/1.1\r\nX-Api-Key\0: caller-key-77\r\n\r\n");
    assert_eq!(client.answer().status, 400);
    process.says("client connection ended");
    assert_eq!(
        upstream.arrivals()[0].head.all("x-dealer-key"),
        ["dealer-secret"]
    );
    // A reload that fails next to a secret, and one that applies.
    fs::write(
        &file,
        configuration.replace("x-dealer-key = ", "\"x dealer key\" = "),
    )
    .unwrap();
    process.signal("HUP");
    process.says("configuration rejected");
    fs::write(&file, configuration.replace("/limited", "/more-limited")).unwrap();
    process.signal("HUP");
    process.says("configuration applied");
    let metrics = Client::connect(admin).ask(get("/metrics").bytes()).text();
    assert_eq!(Client::connect(public).ask(post(&body)).status, 200);
    process.signal("TERM");
    assert_eq!(process.ended().code(), Some(0));
    let access = fs::read_to_string(directory.path().join("access.log")).unwrap();
    assert_eq!(access.lines().count(), 8);
    assert!(access.contains("x-api-key#"), "{access}");
    let diagnostics = process.seen.join("\n");
    assert!(
        diagnostics.contains("\"TRACE\"") || diagnostics.contains("\"DEBUG\""),
        "{diagnostics}"
    );
    for secret in secrets {
        for (where_, text) in [
            ("access log", &access),
            ("metrics", &metrics),
            ("diagnostics", &diagnostics),
        ] {
            assert!(!text.contains(secret), "{secret} in the {where_}");
        }
    }
}
