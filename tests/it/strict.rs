//! HTTP with two meanings is refused, closed, and never forwarded in part or whole.

use std::time::Duration;

use crate::support::call::{call, post};
use crate::support::gateway::dealer;
use crate::support::wait::elapse;
use crate::support::{Gateway, Post, Upstream, Watch, wait_until};

/// What would be a second request if an attacker's framing were believed.
const SMUGGLED: &str = "POST /a2a HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\nContent-Length: 46\r\nX-Smuggled: 1\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"Smuggled\"}";

/// Sends a head as given, then a chunked body that hides a second request.
fn smuggle(lines: &[&str]) -> Vec<u8> {
    let mut head = String::from("POST /a2a HTTP/1.1\r\nHost: gw\r\n");
    for line in lines {
        head += line;
        head += "\r\n";
    }
    format!("{head}\r\n0\r\n\r\n{SMUGGLED}").into_bytes()
}

/// The answer must be one of these statuses, plain, and the last thing on its connection.
#[track_caller]
fn assert_refused(gateway: &Gateway, bytes: &[u8], statuses: &[u16]) {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
    let mut client = gateway.client();
    drop(client.try_send(bytes));
    match client.try_answer() {
        Ok(Some(answer)) => {
            assert!(
                statuses.contains(&answer.status),
                "{}: {shown}",
                answer.status
            );
            assert!(answer.closes() || answer.body.is_empty(), "{shown}");
        }
        Ok(None) => panic!("closed without an answer: {shown}"),
        Err(error) => panic!("{error}: {shown}"),
    }
    match client.try_answer() {
        Ok(None) | Err(_) => {}
        Ok(Some(answer)) => panic!("a second answer, {}: {shown}", answer.status),
    }
}

#[test]
fn framing_has_one_meaning() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    for lines in [
        &["Content-Length: 5", "Transfer-Encoding: chunked"][..],
        &["Transfer-Encoding: chunked", "Content-Length: 5"][..],
        &["Transfer-Encoding: chunked", "X: 1", "content-length: 0"][..],
        &["Transfer-Encoding: chunked", "Content-Length: x"][..],
        &["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"][..],
        &["Transfer-Encoding: chunked, chunked"][..],
        &["Transfer-Encoding: gzip, chunked"][..],
        &["Transfer-Encoding: chunked, gzip"][..],
        &["Transfer-Encoding: gzip"][..],
        &["Transfer-Encoding: identity"][..],
        &["Transfer-Encoding: xchunked"][..],
        &["Transfer-Encoding: \"chunked\""][..],
        &["Transfer-Encoding: chunked;q=1"][..],
        &["Transfer-Encoding:"][..],
        &["Transfer-Encoding: ,chunked"][..],
        &["Transfer-Encoding: identity", "Transfer-Encoding: chunked"][..],
        &["Transfer-Encoding : chunked"][..],
        &[" Transfer-Encoding: chunked"][..],
        &["X: 1", " Transfer-Encoding: chunked"][..],
        &["Transfer-Encoding:\u{b}chunked"][..],
        &["Content-Length: 5", "Content-Length: 5"][..],
        &["Content-Length: 5", "Content-Length: 6"][..],
        &["Content-Length: 5, 5"][..],
        &["Content-Length: +5"][..],
        &["Content-Length: -5"][..],
        &["Content-Length: 0x5"][..],
        &["Content-Length: 5 5"][..],
        &["Content-Length: 5.0"][..],
        &["Content-Length:"][..],
        &["Content-Length: 99999999999999999999999"][..],
        &["Content-Length : 5"][..],
        &["Content-Length\t: 5"][..],
    ] {
        assert_refused(&gateway, &smuggle(lines), &[400]);
    }
    for start in [
        "POST /a2a HTTP/1.0\r\nHost: gw\r\n",
        "POST /a2a HTTP/1.0\r\n",
    ] {
        let bytes = format!("{start}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SMUGGLED}");
        assert_refused(&gateway, bytes.as_bytes(), &[400]);
    }
    assert_eq!(upstream.count(), 0);
    assert!(gateway.ended_at("", "bad_http") >= 30.0);
}

