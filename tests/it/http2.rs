//! HTTP/2 from the caller: many calls at once, each its own; what may not be said is not heard; and
//! one stream's trouble is no other's.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;

use crate::support::call::{call, post};
use crate::support::frames::{
    self, CANCEL, DATA, Frames, GOAWAY, HEADERS, NO_ERROR, PREFACE, PROTOCOL_ERROR, RST_STREAM,
};
use crate::support::gateway::{dealer, dealer_with};
use crate::support::http2::{Http2, piece, whole};
use crate::support::wait::{elapse, stays};
use crate::support::{Gateway, PATIENCE, Peer, Upstream, Watch, upstream, wait_until};

const STREAM: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// A dealer that answers each call with the call's id.
fn echoing() -> Upstream {
    Upstream::scripted(|mut peer| {
        while let Some(arrival) = peer.request() {
            let call: Value = serde_json::from_slice(&arrival.body).unwrap_or_default();
            let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, call["id"]);
            let json = "Content-Type: application/json\r\n";
            if peer
                .try_send(upstream::answer("200 OK", json, &body))
                .is_err()
            {
                return;
            }
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_at_once_each_get_their_own_answer() {
    let upstream = echoing();
    let gateway = Gateway::start_two(&dealer(&upstream));
    let client = Http2::connect(gateway.address()).await;
    let calls: Vec<_> = (0..500)
        .map(|id| {
            let client = client.clone();
            tokio::spawn(async move { client.post(&call(&id.to_string())).await })
        })
        .collect();
    for (id, answer) in calls.into_iter().enumerate() {
        let answer = answer.await.unwrap();
        assert_eq!(
            (answer.status(), answer.json()["id"].as_u64()),
            (200, Some(id as u64))
        );
        assert!(answer.field("connection").is_none());
    }
    assert_eq!(upstream.count(), 500);
    let ids: HashSet<_> = gateway
        .access_log()
        .iter()
        .map(|line| {
            assert_eq!(
                (&line["protocol"], &line["host"]),
                (&"HTTP/2.0".into(), &"gw.example".into())
            );
            line["request_id"].to_string()
        })
        .collect();
    assert_eq!(ids.len(), 500);
    let open = r#"forecourt_connections{listener="public"}"#;
    assert_eq!(gateway.series(open), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dealer_sees_ordinary_http1() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let client = Http2::connect(gateway.address()).await;
    let request = Http2::call()
        .header("cookie", "a=1")
        .header("x-one", "1")
        .header("cookie", "b=2")
        .header("cookie", "c=3")
        .header("te", "trailers");
    assert_eq!(client.ask(request, &call("1")).await.status(), 200);
    let arrival = upstream.take();
    assert_eq!(arrival.head.start, "POST /a2a HTTP/1.1");
    assert_eq!(arrival.head.all("host"), [upstream.address.to_string()]);
    assert_eq!(arrival.head.all("x-forwarded-host"), ["gw.example"]);
    assert_eq!(arrival.head.all("cookie"), ["a=1; b=2; c=3"]);
    assert_eq!(arrival.head.length(), Some(call("1").len()));
    assert!(!arrival.head.is_chunked());
    assert_eq!(arrival.body, call("1").into_bytes());
    let text = arrival.head.fields.iter().map(|(name, _)| name.clone());
    for name in text {
        assert!(!name.starts_with(':') && name != "te", "{name}");
    }
}

#[test]
fn what_has_two_meanings_is_refused() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let usual = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/a2a"),
        ("content-type", "application/json"),
    ];
    let with = |fields: &[(&'static str, &'static str)]| {
        let mut all = usual.to_vec();
        for (name, value) in fields {
            match all.iter_mut().find(|(known, _)| known == name) {
                Some(known) if name.starts_with(':') => known.1 = value,
                _ if name.starts_with(':') => all.insert(0, (name, value)),
                _ => all.push((name, value)),
            }
        }
        all
    };
    let authority = (":authority", "gw.example");
    let mut client = Frames::client(gateway.address(), &[]);
    let mut stream = 1;
    let mut ask = |fields: &[(&str, &str)]| {
        client.fields(stream, fields, false);
        // A stream that is refused early may be gone by now.
        let _ = client.try_send(DATA, frames::END_STREAM, stream, call("1").as_bytes());
        let mut status = None;
        let ended = loop {
            let frame = client
                .next()
                .unwrap_or_else(|| panic!("closed after {fields:?}"));
            if frame.kind == HEADERS && frame.stream == stream {
                // The index of `:status: 200`, 400 in the static table, or a literal.
                status = Some(match frame.payload[0] {
                    0x88 => 200,
                    0x8c => 400,
                    _ => 0,
                });
            }
            if frame.stream == stream && (frame.ends_stream() || frame.kind == RST_STREAM) {
                break frame;
            }
        };
        stream += 2;
        match (status, ended.kind) {
            (Some(status), _) => status,
            (None, RST_STREAM) => ended.word(0) + 1000,
            (None, kind) => panic!("{kind}"),
        }
    };
    for fields in [
        &[authority][..],
        &[("host", "gw.example")],
        &[authority, ("host", "GW.example:80")],
        &[authority, (":scheme", "https")],
        &[authority, ("te", "trailers")],
    ] {
        assert_eq!(ask(&with(fields)), 200, "{fields:?}");
    }
    assert_eq!(upstream.count(), 5);
    for fields in [
        &[][..],
        &[authority, ("host", "other.example")],
        &[authority, ("host", "gw.example"), ("host", "gw.example")],
        &[(":authority", "user@gw.example")],
        &[authority, (":scheme", "ftp")],
        &[authority, (":path", "/a2a/../a2a")],
        &[authority, (":path", "/a2a/%2e%2e/x")],
        &[authority, ("authorization", "a"), ("authorization", "b")],
        &[
            authority,
            ("content-length", "97"),
            ("content-length", "97"),
        ],
    ] {
        assert!(matches!(ask(&with(fields)), 400 | 1001), "{fields:?}");
    }
    for fields in [
        &[authority, ("connection", "x-one")][..],
        &[authority, ("transfer-encoding", "chunked")],
        &[authority, ("upgrade", "websocket")],
        &[authority, ("keep-alive", "1")],
        &[authority, ("te", "gzip")],
        &[authority, ("content-length", "3")],
        &[authority, (":status", "200")],
    ] {
        assert_eq!(ask(&with(fields)), 1000 + PROTOCOL_ERROR, "{fields:?}");
    }
    let connect = [(":method", "CONNECT"), authority];
    assert!(matches!(ask(&connect), 400 | 1001));
    let star = [
        (":method", "OPTIONS"),
        (":scheme", "http"),
        authority,
        (":path", "*"),
    ];
    assert!(matches!(ask(&star), 400 | 1001));
    assert_eq!(upstream.count(), 5);
    // The connection is as good as before.
    assert_eq!(ask(&with(&[authority])), 200);
    // A name in upper case is no name at all.
    let mut other = Frames::client(gateway.address(), &[]);
    other.head(1, &[("X-Upper", "1")], true);
    assert_eq!(other.until(GOAWAY).word(4), PROTOCOL_ERROR);
    assert_eq!(upstream.count(), 6);
}

#[test]
fn the_preface_may_come_in_pieces() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let mut client = Frames::silent(gateway.address());
    for piece in [
        &PREFACE[..1],
        &PREFACE[1..4],
        &PREFACE[4..23],
        &PREFACE[23..],
    ] {
        std::io::Write::write_all(&mut client.stream, piece).unwrap();
        elapse(Duration::from_millis(5));
    }
    client.settings(&[]);
    client.post(1, &call("1"));
    assert_eq!(client.until(HEADERS).payload[0], 0x88);
    // What only begins like it is another protocol's.
    let mut other = gateway.client();
    other.send("PRI * HTTP/1.1\r\nHost: gw\r\n\r\n");
    assert_eq!(other.answer().status, 400);
}

#[test]
fn half_a_preface_is_a_head_not_complete_in_time() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&format!(
        "[limits]\nheader_timeout = \"100ms\"\n{}",
        dealer(&upstream)
    ));
    let mut client = Frames::silent(gateway.address());
    std::io::Write::write_all(&mut client.stream, &PREFACE[..10]).unwrap();
    assert!(client.next().is_none());
    wait_until("counted", || gateway.ended_at("", "bad_http") == 1.0);
}

