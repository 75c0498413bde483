//! How much is served at once, of all and of each dealer: what is too much is shed, told to come
//! back, and charged to nobody.

use crate::support::call::{call, post};
use crate::support::gateway::{dealer, dealer_with};
use crate::support::http2::Http2;
use crate::support::{Answer, Gateway, Post, Upstream, upstream, wait_until};

#[track_caller]
fn assert_shed(answer: &Answer) {
    assert_eq!((answer.status, answer.code()), (503, -32603));
    assert_eq!(answer.id(), "\"a\"");
    let data = &answer.json()["error"]["data"];
    assert_eq!(data[0]["reason"], "INTERNAL_ERROR");
    let payload = &data[1]["value"];
    assert_eq!(
        (&payload["retryable"], &payload["details"]["retry_after_ms"]),
        (&true.into(), &1000.into())
    );
    assert_eq!(answer.head.all("retry-after"), ["1"]);
}

#[test]
fn more_than_all_may_is_shed() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&format!(
        "[limits]\nin_flight_requests = 2\n[quota.q]\nper = \"address\"\nrate = \"3/day\"\nburst = 3\n{}",
        dealer_with(&upstream, "", "quotas = [\"q\"]")
    ));
    let (mut one, mut two) = (gateway.client(), gateway.client());
    one.send(post(call("1")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    two.send(post(call("2")));
    let mut other = upstream.accept();
    other.request().unwrap();
    // Often enough that the quota would be used up, if it were charged.
    for _ in 0..5 {
        assert_shed(&gateway.post(call("\"a\"")));
    }
    let line = gateway.last_line();
    assert_eq!(
        (&line["outcome"], &line["retry_after_ms"]),
        (&"overloaded".into(), &1000.into())
    );
    assert_eq!(gateway.ended("overloaded"), 5.0);
    // A card is shed as well, in plain words.
    let card = Post::method("GET", "/a2a/.well-known/agent-card.json").field("Host", "gw");
    let answer = gateway.ask(card.bytes());
    assert_eq!(
        (answer.status, answer.head.all("retry-after")),
        (503, vec!["1".to_owned()])
    );
    for (client, peer) in [(&mut one, &mut peer), (&mut two, &mut other)] {
        peer.send(upstream::ok());
        assert_eq!(client.answer().status, 200);
    }
    wait_until("places are free", || {
        gateway.series("forecourt_requests_in_flight") == 0.0
    });
    one.send(post(call("3")));
    other.request().unwrap();
    other.send(upstream::ok());
    assert_eq!(one.answer().status, 200);
}

#[test]
fn more_than_a_dealer_may_carry_is_shed_at_that_dealer() {
    let slow = Upstream::manual();
    let quick = Upstream::recording();
    let gateway = Gateway::start_two(&format!(
        "{}[upstream.other]\nurl = \"http://{}/a2a\"\n[endpoint.other]\npath = \"/other\"\nupstream = \"other\"\n",
        dealer_with(&slow, "max_in_flight = 1", ""),
        quick.address
    ));
    let mut one = gateway.client();
    one.send(post(call("1")));
    let mut peer = slow.accept();
    peer.request().unwrap();
    for _ in 0..3 {
        assert_shed(&gateway.post(call("\"a\"")));
        let other = Post::to("/other").body(call("1"));
        assert_eq!(gateway.ask(other.bytes()).status, 200);
    }
    assert_eq!(gateway.ended("overloaded"), 3.0);
    // A stream holds its place to its end.
    peer.send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    one.head();
    assert_shed(&gateway.post(call("\"a\"")));
    drop(one);
    let mut two = gateway.client();
    wait_until("the place is free", || {
        gateway.series("forecourt_requests_in_flight") == 0.0
    });
    two.send(post(call("2")));
    let mut peer = slow.accept();
    peer.request().unwrap();
    peer.send(upstream::ok());
    assert_eq!(two.answer().status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_one_connection_count_each() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&format!(
        "[limits]\nin_flight_requests = 2\n{}",
        dealer(&upstream)
    ));
    let client = Http2::connect(gateway.address()).await;
    let mut held = Vec::new();
    for id in ["1", "2"] {
        let answer = client.send(Http2::call(), &call(id)).await.unwrap();
        let mut peer = upstream.accept();
        peer.request().unwrap();
        held.push((answer, peer));
    }
    let shed = client.post(&call("\"a\"")).await;
    assert_eq!((shed.status(), shed.field("retry-after")), (503, Some("1")));
    assert_eq!(shed.json()["id"], "a");
    for (answer, mut peer) in held {
        peer.send(upstream::ok());
        assert_eq!(answer.await.unwrap().status(), 200);
    }
}
