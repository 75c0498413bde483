//! HTTP/2 to the dealer: many calls on few connections, and whatever a dealer does wrong. A call is
//! sent again only where the dealer said that it did nothing with it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::call::{call, lead, post, search};
use crate::support::frames::{
    self, CANCEL, DATA, Frames, HEADERS, HTTP_1_1_REQUIRED, NO_ERROR, PROTOCOL_ERROR,
    REFUSED_STREAM, RST_STREAM, WINDOW_UPDATE,
};
use crate::support::gateway::dealer_at;
use crate::support::http2::{Dealer, Http2, piece};
use crate::support::upstream::RESULT;
use crate::support::wait::stays;
use crate::support::{Answer, Client, Gateway, Upstream, Watch, wait_until};

fn gateway(upstream: &Upstream, of_upstream: &str) -> Gateway {
    let lines = format!("http2 = true\n{of_upstream}");
    Gateway::start(&dealer_at(upstream.address, &lines, ""))
}

/// The dealer's end of the next connection.
#[track_caller]
fn accept(upstream: &Upstream) -> Frames {
    Frames::dealer(&upstream.accept(), &[])
}

#[track_caller]
fn ask(gateway: &Gateway, body: &str) -> Client {
    let mut client = gateway.client();
    client.send(post(body));
    client
}

/// What a dealer does with a stream.
type Script = fn(&mut Frames, u32);

fn calls() -> [(String, bool); 3] {
    [
        (lead("\"a\"", None), false),
        (lead("\"a\"", Some("k-1")), true),
        (search("\"a\""), true),
    ]
}

#[track_caller]
fn assert_failed(answer: &Answer, status: u16, retryable: bool) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!((answer.code(), answer.id()), (-32603, "\"a\"".into()));
    let told = &answer.json()["error"]["data"][1]["value"]["retryable"];
    assert_eq!(told, retryable, "{}", answer.text());
}