/// A stream whose head has come through.
async fn open(client: &Http2, upstream: &Upstream) -> (h2::RecvStream, Peer) {
    let body = call("33").replace("SendMessage", "SendStreamingMessage");
    let answer = client.send(Http2::call(), &body).await.unwrap();
    let mut peer = upstream.accept();
    peer.request().unwrap();
    peer.send(STREAM);
    let answer = answer.await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    assert!(!answer.headers().contains_key("content-length"));
    assert!(!answer.headers().contains_key("transfer-encoding"));
    (answer.into_body(), peer)
}

#[tokio::test(flavor = "multi_thread")]
async fn events_pass_one_by_one() {
    let upstream = Upstream::manual();
    let gateway = Gateway::before(&upstream);
    let client = Http2::connect(gateway.address()).await;
    let (mut body, mut peer) = open(&client, &upstream).await;
    for event in [
        "data: 1\n\n",
        ": ping\r\n\r\n",
        "data: {\ndata: \"a\":1}\n\n",
    ] {
        // The next is sent only when this one is through.
        peer.chunk(event);
        assert_eq!(piece(&mut body).await.unwrap().unwrap(), event);
    }
    peer.send("0\r\nX-Sum: 1\r\n\r\n");
    assert!(piece(&mut body).await.is_none());
    assert_eq!(body.trailers().await.unwrap(), None);
    assert_eq!(gateway.last_line()["outcome"], "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_answer_looks_cut() {
    let upstream = Upstream::manual();
    let gateway = Gateway::before(&upstream);
    let client = Http2::connect(gateway.address()).await;
    let (mut body, mut peer) = open(&client, &upstream).await;
    peer.chunk("data: 1\n\n");
    assert_eq!(piece(&mut body).await.unwrap().unwrap(), "data: 1\n\n");
    peer.reset();
    let error = piece(&mut body).await.unwrap().unwrap_err();
    assert!(error.is_reset() && error.is_remote(), "{error}");
    assert_eq!(gateway.last_line()["outcome"], "upstream_reset");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_taken_back_ends_the_exchange_at_once() {
    let upstream = Upstream::manual();
    let gateway = Gateway::before(&upstream);
    let client = Http2::connect(gateway.address()).await;
    for round in 0..50 {
        let (mut answer, mut peer) = if round % 2 == 0 {
            let (answer, mut peer) = open(&client, &upstream).await;
            peer.chunk("data: 1\n\n");
            (Ok(answer), peer)
        } else {
            let answer = client.send(Http2::call(), &call("1")).await.unwrap();
            let mut peer = upstream.accept();
            peer.request().unwrap();
            (Err(answer), peer)
        };
        if let Ok(body) = &mut answer {
            piece(body).await.unwrap().unwrap();
        }
        let watch = Watch::start();
        drop(answer);
        assert!(peer.is_closed_within(Duration::from_secs(1)), "{round}");
        assert!(watch.elapsed() < Duration::from_secs(1));
    }
    wait_until("all are counted", || gateway.ended("client_gone") == 50.0);
    let active = r#"forecourt_upstream_connections{upstream="lakeside",state="active"}"#;
    assert_eq!(gateway.series(active), 0.0);
    assert_eq!(gateway.series("forecourt_requests_in_flight"), 0.0);
}

/// Sends without end; tells how much the gateway took.
fn flood(peer: &mut Peer) -> usize {
    let piece = format!("4000\r\n{}\r\n", "x".repeat(0x4000));
    peer.socket()
        .set_write_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let mut taken = 0;
    while taken < 64 << 20 && peer.try_send(&piece).is_ok() {
        taken += piece.len();
    }
    taken
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_holds_up_nobody_and_little_is_held_for_it() {
    let upstream = Upstream::manual();
    let gateway = Gateway::before(&upstream);
    let client = Http2::wide(gateway.address()).await;
    let mut slow = Vec::new();
    for _ in 0..5 {
        let (body, mut peer) = open(&client, &upstream).await;
        let taken = flood(&mut peer);
        assert!(taken < 12 << 20, "{taken} bytes are held somewhere");
        slow.push((body, peer));
    }
    let other = Http2::connect(gateway.address()).await;
    for client in [&client, &other] {
        let answer = client.send(Http2::call(), &call("2")).await.unwrap();
        let mut peer = upstream.accept();
        peer.request().unwrap();
        peer.send(upstream::ok());
        let answer = whole(answer.await.unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_nothing_loses_that_stream_only() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&format!(
        "[limits]\nidle_timeout = \"300ms\"\n{}",
        dealer(&upstream)
    ));
    let client = Http2::wide(gateway.address()).await;
    let (mut reading, mut lively) = open(&client, &upstream).await;
    let (mut stalled, mut peer) = open(&client, &upstream).await;
    // Within the connection's window, beyond the stream's.
    let flooding = std::thread::spawn(move || {
        flood(&mut peer);
        peer.is_closed_within(PATIENCE)
    });
    let mut cut = false;
    let watch = Watch::start();
    while !cut && watch.elapsed() < PATIENCE {
        lively.chunk(": still here\n\n");
        piece(&mut reading).await.unwrap().unwrap();
        cut = gateway.ended("client_gone") == 1.0;
        elapse(Duration::from_millis(20));
    }
    assert!(cut, "{:#?}", gateway.metrics());
    assert!(flooding.join().unwrap());
    let error = loop {
        // What was on its way is still there.
        if let Err(error) = stalled.data().await.unwrap() {
            break error;
        }
    };
    assert!(error.is_reset(), "{error}");
    lively.send("0\r\n\r\n");
    assert!(piece(&mut reading).await.is_none());
}

#[test]
fn a_quiet_connection_is_told_to_go_and_a_busy_one_is_not() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&format!(
        "[limits]\nidle_timeout = \"150ms\"\n{}",
        dealer(&upstream)
    ));
    let mut quiet = Frames::client(gateway.address(), &[]);
    assert_eq!(quiet.until(GOAWAY).word(4), NO_ERROR);
    while quiet.next().is_some() {}
    let mut busy = Frames::client(gateway.address(), &[]);
    busy.post(1, &call("1"));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    // The end of one stream does not make it quiet while another is open.
    busy.post(3, &call("2"));
    let mut other = upstream.accept();
    other.request().unwrap();
    other.send(upstream::ok());
    assert!(busy.until(DATA).ends_stream());
    elapse(Duration::from_millis(600));
    peer.send(upstream::ok());
    let next = busy.next().unwrap();
    assert_eq!((next.kind, next.stream), (HEADERS, 1));
    assert_eq!(busy.until(GOAWAY).word(4), NO_ERROR);
    while busy.next().is_some() {}
    // One that does not say goodbye is left alone.
    let silent = Frames::client(gateway.address(), &[]);
    let open = r#"forecourt_connections{listener="public"}"#;
    wait_until("closed", || gateway.series(open) == 0.0);
    drop(silent);
    assert_eq!(gateway.ended_at("", "bad_http"), 0.0);
}

#[test]
fn resets_by_the_thousand_end_the_connection() {
    let upstream = Upstream::manual();
    let gateway = Gateway::before(&upstream);
    let mut client = Frames::client(gateway.address(), &[]);
    let mut sent = 0_u32;
    for stream in (1..20_000).step_by(2) {
        let mut bytes = Vec::new();
        for (kind, flags, payload) in [
            (
                HEADERS,
                5,
                frames::block(&[
                    (":method", "POST"),
                    (":scheme", "http"),
                    (":authority", "gw"),
                    (":path", "/a2a"),
                ]),
            ),
            (RST_STREAM, 0, CANCEL.to_be_bytes().to_vec()),
        ] {
            bytes.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes()[1..]);
            bytes.extend([kind, flags]);
            bytes.extend(u32::to_be_bytes(stream));
            bytes.extend(payload);
        }
        if std::io::Write::write_all(&mut client.stream, &bytes).is_err() {
            break;
        }
        sent += 1;
    }
    assert!(sent < 10_000, "all of it was taken");
    let line = gateway.ask(post("{")).code();
    assert_eq!(line, -32700, "others are served");
    wait_until("counted", || gateway.ended_at("", "bad_http") == 1.0);
    let open = r#"forecourt_connections{listener="public"}"#;
    wait_until("closed", || gateway.series(open) <= 1.0);
}

#[test]
fn calls_taken_back_one_after_the_other_end_the_connection() {
    let upstream = Upstream::scripted(|mut peer| while peer.head().is_some() {});
    let gateway = Gateway::before(&upstream);
    let mut client = Frames::client(gateway.address(), &[]);
    let mut taken_back = 0;
    for stream in (1..1_000).step_by(2) {
        let head = frames::block(&frames::post_fields(&[]));
        let head = client.try_send(HEADERS, frames::END_HEADERS, stream, &head);
        if head.is_err()
            || client
                .try_send(DATA, frames::END_STREAM, stream, call("1").as_bytes())
                .is_err()
        {
            break;
        }
        let arrived = upstream.connections();
        let watch = Watch::start();
        while upstream.connections() == arrived && watch.elapsed() < Duration::from_millis(50) {
            std::thread::yield_now();
        }
        if client
            .try_send(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
            .is_err()
        {
            break;
        }
        taken_back += 1;
    }
    assert!((100..400).contains(&taken_back), "{taken_back}");
    wait_until("counted", || gateway.ended_at("", "bad_http") == 1.0);
}

#[test]
fn heads_have_their_limits() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let huge = "x".repeat(40 * 1024);
    let halves = [huge.split_at(20 * 1024).0; 2];
    let mut client = Frames::client(gateway.address(), &[]);
    // One head over the limit, in frames that are within theirs.
    let mut fields = frames::block(&[
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "gw.example"),
        (":path", "/a2a"),
    ]);
    for half in halves {
        fields.extend(frames::block(&[("x-long", half)]));
    }
    let mut pieces = fields.chunks(16_000).peekable();
    client.send(HEADERS, frames::END_STREAM, 1, pieces.next().unwrap());
    while let Some(piece) = pieces.next() {
        let ends = if pieces.peek().is_none() {
            frames::END_HEADERS
        } else {
            0
        };
        client.send(frames::CONTINUATION, ends, 1, piece);
    }
    let refused = client.next().unwrap();
    // `:status: 431`, compressed.
    assert_eq!(refused.kind, HEADERS);
    assert_eq!(refused.payload, [0x48, 0x83, 0x69, 0x90, 0xff]);
    // Too many lines, each small.
    let many = vec![("x-one", "1"); 101];
    client.head(3, &many, true);
    let answer = loop {
        let frame = client.next().unwrap();
        if frame.stream == 3 {
            break frame;
        }
    };
    assert_eq!(answer.kind, HEADERS);
    assert_eq!(gateway.last_line()["status"], 431);
    // A head without end.
    let mut endless = Frames::client(gateway.address(), &[]);
    endless.send(HEADERS, 0, 1, &frames::block(&[(":method", "POST")]));
    let mut sent = 0;
    while sent < 10_000
        && endless
            .try_send(frames::CONTINUATION, 0, 1, &frames::block(&[("x", "1")]))
            .is_ok()
    {
        sent += 1;
    }
    assert!(sent < 10_000);
    assert_eq!(upstream.count(), 0);
}