#[test]
fn lines_have_one_meaning() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let body = call("1");
    let length = body.len();
    let head = |lines: &str| {
        format!("POST /a2a HTTP/1.1\r\n{lines}Content-Length: {length}\r\n\r\n{body}")
    };
    for lines in [
        // Folded, spaced and nameless fields.
        "Host: gw\r\nX: 1\r\n 2\r\n",
        "Host: gw\r\nX: 1\r\n\t2\r\n",
        "Host : gw\r\n",
        "Host: gw\r\nX Y: 1\r\n",
        "Host: gw\r\n: 1\r\n",
        "Host: gw\r\nX\r\n",
        "Host: gw\r\nX\u{0}: 1\r\n",
        "Host: gw\r\nX: a\u{0}b\r\n",
        "Host: gw\r\nX: a\rb\r\n",
        "Host: gw\r\nX(: 1\r\n",
        // No, two, or no valid host.
        "",
        "Host: gw\r\nHost: gw\r\n",
        "Host: gw\r\nhost: other\r\n",
        "Host:\r\n",
        "Host: a b\r\n",
        "Host: a,b\r\n",
        "Host: user@gw\r\n",
        "Host: gw/x\r\n",
        "Host: gw:port\r\n",
        "Host: gw:123456\r\n",
        "Host: [::1\r\n",
        "Host: http://gw\r\n",
        "Host: gw%2e\r\n",
        "Host: .\r\n",
        // A Connection that takes away what must travel.
        "Host: gw\r\nConnection: close, Host\r\n",
        "Host: gw\r\nConnection: content-length\r\n",
        "Host: gw\r\nConnection: x\r\nConnection: Authorization\r\n",
        "Host: gw\r\nConnection: Transfer-Encoding\r\n",
    ] {
        assert_refused(&gateway, head(lines).as_bytes(), &[400]);
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn targets_have_one_meaning() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let body = call("1");
    let to = |target: &str| Post::to(target).body(&body).bytes();
    for target in [
        "/a2a/../a2a",
        "/x/../a2a",
        "/./a2a",
        "/a2a/.",
        "/a2a/..",
        "/a2a/%2e%2e/x",
        "/a2a/%2E",
        "/a2a/.%2e/x",
        "/a2a%2Fx",
        "/a2a%2f..%2fx",
        "/a2a%5Cx",
        "/a2a/x\\y",
        "/a2a%00",
        "/a2a%zz",
        "/a2a%2",
        "a2a",
        "*",
        "http://other.example/a2a",
        "http://gw.example:81/a2a",
        "https://user@gw.example/a2a",
        "ftp://gw.example/a2a",
        "/a 2a",
        "/a2a\u{7f}",
    ] {
        assert_refused(&gateway, &to(target), &[400, 404]);
    }
    assert_eq!(upstream.count(), 0);
    // Absolute form that agrees with Host is the same as its path.
    for target in ["http://gw.example/a2a?x=1", "http://GW.example:80/a2a?x=1"] {
        assert_eq!(gateway.ask(to(target)).status, 200, "{target}");
        assert_eq!(upstream.take().target(), "/a2a?x=1");
    }
}