#[test]
fn the_dealer_sees_ordinary_http2() {
    let dealer = Dealer::start();
    let gateway = Gateway::start(&dealer_at(dealer.address, "http2 = true", ""));
    let request = crate::support::Post::to("/a2a?x=1")
        .field("Connection", "keep-alive, X-Hop")
        .field("X-Hop", "1")
        .field("X-Kept", "1")
        .field("TE", "trailers")
        .body(call("7"));
    let answer = gateway.ask(request.bytes());
    assert_eq!((answer.status, &answer.json()["id"]), (200, &7.into()));
    let arrived = dealer.last();
    let head = &arrived.head;
    assert_eq!(head.version, http::Version::HTTP_2);
    let target = format!("http://{}/a2a?x=1", dealer.address);
    assert_eq!(
        (head.method.as_str(), head.uri.to_string()),
        ("POST", target)
    );
    assert_eq!(head.headers["content-length"], call("7").len().to_string());
    assert_eq!(head.headers["x-forwarded-host"], "gw.example");
    assert_eq!(head.headers["x-kept"], "1");
    for gone in ["host", "connection", "x-hop", "te", "transfer-encoding"] {
        assert!(!head.headers.contains_key(gone), "{gone}");
    }
    assert_eq!(arrived.body, call("7"));
    // Without a body, and with the caller's host.
    let lines = "http2 = true\npreserve_host = true";
    let gateway = Gateway::start(&dealer_at(dealer.address, lines, ""));
    let card = "/a2a/.well-known/agent-card.json";
    let get = crate::support::Post::method("GET", card).field("Host", "gw.example");
    assert_eq!(gateway.ask(get.bytes()).status, 200);
    let head = dealer.last().head;
    assert_eq!(head.uri.to_string(), format!("http://gw.example{card}"));
    assert!(!head.headers.contains_key("content-length"));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_share_few_connections() {
    let dealer = Dealer::holding(h2::server::Builder::new());
    let lines = "http2 = true\nmax_waiting = 0";
    let gateway = Gateway::start(&dealer_at(dealer.address, lines, ""));
    let clients = [
        Http2::connect(gateway.address()).await,
        Http2::connect(gateway.address()).await,
    ];
    let mut answers = Vec::new();
    for id in 0..150 {
        let client = clients[id % 2].clone();
        answers.push(tokio::spawn(async move {
            client.post(&call(&id.to_string())).await
        }));
    }
    wait_until("all have arrived", || dealer.count() == 150);
    assert_eq!(dealer.connections(), 2);
    assert_eq!(dealer.seen.most.load(Ordering::SeqCst), 100);
    dealer.seen.permits.close();
    for (id, answer) in answers.into_iter().enumerate() {
        let answer = answer.await.unwrap();
        assert_eq!(answer.json()["id"], id);
    }
    assert_eq!(dealer.count(), 150);
    // And afterwards one is enough.
    for id in 0..50 {
        assert_eq!(clients[0].post(&call(&id.to_string())).await.status(), 200);
    }
    assert_eq!(dealer.connections(), 2);
    assert_eq!(gateway.ended("ok"), 200.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_streams_than_the_dealer_takes_and_no_more_connections_than_allowed() {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(1);
    let dealer = Dealer::holding(builder);
    let lines = "http2 = true\nmax_connections = 3\nmax_waiting = 2\nconnect_timeout = \"20s\"";
    let gateway = Gateway::start_two(&dealer_at(dealer.address, lines, ""));
    let mut waiting = Vec::new();
    for id in 0..3 {
        waiting.push(ask(&gateway, &call(&id.to_string())));
        wait_until("on a connection of its own", || dealer.count() == id + 1);
    }
    assert_eq!(dealer.connections(), 3);
    for id in 3..5 {
        waiting.push(ask(&gateway, &call(&id.to_string())));
    }
    wait_until("five are in", || {
        gateway.series("forecourt_requests_in_flight") == 5.0
    });
    // The queue is full.
    wait_until("shed", || {
        let answer = gateway.post(call("\"a\""));
        answer.status == 503 && answer.head.has("retry-after")
    });
    assert!(stays(Duration::from_millis(50), || dealer.count() == 3));
    for _ in 0..5 {
        dealer.seen.permits.add_permits(1);
    }
    for (id, mut client) in waiting.into_iter().enumerate() {
        assert_eq!(client.answer().json()["id"], id);
    }
    assert_eq!(dealer.seen.most.load(Ordering::SeqCst), 1);
    assert!(dealer.seen.open.load(Ordering::SeqCst) <= 3);
}

#[test]
fn a_reset_stream_is_told_and_not_sent_again() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "");
    let mut dealer = None;
    let mut failed = [0.0, 0.0];
    for reason in [
        NO_ERROR,
        PROTOCOL_ERROR,
        2,
        3,
        5,
        CANCEL,
        9,
        11,
        12,
        HTTP_1_1_REQUIRED,
    ] {
        for (body, safe) in calls() {
            let mut client = ask(&gateway, &body);
            let dealer = dealer.get_or_insert_with(|| accept(&upstream));
            let (stream, arrived) = dealer.request().unwrap();
            assert_eq!(arrived, body.as_bytes());
            dealer.reset(stream, reason);
            assert_failed(&client.answer(), 502, safe);
            failed[usize::from(reason == HTTP_1_1_REQUIRED)] += 1.0;
        }
    }
    assert_eq!(gateway.ended("upstream_reset"), failed[0]);
    assert_eq!(gateway.ended("upstream_invalid"), failed[1]);
    // The connection itself is as good as before.
    let mut client = ask(&gateway, &call("1"));
    let mut dealer = dealer.unwrap();
    let (stream, _) = dealer.request().unwrap();
    dealer.answer(stream, RESULT);
    assert_eq!(client.answer().status, 200);
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn a_refused_stream_is_sent_again_once() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "");
    let body = lead("\"a\"", None);
    let mut client = ask(&gateway, &body);
    let mut first = accept(&upstream);
    let (stream, _) = first.request().unwrap();
    first.reset(stream, REFUSED_STREAM);
    // On a connection of its own.
    let mut second = accept(&upstream);
    let (stream, arrived) = second.request().unwrap();
    assert_eq!(arrived, body.as_bytes());
    second.answer(stream, RESULT);
    assert_eq!(client.answer().status, 200);
    // Twice is enough.
    let mut client = ask(&gateway, &body);
    let (stream, _) = second.request().unwrap();
    second.reset(stream, REFUSED_STREAM);
    let mut third = accept(&upstream);
    let (stream, _) = third.request().unwrap();
    third.reset(stream, REFUSED_STREAM);
    assert_failed(&client.answer(), 502, true);
    assert_eq!(gateway.last_line()["outcome"], "upstream_reset");
    assert!(stays(Duration::from_millis(50), || upstream.connections() == 3));
}

