//! Every refusal that can be reached, spelled exactly, with its status and its headers.

use serde_json::Value;

use crate::support::call::call;
use crate::support::gateway::{NOW, dealer, dealer_at, dealer_with};
use crate::support::{Answer, Gateway, Nobody, Post, U, Upstream, upstream, wait_until};

/// The three dialects with a contract of each.
const DIALECTS: [(&str, &str); 3] = [
    ("bare", "aap/1.2"),
    ("tagged", "draft"),
    ("wrapped", "aap/3.0"),
];

const DRAFT: &str = r#"
[contract.draft]
extension = "https://dealer.example/ext/aap/v2.0"
dialect = "tagged"
absent = "infer"
"#;

/// The body with its `error_id`, which must be a UUID, replaced by `ID`.
#[track_caller]
fn without_id(answer: &Answer) -> String {
    let text = answer.text();
    let Some((_, rest)) = text.split_once(r#""error_id":""#) else {
        return text;
    };
    let id = rest.split('"').next().unwrap();
    assert!(uuid::Uuid::parse_str(id).is_ok(), "{id}");
    text.replace(id, "ID")
}

/// An AAP error as each dialect spells it.
fn typed(
    dialect: &str,
    code: i64,
    reason: &str,
    message: &str,
    retryable: bool,
    details: &str,
) -> String {
    let payload = format!(
        r#"{{"type":"aap.error","error_id":"ID","code":"{reason}","message":"{message}","retryable":{retryable}{details},"created_at":"{NOW}"}}"#
    );
    let info = format!(
        r#"{{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"{reason}","domain":"autoagentprotocol.org","metadata":{{"code":"{reason}","error_id":"ID","retryable":"{retryable}","created_at":"{NOW}"}}}}"#
    );
    let data = match dialect {
        "bare" => payload,
        "tagged" => format!(
            r#"[{info},{{"@type":"https://autoagentprotocol.org/extensions/aap/error",{}]"#,
            &payload[1..]
        ),
        _ => format!(
            r#"[{info},{{"@type":"type.googleapis.com/google.protobuf.Struct","value":{payload}}}]"#
        ),
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":"req_001","error":{{"code":{code},"message":"{message}","data":{data}}}}}"#
    )
}

