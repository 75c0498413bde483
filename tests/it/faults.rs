//! Whatever a dealer does wrong: what the caller is told, that nothing is sent twice, and that a cut
//! answer looks cut.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use crate::support::call::{call, lead, post, search};
use crate::support::gateway::{dealer, dealer_at, dealer_with};
use crate::support::wait::elapse;
use crate::support::{
    Answer, Gateway, Nobody, PATIENCE, Peer, Upstream, Watch, upstream, wait_until,
};

/// Calls with whether repeating them is safe once they may have been sent.
fn calls() -> [(String, bool); 4] {
    [
        (lead("\"a\"", None), false),
        (lead("\"a\"", Some("")), false),
        (lead("\"a\"", Some("k-1")), true),
        (search("\"a\""), true),
    ]
}

/// The typed payload, in contract 3.0's dialect, of an answer that must tell nothing of the inside.
#[track_caller]
fn payload(answer: &Answer, upstream: SocketAddr) -> Value {
    assert_eq!(answer.code(), -32603);
    assert_eq!(answer.id(), "\"a\"");
    assert_eq!(answer.head.all("content-type"), ["application/json"]);
    let json = answer.json();
    let keys: Vec<_> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["error", "id", "jsonrpc"]);
    let text = answer.text();
    let (address, port) = (upstream.ip().to_string(), upstream.port().to_string());
    for inside in [
        &*address, &*port, "os error", "refused", "hyper", "reset by", "/a2a", "lakeside",
    ] {
        assert!(!text.contains(inside), "{inside} in {text}");
    }
    let data = &json["error"]["data"];
    assert_eq!(data[0]["reason"], "INTERNAL_ERROR");
    let value = data[1]["value"].clone();
    assert_eq!(
        data[0]["metadata"]["retryable"],
        value["retryable"].to_string()
    );
    value
}

/// Every call against a dealer that does this: status, outcome, and a truthful `retryable`.
#[track_caller]
fn assert_fault(
    what: &str,
    status: u16,
    outcome: &str,
    script: impl Fn(Peer) + Clone + Send + Sync + 'static,
) {
    let upstream = Upstream::scripted(script);
    let timeout = match outcome {
        "upstream_timeout" => "response_timeout = \"150ms\"",
        _ => "response_timeout = \"20s\"",
    };
    let gateway = Gateway::start(&dealer_with(&upstream, timeout, ""));
    let mut client = gateway.client();
    for (index, (body, safe)) in calls().into_iter().enumerate() {
        let answer = client.ask(post(&body));
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        let payload = payload(&answer, upstream.address);
        assert_eq!(payload["retryable"], safe, "{what}: {body}");
        assert!(!answer.head.has("retry-after"));
        let line = gateway.last_line();
        assert_eq!(line["outcome"], outcome, "{what}");
        assert_eq!(line["upstream"], "lakeside");
        assert_eq!(line["error_id"], payload["error_id"]);
        assert_eq!(gateway.ended(outcome), (index + 1) as f64, "{what}");
    }
    assert!(upstream.count() <= 4, "{what}: a call was sent twice");
    let active = r#"forecourt_upstream_connections{upstream="lakeside",state="active"}"#;
    wait_until("connections given up", || gateway.series(active) == 0.0);
}

#[test]
fn nobody_listens() {
    let nobody = Nobody::new();
    let address = nobody.address;
    let gateway = Gateway::start(&dealer_at(address, "", ""));
    for (body, _) in calls() {
        let answer = gateway.post(&body);
        assert_eq!(answer.status, 502);
        // Nothing was sent: any call may be repeated.
        assert_eq!(payload(&answer, address)["retryable"], true);
        assert_eq!(gateway.last_line()["outcome"], "upstream_unreachable");
    }
    assert_eq!(gateway.ended("upstream_unreachable"), 4.0);
}