#[test]
fn going_away_before_a_call_costs_nothing() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "");
    let mut client = ask(&gateway, &call("1"));
    let mut first = accept(&upstream);
    let (stream, _) = first.request().unwrap();
    first.answer(stream, RESULT);
    assert_eq!(client.answer().status, 200);
    first.go_away(stream, NO_ERROR);
    // The gateway closes it: nothing is left on it.
    while first.next().is_some() {}
    let mut client = ask(&gateway, &call("2"));
    let mut second = accept(&upstream);
    let (stream, _) = second.request().unwrap();
    second.answer(stream, RESULT);
    assert_eq!(client.answer().status, 200);
    // The same without a word.
    drop(second.stream.shutdown(std::net::Shutdown::Both));
    let idle = r#"forecourt_upstream_connections{upstream="lakeside",state="idle"}"#;
    wait_until("noticed", || gateway.series(idle) == 0.0);
    let mut client = ask(&gateway, &call("3"));
    let mut third = accept(&upstream);
    let (stream, _) = third.request().unwrap();
    third.answer(stream, RESULT);
    assert_eq!(client.answer().status, 200);
}

#[test]
fn going_away_tells_what_was_seen() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "");
    let body = lead("\"a\"", None);
    let (mut one, mut first) = (ask(&gateway, &body), accept(&upstream));
    assert_eq!(first.request().unwrap().0, 1);
    let mut two = ask(&gateway, &body);
    assert_eq!(first.request().unwrap().0, 3);
    // The second it never looked at: that goes elsewhere. The first it finishes.
    first.go_away(1, NO_ERROR);
    let mut second = accept(&upstream);
    let (stream, arrived) = second.request().unwrap();
    assert_eq!(arrived, body.as_bytes());
    second.answer(stream, RESULT);
    assert_eq!(two.answer().status, 200);
    // A third call does not go to who is leaving.
    let mut three = ask(&gateway, &body);
    let (stream, _) = second.request().unwrap();
    second.answer(stream, RESULT);
    assert_eq!(three.answer().status, 200);
    first.answer_head(1);
    first.send(DATA, 0, 1, b"{\"jsonrpc\"");
    first.go_away(1, NO_ERROR);
    first.send(
        DATA,
        frames::END_STREAM,
        1,
        b":\"2.0\",\"id\":1,\"result\":{}}",
    );
    assert_eq!(one.answer().status, 200);
    assert_eq!(upstream.connections(), 2);
}

#[test]
fn what_may_have_been_seen_is_not_sent_again() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "");
    for (body, safe) in calls() {
        for says_goodbye in [false, true] {
            let mut client = ask(&gateway, &body);
            let mut dealer = accept(&upstream);
            let (stream, _) = dealer.request().unwrap();
            if says_goodbye {
                dealer.go_away(stream, NO_ERROR);
            }
            drop(dealer.stream.shutdown(std::net::Shutdown::Both));
            assert_failed(&client.answer(), 502, safe);
        }
    }
    assert_eq!(upstream.connections(), 6);
    assert_eq!(gateway.ended("upstream_reset"), 6.0);
}