#[test]
fn housekeeping_by_the_thousand_takes_no_memory() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let mut client = Frames::client(gateway.address(), &[]);
    for _ in 0..5_000 {
        let settings = client.try_send(frames::SETTINGS, 0, 0, &[]);
        let ping = client.try_send(frames::PING, 0, 0, &[0; 8]);
        let window = client.try_send(frames::WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes());
        if settings.is_err() || ping.is_err() || window.is_err() {
            break;
        }
    }
    assert_eq!(gateway.post(call("1")).status, 200);
    drop(client);
    let open = r#"forecourt_connections{listener="public"}"#;
    wait_until("closed", || gateway.series(open) <= 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_before_the_body_ends_the_stream_alone() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let client = Http2::connect(gateway.address()).await;
    let request = Http2::call().header("content-length", (8 << 20).to_string());
    let (answer, mut body) = client.begin(request, false).await.unwrap();
    let answer = whole(answer.await.unwrap()).await.unwrap();
    assert_eq!(answer.status(), 413);
    assert_eq!(answer.json()["error"]["code"], -32600);
    assert!(answer.field("connection").is_none());
    let reason = std::future::poll_fn(|context| body.poll_reset(context))
        .await
        .unwrap();
    assert_eq!(reason, h2::Reason::NO_ERROR);
    let request = http::Request::post("http://gw.example/nowhere");
    assert_eq!(client.ask(request, "{}").await.status(), 404);
    assert_eq!(client.post(&call("1")).await.status(), 200);
    assert_eq!(upstream.count(), 1);
}

