//! What the upstream receives of a request, and what the client receives of its answer.

use crate::support::call::{call, post};
use crate::support::gateway::dealer_with;
use crate::support::{Gateway, Post, U, Upstream, fixture, upstream};

#[test]
fn bodies_pass_byte_for_byte() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    for (name, body) in fixture::files("requests", 8) {
        let answer = client.ask(Post::to("/a2a").body(&body).bytes());
        if name.contains("-v0.3-") {
            assert_eq!(answer.status, 200, "{name}");
            assert_eq!(answer.code(), -32601, "{name}");
            assert!(
                answer.text().contains("A2A 0.3"),
                "{name}: {}",
                answer.text()
            );
            assert_eq!(upstream.count(), 0, "{name}");
        } else {
            assert_eq!(answer.status, 200, "{name}");
            assert_eq!(answer.text(), upstream::RESULT, "{name}");
            let arrival = upstream.take();
            assert_eq!(arrival.body, body, "{name}");
            assert_eq!(arrival.head.length(), Some(body.len()), "{name}");
        }
    }
}

#[test]
fn a_chunked_body_goes_out_with_a_length() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let body = call("1");
    let (one, two) = body.split_at(17);
    let post = Post::to("/a2a")
        .without_length()
        .field("Transfer-Encoding", "chunked")
        .field("Trailer", "X-Sum");
    let mut bytes = post.bytes();
    for piece in [one, two] {
        bytes.extend_from_slice(format!("{:X};ext=\"1\"\r\n{piece}\r\n", piece.len()).as_bytes());
    }
    bytes.extend_from_slice(b"0\r\nX-Sum: 1\r\n\r\n");
    let mut client = gateway.client();
    assert_eq!(client.ask(&bytes).status, 200);
    let arrival = upstream.take();
    assert_eq!(arrival.body, body.as_bytes());
    assert_eq!(arrival.head.length(), Some(body.len()));
    for gone in ["transfer-encoding", "trailer", "x-sum"] {
        assert!(!arrival.head.has(gone), "{gone}");
    }
    // The connection goes on behind it.
    assert_eq!(client.ask(&bytes).status, 200);
}