#[test]
fn no_tunnel_and_no_other_protocol() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    for start in [
        "CONNECT gw.example:443",
        "CONNECT /a2a",
        "CONNECT http://gw.example/",
    ] {
        let bytes = format!("{start} HTTP/1.1\r\nHost: gw.example:443\r\n\r\n{SMUGGLED}");
        assert_refused(&gateway, bytes.as_bytes(), &[400, 405]);
    }
    for bytes in [
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\rX",
        "GET /a2a HTTP/2.0\r\nHost: gw\r\n\r\n",
        "GET /a2a HTTP/3\r\nHost: gw\r\n\r\n",
        "GET /a2a\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{fc}\u{3}\u{3} not HTTP\r\n\r\n",
        "GET  /a2a HTTP/1.1\r\nHost: gw\r\n\r\n",
    ] {
        let mut client = gateway.client();
        client.send(bytes);
        match client.try_answer() {
            Ok(Some(answer)) => assert!(
                matches!(answer.status, 400 | 405 | 505),
                "{bytes:?} {}",
                answer.status
            ),
            Ok(None) => {}
            Err(error) => panic!("{bytes:?} {error}"),
        }
    }
    // An upgrade is not taken up: the call is an ordinary one, and the dealer hears nothing of it.
    for (upgrade, settings) in [
        ("h2c", "HTTP2-Settings"),
        ("websocket", "Sec-WebSocket-Key"),
    ] {
        let post = Post::to("/a2a")
            .field("Connection", &format!("Upgrade, {settings}"))
            .field("Upgrade", upgrade)
            .field(settings, "AAMAAABkAAQAoAAAAAIAAAAA")
            .body(call("1"));
        let answer = gateway.ask(post.bytes());
        assert_eq!((answer.status, answer.interim.len()), (200, 0));
        let head = upstream.take().head;
        for gone in ["upgrade", "connection", settings] {
            assert!(!head.has(gone), "{gone}");
        }
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn a_bare_line_feed_ends_no_line() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let body = call("1");
    let bytes = format!(
        "POST /a2a HTTP/1.1\nHost: gw\nContent-Type: application/json\nX: 1\nTransfer-Encoding: chunked\nContent-Length: {}\n\n{body}",
        body.len()
    );
    assert_refused(&gateway, bytes.as_bytes(), &[400]);
    assert_eq!(upstream.count(), 0);
    let bytes = format!(
        "POST /a2a HTTP/1.1\nHost: gw\nContent-Type: application/json\nContent-Length: {}\n\n{body}",
        body.len()
    );
    assert_refused(&gateway, bytes.as_bytes(), &[400]);
    // In the middle of a head that is otherwise well-formed.
    let bytes = format!(
        "POST /a2a HTTP/1.1\r\nHost: gw\r\nX: 1\nY: 2\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    assert_refused(&gateway, bytes.as_bytes(), &[400]);
    assert_eq!(upstream.count(), 0);
}

#[test]
fn a_head_that_drips_in_is_judged_as_soon_as_one_that_comes_whole() {
    let upstream = Upstream::recording();
    // What is not judged is closed in silence after this.
    let gateway = Gateway::start(&format!(
        "[limits]\nheader_timeout = \"60s\"\nheader_bytes = \"8KiB\"\n{}",
        dealer(&upstream)
    ));
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(8192));
    for (bytes, status) in [
        ("GET / HTTP/1.1\nHost: a\n\n", 400),
        ("GET / HTTP/1.1\nHost: a\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 404),
        (&long[..8192], 431),
    ] {
        for size in [1, 7, 5000] {
            let mut client = gateway.client();
            for piece in bytes.as_bytes().chunks(size) {
                client.send(piece);
                // Each piece is read on its own, more or less.
                if bytes.len() < 100 {
                    elapse(Duration::from_millis(1));
                }
            }
            let answer = client.answer();
            assert_eq!(
                (answer.status, answer.closes()),
                (status, true),
                "{bytes:?}"
            );
        }
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn heads_are_limited() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let padded = |bytes: usize| {
        Post::to("/a2a")
            .field("X-Pad", &"x".repeat(bytes))
            .body(call("1"))
    };
    assert_eq!(gateway.ask(padded(30 * 1024).bytes()).status, 200);
    assert_refused(&gateway, &padded(33 * 1024).bytes(), &[431]);
    assert_refused(&gateway, &padded(300 * 1024).bytes(), &[431]);
    let lines = |count: usize| {
        // Host, Content-Type and Content-Length are there already.
        (3..count).fold(Post::to("/a2a").body(call("1")), |post, _| {
            post.field("X", "1")
        })
    };
    assert_eq!(gateway.ask(lines(100).bytes()).status, 200);
    assert_refused(&gateway, &lines(101).bytes(), &[431]);
    assert_refused(&gateway, &lines(1000).bytes(), &[431]);
    let long = format!("/a2a?{}", "x".repeat(40 * 1024));
    assert_refused(
        &gateway,
        &Post::to(&long).body(call("1")).bytes(),
        &[414, 431],
    );
    assert_eq!(upstream.count(), 2);

    let gateway = Gateway::start(&format!(
        "[limits]\nheader_bytes = \"8KiB\"\nheader_count = 10\n{}",
        dealer(&upstream)
    ));
    assert_eq!(gateway.ask(lines(10).bytes()).status, 200);
    assert_refused(&gateway, &lines(11).bytes(), &[431]);
    assert_eq!(gateway.ask(padded(7 * 1024).bytes()).status, 200);
    assert_refused(&gateway, &padded(9 * 1024).bytes(), &[431]);
    let gateway = Gateway::start(&format!(
        "[limits]\nheader_count = 200\n{}",
        dealer(&upstream)
    ));
    assert_eq!(gateway.ask(lines(200).bytes()).status, 200);
    assert_refused(&gateway, &lines(201).bytes(), &[431]);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    let mut bytes = Vec::new();
    for id in 0..50 {
        let mut request = Post::to("/a2a").body(call(&id.to_string()));
        if id % 3 == 0 {
            request = request.field("A2A-Version", "9.9");
        }
        bytes.extend_from_slice(&request.field("X-Request-Id", &id.to_string()).bytes());
    }
    client.send(bytes);
    for id in 0..50 {
        let answer = client.answer();
        assert_eq!(answer.head.one("x-request-id").unwrap(), id.to_string());
        if id % 3 == 0 {
            assert_eq!(answer.id(), id.to_string());
        }
    }
    let arrived: Vec<String> = upstream
        .arrivals()
        .iter()
        .map(|arrival| arrival.head.one("x-request-id").unwrap())
        .collect();
    let sent: Vec<String> = (0..50)
        .filter(|id| id % 3 != 0)
        .map(|id| id.to_string())
        .collect();
    assert_eq!(arrived, sent);
}

#[test]
fn framing_is_noted_anew_for_each_pipelined_head() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    // A good one and a contradictory one in one write: the second must not pass unseen.
    for lines in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    ] {
        let mut bytes = post(call("1"));
        bytes.extend_from_slice(
            format!(
                "POST /a2a HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\n{lines}\r\n0\r\n\r\n{SMUGGLED}"
            )
            .as_bytes(),
        );
        let mut client = gateway.client();
        client.send(bytes);
        assert_eq!(client.answer().status, 200);
        let second = client.answer();
        assert_eq!(second.status, 400, "{lines}");
        assert!(second.closes());
        assert!(!matches!(client.try_answer(), Ok(Some(_))));
        upstream.take();
    }
    // What is not contradictory is not taken for it: lengths and chunks in turn.
    let body = call("3");
    let chunked = Post::to("/a2a")
        .without_length()
        .field("Transfer-Encoding", "chunked");
    let mut bytes = Vec::new();
    for _ in 0..5 {
        bytes.extend_from_slice(&post(&body));
        bytes.extend_from_slice(&chunked.bytes());
        bytes.extend_from_slice(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes());
    }
    let mut client = gateway.client();
    client.send(bytes);
    for _ in 0..10 {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(
        upstream
            .arrivals()
            .iter()
            .filter(|it| it.body == body.as_bytes())
            .count(),
        10
    );
    let before = upstream.count();
    // The same with a body of chunks before, and with the second head coming byte by byte.
    let mut client = gateway.client();
    let chunked = Post::to("/a2a")
        .without_length()
        .field("Transfer-Encoding", "chunked");
    let body = call("2");
    let mut bytes = chunked.bytes();
    bytes.extend_from_slice(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(
        b"POST /a2a HTTP/1.1\r\nHost: gw\r\nTransfer-Encoding: chunked\r\nConte",
    );
    client.send(bytes);
    assert_eq!(client.answer().status, 200);
    assert_eq!(upstream.count(), before + 1);
    for byte in b"nt-Length: 5\r\n\r\n0\r\n\r\n" {
        client.send([*byte]);
    }
    assert_eq!(client.answer().status, 400);
    assert_eq!(upstream.count(), before + 1);
}

#[test]
fn a_connection_goes_on_after_a_refusal_whose_body_was_read() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    for _ in 0..3 {
        let refused = Post::to("/a2a").field("A2A-Version", "9.9").body(call("1"));
        assert_eq!(client.ask(refused.bytes()).code(), -32009);
        assert_eq!(client.ask(post("{")).code(), -32700);
        assert_eq!(client.ask(post("[]")).code(), -32600);
        assert_eq!(client.ask(post(call("1"))).status, 200);
    }
    assert_eq!(upstream.count(), 3);
    assert_eq!(upstream.connections(), 1);
    // HTTP/1.0 ends after its answer unless it asks to go on.
    let old = String::from_utf8(post(call("1")))
        .unwrap()
        .replace("HTTP/1.1", "HTTP/1.0");
    let mut client = gateway.client();
    assert_eq!(client.ask(&old).status, 200);
    assert!(client.is_closed());
    let close = Post::to("/a2a")
        .field("Connection", "close")
        .body(call("1"));
    let mut client = gateway.client();
    assert!(client.ask(close.bytes()).closes());
    assert!(client.is_closed());
}

#[test]
fn slow_and_silent_clients_are_closed() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&format!(
        "[limits]\nheader_timeout = \"100ms\"\nidle_timeout = \"200ms\"\n{}",
        dealer(&upstream)
    ));
    // Nothing at all, half a head, and a head that drips.
    assert!(gateway.client().is_closed());
    let mut client = gateway.client();
    client.send("POST /a2a HTTP/1.1\r\nHost:");
    assert!(!matches!(client.try_answer(), Ok(Some(answer)) if answer.status != 408));
    let mut client = gateway.client();
    let watch = crate::support::Watch::start();
    while client.try_send("x").is_ok() && !client.has_ended() {
        assert!(watch.elapsed() < crate::support::PATIENCE);
        crate::support::wait::elapse(std::time::Duration::from_millis(5));
    }
    // The two that had begun.
    wait_until("counted", || gateway.ended_at("", "bad_http") >= 2.0);
    // Between requests, which is nobody's fault.
    let mut client = gateway.client();
    assert_eq!(client.ask(post(call("1"))).status, 200);
    assert!(client.is_closed());
    assert_eq!(gateway.ended_at("", "bad_http"), 2.0);
}

