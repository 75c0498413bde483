//! Callers who prove who they are: what is a credential, what becomes of a bad one, and what a caller
//! who would be somebody else can try.

use std::time::Duration;

use crate::support::call::call;
use crate::support::gateway::{PRELUDE, dealer_with};
use crate::support::process::run;
use crate::support::{Answer, Client, Gateway, Post, Upstream};

mod certificates;
mod commands;
mod evasion;
mod forwarding;
mod reload;

/// The keys, and what the configuration has of them.
const ACME: &str = "fc_acme-key";
const ACME_NEXT: &str = "fc_acme-next-key";
const BETA: &str = "fc_beta-key";

fn digest(key: &str) -> String {
    forecourt::credential::fresh::digest(key).to_string()
}

/// Two callers; the second may call `other` alone.
fn callers() -> String {
    format!(
        "[caller.acme]\nkey_sha256 = [\"{}\", \"{}\"]\n\
         [caller.beta]\nkey_sha256 = \"{}\"\nendpoints = [\"other\"]\n",
        digest(ACME),
        digest(ACME_NEXT),
        digest(BETA)
    )
}

/// The usual endpoint with these lines, and `/other` with the same.
fn configuration(upstream: &Upstream, tables: &str, of_endpoint: &str) -> String {
    format!(
        "{tables}\n{}\n[endpoint.other]\npath = \"/other\"\nupstream = \"lakeside\"\n{of_endpoint}\n",
        dealer_with(upstream, "", of_endpoint)
    )
}

fn start(upstream: &Upstream, of_endpoint: &str) -> Gateway {
    Gateway::start(&configuration(upstream, &callers(), of_endpoint))
}

fn ask_at(client: &mut Client, path: &str, fields: &[(&str, &str)]) -> Answer {
    let mut post = Post::to(path).body(call("\"req_1\""));
    for (name, value) in fields {
        post = post.field(name, value);
    }
    client.ask(post.bytes())
}

fn ask(client: &mut Client, fields: &[(&str, &str)]) -> Answer {
    ask_at(client, "/a2a", fields)
}

fn bearer(key: &str) -> String {
    format!("Bearer {key}")
}

#[track_caller]
fn examined(gateway: &Gateway) -> [f64; 4] {
    ["proven", "absent", "bad", "forbidden"].map(|result| {
        let labels = format!("endpoint=\"lakeside\",result=\"{result}\"");
        gateway.series(&format!("forecourt_credentials_total{{{labels}}}"))
    })
}

/// A refusal that carries the caller's id and keeps the connection.
#[track_caller]
fn is_refused(answer: &Answer, status: u16, challenge: Option<&str>) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!((answer.code(), &*answer.id()), (-32000, "\"req_1\""));
    assert!(answer.json()["error"].get("data").is_none());
    let told = answer.head.all("www-authenticate");
    assert_eq!(told, challenge.into_iter().collect::<Vec<_>>());
    assert!(!answer.closes());
}

const PLAIN: &str = "Bearer realm=\"forecourt\"";
const INVALID: &str = "Bearer realm=\"forecourt\", error=\"invalid_token\"";

#[test]
fn required_lets_in_whoever_proves_it_and_nobody_else() {
    let upstream = Upstream::recording();
    let gateway = start(&upstream, "authenticate = \"required\"");
    let mut client = gateway.client();
    for fields in [
        [("X-Api-Key", ACME)],
        [("x-api-key", ACME_NEXT)],
        [("Authorization", &bearer(ACME))],
        [("Authorization", "bEaReR fc_acme-key")],
    ] {
        assert_eq!(ask(&mut client, &fields).status, 200, "{fields:?}");
        assert_eq!(gateway.last_line()["caller"], "acme");
        // What proved it reaches the dealer.
        let arrived = upstream.take().head;
        assert_eq!(arrived.one(fields[0].0).unwrap(), fields[0].1);
    }
    is_refused(&ask(&mut client, &[]), 401, Some(PLAIN));
    let line = gateway.last_line();
    assert_eq!(
        (&line["outcome"], &line["status"]),
        (&"unauthenticated".into(), &401.into())
    );
    assert_eq!(
        (&line["caller"], &line["rpc_method"]),
        (&"address 127.0.0.1".into(), &"SendMessage".into())
    );
    is_refused(
        &ask(&mut client, &[("X-Api-Key", "fc_other")]),
        401,
        Some(PLAIN),
    );
    assert_eq!(gateway.last_line()["why"], "the key is not known");
    let unknown = [("Authorization", "Bearer fc_other")];
    is_refused(&ask(&mut client, &unknown), 401, Some(INVALID));
    // Known, and not allowed here.
    is_refused(&ask(&mut client, &[("X-Api-Key", BETA)]), 403, None);
    let line = gateway.last_line();
    assert_eq!(
        (&line["outcome"], &line["caller"]),
        (&"permission_denied".into(), &"beta".into())
    );
    assert_eq!(
        ask_at(&mut client, "/other", &[("X-Api-Key", BETA)]).status,
        200
    );
    assert_eq!(upstream.count(), 1);
    assert_eq!(examined(&gateway), [4.0, 1.0, 2.0, 1.0]);
    assert_eq!(gateway.ended("unauthenticated"), 3.0);
}