#[test]
fn who_does_not_speak_http2_is_told_nothing() {
    let upstream = Upstream::scripted(|mut peer| {
        peer.try_send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            .ok();
        while peer.head().is_some() {}
    });
    let gateway1 = gateway(&upstream, "");
    for (body, _) in calls() {
        assert_failed(&gateway1.post(&body), 502, true);
        assert_eq!(gateway1.last_line()["outcome"], "upstream_invalid");
    }
    // Nobody there, nobody who speaks, and somebody who hangs up.
    let silent = Upstream::scripted(|mut peer| while peer.head().is_some() {});
    let gateway2 = gateway(&silent, "connect_timeout = \"150ms\"");
    assert_failed(&gateway2.post(lead("\"a\"", None)), 504, true);
    assert_eq!(gateway2.last_line()["outcome"], "upstream_timeout");
    let curt = Upstream::scripted(drop);
    let gateway3 = gateway(&curt, "");
    assert_failed(&gateway3.post(lead("\"a\"", None)), 502, true);
    let nobody = crate::support::Nobody::new();
    let gateway4 = Gateway::start(&dealer_at(nobody.address, "http2 = true", ""));
    assert_failed(&gateway4.post(lead("\"a\"", None)), 502, true);
    assert_eq!(gateway4.last_line()["outcome"], "upstream_unreachable");
    for gateway in [gateway1, gateway2, gateway3, gateway4] {
        for state in ["active", "idle"] {
            let open = format!(
                "forecourt_upstream_connections{{upstream=\"lakeside\",state=\"{state}\"}}"
            );
            wait_until("given up", || gateway.series(&open) == 0.0);
        }
    }
}

#[test]
fn answers_that_are_no_answers() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "");
    let scripts: [Script; 6] = [
        // No status, two lengths, another protocol, an upper-case name, no head, garbage.
        |dealer, stream| dealer.fields(stream, &[("content-type", "a/b")], true),
        |dealer, stream| {
            let fields = [
                (":status", "200"),
                ("content-length", "0"),
                ("content-length", "0"),
            ];
            dealer.fields(stream, &fields, true);
        },
        |dealer, stream| dealer.fields(stream, &[(":status", "101")], true),
        |dealer, stream| dealer.fields(stream, &[(":status", "200"), ("X-Up", "1")], true),
        |dealer, stream| dealer.send(DATA, frames::END_STREAM, stream, b"{}"),
        |dealer, stream| dealer.send(HEADERS, 5, stream, &[0xff; 40]),
    ];
    for (index, script) in scripts.into_iter().enumerate() {
        let mut client = ask(&gateway, &lead("\"a\"", None));
        let mut dealer = accept(&upstream);
        let (stream, _) = dealer.request().unwrap();
        script(&mut dealer, stream);
        assert_failed(&client.answer(), 502, false);
        assert_eq!(
            gateway.last_line()["outcome"],
            "upstream_invalid",
            "{index}"
        );
        drop(dealer.stream.shutdown(std::net::Shutdown::Both));
        let idle = r#"forecourt_upstream_connections{upstream="lakeside",state="idle"}"#;
        wait_until("closed", || gateway.series(idle) == 0.0);
    }
    assert_eq!(upstream.connections(), 6);
}

#[test]
fn interim_answers_and_trailers_stay_here() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "");
    let mut client = ask(&gateway, &call("1"));
    let mut dealer = accept(&upstream);
    let (stream, _) = dealer.request().unwrap();
    dealer.fields(stream, &[(":status", "103"), ("link", "</x>")], false);
    dealer.answer_head(stream);
    dealer.send(DATA, 0, stream, RESULT.as_bytes());
    dealer.fields(stream, &[("x-sum", "1")], true);
    let answer = client.answer();
    assert_eq!((answer.status, answer.text()), (200, RESULT.into()));
    assert!(answer.interim.is_empty() && !answer.head.has("x-sum") && !answer.head.has("link"));
    assert_eq!(gateway.last_line()["outcome"], "ok");
}