#[test]
fn the_whole_request() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let body = call("1");
    let post = Post::bare("/a2a?x=1&y=%2F&x=2")
        .field("X-First", "1")
        .field("HOST", "GW.example:8080")
        .field("User-Agent", "buyer/1")
        .field("Accept", "application/json, text/event-stream")
        .field("Content-Type", "Application/JSON;Charset=\"UTF-8\"")
        .field("Connection", "keep-alive, X-Hop")
        .field("Connection", "X-Other-Hop,A2A-Version,, A2A-Extensions")
        .field("X-Hop", "1")
        .field("x-other-hop", "1")
        .field("Keep-Alive", "timeout=5")
        .field("Proxy-Connection", "keep-alive")
        .field("Proxy-Authorization", "Basic c2VjcmV0")
        .field("TE", "trailers")
        .field("Trailer", "X-Sum")
        .field("Expect", "100-continue")
        .field("A2A-Version", "1.0")
        .field("A2A-Extensions", "https://ext.example/\u{e9}/v1")
        .field("A2A-Extensions", U)
        .field("A2A_Version", "0.3")
        .field("a2a_extensions", "u")
        .field("X-A2A-Extensions", "old")
        .field("Authorization", "Bearer t1")
        .field(
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )
        .field("tracestate", "a=1")
        .field("tracestate", "b=2")
        .field("baggage", "a=b")
        .field("X-Forwarded-For", "203.0.113.9")
        .field("X-Forwarded-Host", "evil.example")
        .field("X-Forwarded-Proto", "https")
        .field("Forwarded", "for=203.0.113.9")
        .field("X-Real-IP", "203.0.113.9")
        .field("X-Request-Id", "r9")
        .field("X-Latin", "caf\u{e9}\u{80}")
        .field("X-Empty", "")
        .body(&body);
    let answer = gateway.ask(post.bytes());
    assert_eq!(answer.status, 200);
    assert_eq!(answer.head.one("x-request-id").unwrap(), "r9");

    let arrival = upstream.take();
    let head = &arrival.head;
    assert_eq!(head.start, "POST /a2a?x=1&y=%2F&x=2 HTTP/1.1");
    let address = upstream.address.to_string();
    let mut wanted: Vec<(&str, &str)> = vec![
        ("host", &address),
        ("x-first", "1"),
        ("user-agent", "buyer/1"),
        ("accept", "application/json, text/event-stream"),
        ("content-type", "Application/JSON;Charset=\"UTF-8\""),
        ("a2a-version", "1.0"),
        ("a2a-extensions", "https://ext.example/\u{e9}/v1"),
        ("a2a-extensions", U),
        ("x-a2a-extensions", "old"),
        ("authorization", "Bearer t1"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        ("tracestate", "a=1"),
        ("tracestate", "b=2"),
        ("baggage", "a=b"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", "GW.example:8080"),
        ("x-forwarded-proto", "http"),
        ("x-request-id", "r9"),
        ("x-latin", "caf\u{e9}\u{80}"),
        ("x-empty", ""),
    ];
    let length = body.len().to_string();
    wanted.push(("content-length", &length));
    let mut got: Vec<(String, String)> = head
        .fields
        .iter()
        .map(|(name, value)| {
            let value = value.iter().map(|byte| char::from(*byte)).collect();
            (name.to_ascii_lowercase(), value)
        })
        .collect();
    // Lines of one name keep their order; names may be in any.
    got.sort_by(|one, other| one.0.cmp(&other.0));
    wanted.sort_by(|one, other| one.0.cmp(other.0));
    let got: Vec<(&str, &str)> = got.iter().map(|(n, v)| (&**n, &**v)).collect();
    assert_eq!(got, wanted);
    assert_eq!(arrival.body, body.as_bytes());
}

#[test]
fn values_are_trimmed_and_case_is_kept() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let post = Post::to("/a2a")
        .line("A2A-Version: \t 1.0.2 \t")
        .line(format!("a2a-extensions:\t{U} \t"))
        .body(call("1"));
    assert_eq!(gateway.ask(post.bytes()).status, 200);
    let head = upstream.take().head;
    assert_eq!(head.all("a2a-version"), ["1.0.2"]);
    assert_eq!(head.all("a2a-extensions"), [U]);
}

#[test]
fn request_ids() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let long = "x".repeat(129);
    let longest = "x".repeat(128);
    for (sent, kept) in [
        (&["abc-1"][..], true),
        (&[&*longest][..], true),
        (&[][..], false),
        (&[&*long][..], false),
        (&["has space"][..], false),
        (&["caf\u{e9}"][..], false),
        (&["one", "two"][..], false),
        (&[""][..], false),
    ] {
        let mut post = Post::to("/a2a").body(call("1"));
        for id in sent {
            post = post.field("X-Request-Id", id);
        }
        let answer = gateway.ask(post.bytes());
        let told = answer.head.one("x-request-id").unwrap();
        assert_eq!(upstream.take().head.one("x-request-id").unwrap(), told);
        assert_eq!(sent.contains(&&*told), kept, "{sent:?}");
        assert_eq!(told.len() == 36, !kept, "{told}");
        assert_eq!(gateway.last_line()["request_id"], told);
    }
    // Refusals carry it as well.
    let refused = Post::to("/a2a")
        .field("X-Request-Id", "r9")
        .field("A2A-Version", "9.9")
        .body(call("1"));
    let answer = gateway.ask(refused.bytes());
    assert_eq!(answer.head.one("x-request-id").unwrap(), "r9");
    let answer = gateway.ask(Post::to("/nowhere").field("X-Request-Id", "r9").bytes());
    assert_eq!(answer.head.one("x-request-id").unwrap(), "r9");
}