#[test]
fn rate_limited_in_each_dialect() {
    let upstream = Upstream::recording();
    for (dialect, contract) in DIALECTS {
        let gateway = Gateway::start(&format!(
            "{DRAFT}[quota.q]\nper = \"caller\"\nrate = \"2/min\"\nburst = 1\n{}",
            dealer_with(
                &upstream,
                "",
                &format!("contract = \"{contract}\"\nquotas = [\"q\"]")
            )
        ));
        let mut client = gateway.client();
        let post = Post::to("/a2a").body(call(r#""req_001""#)).bytes();
        assert!(client.ask(&post).head.has("a2a-extensions"));
        let answer = client.ask(&post);
        let code = if dialect == "bare" { -32002 } else { -32000 };
        assert_eq!(
            without_id(&answer),
            typed(
                dialect,
                code,
                "RATE_LIMITED",
                "Rate limit exceeded. Retry after 30 seconds.",
                true,
                r#","details":{"retry_after_ms":30000}"#
            )
        );
        assert_eq!(answer.status, 200);
        assert_eq!(answer.head.all("retry-after"), ["30"]);
        assert_eq!(answer.head.all("content-type"), ["application/json"]);
        assert!(!answer.head.has("a2a-extensions"));
        assert!(!answer.closes());
        // A refused stream is JSON as well, and every error has an id of its own.
        let stream = call(r#""req_001""#).replace("SendMessage", "SendStreamingMessage");
        let post = Post::to("/a2a")
            .field("Accept", "text/event-stream")
            .body(stream);
        let again = client.ask(post.bytes());
        assert_eq!(again.head.all("content-type"), ["application/json"]);
        assert_eq!(without_id(&again), without_id(&answer));
        assert_ne!(again.text(), answer.text());
        let line = gateway.last_line();
        assert_eq!(line["outcome"], "rate_limited");
        assert_eq!(line["quota"], "q");
        assert_eq!(line["retry_after_ms"], 30_000);
        assert_eq!(line["rpc_code"], code);
        assert!(again.text().contains(line["error_id"].as_str().unwrap()));
    }
}

#[test]
fn an_internal_error_in_each_dialect() {
    let down = Nobody::new();
    let nobody = down.address;
    for (dialect, contract) in DIALECTS {
        let gateway = Gateway::start(&format!(
            "{DRAFT}{}",
            dealer_at(nobody, "", &format!("contract = \"{contract}\""))
        ));
        let answer = gateway.post(call(r#""req_001""#));
        assert_eq!(
            without_id(&answer),
            typed(
                dialect,
                -32603,
                "INTERNAL_ERROR",
                "The dealer agent could not be reached.",
                true,
                ""
            )
        );
        assert_eq!(answer.status, 502);
        assert!(!answer.head.has("retry-after"));
        assert!(!answer.closes(), "the body was read");
    }
}

#[test]
fn a2a_errors_are_the_same_in_each_dialect() {
    let upstream = Upstream::recording();
    for (_, contract) in DIALECTS {
        let gateway = Gateway::start(&format!(
            "{DRAFT}{}",
            dealer_with(
                &upstream,
                "",
                &format!(
                    "contract = \"{contract}\"\nrequire_extension = true\n\
                     methods = [\"SendMessage\"]\nextension = \"{U}\""
                )
            )
            .replace(
                &format!("extension = \"{U}\""),
                match contract {
                    "draft" => "",
                    _ => "extension = \"https://dealer.example/ext/aap/v2.0\"",
                }
            )
        ));
        let uri = "https://dealer.example/ext/aap/v2.0";
        let info = |reason: &str, metadata: &str| {
            format!(
                r#","data":[{{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"{reason}","domain":"a2a-protocol.org","metadata":{{{metadata}}}}}]"#
            )
        };
        let body = call(r#""req_001""#);
        let renamed = |method: &str| body.replace("SendMessage", method);
        let version = r#""requestedVersion":"99.0?x","supportedVersions":"1.0","requiredHeader":"A2A-Version""#;
        let extension = format!(r#""extensionUri":"{uri}","requiredHeader":"A2A-Extensions""#);
        for (post, code, message, data) in [
            (
                Post::to("/a2a").field("A2A-Version", "99.0 x").body(&body),
                -32009,
                "A2A version 99.0?x is not supported at this endpoint, which serves 1.0. Name that version in one A2A-Version header.".to_owned(),
                info("VERSION_NOT_SUPPORTED", version),
            ),
            (
                Post::to("/a2a").field("A2A-Extensions", "x").body(&body),
                -32008,
                format!("This endpoint requires an extension that the request did not activate. List exactly this URI in the A2A-Extensions header: {uri}"),
                info("EXTENSION_SUPPORT_REQUIRED", &extension),
            ),
            (
                Post::to("/a2a").body(renamed("message/send")),
                -32601,
                "The method 'message/send' is of A2A 0.3, which this endpoint does not serve; use the method names of A2A 1.0.".to_owned(),
                String::new(),
            ),
            (
                Post::to("/a2a").body(renamed("Foo")),
                -32601,
                "The method 'Foo' is not known here.".to_owned(),
                String::new(),
            ),
            (
                Post::to("/a2a").body(renamed("GetTask")),
                -32004,
                "The operation 'GetTask' is not supported at this endpoint.".to_owned(),
                info("UNSUPPORTED_OPERATION", ""),
            ),
            (
                Post::to("/a2a").body(renamed("GetTaskPushNotificationConfig")),
                -32003,
                "Push notifications are not supported at this endpoint ('GetTaskPushNotificationConfig').".to_owned(),
                info("PUSH_NOTIFICATION_NOT_SUPPORTED", ""),
            ),
            (
                Post::to("/a2a").body(body.replace("\"2.0\"", "2.0")),
                -32600,
                r#"The member jsonrpc must be \"2.0\"."#.to_owned(),
                String::new(),
            ),
        ] {
            let answer = gateway.ask(post.bytes());
            assert_eq!(
                answer.text(),
                format!(
                    r#"{{"jsonrpc":"2.0","id":"req_001","error":{{"code":{code},"message":"{message}"{data}}}}}"#
                ),
                "{contract}"
            );
            assert_eq!(answer.status, 200);
            assert!(!answer.closes());
        }
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn the_same_mistake_again_and_another_in_between() {
    let upstream = Upstream::recording();
    // One worker: what it remembers of its last refusal must not leak into the next.
    let gateway = Gateway::start(&format!(
        "{DRAFT}{}\n[endpoint.other]\npath = \"/draft\"\nupstream = \"lakeside\"\n\
         contract = \"draft\"\na2a_version = \"1.1\"\n",
        dealer(&upstream),
    ));
    let ask = |path: &str, id: &str, version: &str| {
        let post = Post::to(path).field("A2A-Version", version);
        let answer = gateway.ask(post.body(call(id)).bytes());
        let value: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(value["id"], serde_json::from_str::<Value>(id).unwrap());
        value["error"].clone()
    };
    let first = ask("/a2a", "1", "0.9");
    let other_version = ask("/a2a", "\"two\"", "0.8");
    let other_contract = ask("/draft", "3", "0.9");
    assert_eq!(first["code"], -32009);
    assert_ne!(first, other_version);
    for _ in 0..3 {
        assert_eq!(ask("/a2a", "null", "0.9"), first);
        assert_eq!(ask("/a2a", "4", "0.9"), first);
        assert_eq!(ask("/a2a", "5", "0.8"), other_version);
        assert_eq!(ask("/draft", "\"6\"", "0.9"), other_contract);
        assert_eq!(ask("/draft", "7", "0.9"), other_contract);
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn an_absent_version_where_nothing_is_inferred() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&dealer_with(&upstream, "", "absent = \"refuse\""));
    let answer = gateway.post(call("1"));
    assert_eq!(
        answer.text(),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32009,"message":"This endpoint needs one A2A-Version header and the request has none; it serves 1.0.","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"VERSION_NOT_SUPPORTED","domain":"a2a-protocol.org","metadata":{"supportedVersions":"1.0","requiredHeader":"A2A-Version"}}]}}"#
    );
    // What was asked for is repeated sanitized and short.
    let long = "9".repeat(500);
    for (lines, told) in [
        (&["1.0", "0.3"][..], "1.0, 0.3"),
        (&["", "1.0"][..], "0.3, 1.0"),
        (&["<b>\u{e9}\tx"][..], "<b>??x"),
        (&[&*long][..], &"9".repeat(32)),
    ] {
        let mut post = Post::to("/a2a").body(call("1"));
        for line in lines {
            post = post.field("A2A-Version", line);
        }
        let answer = gateway.ask(post.bytes()).json();
        let metadata = &answer["error"]["data"][0]["metadata"];
        assert_eq!(metadata["requestedVersion"], told, "{lines:?}");
    }
}

#[test]
fn statuses_by_choice() {
    let upstream = Upstream::recording();
    let down = Nobody::new();
    let nobody = down.address;
    for (choice, [refused, limited, missing, unread, failed]) in [
        ("split", [200, 200, 200, 415, 502]),
        ("mapped", [400, 429, 404, 415, 502]),
        ("ok", [200, 200, 200, 200, 200]),
    ] {
        let gateway = Gateway::start(&format!(
            "[quota.q]\nper = \"all\"\nrate = \"1/day\"\n{}\
             [endpoint.limited]\npath = \"/limited\"\nupstream = \"lakeside\"\nquotas = [\"q\"]\n\
             http_status = \"{choice}\"\n\
             [upstream.down]\nurl = \"http://{nobody}\"\n\
             [endpoint.down]\npath = \"/down\"\nupstream = \"down\"\nhttp_status = \"{choice}\"\n",
            dealer_with(&upstream, "", &format!("http_status = \"{choice}\""))
        ));
        let to = |path: &str| Post::to(path).body(call("1"));
        let status = |post: Post| gateway.ask(post.bytes()).status;
        assert_eq!(status(to("/a2a").field("A2A-Version", "9.9")), refused);
        assert_eq!(status(to("/a2a").field("A2A-Extensions", "x")), refused);
        assert_eq!(status(Post::to("/a2a").body("{")), refused);
        assert_eq!(status(Post::to("/a2a").body("[]")), refused);
        let older = call("1").replace("SendMessage", "tasks/get");
        assert_eq!(status(Post::to("/a2a").body(older)), missing);
        assert_eq!(status(to("/limited")), 200);
        let answer = gateway.ask(to("/limited").bytes());
        assert_eq!(answer.status, limited);
        assert_eq!(answer.head.all("retry-after"), ["86400"]);
        let text = Post::bare("/a2a")
            .field("Host", "gw")
            .field("Content-Type", "text/plain");
        let answer = gateway.ask(text.body(call("1")).bytes());
        assert_eq!(
            (answer.status, answer.code(), answer.id().as_str()),
            (unread, -32005, "null")
        );
        assert_eq!(status(to("/down")), failed, "{choice}");
        // What is no JSON-RPC answer keeps its status.
        assert_eq!(status(to("/nowhere")), 404);
    }
}

#[test]
fn content_types() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    for type_ in [
        "application/json; charset=utf-8",
        "Application/JSON;Charset=\"UTF-8\"",
        "application/json ; profile=x",
        "application/json;",
    ] {
        let post = Post::bare("/a2a")
            .field("Host", "gw")
            .field("Content-Type", type_);
        assert_eq!(
            client.ask(post.body(call("1")).bytes()).status,
            200,
            "{type_}"
        );
        assert_eq!(upstream.take().head.all("content-type"), [type_]);
    }
    let without = Post::bare("/a2a").field("Host", "gw").body(call("1"));
    assert_eq!(client.ask(without.bytes()).status, 200);
    assert!(!upstream.take().head.has("content-type"));
    for types in [
        &["text/plain"][..],
        &["application/jsonx"][..],
        &["application/json; charset=utf-16"][..],
        &["application/json", "application/json"][..],
        &["application/json, text/plain"][..],
        &[""][..],
    ] {
        let mut post = Post::bare("/a2a").field("Host", "gw");
        for type_ in types {
            post = post.field("Content-Type", type_);
        }
        let mut client = gateway.client();
        let answer = client.ask(post.body(call("1")).bytes());
        assert_eq!(answer.status, 415, "{types:?}");
        assert_eq!(
            answer.text(),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"The Content-Type must be application/json in UTF-8.","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"CONTENT_TYPE_NOT_SUPPORTED","domain":"a2a-protocol.org","metadata":{}}]}}"#
        );
        assert!(answer.closes());
        assert!(client.is_closed());
        assert_eq!(gateway.last_line()["outcome"], "content_type_not_supported");
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn content_encodings() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    for coding in [
        "gzip",
        "x-gzip",
        "GZIP",
        "br",
        "gzip, gzip",
        "zstd",
        "foo",
        "identity, gzip",
    ] {
        let post = Post::to("/a2a")
            .field("Content-Encoding", coding)
            .body(call("1"));
        let answer = gateway.ask(post.bytes());
        assert_eq!((answer.status, answer.code()), (415, -32005), "{coding}");
        assert_eq!(answer.id(), "null");
        assert_eq!(answer.head.all("accept-encoding"), ["identity"]);
        assert!(answer.closes());
    }
    assert_eq!(upstream.count(), 0);
    let post = Post::to("/a2a")
        .field("Content-Encoding", "identity")
        .body(call("1"));
    assert_eq!(gateway.ask(post.bytes()).status, 200);
}

#[test]
fn bodies_that_are_too_large() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&format!("[limits]\nbody = \"1KiB\"\n{}", dealer(&upstream)));
    let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"The request body is larger than the limit of 1024 bytes."}}"#;

    // Announced: refused from the head alone, and no byte of it is asked for.
    for expect in [true, false] {
        let mut post = Post::to("/a2a")
            .without_length()
            .field("Content-Length", "1025");
        if expect {
            post = post.field("Expect", "100-continue");
        }
        let mut client = gateway.client();
        let answer = client.ask(post.bytes());
        assert_eq!((answer.status, answer.text().as_str()), (413, text));
        assert!(answer.interim.is_empty());
        assert!(answer.closes());
        assert!(client.is_closed());
    }
    // Longer than any number is still a length.
    let post = Post::to("/a2a")
        .without_length()
        .field("Content-Length", "18446744073709551613");
    assert_eq!(gateway.ask(post.bytes()).status, 413);

    // Not announced: refused where it passes the limit, whatever is still to come.
    let post = Post::to("/a2a")
        .without_length()
        .field("Transfer-Encoding", "chunked");
    let mut client = gateway.client();
    client.send(post.bytes());
    client.send(format!("400\r\n{}\r\n1\r\n", "x".repeat(1024)));
    assert!(client.is_quiet());
    let answer = client.ask("x");
    assert_eq!((answer.status, answer.text().as_str()), (413, text));
    assert!(answer.closes());
    assert!(client.is_closed());

    // Exactly the limit passes.
    let pad = 1024 - r#"{"jsonrpc":"2.0","id":1,"method":"M","params":{"x":""}}"#.len();
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"M","params":{{"x":"{}"}}}}"#,
        "x".repeat(pad)
    );
    assert_eq!(gateway.post(&body).status, 200);
    assert_eq!(upstream.take().body.len(), 1024);
    assert_eq!(gateway.ended("body_too_large"), 4.0);
}

#[test]
fn a_client_that_goes_on_sending_still_reads_why_not() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&format!("[limits]\nbody = \"1KiB\"\n{}", dealer(&upstream)));
    let body = "x".repeat(300_000);
    for _ in 0..20 {
        let mut client = gateway.client();
        // The whole body may be on its way before the answer is read.
        let sent = client.try_send(Post::to("/a2a").body(&body).bytes());
        let answer = client.try_answer();
        let answer = answer
            .unwrap_or_else(|error| panic!("{error} after {sent:?}"))
            .unwrap();
        assert_eq!((answer.status, answer.code()), (413, -32600));
    }
}