#[test]
fn half_a_body_is_no_body() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let mut client = Frames::client(gateway.address(), &[]);
    // A connection to the dealer is at hand: a call that is forwarded has arrived.
    client.post(1, &call("1"));
    assert!(client.until(DATA).ends_stream());
    upstream.take();
    for (stream, reason) in [(3, CANCEL), (5, NO_ERROR), (7, PROTOCOL_ERROR)] {
        client.head(stream, &[], false);
        // A whole call, but for its end.
        client.send(DATA, 0, stream, call("1").as_bytes());
        client.reset(stream, reason);
    }
    client.post(13, &call("2"));
    assert_eq!(client.until(HEADERS).stream, 13);
    assert_eq!(upstream.take().body, call("2").into_bytes());
    // Less, or more, than was announced.
    for (stream, length) in [(15, "1000"), (17, "3")] {
        client.head(stream, &[("content-length", length)], false);
        client.send(DATA, frames::END_STREAM, stream, call("1").as_bytes());
        let reset = client.until(RST_STREAM);
        assert_eq!((reset.stream, reset.word(0)), (stream, PROTOCOL_ERROR));
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn a_body_that_drips_has_its_time() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&format!(
        "[limits]\nbody_timeout = \"100ms\"\n{}",
        dealer(&upstream)
    ));
    let mut client = Frames::client(gateway.address(), &[]);
    client.head(1, &[], false);
    client.send(DATA, 0, 1, b"{");
    client.until(RST_STREAM);
    assert_eq!(gateway.last_line()["status"], 408);
    client.post(3, &call("1"));
    assert_eq!(client.until(HEADERS).stream, 3);
}