#[test]
fn the_operators_headers_replace_the_callers() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&dealer_with(
        &upstream,
        r#"headers = { authorization = "Bearer ${DEALER_TOKEN}", X-Static = "1" }
           preserve_host = true"#,
        "",
    ));
    let post = Post::to("/a2a")
        .field("AUTHORIZATION", "Bearer t1")
        .field("x-static", "caller")
        .field("X-Static", "again")
        .body(call("1"));
    assert_eq!(gateway.ask(post.bytes()).status, 200);
    let head = upstream.take().head;
    assert_eq!(head.all("authorization"), ["Bearer dealer-secret"]);
    assert_eq!(head.all("x-static"), ["1"]);
    assert_eq!(head.all("host"), ["gw.example"]);
    assert_eq!(head.all("x-forwarded-host"), ["gw.example"]);
}

#[test]
fn paths_and_hosts() {
    let [any, exact, wild, deep] = [(); 4].map(|()| Upstream::recording());
    let gateway = Gateway::start(&format!(
        r#"
        [upstream.any]
        url = "http://{}/base"
        [upstream.exact]
        url = "http://{}/slash/"
        [upstream.wild]
        url = "http://{}"
        [upstream.deep]
        url = "http://{}/deep"
        [endpoint.any]
        path = "/dealers/lakeside"
        upstream = "any"
        [endpoint.exact]
        host = "Lakeside.Example.com"
        path = "/dealers/lakeside"
        upstream = "exact"
        [endpoint.wild]
        host = "*.example.com"
        path = "/"
        upstream = "wild"
        [endpoint.deep]
        path = "/dealers/lakeside/deep"
        upstream = "deep"
        "#,
        any.address, exact.address, wild.address, deep.address
    ));
    let all = [
        ("any", &any),
        ("exact", &exact),
        ("wild", &wild),
        ("deep", &deep),
    ];
    let mut client = gateway.client();
    for (host, path, wanted) in [
        ("gw", "/dealers/lakeside", Some(("any", "/base"))),
        ("gw", "/dealers/lakeside/", Some(("any", "/base"))),
        ("gw", "/dealers/lakeside?x=1", Some(("any", "/base?x=1"))),
        ("gw", "/dealers/lakeside/?", Some(("any", "/base?"))),
        ("gw", "/dealers/lakeside/x/", Some(("any", "/base/x/"))),
        ("gw", "/dealers/lakeside//x", Some(("any", "/base//x"))),
        (
            "gw",
            "/dealers/lakeside/a%20b;c=d",
            Some(("any", "/base/a%20b;c=d")),
        ),
        ("gw", "/dealers/lakeside/deep", Some(("deep", "/deep"))),
        (
            "gw",
            "/dealers/lakeside/deep/er",
            Some(("deep", "/deep/er")),
        ),
        (
            "gw",
            "/dealers/lakeside/deeper",
            Some(("any", "/base/deeper")),
        ),
        ("gw", "/dealers/lakeside-east", None),
        ("gw", "/dealers/lakesidex", None),
        ("gw", "/dealers//lakeside", None),
        ("gw", "/Dealers/lakeside", None),
        ("gw", "/dealers/%6Cakeside", None),
        ("gw", "/", None),
        (
            "LAKESIDE.example.com",
            "/dealers/lakeside",
            Some(("exact", "/slash/")),
        ),
        (
            "lakeside.example.com:8443",
            "/dealers/lakeside/",
            Some(("exact", "/slash/")),
        ),
        (
            "lakeside.example.com.",
            "/dealers/lakeside/x",
            Some(("exact", "/slash/x")),
        ),
        (
            "lakeside.example.com",
            "/dealers/lakeside-east",
            Some(("wild", "/dealers/lakeside-east")),
        ),
        ("hill.example.com:1", "/", Some(("wild", "/"))),
        (
            "hill.example.com",
            "/dealers/lakeside",
            Some(("wild", "/dealers/lakeside")),
        ),
        (
            "a.hill.example.com",
            "/dealers/lakeside",
            Some(("any", "/base")),
        ),
        ("example.com", "/dealers/lakeside", Some(("any", "/base"))),
        ("example.com", "/", None),
    ] {
        let post = Post::bare(path)
            .field("Host", host)
            .field("Content-Type", "application/json")
            .body(call("1"));
        let answer = client.ask(post.bytes());
        match wanted {
            Some((name, target)) => {
                assert_eq!(answer.status, 200, "{host} {path}");
                for (other, upstream) in all {
                    assert_eq!(
                        upstream.count(),
                        usize::from(other == name),
                        "{host} {path}: {other}"
                    );
                }
                let upstream = all.iter().find(|it| it.0 == name).unwrap().1;
                assert_eq!(upstream.take().target(), target, "{host} {path}");
                assert_eq!(gateway.last_line()["endpoint"], name);
            }
            None => {
                assert_eq!(answer.status, 404, "{host} {path}");
                assert!(answer.closes());
                let line = gateway.last_line();
                assert_eq!(line["outcome"], "no_route");
                assert_eq!((&line["host"], &line["path"]), (&host.into(), &path.into()));
                assert!(line["endpoint"].is_null());
                client = gateway.client();
            }
        }
    }
}