#[test]
fn a_name_that_does_not_resolve() {
    // `.invalid` never resolves (RFC 6761); a resolver that asks nobody says so at once.
    let gateway = Gateway::start(
        "[upstream.lakeside]\nurl = \"http://nobody.invalid:9/a2a\"\nconnect_timeout = \"3s\"\n\
         [endpoint.lakeside]\npath = \"/a2a\"\nupstream = \"lakeside\"\n",
    );
    let answer = gateway.post(call("\"a\""));
    let outcome = gateway.last_line()["outcome"].clone();
    match answer.status {
        502 => assert_eq!(outcome, "upstream_unreachable"),
        status => assert_eq!((status, outcome), (504, "upstream_timeout".into())),
    }
    assert!(!answer.text().contains("invalid"), "{}", answer.text());
}

#[test]
fn gone_before_the_head() {
    assert_fault("closes", 502, "upstream_reset", |mut peer| {
        peer.request();
        peer.close();
    });
    assert_fault("resets", 502, "upstream_reset", |mut peer| {
        peer.request();
        peer.reset();
    });
    assert_fault(
        "resets with the request unread",
        502,
        "upstream_reset",
        |mut peer| {
            peer.head();
            peer.reset();
        },
    );
}

#[test]
fn gone_within_the_head() {
    for head in [
        "H",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nX: 1\r\n",
    ] {
        assert_fault("closes", 502, "upstream_reset", move |mut peer| {
            peer.request();
            peer.send(head);
            peer.close();
        });
        assert_fault("resets", 502, "upstream_reset", move |mut peer| {
            peer.request();
            peer.send(head);
            peer.reset();
        });
    }
    // An interim answer is no answer.
    assert_fault("interim", 502, "upstream_reset", |mut peer| {
        peer.request();
        peer.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n");
        peer.close();
    });
}

#[test]
fn silent_before_the_head() {
    for start in [
        "",
        "HTTP/1.1 200 OK\r\nX: ",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        assert_fault("hangs", 504, "upstream_timeout", move |mut peer| {
            peer.request();
            peer.send(start);
            // The gateway gives up and closes.
            assert!(peer.is_closed_within(PATIENCE));
        });
    }
}

#[test]
fn answers_that_are_not_http() {
    for answer in [
        "SSH-2.0-OpenSSH_9.6\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX Y: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\u{0}b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nbytes",
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}\r\n\r\n",
    ] {
        assert_fault(answer, 502, "upstream_invalid", move |mut peer| {
            peer.request();
            drop(peer.try_send(answer));
            peer.is_closed_within(PATIENCE);
        });
    }
}

#[test]
fn heads_of_answers_are_limited() {
    let long = "x".repeat(300 * 1024);
    let head = format!("HTTP/1.1 200 OK\r\nX: {long}\r\nContent-Length: 0\r\n\r\n");
    assert_fault("a huge head", 502, "upstream_invalid", move |mut peer| {
        peer.request();
        drop(peer.try_send(&head));
        peer.is_closed_within(PATIENCE);
    });
}

#[test]
fn bodies_that_are_cut_look_cut() {
    for (answer, outcome) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n1234567890",
            "upstream_reset",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n1234567890\r\n",
            "upstream_reset",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n1234567890\r\n5\r\nab",
            "upstream_reset",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n1234567890\r\n0\r\n",
            "upstream_reset",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n1234567890\r\nzz\r\n",
            "upstream_invalid",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n1234567890XX",
            "upstream_invalid",
        ),
    ] {
        for reset in [false, true] {
            let upstream = Upstream::scripted(move |mut peer| {
                peer.request();
                peer.send(answer);
                match reset {
                    false => peer.close(),
                    true => {
                        // What was sent must have been taken before the reset discards it.
                        elapse(Duration::from_millis(20));
                        peer.reset();
                    }
                }
            });
            let gateway = Gateway::before(&upstream);
            let mut client = gateway.client();
            client.send(post(call("1")));
            let error = match client.try_answer() {
                Err(error) => error,
                Ok(answer) => panic!("a clean end: {answer:?}"),
            };
            assert!(
                matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
                ),
                "{error}"
            );
            wait_until("logged", || !gateway.access_log().is_empty());
            let line = gateway.last_line();
            assert_eq!(line["outcome"], outcome, "{answer:?}");
            assert_eq!(line["status"], 200);
            assert_eq!(gateway.ended(outcome), 1.0);
        }
    }
}