#[test]
fn a_cut_answer_looks_cut() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "idle_timeout = \"200ms\"");
    let cuts: [(Script, &str); 5] = [
        (
            |dealer, stream| dealer.reset(stream, CANCEL),
            "upstream_reset",
        ),
        (
            |dealer, stream| dealer.reset(stream, NO_ERROR),
            "upstream_reset",
        ),
        (
            |dealer, _| drop(dealer.stream.shutdown(std::net::Shutdown::Both)),
            "upstream_reset",
        ),
        (|_, _| {}, "upstream_timeout"),
        // Less than was announced.
        (
            |dealer, stream| dealer.send(DATA, frames::END_STREAM, stream, b""),
            "upstream_invalid",
        ),
    ];
    for (cut, outcome) in cuts {
        let mut client = ask(&gateway, &call("1"));
        let mut dealer = accept(&upstream);
        let (stream, _) = dealer.request().unwrap();
        if outcome == "upstream_invalid" {
            let fields = [(":status", "200"), ("content-length", "100")];
            dealer.fields(stream, &fields, false);
        } else {
            dealer.answer_head(stream);
        }
        dealer.send(DATA, 0, stream, b"{\"jsonrpc\"");
        assert_eq!(client.head().start, "HTTP/1.1 200 OK");
        cut(&mut dealer, stream);
        let mut rest = Vec::new();
        let ended = std::io::Read::read_to_end(&mut client.socket(), &mut rest);
        assert!(!rest.ends_with(b"0\r\n\r\n"), "{outcome}");
        drop(ended);
        wait_until("written", || !gateway.access_log().is_empty());
        assert_eq!(gateway.last_line()["outcome"], outcome);
        drop(dealer.stream.shutdown(std::net::Shutdown::Both));
        let idle = r#"forecourt_upstream_connections{upstream="lakeside",state="idle"}"#;
        wait_until("closed", || gateway.series(idle) == 0.0);
    }
}

#[test]
fn time_limits_reset_the_stream_alone() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "response_timeout = \"200ms\"");
    let mut client = ask(&gateway, &lead("\"a\"", None));
    let mut dealer = accept(&upstream);
    let (stream, _) = dealer.request().unwrap();
    assert_failed(&client.answer(), 504, false);
    let reset = dealer.until(RST_STREAM);
    assert_eq!((reset.stream, reset.word(0)), (stream, CANCEL));
    let mut client = ask(&gateway, &call("1"));
    let (stream, _) = dealer.request().unwrap();
    dealer.answer(stream, RESULT);
    assert_eq!(client.answer().status, 200);
    assert_eq!(upstream.connections(), 1);
}

#[test]
fn a_client_that_goes_away_resets_its_stream_at_once() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "");
    let mut dealer = None;
    for round in 0..20 {
        let client = ask(&gateway, &call("1"));
        let dealer = dealer.get_or_insert_with(|| accept(&upstream));
        let (stream, _) = dealer.request().unwrap();
        if round % 2 == 0 {
            dealer.answer_head(stream);
            dealer.send(DATA, 0, stream, b"data: 1\n\n");
        }
        let watch = Watch::start();
        drop(client);
        let reset = dealer.until(RST_STREAM);
        assert_eq!((reset.stream, reset.word(0)), (stream, CANCEL));
        assert!(watch.elapsed() < Duration::from_secs(1));
    }
    wait_until("counted", || gateway.ended("client_gone") == 20.0);
    assert_eq!(upstream.connections(), 1);
}

/// Sends on one stream for as long as the gateway lets it; how much it was.
fn fill(dealer: &mut Frames, stream: u32) -> usize {
    let patience = dealer.stream.read_timeout().unwrap();
    dealer
        .stream
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let (mut sent, mut allowed) = (0, 64 * 1024);
    loop {
        while sent < allowed {
            let piece = vec![b'x'; (allowed - sent).min(16 * 1024)];
            dealer.send(DATA, 0, stream, &piece);
            sent += piece.len();
        }
        match dealer.any() {
            Some(frame) if frame.kind == WINDOW_UPDATE && frame.stream == stream => {
                allowed += frame.word(0) as usize;
            }
            Some(_) => {}
            None => break,
        }
    }
    dealer.stream.set_read_timeout(patience).unwrap();
    sent
}