#[test]
fn query_parameters_named_like_our_headers_do_not_travel() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    for (query, target) in [
        ("?A2A-Version=0.3", "/a2a"),
        ("?a2a-version", "/a2a"),
        ("?a2a-version=0.3&x=1", "/a2a?x=1"),
        ("?x=1&%41%32a%2DVersion=0.3&y=%2f", "/a2a?x=1&y=%2f"),
        ("?x&A2A-EXTENSIONS=u&A2A-Version=&y", "/a2a?x&y"),
        ("?x=a2a-version", "/a2a?x=a2a-version"),
        (
            "?a2a-versions=1&a2a_version=1",
            "/a2a?a2a-versions=1&a2a_version=1",
        ),
        ("?", "/a2a?"),
        ("?&&", "/a2a?&&"),
        ("?q=caf%C3%A9+%zz", "/a2a?q=caf%C3%A9+%zz"),
    ] {
        let post = Post::to(&format!("/a2a{query}")).body(call("1"));
        assert_eq!(client.ask(post.bytes()).status, 200, "{query}");
        assert_eq!(upstream.take().target(), target, "{query}");
    }
    assert_eq!(
        gateway.series(r#"forecourt_stripped_query_total{endpoint="lakeside"}"#),
        5.0
    );
}

#[test]
fn cards_and_preflights_pass_without_policy() {
    let upstream = Upstream::scripted(|mut peer| {
        while let Some(arrival) = peer.request() {
            let body = if arrival.head.start.starts_with("HEAD") {
                "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 2\r\n\r\n"
            } else {
                "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 2\r\n\r\n{}"
            };
            peer.send(body);
        }
    });
    let gateway = Gateway::start(&format!(
        "[quota.none]\nper = \"all\"\nrate = \"1/day\"\n{}",
        dealer_with(&upstream, "", "quotas = [\"none\"]")
    ));
    for (method, path, target) in [
        (
            "GET",
            "/a2a/.well-known/agent-card.json",
            "/a2a/.well-known/agent-card.json",
        ),
        (
            "HEAD",
            "/a2a/.well-known/agent-card.json",
            "/a2a/.well-known/agent-card.json",
        ),
        (
            "GET",
            "/.well-known/agent-card.json?x=1",
            "/.well-known/agent-card.json?x=1",
        ),
        ("GET", "/.well-known/agent.json", "/.well-known/agent.json"),
        ("OPTIONS", "/a2a", "/a2a"),
        ("OPTIONS", "/a2a/", "/a2a"),
    ] {
        let request = Post::method(method, path)
            .field("Host", "gw")
            .field("A2A-Version", "99.0")
            .field("Origin", "https://buyer.example")
            .field("If-None-Match", "\"0\"");
        let mut client = gateway.client();
        client.send(request.bytes());
        let head = client.head();
        assert_eq!(head.start, "HTTP/1.1 200 OK", "{method} {path}");
        assert_eq!(head.one("etag").unwrap(), "\"1\"");
        assert_eq!(head.length(), Some(2));
        assert!(!head.has("a2a-extensions"), "{method} {path}");
        let arrival = upstream.take();
        assert_eq!(arrival.head.start, format!("{method} {target} HTTP/1.1"));
        assert_eq!(arrival.head.all("a2a-version"), ["99.0"]);
        assert_eq!(arrival.head.all("if-none-match"), ["\"0\""]);
        assert!(!arrival.head.has("a2a-extensions"), "{method} {path}");
    }
}