#[test]
fn a_body_that_stalls_is_cut() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&dealer_with(&upstream, "idle_timeout = \"150ms\"", ""));
    let mut client = gateway.client();
    client.send(post(call("1")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    peer.chunk("one");
    client.head();
    assert_eq!(client.chunk().unwrap().unwrap(), b"one");
    assert!(client.chunk().is_err(), "a clean end");
    assert!(peer.is_closed_within(PATIENCE));
    wait_until("logged", || !gateway.access_log().is_empty());
    assert_eq!(gateway.last_line()["outcome"], "upstream_timeout");
}

#[test]
fn an_answer_before_the_request_was_read() {
    let upstream = Upstream::manual();
    let limits = "[limits]\nbody = \"16MiB\"\n";
    let gateway = Gateway::start(&format!("{limits}{}", dealer(&upstream)));
    // More than the sockets between can hold: it cannot have been written out.
    let body = call("1").replace("m-1", &"x".repeat(12 << 20));
    let mut client = gateway.client();
    let mut peers = Vec::new();
    for round in 1..4 {
        client.send(post(&body));
        // Reads the head and none of its body, answers, and leaves the connection open.
        let mut peer = upstream.accept();
        assert!(peer.head().is_some());
        let fields = "WWW-Authenticate: x\r\n";
        peer.send(upstream::answer("401 Unauthorized", fields, "no"));
        let answer = client.answer();
        assert_eq!((answer.status, answer.text().as_str()), (401, "no"));
        // An unfinished request spoils its connection for the next one.
        assert_eq!(upstream.connections(), round);
        peers.push(peer);
    }
}

#[test]
fn a_request_goes_on_while_its_answer_comes() {
    // More than all buffers in between can hold.
    let size = 48 * 1024 * 1024;
    let (mut body, end) = (call("1"), "}");
    body.truncate(body.len() - end.len());
    body += &" ".repeat(size);
    body += end;
    let length = body.len();
    let upstream = Upstream::scripted(move |mut peer| {
        let head = peer.head().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        peer.chunk("begun ");
        let arrival = peer.body_of(head).unwrap();
        assert_eq!(arrival.body.len(), length);
        peer.chunk("ended");
        peer.send("0\r\n\r\n");
    });
    let gateway = Gateway::start(&format!(
        "[limits]\nbody = \"64MiB\"\n{}",
        dealer_with(&upstream, "idle_timeout = \"5s\"", "")
    ));
    for _ in 0..2 {
        assert_eq!(gateway.post(&body).text(), "begun ended");
    }
    assert_eq!(upstream.count(), 2);
}

#[test]
fn unsolicited_bytes_never_reach_a_client() {
    let upstream = Upstream::scripted(|mut peer| {
        while let Some(arrival) = peer.request() {
            let id = arrival.head.one("x-request-id").unwrap();
            let fine = upstream::answer("200 OK", "", &id);
            let stray = upstream::answer("200 OK", "", "stray");
            if peer.try_send([fine, stray].concat()).is_err() {
                return;
            }
        }
    });
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    for id in 0..100 {
        let id = id.to_string();
        let request = crate::support::Post::to("/a2a")
            .field("X-Request-Id", &id)
            .body(call("1"));
        let answer = client.ask(request.bytes());
        assert_eq!((answer.status, answer.text()), (200, id));
    }
    assert_eq!(upstream.count(), 100);
}

#[test]
fn a_connection_that_is_handed_over_is_as_quiet_as_an_idle_one() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&dealer_with(&upstream, "max_connections = 1", ""));
    let mut first = gateway.client();
    first.send(post(call("1")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    let body = "x".repeat(20_000);
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n");
    assert_eq!(first.head().length(), Some(20_000));
    let mut second = gateway.client();
    second.send(post(call("2")));
    let waiting = "forecourt_requests_in_flight";
    wait_until("both are there", || gateway.series(waiting) == 2.0);
    // The answer's end and what nobody asked for come in one segment.
    let forged = upstream::answer("200 OK", "", "forged");
    peer.send([body.as_bytes(), &forged].concat());
    let mut peer = upstream.accept();
    peer.request().unwrap();
    peer.send(upstream::answer("200 OK", "", "asked for"));
    assert_eq!(second.answer().text(), "asked for");
}

#[test]
fn a_pooled_connection_that_closes_loses_and_repeats_nothing() {
    // The dealer closes each connection after its second answer, just about when the next request
    // goes out, which some requests meet and some do not.
    let upstream = Upstream::scripted(move |mut peer| {
        for round in 0..2_u64 {
            if peer.request().is_none() || peer.try_send(upstream::ok()).is_err() {
                return;
            }
            if round == 1 {
                elapse(Duration::from_micros(peer.number as u64 % 8 * 50));
            }
        }
        peer.close();
    });
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    let mut failed = HashSet::new();
    for id in 0..600_u64 {
        let answer = client.ask(post(lead(&id.to_string(), None)));
        if answer.status != 200 {
            // Then the caller knows that it may have arrived.
            assert_eq!(
                (answer.status, answer.code(), answer.id()),
                (502, -32603, id.to_string())
            );
            assert_eq!(
                answer.json()["error"]["data"][1]["value"]["retryable"],
                false
            );
            failed.insert(id);
        }
        elapse(Duration::from_micros(id % 5 * 40));
    }
    let arrivals = upstream.arrivals();
    let ids: HashSet<u64> = arrivals
        .iter()
        .map(|arrival| {
            let body: Value = serde_json::from_slice(&arrival.body).unwrap();
            body["id"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(ids.len(), arrivals.len(), "a call was sent twice");
    assert!(
        upstream.connections() > 100,
        "hardly a connection was closed"
    );
    for id in 0..600 {
        assert!(ids.contains(&id) || failed.contains(&id), "{id} was lost");
    }
    // A request written into a connection that is being closed cannot be told from a lost answer.
    assert!(failed.len() < 300, "{} failed", failed.len());
}

#[test]
fn a_connection_is_given_up_before_the_dealer_does() {
    // The same, with the gateway's own limit below the dealer's: nothing fails.
    let quiet = Duration::from_millis(400);
    let upstream = Upstream::scripted(move |mut peer| {
        peer.socket().set_read_timeout(Some(quiet)).unwrap();
        while peer.request().is_some() {
            peer.send(upstream::ok());
        }
        peer.close();
    });
    let gateway = Gateway::start(&dealer_with(&upstream, "keep_alive = \"40ms\"", ""));
    let mut client = gateway.client();
    for id in 0..600_u64 {
        assert_eq!(client.ask(post(lead(&id.to_string(), None))).status, 200);
        if id % 50 == 0 {
            elapse(Duration::from_millis(35 + id % 11));
        }
    }
    assert_eq!(upstream.count(), 600);
    let ids: HashSet<Vec<u8>> = upstream.arrivals().into_iter().map(|it| it.body).collect();
    assert_eq!(ids.len(), 600);
}

#[test]
fn closed_while_idle_is_replaced_unseen() {
    let upstream = Upstream::scripted(|mut peer| {
        if peer.request().is_some() {
            peer.send(upstream::ok());
        }
        peer.close();
    });
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    let idle = r#"forecourt_upstream_connections{upstream="lakeside",state="idle"}"#;
    for round in 1..30 {
        assert_eq!(client.ask(post(lead("1", None))).status, 200);
        assert_eq!(upstream.count(), round);
        wait_until("the gateway noticed", || upstream.open() == 0);
        let _ = gateway.series(idle);
    }
}

#[test]
fn a_client_that_goes_takes_the_upstream_request_along() {
    let upstream = Upstream::manual();
    let gateway = Gateway::before(&upstream);
    let second = Duration::from_secs(1);
    for round in 1..=10 {
        // Before the head of the answer.
        let mut client = gateway.client();
        client.send(post(call("1")));
        let mut peer = upstream.accept();
        peer.request().unwrap();
        drop(client);
        assert!(peer.is_closed_within(second), "before the head");

        // In the middle of a stream.
        let mut client = gateway.client();
        client.send(post(call("1")));
        let mut peer = upstream.accept();
        peer.request().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
        peer.chunk("data: 1\n\n");
        client.head();
        assert_eq!(client.chunk().unwrap().unwrap(), b"data: 1\n\n");
        drop(client);
        assert!(peer.is_closed_within(second), "within the stream");
        wait_until("counted", || {
            gateway.ended("client_gone") == f64::from(2 * round)
        });
    }
    assert!(
        gateway
            .access_log()
            .iter()
            .all(|line| line["outcome"] == "client_gone")
    );
    for state in ["active", "idle"] {
        let series =
            format!("forecourt_upstream_connections{{upstream=\"lakeside\",state=\"{state}\"}}");
        assert_eq!(gateway.series(&series), 0.0);
    }
    assert_eq!(gateway.series("forecourt_requests_in_flight"), 0.0);
}

#[test]
fn a_client_that_goes_before_its_body_is_sent_reaches_nobody() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let body = call("1");
    let bytes = post(&body);
    for _ in 0..5 {
        let mut client = gateway.client();
        client.send(&bytes[..bytes.len() - 1]);
        drop(client);
    }
    wait_until("all ended", || gateway.access_log().len() == 5);
    assert_eq!(upstream.count(), 0);
}

#[test]
fn connections_and_the_queue_for_them_are_bounded() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&dealer_with(
        &upstream,
        "max_connections = 1\nmax_waiting = 1\nconnect_timeout = \"5s\"",
        "",
    ));
    let mut first = gateway.client();
    first.send(post(call("\"a\"")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    // The second waits for that connection; the third finds the queue full.
    let mut second = gateway.client();
    second.send(post(lead("\"a\"", None)));
    wait_until("the second is served", || {
        gateway.series("forecourt_requests_in_flight") == 2.0
    });
    let mut shed = None;
    wait_until("the queue is full", || {
        let mut client = gateway.client();
        client.send(post(lead("\"a\"", None)));
        shed = client.try_answer().unwrap();
        shed.is_some()
    });
    let shed = shed.unwrap();
    assert_eq!(shed.status, 503);
    assert_eq!(payload(&shed, upstream.address)["retryable"], true);
    assert_eq!(shed.head.all("retry-after"), ["1"]);
    assert_eq!(gateway.last_line()["outcome"], "overloaded");
    // Served as soon as the first is done, on the same connection or on a new one.
    peer.send(upstream::ok());
    assert_eq!(first.answer().status, 200);
    let served = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut next = if peer.request().is_some() {
                peer
            } else {
                let mut peer = upstream.accept();
                peer.request().unwrap();
                peer
            };
            next.send(upstream::ok());
            // Stays until the client has its answer.
            next.is_closed_within(Duration::from_millis(200));
        });
        second.answer()
    });
    assert_eq!(served.status, 200);
    assert_eq!(upstream.count(), 2);
}

