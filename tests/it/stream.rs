//! Streams: each piece as it comes, every byte as it was, and no more of it held than in transit.

use std::io::{Read, Write};
use std::time::Duration;

use crate::support::call::{call, post};
use crate::support::gateway::{dealer, dealer_with};
use crate::support::upstream::answer;
use crate::support::wait::{elapse, stays};
use crate::support::{Client, Gateway, PATIENCE, Peer, Post, U, Upstream, wait_until};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n\r\n";

/// More than what lies between a dealer and a caller can hold, in bytes.
const LARGE: usize = 48 * 1024 * 1024;

fn streaming() -> Vec<u8> {
    let body = call("33").replace("SendMessage", "SendStreamingMessage");
    Post::to("/a2a")
        .field("Accept", "text/event-stream")
        .field("Accept-Encoding", "gzip, br")
        .body(body)
        .bytes()
}

/// A stream whose head has come through.
fn open(gateway: &Gateway, upstream: &Upstream) -> (Client, Peer) {
    let mut client = gateway.client();
    client.send(streaming());
    let mut peer = upstream.accept();
    peer.request().unwrap();
    peer.send(HEAD);
    let head = client.head();
    assert_eq!(head.start, "HTTP/1.1 200 OK");
    assert_eq!(
        head.all("content-type"),
        ["text/event-stream; charset=utf-8"]
    );
    assert_eq!(head.all("cache-control"), ["no-cache"]);
    assert_eq!(head.all("x-accel-buffering"), ["no"]);
    assert_eq!(head.all("a2a-extensions"), [U]);
    assert!(head.is_chunked());
    for absent in ["content-length", "content-encoding"] {
        assert!(!head.has(absent), "{absent}");
    }
    (client, peer)
}

#[test]
fn events_pass_one_by_one_and_unchanged() {
    let upstream = Upstream::manual();
    let gateway = Gateway::before(&upstream);
    let (mut client, mut peer) = open(&gateway, &upstream);
    let car = "data: \u{1f697}\n\n".as_bytes();
    let huge = format!("data: {}\n\n", "x".repeat(2 * 1024 * 1024));
    let pieces: [&[u8]; 10] = [
        b": ping\n\n",
        b"event: x\nid: 7\ndata: {\ndata: \"a\":1}\n\n",
        b"data: crlf\r\n\r\n",
        b"retry: 10\n\n",
        // An event cut inside a character.
        &car[..8],
        &car[8..],
        b"\n",
        b"data: \xff not UTF-8 \x00\n\n",
        huge.as_bytes(),
        b"data: last",
    ];
    for piece in pieces {
        // The next is sent only when this one is through.
        if piece.len() > 1024 {
            std::thread::scope(|scope| {
                scope.spawn(|| peer.chunk(piece));
                assert!(client.bytes(piece.len()) == piece, "the huge event changed");
            });
        } else {
            peer.chunk(piece);
            assert_eq!(client.bytes(piece.len()), piece);
        }
    }
    peer.send("5;ext=\"1\"\r\n12345\r\n");
    assert_eq!(client.bytes(5), b"12345");
    peer.send("0\r\nX-Sum: 1\r\n\r\n");
    assert_eq!(client.chunk().unwrap(), None);
    let line = gateway.last_line();
    assert_eq!(line["outcome"], "ok");
    let sent: usize = pieces.iter().map(|piece| piece.len()).sum();
    assert_eq!(line["bytes_out"], sent + 5);
    // Both connections go on.
    client.send(post(call("1")));
    peer.request().unwrap();
    peer.send(crate::support::upstream::ok());
    assert_eq!(client.answer().status, 200);
}

#[test]
fn a_stream_has_no_total_time() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&format!(
        "[limits]\nbody_timeout = \"1s\"\nheader_timeout = \"1s\"\nidle_timeout = \"1s\"\n{}",
        dealer_with(
            &upstream,
            "response_timeout = \"1s\"\nidle_timeout = \"1500ms\"\nkeep_alive = \"20ms\"",
            ""
        )
    ));
    let (mut client, mut peer) = open(&gateway, &upstream);
    // Comments are bytes and count as life; the stream lives longer than every limit.
    for _ in 0..20 {
        elapse(Duration::from_millis(100));
        peer.chunk(": ping\n\n");
        assert_eq!(client.bytes(8), b": ping\n\n");
    }
    peer.send("0\r\n\r\n");
    assert_eq!(client.chunk().unwrap(), None);
    assert_eq!(gateway.last_line()["outcome"], "ok");
}