#[test]
fn other_methods_and_places_are_plain_http() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    for method in ["GET", "PUT", "DELETE", "PATCH", "HEAD", "TRACE", "BREW"] {
        let mut client = gateway.client();
        client.send(Post::method(method, "/a2a").field("Host", "gw").bytes());
        let head = client.head();
        assert!(head.start.contains(" 405 "), "{method}: {}", head.start);
        assert_eq!(head.one("allow").unwrap(), "POST", "{method}");
        assert_eq!(
            head.one("content-type").unwrap(),
            "text/plain; charset=utf-8"
        );
    }
    for (method, path) in [
        ("GET", "/a2a/.well-known/other.json"),
        ("POST", "/.well-known/agent-card.json"),
        ("OPTIONS", "/nowhere"),
    ] {
        let answer = gateway.ask(Post::method(method, path).field("Host", "gw").bytes());
        let wanted = if path.starts_with("/a2a") { 405 } else { 404 };
        assert_eq!(answer.status, wanted, "{method} {path}");
        assert!(
            answer
                .head
                .one("content-type")
                .unwrap()
                .starts_with("text/plain")
        );
    }
    assert_eq!(upstream.count(), 0);
    assert_eq!(gateway.ended_at("", "no_route"), 2.0);
}

#[test]
fn answers_pass_untouched() {
    for (answer, status, added) in [
        (upstream::answer("200 OK", "A2A-Extensions: x\r\nA2A-Extensions: y\r\n", "{}"), 200, false),
        (upstream::answer("200 OK", "A2A-Extensions:\r\n", "{}"), 200, false),
        (upstream::answer("200 Fine", "", "{}"), 200, true),
        (upstream::answer("503 Down", "Content-Type: text/html\r\nRetry-After: 7\r\n", "<p>"), 503, true),
        (upstream::answer("307 There", "Location: /elsewhere\r\n", ""), 307, true),
        (b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(), 204, true),
        (b"HTTP/1.0 200 OK\r\nX: 1\r\n\r\nuntil the end".to_vec(), 200, true),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3;a=b\r\nabc\r\n1\r\nd\r\n0\r\nX-Sum: 1\r\n\r\n".to_vec(),
            200,
            true,
        ),
        (
            b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1".to_vec(),
            200,
            true,
        ),
    ] {
        let shown = String::from_utf8_lossy(&answer).into_owned();
        let to_end = shown.starts_with("HTTP/1.0");
        let upstream = Upstream::scripted(move |mut peer| {
            while peer.request().is_some() {
                peer.send(&answer);
                if to_end {
                    return peer.close();
                }
            }
        });
        let gateway = Gateway::before(&upstream);
        let got = gateway.post(call("1"));
        assert_eq!(got.status, status, "{shown}");
        let echoed = got.head.all("a2a-extensions");
        match added {
            true => assert_eq!(echoed, [U], "{shown}"),
            false if shown.contains("A2A-Extensions:\r") => assert_eq!(echoed, [""]),
            false => assert_eq!(echoed, ["x", "y"]),
        }
        let body: &str = match status {
            503 => "<p>",
            307 | 204 => "",
            _ if shown.contains("chunked") => "abcd",
            _ if to_end => "until the end",
            _ if shown.contains("103") => "1",
            _ => "{}",
        };
        assert_eq!(got.text(), body, "{shown}");
        assert!(!got.head.has("x-sum") && !got.head.has("trailer"), "{shown}");
        match status {
            503 => {
                assert_eq!(got.head.all("retry-after"), ["7"]);
                assert_eq!(got.head.all("content-type"), ["text/html"]);
                assert_eq!(gateway.last_line()["outcome"], "upstream_error");
            }
            307 => assert_eq!(got.head.all("location"), ["/elsewhere"]),
            _ => assert_eq!(gateway.last_line()["outcome"], "ok"),
        }
    }
}

