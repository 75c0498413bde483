//! Requests at once: streams count while they are open, and a place is free again however its
//! request ends.

use super::*;
use crate::support::http2::Http2;
use crate::support::upstream::answer;
use crate::support::{Peer, wait_until};

const EVENT: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n: ping\n\n\r\n";

/// Two streams at once for each caller, and any number of other calls.
const TABLES: &str =
    "[quota.streams]\nper = \"caller\"\nconcurrent = 2\nmethods = [\"SendStreamingMessage\"]";

fn streaming() -> Vec<u8> {
    let body = call("1").replace("SendMessage", "SendStreamingMessage");
    Post::to("/a2a").field(KEY.0, KEY.1).body(body).bytes()
}

/// A stream whose first event has come through.
fn open(gateway: &Gateway, upstream: &Upstream) -> (Client, Peer) {
    let mut client = gateway.client();
    client.send(streaming());
    let mut peer = upstream.accept();
    peer.request().unwrap();
    peer.send(EVENT);
    client.head();
    assert_eq!(client.bytes(8), b": ping\n\n");
    (client, peer)
}

/// How many places the key has taken.
fn taken(gateway: &Gateway) -> u64 {
    wait_until("a line is written", || !gateway.access_log().is_empty());
    let name = gateway.access_log()[0]["caller"]
        .as_str()
        .unwrap()
        .to_owned();
    taken_by(gateway, &name)
}

fn taken_by(gateway: &Gateway, name: &str) -> u64 {
    let path = format!("/limits/{}", name.replace('#', "%23").replace(' ', "%20"));
    let shown = gateway.admin_get(&path).json();
    let buckets = shown["buckets"].as_array().unwrap().iter();
    buckets
        .filter(|bucket| bucket["full_in_ms"].is_null())
        .map(|it| it["most"].as_u64().unwrap() - it["remaining"].as_u64().unwrap())
        .sum()
}

#[test]
fn a_stream_counts_while_it_is_open() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, TABLES, "\"streams\"");
    let (first, mut peer) = open(&gateway, &upstream);
    let (second, _other_peer) = open(&gateway, &upstream);
    let mut third = gateway.client();
    let refused = third.ask(streaming());
    assert_eq!(wait(&refused), Some(1000), "{}", refused.text());
    let policy = refused.head.one("ratelimit-policy").unwrap();
    assert_eq!(policy, "\"streams\";q=2;qu=\"concurrent-requests\"");
    assert_eq!(refused.head.one("ratelimit").unwrap(), "\"streams\";r=0");
    let line = gateway.last_line();
    assert_eq!(
        (&line["outcome"], &line["quota"]),
        (&"rate_limited".into(), &"streams".into())
    );
    assert_eq!(taken(&gateway), 2);
    // Other calls, and other callers, have nothing to do with it.
    third.send(Post::to("/a2a").field(KEY.0, KEY.1).body(call("2")).bytes());
    let mut of_third = upstream.accept();
    of_third.request().unwrap();
    of_third.send(answer("200 OK", "Connection: close\r\n", "{}"));
    let other = third.answer();
    assert!(!other.head.has("ratelimit"));
    assert_eq!(other.status, 200);
    // Time does nothing: nobody knows when a stream ends. Its end does.
    gateway.clock.advance(Duration::from_secs(3600));
    assert!(wait(&third.ask(streaming())).is_some());
    peer.send("0\r\n\r\n");
    let mut first = first;
    assert_eq!(first.chunk().unwrap(), None);
    wait_until("a place is free", || taken(&gateway) == 1);
    let (fourth, _) = open(&gateway, &upstream);
    drop((second, fourth));
    wait_until("all are free", || taken(&gateway) == 0);
}