#[test]
fn optional_refuses_what_is_wrong_and_not_what_is_absent() {
    let upstream = Upstream::recording();
    let gateway = start(&upstream, "authenticate = \"optional\"");
    let mut client = gateway.client();
    assert_eq!(ask(&mut client, &[]).status, 200);
    assert_eq!(gateway.last_line()["caller"], "address 127.0.0.1");
    // Another scheme is somebody else's matter, and travels.
    assert_eq!(
        ask(&mut client, &[("Authorization", "Basic eDp5")]).status,
        200
    );
    let arrived = upstream.last().head;
    assert_eq!(arrived.one("authorization").unwrap(), "Basic eDp5");
    assert_eq!(ask(&mut client, &[("X-Api-Key", ACME)]).status, 200);
    assert_eq!(gateway.last_line()["caller"], "acme");
    is_refused(
        &ask(&mut client, &[("X-Api-Key", "fc_other")]),
        401,
        Some(PLAIN),
    );
    is_refused(&ask(&mut client, &[("X-Api-Key", "")]), 401, Some(PLAIN));
    is_refused(
        &ask(&mut client, &[("Authorization", "Bearer")]),
        401,
        Some(INVALID),
    );
    is_refused(&ask(&mut client, &[("X-Api-Key", BETA)]), 403, None);
    assert_eq!(examined(&gateway), [1.0, 2.0, 3.0, 1.0]);
}

#[test]
fn off_looks_at_nothing() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&configuration(&upstream, "", ""));
    let mut client = gateway.client();
    for fields in [
        &[][..],
        &[("X-Api-Key", "fc_other")],
        &[("Authorization", "Bearer fc_other")],
        &[("X-Api-Key", "a"), ("X-Api-Key", "b")],
    ] {
        assert_eq!(ask(&mut client, fields).status, 200, "{fields:?}");
    }
    assert!(
        !gateway
            .admin_get("/metrics")
            .text()
            .contains("credentials_total{")
    );
}