#[test]
fn no_more_streams_than_allowed() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&format!(
        "[limits]\nconcurrent_streams = 2\n{}",
        dealer(&upstream)
    ));
    let mut client = Frames::client(gateway.address(), &[]);
    let settings = client.any().unwrap();
    let allowed = settings.payload.chunks(6).find(|it| it[1] == 3).unwrap();
    assert_eq!(allowed[2..], [0, 0, 0, 2]);
    for stream in [1, 3, 5] {
        client.post(stream, &call("1"));
    }
    let reset = client.until(RST_STREAM);
    assert_eq!((reset.stream, reset.word(0)), (5, frames::REFUSED_STREAM));
    let peers = [upstream.accept(), upstream.accept()];
    assert!(stays(Duration::from_millis(50), || upstream.connections() == 2));
    drop(peers);
}

#[test]
fn a_drain_tells_every_connection_and_lets_its_streams_finish() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&format!(
        "[shutdown]\ndelay = \"300ms\"\ntimeout = \"20s\"\n{}",
        dealer(&upstream)
    ));
    let mut busy = Frames::client(gateway.address(), &[]);
    busy.post(1, &call("1"));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    let mut idle = Frames::client(gateway.address(), &[]);
    idle.settings(&[]);
    let watch = Watch::start();
    std::thread::scope(|scope| {
        let draining = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(gateway.inner.drain(std::future::pending()));
        });
        // First that it leaves, then up to where.
        let told: Vec<_> = [idle.until(GOAWAY), idle.until(GOAWAY)]
            .map(|frame| (frame.word(0), frame.word(4)))
            .into();
        assert_eq!(told, [(0x7fff_ffff, NO_ERROR), (0, NO_ERROR)]);
        assert!(idle.next().is_none());
        assert_eq!(busy.until(GOAWAY).word(4), NO_ERROR);
        // What was asked before it knew is answered.
        assert_eq!(busy.until(GOAWAY).word(0), 1);
        busy.post(3, &call("late"));
        // It is open after the listener is closed.
        wait_until("draining", || watch.elapsed() > Duration::from_millis(400));
        peer.send(upstream::ok());
        let head = busy.until(HEADERS);
        assert_eq!(head.stream, 1);
        assert!(!head.payload.windows(5).any(|it| it == b"close"));
        assert!(busy.until(DATA).ends_stream());
        assert!(busy.next().is_none());
        draining.join().unwrap();
    });
    assert!(watch.elapsed() < Duration::from_secs(10));
    assert_eq!(upstream.count(), 1);
}

#[test]
fn an_upgrade_is_not_taken_up() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let request = crate::support::Post::to("/a2a")
        .field("Connection", "Upgrade, HTTP2-Settings")
        .field("Upgrade", "h2c")
        .field("HTTP2-Settings", "AAMAAABkAAQAoAAAAAIAAAAA")
        .body(call("1"));
    let answer = gateway.ask(request.bytes());
    assert_eq!((answer.status, answer.interim.len()), (200, 0));
    assert_eq!(gateway.last_line()["protocol"], "HTTP/1.1");
}

#[test]
fn both_protocols_on_one_listener() {
    let upstream = echoing();
    let gateway = Gateway::start(&dealer_with(&upstream, "", "http_status = \"mapped\""));
    let mut two = Frames::client(gateway.address(), &[]);
    let mut one = gateway.client();
    for stream in [1, 3, 5] {
        assert_eq!(one.ask(post(call("1"))).status, 200);
        two.post(stream, &call("2"));
        assert_eq!(two.until(HEADERS).stream, stream);
    }
}