#[test]
fn a_stream_without_a_length_ends_with_its_connection() {
    let upstream = Upstream::manual();
    let gateway = Gateway::before(&upstream);
    let mut client = gateway.client();
    client.send(streaming());
    let mut peer = upstream.accept();
    peer.request().unwrap();
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
    let head = client.head();
    assert!(head.is_chunked());
    peer.send("data: 1\n\n");
    assert_eq!(client.bytes(9), b"data: 1\n\n");
    peer.close();
    assert_eq!(client.chunk().unwrap(), None);
    assert_eq!(gateway.last_line()["outcome"], "ok");
}

#[test]
fn a_slow_reader_holds_the_dealer_back() {
    let upstream = Upstream::manual();
    let gateway = Gateway::before(&upstream);
    let (mut client, peer) = open(&gateway, &upstream);
    // The dealer writes as long as somebody takes it; the client takes nothing.
    let chunk = format!("{:x}\r\n{}\r\n", 64 * 1024, "x".repeat(64 * 1024));
    let mut socket = peer.socket();
    socket
        .set_write_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let mut written = 0_usize;
    let most = 64 * 1024 * 1024;
    while written < most {
        match socket.write(chunk.as_bytes()) {
            Ok(count) => written += count,
            Err(_) => break,
        }
        if !written.is_multiple_of(chunk.len()) {
            break;
        }
    }
    // Two pairs of socket buffers and a little in between.
    assert!(written < 24 * 1024 * 1024, "{written} bytes were taken");
    // The stream is held, not cut: it goes on as soon as the client reads.
    let first = client.chunk().unwrap().unwrap();
    assert!(first.iter().all(|byte| *byte == b'x'));
    drop(client);
    wait_until("ended", || gateway.ended("client_gone") == 1.0);
}

#[test]
fn a_reader_that_takes_nothing_is_cut() {
    let upstream = Upstream::manual();
    let gateway = Gateway::start(&format!(
        "[limits]\nidle_timeout = \"200ms\"\n{}",
        dealer(&upstream)
    ));
    let (client, mut peer) = open(&gateway, &upstream);
    let chunk = format!("{:x}\r\n{}\r\n", 64 * 1024, "x".repeat(64 * 1024));
    // Until the gateway gives up on the client and with it on the dealer.
    let mut sent = 0;
    while peer.try_send(&chunk).is_ok() {
        sent += 1;
        assert!(sent < 10_000);
    }
    assert!(peer.is_closed_within(PATIENCE));
    wait_until("ended", || gateway.ended("client_gone") == 1.0);
    drop(client);
}

#[test]
fn a_reader_that_is_slow_gets_all_of_it() {
    let upstream = Upstream::scripted(|mut peer| {
        peer.request();
        // Whatever the client takes, there is more for it.
        peer.send(answer("200 OK", "", &"x".repeat(LARGE)));
    });
    let gateway = Gateway::start(&format!(
        "[limits]\nidle_timeout = \"400ms\"\n{}",
        dealer(&upstream)
    ));
    let mut client = gateway.client();
    client.send(post(call("1")));
    assert_eq!(client.head().length(), Some(LARGE));
    let mut socket = client.socket();
    let mut buffer = vec![0; LARGE / 16];
    for part in 0..15 {
        socket.read_exact(&mut buffer).unwrap_or_else(|error| {
            panic!("{error} in part {part}");
        });
        elapse(Duration::from_millis(100));
    }
    drop(client);
}

#[test]
fn a_stream_waits_for_nothing_but_its_own_head() {
    let upstream = Upstream::manual();
    let gateway = Gateway::before(&upstream);
    let (mut client, mut peer) = open(&gateway, &upstream);
    // While one stream is quiet, other calls go on, on connections of their own.
    assert!(stays(Duration::from_millis(20), || client.is_quiet()));
    let mut other = gateway.client();
    other.send(post(call("1")));
    let mut second = upstream.accept();
    second.request().unwrap();
    second.send(crate::support::upstream::ok());
    assert_eq!(other.answer().status, 200);
    assert_eq!(gateway.series("forecourt_requests_in_flight"), 1.0);
    peer.chunk("data: 1\n\n");
    assert_eq!(client.bytes(9), b"data: 1\n\n");
    peer.send("0\r\n\r\n");
    assert_eq!(client.chunk().unwrap(), None);
    assert_eq!(gateway.series("forecourt_requests_in_flight"), 0.0);
}