#[test]
fn the_connection_limit_is_told() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&format!("[limits]\nconnections = 2\n{}", dealer(&upstream)));
    let mut kept = [gateway.client(), gateway.client()];
    for client in &mut kept {
        assert_eq!(client.ask(post(call("1"))).status, 200);
    }
    let mut third = gateway.client();
    let answer = third.answer();
    assert_eq!((answer.status, answer.closes()), (503, true));
    assert_eq!(
        gateway.series(r#"forecourt_connections_refused_total{listener="public"}"#),
        1.0
    );
    assert_eq!(
        gateway.series(r#"forecourt_connections{listener="public"}"#),
        2.0
    );
    drop(kept);
    crate::support::wait_until("a place is free", || {
        gateway.series(r#"forecourt_connections{listener="public"}"#) == 0.0
    });
    assert_eq!(gateway.post(call("1")).status, 200);
}

#[test]
fn the_access_log_says_why() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let two_hosts = Post::to("/a2a").field("Host", "gw").body(call("1"));
    assert_eq!(gateway.ask(two_hosts.bytes()).status, 400);
    let line = gateway.last_line();
    assert_eq!(line["outcome"], "bad_http");
    assert_eq!(line["why"], "more than one Host");
    // What was taken out of the query is told, and the query is not.
    let post = Post::to("/a2a?a2a-version=0.3&key=secret").body(call("1"));
    assert_eq!(gateway.ask(post.bytes()).status, 200);
    let line = gateway.last_line();
    assert_eq!(line["stripped_query"], true);
    assert!(line.get("why").is_none());
    assert!(!line.to_string().contains("secret"));
}

#[test]
fn a_chunk_larger_than_anything_is_not_waited_for() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    for size in [
        "ffffffffffffffff",
        "1000000000000000",
        "fffffffffffffffff",
        "7fffffffffffffff",
    ] {
        let mut client = gateway.client();
        let head = Post::to("/a2a").without_length();
        let head = head.field("Transfer-Encoding", "chunked").head();
        client.send([&head[..], format!("{size}\r\n{{").as_bytes()].concat());
        // An answer or a cut, long before the body's time is over.
        let watch = Watch::start();
        let answer = client.try_answer().ok().flatten();
        assert!(answer.is_none_or(|answer| answer.status == 400), "{size}");
        assert!(watch.elapsed() < Duration::from_secs(10), "{size}");
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn a_target_has_no_fragment() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    for target in ["/a2a#x", "/a2a?x=1#y", "/a2a#"] {
        let post = Post::to(target).body(call("1"));
        assert_refused(&gateway, &post.bytes(), &[400]);
    }
    // Elsewhere the character means nothing.
    let post = Post::to("/a2a").field("X", "#").body(call("\"#\""));
    assert_eq!(gateway.ask(post.bytes()).status, 200);
    assert_eq!(upstream.count(), 1);
}