#[test]
fn a_body_that_does_not_come() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&format!(
        "[limits]\nbody_timeout = \"100ms\"\n{}",
        dealer(&upstream)
    ));
    let mut client = gateway.client();
    let body = call("1");
    let head = Post::to("/a2a").body(&body).head();
    let answer = client.send(head).send(&body[..20]).answer();
    assert_eq!(answer.status, 408);
    assert_eq!(
        answer.text(),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"The request body did not arrive in time."}}"#
    );
    assert!(answer.closes());
    assert!(client.is_closed());
    assert_eq!(upstream.count(), 0);
    let line = gateway.last_line();
    assert_eq!(
        (&line["outcome"], &line["status"]),
        (&"invalid_request".into(), &408.into())
    );
}

#[test]
fn a_body_that_breaks() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    for broken in [
        "zz\r\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\r\nabc",
        "-3\r\nabc\r\n0\r\n\r\n",
        "+3\r\nabc\r\n0\r\n\r\n",
        "0x3\r\nabc\r\n0\r\n\r\n",
        "3 \nabc\r\n0\r\n\r\n",
        "\r\n",
        "FFFFFFFFFFFFFFFFF\r\nabc\r\n0\r\n\r\n",
    ] {
        let post = Post::to("/a2a")
            .without_length()
            .field("Transfer-Encoding", "chunked");
        let mut client = gateway.client();
        client.send(post.bytes()).send(broken);
        client.socket().shutdown(std::net::Shutdown::Write).unwrap();
        // A client that hung up in the middle may get no answer; never any but 400.
        if let Ok(Some(answer)) = client.try_answer() {
            assert_eq!(answer.status, 400, "{broken:?}");
            assert!(answer.closes());
        } else {
            assert_eq!(broken, "3\r\nabc");
        }
        wait_until("logged", || gateway.last_line()["outcome"] == "bad_http");
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn chunks_are_read_within_limits() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let long = "x".repeat(64 * 1024);
    for (what, broken) in [
        ("extension", format!("3;{long}\r\nabc\r\n0\r\n\r\n")),
        ("trailer", format!("3\r\nabc\r\n0\r\nX: {long}\r\n\r\n")),
        (
            "trailers",
            format!("3\r\nabc\r\n0\r\n{}\r\n", "X: 1\r\n".repeat(2000)),
        ),
    ] {
        let post = Post::to("/a2a")
            .without_length()
            .field("Transfer-Encoding", "chunked");
        let mut client = gateway.client();
        let mut bytes = post.bytes();
        bytes.extend_from_slice(broken.as_bytes());
        drop(client.try_send(bytes));
        if let Ok(Some(answer)) = client.try_answer() {
            assert_eq!(answer.status, 400, "{what}");
            assert!(answer.closes(), "{what}");
        }
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn expectations() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let body = call("1");
    // 100 is given where the body is needed: also for a call that is refused by its headers.
    for version in ["1.0", "99.0"] {
        let post = Post::to("/a2a")
            .field("Expect", "100-Continue")
            .field("A2A-Version", version)
            .body(&body);
        let mut client = gateway.client();
        let head = client.send(post.head()).head();
        assert_eq!(head.start, "HTTP/1.1 100 Continue");
        let answer = client.ask(&body);
        assert_eq!(answer.status, 200);
        match version {
            "1.0" => assert!(!upstream.take().head.has("expect")),
            _ => assert_eq!((answer.code(), answer.id().as_str()), (-32009, "1")),
        }
    }
    // Not where the head tells enough.
    for (target, type_, status) in [
        ("/nowhere", "application/json", 404),
        ("/a2a", "text/plain", 415),
    ] {
        let post = Post::bare(target)
            .field("Host", "gw")
            .field("Content-Type", type_)
            .field("Expect", "100-continue")
            .body(&body);
        let answer = gateway.ask(post.head());
        assert_eq!(
            (answer.status, answer.interim.len()),
            (status, 0),
            "{target}"
        );
        assert!(answer.closes());
    }
    for other in ["something-else", "100-continue, x", ""] {
        let post = Post::to("/a2a").field("Expect", other).body(&body);
        let answer = gateway.ask(post.bytes());
        assert_eq!(answer.status, 417, "{other:?}");
        assert!(answer.head.all("content-type")[0].starts_with("text/plain"));
        assert!(answer.closes());
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn bodies_that_are_only_announced_take_no_room() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&format!(
        "[limits]\nbody = \"1KiB\"\nin_flight_bytes = \"1KiB\"\n{}",
        dealer(&upstream)
    ));
    let silent: Vec<_> = (0..10)
        .map(|_| {
            let mut client = gateway.client();
            client.send(
                "POST /a2a HTTP/1.1\r\nHost: gw.example\r\nContent-Type: application/json\r\n\
                 Content-Length: 1024\r\n\r\n{",
            );
            client
        })
        .collect();
    wait_until("all are being read", || {
        gateway.series("forecourt_in_flight_bytes") == 10.0
    });
    let answer = gateway.ask(Post::to("/a2a").body(call("1")).bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    drop(silent);
    wait_until("none is held", || {
        gateway.series("forecourt_in_flight_bytes") == 0.0
    });
}

#[test]
fn a_used_up_budget_sheds() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&format!(
        "[limits]\nbody = \"1KiB\"\nin_flight_bytes = \"1KiB\"\n{}",
        dealer(&upstream)
    ));
    // One call holds most of the budget while its dealer thinks.
    let body = call(&format!("\"{}\"", "x".repeat(700)));
    let mut first = gateway.client();
    first.send(Post::to("/a2a").body(&body).bytes());
    let mut peer = upstream.accept();
    peer.request().unwrap();
    assert!(gateway.series("forecourt_in_flight_bytes") >= 700.0);
    let mut client = gateway.client();
    let answer = client.ask(Post::to("/a2a").body(&body).bytes());
    assert_eq!(
        (answer.status, answer.code(), answer.id().as_str()),
        (503, -32603, "null")
    );
    assert_eq!(answer.head.all("retry-after"), ["1"]);
    let json = answer.json();
    let payload: &Value = &json["error"]["data"][1]["value"];
    assert_eq!(payload["retryable"], true);
    assert_eq!(payload["details"]["retry_after_ms"], 1000);
    assert!(answer.closes());
    assert_eq!(gateway.ended("overloaded"), 1.0);
    // Once the first is answered there is room again.
    peer.send(upstream::ok());
    assert_eq!(first.answer().status, 200);
    let peer = std::thread::spawn(move || {
        peer.request().unwrap();
        peer.send(upstream::ok());
        peer
    });
    assert_eq!(first.ask(Post::to("/a2a").body(&body).bytes()).status, 200);
    drop(peer.join().unwrap());
    assert_eq!(gateway.series("forecourt_in_flight_bytes"), 0.0);
}