#[test]
fn waiting_for_a_connection_ends() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&dealer_with(
        &upstream,
        "max_connections = 1\nconnect_timeout = \"100ms\"",
        "",
    ));
    let mut first = gateway.client();
    first.send(post(call("\"a\"")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    let watch = Watch::start();
    let answer = gateway.post(lead("\"a\"", None));
    assert!(watch.elapsed() >= Duration::from_millis(95));
    assert_eq!(answer.status, 503);
    assert_eq!(payload(&answer, upstream.address)["retryable"], true);
    // The place is given back: with the connection gone there is room again.
    peer.reset();
    assert_eq!(first.answer().status, 502);
    let mut next = gateway.client();
    next.send(post(call("\"a\"")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    peer.send(upstream::ok());
    assert_eq!(next.answer().status, 200);
}

#[test]
fn a_card_whose_dealer_fails_is_plain_http() {
    let upstream = Upstream::scripted(|mut peer| {
        peer.request();
        peer.reset();
    });
    let gateway = Gateway::before(&upstream);
    let request = crate::support::Post::method("GET", "/a2a/.well-known/agent-card.json");
    let answer = gateway.ask(request.field("Host", "gw").bytes());
    assert_eq!(answer.status, 502);
    assert!(answer.head.all("content-type")[0].starts_with("text/plain"));
    assert!(!answer.text().contains("127.0.0.1"));
    assert_eq!(gateway.last_line()["outcome"], "upstream_reset");
}