#[test]
fn of_an_answer_only_the_hop_stays_behind() {
    let upstream = Upstream::answering(upstream::answer(
        "200 OK",
        "Set-Cookie: a=1\r\nServer: dealer\r\nSet-Cookie: b=2\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\
         Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\n\
         Upgrade: h2c\r\nX-Latin: caf\u{e9}\r\nCache-Control: max-age=60\r\nX-Request-Id: theirs\r\n\
         Date: Mon, 30 Nov 2026 16:53:23 GMT\r\nContent-Type: application/json\r\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32001,\"message\":\"x\"}}",
    ));
    let gateway = Gateway::before(&upstream);
    let answer = gateway.post(call("1"));
    assert_eq!(answer.status, 200);
    let head = &answer.head;
    assert_eq!(head.all("set-cookie"), ["a=1", "b=2"]);
    assert_eq!(head.all("x-latin"), ["caf\u{c3}\u{a9}"]);
    assert_eq!(head.all("cache-control"), ["max-age=60"]);
    assert_eq!(head.all("server"), ["dealer"]);
    assert_eq!(head.all("date"), ["Mon, 30 Nov 2026 16:53:23 GMT"]);
    assert_eq!(head.all("x-request-id").len(), 1);
    for gone in [
        "x-hop",
        "keep-alive",
        "proxy-authenticate",
        "upgrade",
        "connection",
    ] {
        assert!(!head.has(gone), "{gone}");
    }
    // The upstream's own JSON-RPC error is told apart from a result.
    assert_eq!(gateway.last_line()["outcome"], "upstream_error");
    assert_eq!(gateway.ended("upstream_error"), 1.0);
}

#[test]
fn answers_without_a_body_leave_the_connection_usable() {
    let upstream = Upstream::scripted(|mut peer| {
        for answer in [
            "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nContent-Length: 500\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        ] {
            peer.request().unwrap();
            peer.send(answer);
        }
        peer.request();
    });
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    for (method, start) in [
        ("GET", "HTTP/1.1 304 Not Modified"),
        ("OPTIONS", "HTTP/1.1 204 No Content"),
        ("HEAD", "HTTP/1.1 200 OK"),
        ("HEAD", "HTTP/1.1 200 OK"),
        ("GET", "HTTP/1.1 200 OK"),
    ] {
        let request = Post::method(method, "/a2a/.well-known/agent-card.json").field("Host", "gw");
        let head = client.send(request.bytes()).head();
        assert_eq!(head.start, start, "{method}");
        assert!(client.is_quiet(), "{method} {start}");
    }
    assert_eq!(upstream.connections(), 1);
    assert_eq!(gateway.ended("ok"), 5.0);
}

#[test]
fn a_redirect_of_the_dealer_leads_back_to_the_gateway() {
    let upstream = Upstream::manual();
    let gateway = Gateway::before(&upstream);
    for (location, told) in [
        (format!("http://{}/a2a/", upstream.address), "/a2a/"),
        (
            format!("http://{}/a2a/x?y=1", upstream.address),
            "/a2a/x?y=1",
        ),
        (
            "https://accounts.example/login".to_owned(),
            "https://accounts.example/login",
        ),
    ] {
        let mut client = gateway.client();
        client.send(post(call("1")));
        let mut peer = upstream.accept();
        peer.request().unwrap();
        let field = format!("Location: {location}\r\nConnection: close\r\n");
        peer.send(upstream::answer("307 Temporary Redirect", &field, ""));
        drop(peer);
        let answer = client.answer();
        assert_eq!(
            (answer.status, answer.head.all("location")),
            (307, vec![told.to_owned()])
        );
    }
    // One call each: none was followed.
    assert_eq!(upstream.count(), 3);
}