#[test]
fn bodies_that_are_no_one_request() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    let nested = |depth: usize| {
        // The top level and `params` are the first two.
        let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"M","params":{{"x":{open}{close}}}}}"#)
    };
    let with = |members: &str| format!(r#"{{"jsonrpc":"2.0","id":7,"method":"M",{members}}}"#);
    let cases: Vec<(Vec<u8>, i64, &str)> = [
        (format!("\u{feff}{}", call("7")), -32700, "null"),
        (format!("{}{}", call("7"), call("8")), -32700, "null"),
        (format!("{},", call("7")), -32700, "null"),
        (call("7").replace("\"m-1\"", "'m-1'"), -32700, "null"),
        (call("7").replace("\"m-1\"", "NaN"), -32700, "null"),
        (call("7").replace("\"m-1\"", "\"\u{1}\""), -32700, "null"),
        (
            call("7").replace("\"m-1\"", "\"\\ud800x\\q\""),
            -32700,
            "null",
        ),
        (call("07"), -32700, "null"),
        (call("7").replace("}}}", "}},}"), -32700, "null"),
        (nested(129), -32700, "null"),
        ("[".repeat(100_000), -32700, "null"),
        (" ".to_owned(), -32700, "null"),
        ("null".to_owned(), -32600, "null"),
        ("7".to_owned(), -32600, "null"),
        ("{}".to_owned(), -32600, "null"),
        (
            with("\"params\":{\"message\":{},\"message\":{}}"),
            -32600,
            "7",
        ),
        (
            with("\"params\":{\"message\":{\"parts\":[],\"p\\u0061rts\":[]}}"),
            -32600,
            "7",
        ),
        (
            with("\"params\":{\"message\":{\"parts\":[{\"data\":{},\"data\":{}}]}}"),
            -32600,
            "7",
        ),
        (
            with("\"params\":{\"message\":{\"parts\":[{\"data\":{\"type\":1,\"type\":2}}]}}"),
            -32600,
            "7",
        ),
        (
            with("\"params\":{\"configuration\":{},\"configuration\":{}}"),
            -32600,
            "7",
        ),
        (with("\"params\":{},\"meth\\u006fd\":\"N\""), -32600, "7"),
        (with("\"jsonrpc\":\"2.0\""), -32600, "7"),
    ]
    .into_iter()
    .map(|(body, code, id)| (body.into_bytes(), code, id))
    .chain([
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"M\"}".to_vec(),
            -32700,
            "null",
        ),
        (b"\xef\xbb\xbf".to_vec(), -32700, "null"),
    ])
    .collect();
    for (body, code, id) in cases {
        let shown = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        let answer = client.ask(Post::to("/a2a").body(&body).bytes());
        assert_eq!(
            (answer.status, answer.code(), &*answer.id()),
            (200, code, id),
            "{shown}"
        );
    }
    assert_eq!(upstream.count(), 0);
    // What a later member of a list says twice, or what nobody reads, is the dealer's business.
    for body in [
        nested(128),
        with("\"params\":[1,2],\"x\":1,\"x\":2"),
        with("\"params\":{\"message\":{\"parts\":[{},{\"data\":1,\"data\":2}]}}"),
        with("\"params\":{\"message\":null,\"configuration\":7}"),
        call("7").replace("SendMessage", "Ext/Method\\u00e9"),
    ] {
        assert_eq!(client.ask(Post::to("/a2a").body(&body).bytes()).status, 200);
        assert_eq!(upstream.take().body, body.as_bytes(), "{body}");
    }
}
