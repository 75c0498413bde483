//! Every way to say no that can be provoked without a dealer, on the wire and explained.

use std::collections::BTreeSet;

use forecourt::protocol::refusal::{Flaw, Lack, Media};
use forecourt::protocol::{Failure, Refusal};

use crate::explain::{ask, by_file, masked, told, wire};
use crate::support::call::call;
use crate::support::gateway::dealer_with;
use crate::support::{Gateway, Post, Upstream, wait_until};

/// The name of a refusal's kind. A new one fails to compile until it stands here, and in the table
/// below until somebody provokes it.
fn kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::ParseError => "parse",
        Refusal::InvalidRequest(flaw) => match flaw {
            Flaw::Batch => "batch",
            Flaw::NotAnObject => "no object",
            Flaw::NoId => "no id",
            Flaw::IdType => "id type",
            Flaw::DuplicateId => "two ids",
            Flaw::DuplicateMember => "member twice",
            Flaw::JsonRpcVersion => "jsonrpc",
            Flaw::Method => "method type",
        },
        Refusal::BodyTimeout => "body late",
        Refusal::BodyTooLarge { .. } => "body large",
        Refusal::ContentTypeNotSupported(media) => match media {
            Media::ContentType => "content type",
            Media::ContentEncoding => "encoding",
            Media::Part => "part",
            Media::OutputModes => "output modes",
        },
        Refusal::TenantRejected => "tenant",
        Refusal::PushNotificationNotSupported { .. } => "push",
        Refusal::UnsupportedOperation { .. } => "operation",
        Refusal::MethodNotFound { older: None, .. } => "method",
        Refusal::MethodNotFound { older: Some(_), .. } => "older method",
        Refusal::ExtensionSupportRequired { .. } => "extension",
        Refusal::VersionNotSupported { .. } => "version",
        Refusal::RateLimited { .. } => "quota",
        Refusal::PayloadInvalid { .. } => "payload",
        Refusal::UnsupportedSkill { .. } => "skill",
        Refusal::Failed { failure, .. } => match failure {
            Failure::Overloaded => "overloaded",
            Failure::Unreachable
            | Failure::Reset
            | Failure::Timeout
            | Failure::Invalid
            | Failure::Draining
            | Failure::Internal => "failed",
        },
        Refusal::Unauthenticated(lack) => match lack {
            Lack::Absent => "no credential",
            Lack::Bad => "bad key",
            Lack::BadBearer => "bad bearer",
        },
        Refusal::PermissionDenied => "forbidden",
    }
}

/// One of each kind that `kind` tells apart.
fn every() -> Vec<Refusal> {
    let flaws = [
        Flaw::Batch,
        Flaw::NotAnObject,
        Flaw::NoId,
        Flaw::IdType,
        Flaw::DuplicateId,
        Flaw::DuplicateMember,
        Flaw::JsonRpcVersion,
        Flaw::Method,
    ];
    let media = [
        Media::ContentType,
        Media::ContentEncoding,
        Media::Part,
        Media::OutputModes,
    ];
    let lacks = [Lack::Absent, Lack::Bad, Lack::BadBearer];
    let method = |method: &str, older| Refusal::MethodNotFound {
        method: method.into(),
        older,
    };
    let failed = |failure, retry_after_ms| Refusal::Failed {
        failure,
        retryable: true,
        retry_after_ms,
    };
    let mut all = vec![
        Refusal::ParseError,
        Refusal::BodyTimeout,
        Refusal::BodyTooLarge { limit: 1024 },
        Refusal::TenantRejected,
        Refusal::PushNotificationNotSupported {
            method: "ListTaskPushNotificationConfigs".into(),
        },
        Refusal::UnsupportedOperation {
            method: "GetTask".into(),
        },
        method("Foo", None),
        method("message/send", Some("0.3")),
        Refusal::ExtensionSupportRequired {
            uri: crate::support::U.parse().unwrap(),
        },
        Refusal::VersionNotSupported {
            requested: Some("0.3".into()),
            served: ["1.0".parse().unwrap()].into(),
        },
        Refusal::RateLimited {
            retry_after_ms: 86_400_000,
        },
        Refusal::PayloadInvalid {
            problems: [].into(),
        },
        Refusal::UnsupportedSkill { skill: "x".into() },
        failed(Failure::Overloaded, Some(1000)),
        failed(Failure::Unreachable, None),
        Refusal::PermissionDenied,
    ];
    all.extend(flaws.map(Refusal::InvalidRequest));
    all.extend(media.map(Refusal::ContentTypeNotSupported));
    all.extend(lacks.map(Refusal::Unauthenticated));
    all
}

/// What this version never says, or only once a dealer was asked.
const NOT_PROVOKED: [&str; 6] = [
    "failed",
    "output modes",
    "part",
    "payload",
    "skill",
    "tenant",
];

