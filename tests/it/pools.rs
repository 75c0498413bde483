//! Connections to a dealer: which one a call goes out on, how old it may get, and that giving it up in
//! time loses and repeats nothing.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use forecourt::http1::Lines;
use forecourt::upstream::{Meters, Parts, Pools, Request, Timeouts, Upstream as Facts};
use http::{HeaderValue, Method};
use http_body_util::BodyExt;
use tokio::time::Instant;

use crate::support::call::{call, lead, post};
use crate::support::gateway::dealer_with;
use crate::support::http2::Dealer;
use crate::support::tls::{Front, Place, put};
use crate::support::wait::elapse;
use crate::support::{Gateway, PATIENCE, Peer, Upstream, upstream};

/// Whether the next call goes to this dealer's end, and answers it.
#[track_caller]
fn serves(peer: &mut Peer) {
    peer.request().expect("another connection was used");
    peer.send(upstream::ok());
}

#[test]
fn the_newest_idle_connection_goes_first() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&dealer_with(&upstream, "keep_alive = \"300ms\"", ""));
    let mut clients = [gateway.client(), gateway.client(), gateway.client()];
    let mut peers = Vec::new();
    for client in &mut clients {
        client.send(post(call("1")));
        let mut peer = upstream.accept();
        peer.request().unwrap();
        peers.push(peer);
    }
    // Given back in this order: the first one last.
    for index in [1, 2, 0] {
        peers[index].send(upstream::ok());
        assert_eq!(clients[index].answer().status, 200);
    }
    let mut oldest = peers.remove(1);
    for round in 0..20 {
        let client = &mut clients[round % 3];
        client.send(post(call("1")));
        serves(&mut peers[0]);
        assert_eq!(client.answer().status, 200);
        elapse(Duration::from_millis(20));
    }
    // Under steady load on the one, the others have grown old and were closed.
    assert!(oldest.is_closed_within(PATIENCE));
    assert!(peers[1].is_closed_within(PATIENCE));
    assert_eq!(upstream.connections(), 3);
}

/// A dealer as the gateway knows it, which never grows idle.
fn facts(port: u16, http2: bool) -> Arc<Facts> {
    let hour = Duration::from_secs(3600);
    Arc::new(Facts::new(Parts {
        name: "lakeside".into(),
        host: "127.0.0.1".into(),
        port,
        authority: HeaderValue::from_static("dealer.example"),
        path: "".into(),
        trailing_slash: false,
        http2,
        preserve_host: false,
        headers: Box::default(),
        timeouts: Timeouts {
            connect: PATIENCE,
            response: PATIENCE,
            idle: PATIENCE,
            keep_alive: hour,
        },
        max_connections: 10,
        max_waiting: 10,
        max_in_flight: None,
        meters: Meters::default(),
        secure: None,
    }))
}

#[tokio::test]
async fn however_busy_a_connection_is_not_used_for_more_than_five_minutes() {
    let one = Upstream::answering(upstream::ok());
    let two = Dealer::start();
    let dealers = [
        facts(one.address.port(), false),
        facts(two.address.port(), true),
    ];
    let connections = || [one.connections(), two.connections()];
    let pools = Pools::default();
    let ask = async || {
        for dealer in &dealers {
            let mut lines = Lines::new();
            lines.push(b"host", b"dealer.example");
            let request = Request {
                method: &Method::POST,
                target: "/",
                lines: &lines,
                body: &Bytes::from_static(b"{}"),
            };
            let reply = pools.exchange(dealer, request, Instant::now()).await;
            reply.unwrap().body.collect().await.unwrap();
        }
    };
    let later = async |seconds| {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(seconds)).await;
        tokio::time::resume();
    };
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async {
            ask().await;
            // In use all along.
            for _ in 0..7 {
                later(30).await;
                ask().await;
            }
            assert_eq!(connections(), [1, 1]);
            for _ in 0..4 {
                later(30).await;
                ask().await;
            }
            assert_eq!(connections(), [2, 2]);
        })
        .await;
    assert_eq!((one.count(), two.count()), (12, 12));
}

/// Six hundred leads, so spaced that either side would just be closing the connection: each arrives,
/// once. In clear and over TLS.
#[test]
fn six_hundred_spaced_calls_arrive_once_each() {
    let quiet = Duration::from_millis(200);
    let place = Place::new();
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    let own = place.authority.issue(&["127.0.0.1"]);
    thread::scope(|scope| {
        for lane in 0..20_u64 {
            let (place, own) = (&place, &own);
            scope.spawn(move || {
                let upstream = Upstream::scripted(move |mut peer| {
                    peer.socket().set_read_timeout(Some(quiet)).unwrap();
                    while peer.request().is_some() {
                        peer.send(upstream::ok());
                    }
                    peer.close();
                });
                let front = (lane % 2 == 1).then(|| Front::new(upstream.address, own, None));
                let mut text = dealer_with(&upstream, "keep_alive = \"40ms\"", "");
                if let Some(front) = &front {
                    let ca = format!("keep_alive = \"40ms\"\nca = \"{}\"", place.at("ca.pem"));
                    text = text.replace(
                        &format!("http://{}", upstream.address),
                        &format!("https://{}", front.address),
                    );
                    text = text.replace("keep_alive = \"40ms\"", &ca);
                }
                let gateway = Gateway::start(&text);
                let mut client = gateway.client();
                for id in 0..30 {
                    let answer = client.ask(post(lead(&id.to_string(), None)));
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    let spaced = if id % 5 == 0 { 198 } else { 38 };
                    elapse(Duration::from_millis(spaced + (id + lane) % 5));
                }
                assert_eq!(upstream.count(), 30);
                let ids: HashSet<Vec<u8>> =
                    upstream.arrivals().into_iter().map(|it| it.body).collect();
                assert_eq!(ids.len(), 30);
                // There were connections to be given up, and others that were not.
                assert!((6..30).contains(&upstream.connections()));
            });
        }
    });
}