#[tokio::test(flavor = "multi_thread")]
async fn events_pass_one_by_one_and_a_slow_reader_holds_up_nobody() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "");
    let client = Http2::wide(gateway.address()).await;
    let slow = client.send(Http2::call(), &call("1")).await.unwrap();
    let mut dealer = accept(&upstream);
    let (stalled, _) = dealer.request().unwrap();
    dealer.answer_head(stalled);
    let slow = slow.await.unwrap();
    // As much as its window takes, until nothing more is let through: no byte of it is read.
    let sent = fill(&mut dealer, stalled);
    assert!((64 * 1024..512 * 1024).contains(&sent), "{sent}");
    let lively = client.send(Http2::call(), &call("2")).await.unwrap();
    let (stream, _) = dealer.request().unwrap();
    let event = [(":status", "200"), ("content-type", "text/event-stream")];
    dealer.fields(stream, &event, false);
    let mut lively = lively.await.unwrap().into_body();
    for event in ["data: 1\n\n", ": ping\n\n", "data: 3\n\n"] {
        dealer.send(DATA, 0, stream, event.as_bytes());
        assert_eq!(piece(&mut lively).await.unwrap().unwrap(), event);
    }
    dealer.send(DATA, frames::END_STREAM, stream, b"");
    assert!(piece(&mut lively).await.is_none());
    // What is taken at this end is what may be sent at the other.
    let mut body = slow.into_body();
    let mut taken = 0;
    while taken < sent {
        taken += piece(&mut body).await.unwrap().unwrap().len();
    }
    dealer.send(DATA, frames::END_STREAM, stalled, b"y");
    assert_eq!(piece(&mut body).await.unwrap().unwrap(), "y");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_slow_reader_does_not_take_is_not_sent() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "");
    let client = Http2::wide(gateway.address()).await;
    let answer = client.send(Http2::call(), &call("1")).await.unwrap();
    let peer = upstream.accept();
    // A dealer that honours its windows and has no end of data.
    let socket = peer.socket().try_clone().unwrap();
    let (told, sent) = tokio::sync::watch::channel(0_usize);
    let sending = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async move {
            socket.set_nonblocking(true).unwrap();
            let socket = tokio::net::TcpStream::from_std(socket).unwrap();
            let mut connection = h2::server::handshake(socket).await.unwrap();
            let (_, mut respond) = connection.accept().await.unwrap().unwrap();
            let drive = tokio::spawn(async move { while connection.accept().await.is_some() {} });
            let mut stream = respond
                .send_response(http::Response::new(()), false)
                .unwrap();
            loop {
                stream.reserve_capacity(16 * 1024);
                let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
                let Some(Ok(room)) = room else { break };
                told.send_modify(|sent| *sent += room);
                let piece = bytes::Bytes::from(vec![b'x'; room]);
                if stream.send_data(piece, false).is_err() {
                    break;
                }
            }
            drop(drive);
        });
    });
    let answer = answer.await.unwrap();
    let mut before = usize::MAX;
    wait_until("it has stopped", || {
        let now = *sent.borrow();
        let stopped = now == before && stays(Duration::from_millis(100), || *sent.borrow() == now);
        before = now;
        stopped
    });
    let held = *sent.borrow();
    assert!(held <= 512 * 1024, "{held} bytes are held somewhere");
    drop(answer);
    sending.join().unwrap();
}

#[test]
fn a_quiet_connection_is_closed_before_the_dealer_would() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "keep_alive = \"100ms\"");
    let mut client = ask(&gateway, &call("1"));
    let mut dealer = accept(&upstream);
    let (stream, _) = dealer.request().unwrap();
    dealer.answer(stream, RESULT);
    assert_eq!(client.answer().status, 200);
    let watch = Watch::start();
    while dealer.next().is_some() {}
    assert!(watch.elapsed() < Duration::from_secs(3));
    // And one for each call, where none is to be kept.
    let gateway = self::gateway(&upstream, "keep_alive = \"0s\"");
    for _ in 0..2 {
        let mut client = ask(&gateway, &call("1"));
        let mut dealer = accept(&upstream);
        let (stream, _) = dealer.request().unwrap();
        dealer.answer(stream, RESULT);
        assert_eq!(client.answer().status, 200);
        while dealer.next().is_some() {}
    }
}

#[test]
fn an_early_answer_ends_the_request() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, "");
    let long = call("1").replace("m-1", &"m".repeat(600 * 1024));
    let mut client = ask(&gateway, &long);
    let mut dealer = accept(&upstream);
    let head = dealer.until(HEADERS);
    // Its window is never opened: most of the body is not sent.
    let fields = [(":status", "401"), ("content-type", "application/json")];
    dealer.fields(head.stream, &fields, true);
    assert_eq!(client.answer().status, 401);
    assert_eq!(dealer.until(RST_STREAM).stream, head.stream);
    let mut client = ask(&gateway, &call("2"));
    dealer.window(0, 1 << 20);
    let (stream, _) = dealer.request().unwrap();
    dealer.answer(stream, RESULT);
    assert_eq!(client.answer().status, 200);
}