/// SHA-256 of `k-1` and of `k-2`.
const CALLERS: &str = "\
[caller.acme]
key_sha256 = \"ACME\"
[caller.hill]
key_sha256 = \"HILL\"
endpoints = [\"lakeside\"]
";

fn configuration(upstream: &Upstream) -> String {
    let digest = |key: &str| forecourt::credential::fresh::digest(key).to_string();
    let callers = CALLERS
        .replace("ACME", &digest("k-1"))
        .replace("HILL", &digest("k-2"));
    format!(
        "[limits]\nbody = \"1KiB\"\nbody_timeout = \"50ms\"\n{callers}\
         [quota.q]\nper = \"all\"\nrate = \"1/day\"\n{}\
         [endpoint.limited]\npath = \"/limited\"\nupstream = \"lakeside\"\nquotas = [\"q\"]\n\
         [endpoint.listed]\npath = \"/listed\"\nupstream = \"lakeside\"\nmethods = [\"SendMessage\"]\n\
         [endpoint.known]\npath = \"/known\"\nupstream = \"lakeside\"\nauthenticate = \"required\"\n",
        dealer_with(upstream, "", "")
    )
}

/// A request of each kind.
fn requests() -> Vec<(&'static str, Vec<u8>)> {
    let post = |path: &str| Post::to(path).body(call("1"));
    let body = |body: &str| Post::to("/a2a").body(body).bytes();
    let method = |path: &str, method: &str| {
        Post::to(path)
            .body(call("1").replace("SendMessage", method))
            .bytes()
    };
    let known = |line: &str| post("/known").line(line).bytes();
    let large = Post::to("/a2a").body(vec![b' '; 1025]);
    let late = Post::to("/a2a").body(call("1")).head();
    vec![
        ("parse", body("{")),
        ("parse", body("")),
        ("batch", body("[]")),
        ("no object", body("7")),
        ("no id", body(r#"{"jsonrpc":"2.0","method":"x"}"#)),
        ("id type", body(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#)),
        (
            "two ids",
            body(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#),
        ),
        (
            "member twice",
            body(r#"{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}"#),
        ),
        ("jsonrpc", body(r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#)),
        (
            "method type",
            body(r#"{"jsonrpc":"2.0","id":1,"method":1}"#),
        ),
        ("body late", late),
        ("body large", large.bytes()),
        (
            "content type",
            Post::bare("/a2a")
                .field("Host", "x")
                .field("Content-Type", "text/plain")
                .bytes(),
        ),
        (
            "encoding",
            post("/a2a").field("Content-Encoding", "gzip").bytes(),
        ),
        ("push", method("/listed", "ListTaskPushNotificationConfigs")),
        ("operation", method("/listed", "GetTask")),
        ("method", method("/listed", "Foo")),
        ("older method", method("/a2a", "message/send")),
        (
            "extension",
            post("/a2a").field("A2A-Extensions", "x").bytes(),
        ),
        ("version", post("/a2a").field("A2A-Version", "").bytes()),
        ("quota", post("/limited").bytes()),
        ("no credential", post("/known").bytes()),
        ("bad key", known("X-Api-Key: wrong")),
        ("bad bearer", known("Authorization: Bearer wrong")),
        ("forbidden", known("X-Api-Key: k-2")),
    ]
}

#[test]
fn every_refusal_is_what_was_told() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&configuration(&upstream));
    let spend = Post::to("/limited").body(call("1")).bytes();
    assert_eq!(gateway.ask(spend).status, 200);
    let every = every();
    let mut provoked = BTreeSet::from(["overloaded"]);
    for (name, request) in requests() {
        let open = "forecourt_connections{listener=\"public\"}";
        wait_until("all is quiet", || gateway.series(open) == 0.0);
        let before = gateway.metrics();
        let explained = ask(&gateway, &request);
        let after = gateway.metrics();
        assert_eq!(after, before, "{name}: asking moved something");
        let refusal = every.iter().find(|it| kind(it) == name).unwrap();
        let why = refusal.message();
        assert_eq!(explained["why"], why.trim_end_matches('.'), "{name}");
        let answer = wire(gateway.address(), &request);
        assert_eq!(
            masked(&told(&explained).unwrap()),
            masked(&answer),
            "{name}"
        );
        if name != "quota" {
            let by_file = by_file(&gateway.path(), &request);
            assert_eq!(masked(&told(&by_file).unwrap()), masked(&answer), "{name}");
        }
        // Where it stopped, and the same from memory.
        let steps = explained["steps"].as_array().unwrap();
        let step = steps.iter().find(|it| it["verdict"] == "refuse").unwrap();
        let later = steps.iter().skip_while(|it| *it != step).skip(1);
        for step in later {
            assert_eq!(step["verdict"], "not reached", "{name} {step}");
        }
        gateway.last_line();
        let kept = gateway.admin_get("/decisions?limit=1").json();
        let kept = &kept["decisions"][0];
        assert_eq!(kept["step"], step["step"], "{name}: {kept}");
        assert_eq!(kept["section"], step["section"], "{name}");
        assert_eq!(kept["outcome"], explained["outcome"], "{name}");
        assert!(!step["section"].as_str().unwrap().is_empty(), "{name}");
        provoked.insert(name);
    }
    let all: BTreeSet<_> = every.iter().map(kind).collect();
    let expected: BTreeSet<_> = provoked.into_iter().chain(NOT_PROVOKED).collect();
    assert_eq!(all, expected);
    assert_eq!(all.len(), every.len(), "a kind stands twice");
    assert_eq!(upstream.count(), 1);
}

#[test]
fn a_gateway_that_is_full_says_so() {
    let upstream = Upstream::manual();
    let limits = "[limits]\nin_flight_requests = 1\n";
    let gateway = Gateway::start(&format!("{limits}{}", dealer_with(&upstream, "", "")));
    let request = Post::to("/a2a").body(call("1")).bytes();
    assert_eq!(ask(&gateway, &request)["verdict"], "forward");
    let mut held = gateway.client();
    held.send(&request);
    let mut peer = upstream.accept();
    peer.request();
    let in_flight = "forecourt_requests_in_flight";
    wait_until("one is served", || gateway.series(in_flight) == 1.0);
    let explained = ask(&gateway, &request);
    let answer = wire(gateway.address(), &request);
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert_eq!(masked(&told(&explained).unwrap()), masked(&answer));
    let steps = explained["steps"].as_array().unwrap();
    let load = steps.iter().find(|it| it["verdict"] == "refuse").unwrap();
    assert_eq!(load["step"], "load");
    assert_eq!(load["rules"][0]["key"], "limits.in_flight_requests");
}

#[test]
fn what_is_no_call_is_told_as_well() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&configuration(&upstream));
    let get = |path: &str| Post::method("GET", path).field("Host", "x");
    let long = "x".repeat(33 << 10);
    let many = (0..101).fold(get("/a2a"), |post, at| post.field(&format!("x-{at}"), "1"));
    for (name, request, step) in [
        ("no route", Post::to("/nowhere").body("{}").bytes(), "route"),
        ("get", get("/a2a").bytes(), "http_method"),
        (
            "head",
            Post::method("HEAD", "/a2a").field("Host", "x").bytes(),
            "http_method",
        ),
        (
            "put",
            Post::method("PUT", "/a2a").field("Host", "x").bytes(),
            "http_method",
        ),
        ("no host", Post::bare("/a2a").body("{}").bytes(), "http"),
        (
            "two hosts",
            Post::to("/a2a").field("Host", "y").body("{}").bytes(),
            "http",
        ),
        ("dots", get("/a2a/../x").bytes(), "http"),
        (
            "line feeds",
            b"GET /a2a HTTP/1.1\nHost: x\n\n".to_vec(),
            "http",
        ),
        (
            "mixed",
            b"GET /a2a HTTP/1.1\r\nHost: x\n\r\n".to_vec(),
            "http",
        ),
        (
            "expects",
            get("/a2a").field("Expect", "tea").bytes(),
            "http",
        ),
        (
            "two lengths",
            Post::to("/a2a")
                .field("Content-Length", "2")
                .body("{}")
                .bytes(),
            "http",
        ),
        (
            "chunks",
            Post::to("/a2a")
                .without_length()
                .field("Transfer-Encoding", "chunked")
                .body("zz\r\n")
                .bytes(),
            "body",
        ),
        (
            "keys",
            Post::to("/known")
                .field("X-Api-Key", "k-1")
                .field("X-Api-Key", "k-1")
                .body(call("1"))
                .bytes(),
            "credential",
        ),
        (
            "http/1.0",
            b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_vec(),
            "route",
        ),
        (
            "version",
            b"GET /a2a HTTP/2.0\r\nHost: x\r\n\r\n".to_vec(),
            "head",
        ),
        ("garbage", b"\x16\x03\x01\r\n\r\n".to_vec(), "head"),
        ("large", get("/a2a").field("x-long", &long).bytes(), "head"),
        ("many", many.bytes(), "head"),
    ] {
        let explained = ask(&gateway, &request);
        let answer = wire(gateway.address(), &request);
        assert_eq!(
            masked(&told(&explained).unwrap()),
            masked(&answer),
            "{name}"
        );
        let by_file = by_file(&gateway.path(), &request);
        assert_eq!(masked(&told(&by_file).unwrap()), masked(&answer), "{name}");
        let steps = explained["steps"].as_array().unwrap();
        let stop = steps.iter().find(|it| it["verdict"] == "refuse").unwrap();
        assert_eq!(stop["step"], step, "{name}: {}", explained["why"]);
    }
    assert_eq!(upstream.count(), 0);
}