/// Case 21: a client that closes its stream makes room for its next one at once.
#[test]
fn a_client_that_goes_away_frees_its_place() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, TABLES, "\"streams\"");
    let (_held, _peer) = open(&gateway, &upstream);
    for _ in 0..50 {
        let (client, mut peer) = open(&gateway, &upstream);
        drop(client);
        assert!(peer.is_closed_within(Duration::from_secs(5)));
        wait_until("the place is free", || taken(&gateway) == 1);
    }
    // The same before the dealer has said a word.
    for _ in 0..20 {
        let mut client = gateway.client();
        client.send(streaming());
        let mut peer = upstream.accept();
        peer.request().unwrap();
        drop(client);
        assert!(peer.is_closed_within(Duration::from_secs(5)));
        wait_until("the place is free", || taken(&gateway) == 1);
    }
}

#[test]
fn a_dealer_that_fails_frees_the_place() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, TABLES, "\"streams\"");
    for _ in 0..5 {
        let (mut client, peer) = open(&gateway, &upstream);
        peer.close();
        assert!(client.chunk().is_err(), "the cut is seen");
        wait_until("the place is free", || taken(&gateway) == 0);
        let mut client = gateway.client();
        client.send(streaming());
        let mut peer = upstream.accept();
        peer.request().unwrap();
        peer.reset();
        assert_eq!(client.answer().status, 502);
        wait_until("the place is free", || taken(&gateway) == 0);
    }
}

/// Over HTTP/2 a stream that is reset frees its place, and its connection goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_reset_stream_frees_its_place() {
    let upstream = Upstream::manual();
    let gateway = gateway(&upstream, TABLES, "\"streams\"");
    let client = Http2::connect(gateway.address()).await;
    for _ in 0..5 {
        let body = call("1").replace("SendMessage", "SendStreamingMessage");
        let request = Http2::call().header(KEY.0, KEY.1);
        let answer = client.send(request, &body).await.unwrap();
        let mut peer = upstream.accept();
        peer.request().unwrap();
        peer.send(EVENT);
        let answer = answer.await.unwrap();
        drop(answer);
        assert!(peer.is_closed_within(Duration::from_secs(5)));
        wait_until("the place is free", || taken(&gateway) == 0);
    }
}

/// Refused after its place was taken, a call gives it back with its answer.
#[test]
fn a_call_that_is_refused_later_frees_its_place() {
    let upstream = Upstream::recording();
    let quota = "[quota.one]\nper = \"caller\"\nconcurrent = 1";
    let gateway = gateway(&upstream, quota, "\"one\"");
    let mut client = gateway.client();
    for _ in 0..3 {
        let answer = asked(&mut client, "/a2a", &[KEY, ("A2A-Version", "99.0")]);
        assert_eq!(answer.code(), -32009);
        assert_eq!(wait(&asked(&mut client, "/a2a", &[KEY])), None);
    }
    assert_eq!(taken(&gateway), 0);
}

#[test]
fn in_report_mode_it_only_counts() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start_two(&format!(
        "{TABLES}\n{}",
        dealer_with(
            &upstream,
            "",
            "quotas = [\"streams\"]\nreport = [\"quota\"]"
        )
    ));
    let held: Vec<_> = (0..4).map(|_| open(&gateway, &upstream)).collect();
    assert_eq!(taken_by(&gateway, "address 127.0.0.1"), 2);
    let reported = "forecourt_reported_total{endpoint=\"lakeside\",step=\"quota\"}";
    assert_eq!(gateway.series(reported), 2.0);
    drop(held);
    wait_until("all are free", || {
        taken_by(&gateway, "address 127.0.0.1") == 0
    });
}

/// Whoever has the whole answer has its place back, whichever connection it asks on next.
#[test]
fn the_end_of_an_answer_is_the_end_of_its_place() {
    let upstream = Upstream::recording();
    let quota = "[quota.one]\nper = \"caller\"\nconcurrent = 1";
    let gateway = gateway(&upstream, quota, "\"one\"");
    let mut clients = [gateway.client(), gateway.client(), gateway.client()];
    for round in 0..300 {
        for client in &mut clients {
            assert_eq!(wait(&asked(client, "/a2a", &[KEY])), None, "{round}");
        }
    }
}