#[test]
fn the_order_of_admission() {
    let upstream = Upstream::recording();
    let gateway = start(&upstream, "authenticate = \"required\"");
    let mut client = gateway.client();
    // The content type before the credential.
    let text = Post::bare("/a2a")
        .field("Host", "gw")
        .field("Content-Type", "text/plain")
        .body("x");
    assert_eq!(client.ask(text.bytes()).status, 415);
    // The credential before the body, the quota and the headers; whatever id there is, is told.
    for (body, id) in [
        ("{", "null"),
        ("[]", "null"),
        (r#"{"jsonrpc":"1.0","id":7,"method":"M"}"#, "7"),
        (r#"{"jsonrpc":"2.0","id":1.0,"method":"M"}"#, "1.0"),
    ] {
        let post = Post::to("/a2a").field("A2A-Version", "9.9").body(body);
        let answer = gateway.ask(post.bytes());
        assert_eq!((answer.status, &*answer.id()), (401, id), "{body}");
        assert!(!answer.closes(), "{body}");
    }
    // A route before it, and a method.
    assert_eq!(
        gateway.ask(Post::to("/nowhere").body("{}").bytes()).status,
        404
    );
    let put = Post::method("PUT", "/a2a").field("Host", "gw").bytes();
    assert_eq!(gateway.ask(put).status, 405);
    // No policy for cards and preflights.
    for (method, path) in [
        ("GET", "/a2a/.well-known/agent-card.json"),
        ("OPTIONS", "/a2a"),
    ] {
        let request = Post::method(method, path).field("Host", "gw").bytes();
        assert_eq!(gateway.ask(request).status, 200, "{method}");
    }
    assert_eq!(upstream.count(), 2);
}

#[test]
fn it_is_401_and_403_whatever_carries_other_refusals() {
    let upstream = Upstream::recording();
    for http_status in ["split", "mapped", "ok"] {
        for contract in ["aap/1.0", "aap/3.0"] {
            let lines = format!(
                "authenticate = \"required\"\nhttp_status = \"{http_status}\"\n\
                 contract = \"{contract}\""
            );
            let gateway = start(&upstream, &lines);
            let mut client = gateway.client();
            is_refused(&ask(&mut client, &[]), 401, Some(PLAIN));
            is_refused(&ask(&mut client, &[("X-Api-Key", BETA)]), 403, None);
        }
    }
}

#[test]
fn little_is_read_of_whom_is_refused() {
    let upstream = Upstream::recording();
    let gateway = start(&upstream, "authenticate = \"required\"");
    let padded = |length: usize| {
        let body = call("\"req_1\"");
        let padding = " ".repeat(length - body.len());
        format!("{body}{padding}")
    };
    let most = Post::to("/a2a").body(padded(64 << 10)).bytes();
    is_refused(&gateway.ask(most), 401, Some(PLAIN));
    // One byte more is not read: nothing of it need be sent.
    for field in ["Content-Length: 65537", "Content-Length: 1048576"] {
        let head = Post::to("/a2a").without_length().line(field).bytes();
        let mut client = gateway.client();
        let answer = client.ask(head);
        assert_eq!((answer.status, &*answer.id()), (401, "null"), "{field}");
        assert!(answer.closes());
        assert!(client.is_closed());
    }
    let chunked = Post::to("/a2a")
        .without_length()
        .field("Transfer-Encoding", "chunked");
    let mut client = gateway.client();
    client.send(chunked.bytes());
    client.send(format!("10001\r\n{}\r\n0\r\n\r\n", padded(65537)));
    let answer = client.answer();
    assert_eq!((answer.status, &*answer.id()), (401, "null"));
    assert!(answer.closes());
    // Whoever waits to be told to send is told no.
    let waiting = Post::to("/a2a")
        .without_length()
        .line("Content-Length: 70000");
    let answer = gateway.ask(waiting.field("Expect", "100-continue").bytes());
    assert_eq!((answer.status, answer.interim.len()), (401, 0));
    // A body that breaks is broken HTTP, whoever sends it.
    let broken = Post::to("/a2a")
        .without_length()
        .field("Transfer-Encoding", "chunked");
    let mut client = gateway.client();
    client.send(broken.bytes());
    assert_eq!(client.ask("zz\r\n").status, 400);
    assert_eq!(upstream.count(), 0);
}

#[test]
fn several_credentials_prove_one_caller_or_none() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&configuration(
        &upstream,
        &callers().replace("endpoints = [\"other\"]\n", ""),
        "authenticate = \"optional\"",
    ));
    let mut client = gateway.client();
    for (key, authorization, status) in [
        (ACME, bearer(ACME), 200),
        (ACME, bearer(ACME_NEXT), 200),
        (ACME, "Basic eDp5".to_owned(), 200),
        (ACME, bearer(BETA), 401),
        (ACME, bearer("fc_other"), 401),
        ("fc_other", bearer(ACME), 401),
        ("", bearer(ACME), 401),
    ] {
        let fields = [("X-Api-Key", key), ("Authorization", &*authorization)];
        let answer = ask(&mut client, &fields);
        assert_eq!(answer.status, status, "{fields:?}");
        if status == 200 {
            assert_eq!(gateway.last_line()["caller"], "acme");
        } else {
            is_refused(&answer, 401, Some(INVALID));
            assert_eq!(gateway.last_line()["caller"], "address 127.0.0.1");
        }
    }
    assert_eq!(upstream.count(), 3);
}

#[test]
fn a_bucket_belongs_to_the_name() {
    let upstream = Upstream::recording();
    let quota = "[quota.q]\nper = \"caller\"\nrate = \"2/day\"\n";
    let gateway = Gateway::start(&configuration(
        &upstream,
        &format!("{quota}{}", callers()),
        "authenticate = \"optional\"\nquotas = [\"q\"]",
    ));
    let mut client = gateway.client();
    let limited = |answer: &Answer| answer.text().contains("RATE_LIMITED");
    // By any of its keys, in any place.
    assert!(!limited(&ask(&mut client, &[("X-Api-Key", ACME)])));
    assert!(!limited(&ask(
        &mut client,
        &[("Authorization", &bearer(ACME_NEXT))]
    )));
    assert!(limited(&ask(&mut client, &[("X-Api-Key", ACME)])));
    assert_eq!(gateway.last_line()["caller"], "acme");
    // Whoever comes from the same address without a key has another.
    assert!(!limited(&ask(&mut client, &[])));
    // A key that may not call here costs its caller, and the address nothing.
    for _ in 0..3 {
        is_refused(&ask(&mut client, &[("X-Api-Key", BETA)]), 403, None);
    }
    assert!(!limited(&ask(&mut client, &[])));
    assert!(limited(&ask(&mut client, &[])));
    gateway.clock.advance(Duration::from_secs(12 * 3600));
    assert!(!limited(&ask(&mut client, &[("X-Api-Key", ACME)])));
    assert!(limited(&ask(&mut client, &[("X-Api-Key", ACME)])));
}
