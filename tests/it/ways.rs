//! What must hold whatever is spoken: over HTTP/1.1 and HTTP/2, in clear and over TLS, on either
//! side. Every test here runs all sixteen ways.

use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::call::{call, lead, search};
use crate::support::tls::Ending;
use crate::support::wait::elapse;
use crate::support::ways::{Caller, Dealing, Leaving, SPEECHES, Speech, Ways};
use crate::support::{PATIENCE, U, Watch, wait_until};

const EVENTS: [(&str, &str); 2] = [
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache"),
];

fn streaming() -> String {
    call("33").replace("SendMessage", "SendStreamingMessage")
}

/// Runs a test before each dealer, all at once.
fn each_dealer(test: impl Fn(Speech) + Sync) {
    thread::scope(|scope| {
        for dealer in SPEECHES {
            let test = &test;
            let run = thread::Builder::new().name(format!("{dealer:?}"));
            run.spawn_scoped(scope, move || test(dealer)).unwrap();
        }
    });
}

/// A stream whose head has come through.
#[track_caller]
fn open(ways: &Ways, speech: Speech) -> (Caller, Dealing) {
    let mut caller = ways.caller(speech);
    caller.send(&streaming());
    let mut dealing = ways.arrived(&streaming());
    dealing.head(&EVENTS);
    let (status, head) = caller.head();
    assert_eq!(status, 200);
    assert_eq!(head.one("content-type").unwrap(), EVENTS[0].1);
    assert_eq!(head.one("cache-control").unwrap(), EVENTS[1].1);
    assert_eq!(head.one("x-accel-buffering").unwrap(), "no");
    assert_eq!(head.one("a2a-extensions").unwrap(), U);
    for absent in ["content-length", "content-encoding"] {
        assert!(!head.has(absent), "{absent}");
    }
    assert_eq!(head.is_chunked(), !speech.http2);
    (caller, dealing)
}

#[test]
fn events_pass_one_by_one_and_unchanged() {
    let car = "data: \u{1f697}\n\n".as_bytes();
    let large = format!("data: {}\n\n", "x".repeat(30 * 1024));
    let pieces: [&[u8]; 8] = [
        b": ping\n\n",
        b"event: x\nid: 7\ndata: {\ndata: \"a\":1}\n\n",
        b"data: crlf\r\n\r\n",
        // An event cut inside a character.
        &car[..8],
        &car[8..],
        b"data: \xff not UTF-8 \x00\n\n",
        large.as_bytes(),
        b"retry: 10\n\ndata: last",
    ];
    each_dealer(|dealer| {
        let ways = Ways::to(dealer, "", "");
        for (index, speech) in SPEECHES.into_iter().enumerate() {
            let (mut caller, mut dealing) = open(&ways, speech);
            for piece in pieces {
                // The next is sent only when this one is through.
                dealing.piece(piece);
                assert!(caller.bytes(piece.len()) == piece, "{speech:?}: {piece:?}");
            }
            dealing.end();
            assert_eq!(caller.piece(), Ok(None), "{speech:?}");
            assert_eq!(ways.outcome(index + 1), "ok", "{speech:?}");
        }
    });
}

#[test]
fn a_stream_may_be_slow_but_not_silent() {
    each_dealer(|dealer| {
        // Longer than every limit that is no limit of a stream's.
        let limits = "[limits]\nbody_timeout = \"400ms\"\nheader_timeout = \"400ms\"";
        let ways = Ways::to(
            dealer,
            limits,
            "response_timeout = \"400ms\"\nidle_timeout = \"600ms\"",
        );
        thread::scope(|scope| {
            for speech in SPEECHES {
                let (mut caller, mut dealing) = open(&ways, speech);
                scope.spawn(move || {
                    for _ in 0..10 {
                        // Comments are bytes and count as life.
                        dealing.piece(b": ping\n\n");
                        assert_eq!(caller.bytes(8), b": ping\n\n", "{speech:?}");
                        elapse(Duration::from_millis(150));
                    }
                    dealing.piece(b": ping\n\n");
                    let silent = Watch::start();
                    assert_eq!(caller.bytes(8), b": ping\n\n", "{speech:?}");
                    assert!(caller.piece().is_err(), "{speech:?}: a clean end");
                    let after = silent.elapsed();
                    assert!(after >= Duration::from_millis(590), "{speech:?}: {after:?}");
                    assert!(after < Duration::from_secs(3), "{speech:?}: {after:?}");
                    assert!(dealing.is_given_up_within(PATIENCE), "{speech:?}");
                });
            }
        });
        assert_eq!(ways.outcome(4), "upstream_timeout");
        assert_eq!(ways.gateway.ended("upstream_timeout"), 4.0);
    });
}

#[test]
fn a_caller_that_takes_a_little_all_the_time_is_not_cut() {
    let ways = Ways::to(SPEECHES[0], "[limits]\nidle_timeout = \"800ms\"", "");
    thread::scope(|scope| {
        for speech in SPEECHES {
            let (mut caller, dealing) = open(&ways, speech);
            let Dealing::One(mut peer) = dealing else {
                panic!("a dealer over HTTP/1.1 was asked for");
            };
            scope.spawn(move || {
                let chunk = format!("{:x}\r\n{}\r\n", 64 * 1024, "x".repeat(64 * 1024));
                while peer.try_send(&chunk).is_ok() {}
            });
            scope.spawn(move || {
                // Never as much as there is, and for much longer than it may take nothing.
                for _ in 0..250 {
                    elapse(Duration::from_millis(10));
                    let piece = caller.piece();
                    assert!(matches!(piece, Ok(Some(_))), "{speech:?}: {piece:?}");
                }
            });
        }
    });
    assert_eq!(ways.outcome(4), "client_gone");
}

#[test]
fn a_caller_that_goes_takes_its_call_along() {
    let second = Duration::from_secs(1);
    each_dealer(|dealer| {
        let ways = Ways::to(dealer, "", "");
        let mut count = 0;
        for speech in SPEECHES {
            for how in [Leaving::Hanging, Leaving::Resetting] {
                // Before the head.
                let mut caller = ways.caller(speech);
                caller.send(&streaming());
                let mut dealing = ways.arrived(&streaming());
                let left = caller.leave(how);
                assert!(dealing.is_given_up_within(second), "{speech:?} {how:?}");
                drop(left);
                // In the middle of a stream.
                let (mut caller, mut dealing) = open(&ways, speech);
                dealing.piece(b"data: 1\n\n");
                assert_eq!(caller.bytes(9), b"data: 1\n\n");
                let left = caller.leave(how);
                assert!(dealing.is_given_up_within(second), "{speech:?} {how:?}");
                drop(left);
                count += 2;
                assert_eq!(ways.outcome(count), "client_gone");
            }
        }
        let series = ["active", "idle"].map(|state| {
            format!("forecourt_upstream_connections{{upstream=\"lakeside\",state=\"{state}\"}}")
        });
        wait_until("nothing is left at the dealer", || {
            series.iter().all(|it| ways.gateway.series(it) == 0.0)
        });
        assert_eq!(ways.gateway.series("forecourt_requests_in_flight"), 0.0);
    });
}

#[test]
fn a_cut_stream_looks_cut() {
    each_dealer(|dealer| {
        for ending in [
            Ending::Politely,
            Ending::Truncated,
            Ending::Alerting,
            Ending::Garbling,
        ] {
            if ending != Ending::Politely && !dealer.tls {
                continue;
            }
            let ways = Ways::ending(dealer, "", "", ending);
            for (index, speech) in SPEECHES.into_iter().enumerate() {
                let (mut caller, mut dealing) = open(&ways, speech);
                dealing.piece(b"data: 1\n\n");
                assert_eq!(caller.bytes(9), b"data: 1\n\n");
                dealing.cut(false);
                assert!(
                    caller.piece().is_err(),
                    "{speech:?} {ending:?}: a clean end"
                );
                assert_eq!(
                    ways.outcome(index + 1),
                    "upstream_reset",
                    "{speech:?} {ending:?}"
                );
            }
        }
    });
}

#[test]
fn a_short_body_looks_cut() {
    each_dealer(|dealer| {
        let ways = Ways::to(dealer, "", "");
        for (index, speech) in SPEECHES.into_iter().enumerate() {
            let mut caller = ways.caller(speech);
            caller.send(&call("1"));
            let mut dealing = ways.arrived(&call("1"));
            match &mut dealing {
                Dealing::One(peer) => {
                    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n1234567890");
                }
                Dealing::Two(frames, stream) => {
                    let fields = [(":status", "200"), ("content-length", "100")];
                    frames.fields(*stream, &fields, false);
                    frames.send(0, 0, *stream, b"1234567890");
                }
            }
            let (status, head) = caller.head();
            assert_eq!((status, head.length()), (200, Some(100)));
            dealing.cut(false);
            caller.assert_cut(&head);
            assert_eq!(ways.outcome(index + 1), "upstream_reset", "{speech:?}");
        }
    });
}

/// What ends only with its connection has ended only if TLS says so.
#[test]
fn a_body_that_ends_with_its_connection_has_ended_only_in_order() {
    for ending in [
        Ending::Politely,
        Ending::Truncated,
        Ending::Alerting,
        Ending::Garbling,
    ] {
        let ways = Ways::ending(SPEECHES[1], "", "", ending);
        for (index, speech) in SPEECHES.into_iter().enumerate() {
            let mut caller = ways.caller(speech);
            caller.send(&call("1"));
            let mut dealing = ways.arrived(&call("1"));
            dealing.raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n12345");
            assert_eq!(caller.head().0, 200);
            assert_eq!(caller.bytes(5), b"12345");
            dealing.cut(false);
            let ended = caller.piece();
            let expected = if ending == Ending::Politely {
                assert_eq!(ended, Ok(None), "{speech:?}");
                "ok"
            } else {
                assert!(ended.is_err(), "{speech:?} {ending:?}: a clean end");
                "upstream_reset"
            };
            assert_eq!(ways.outcome(index + 1), expected, "{speech:?} {ending:?}");
        }
    }
}

/// One thing that a dealer does instead of answering: what it is, status, and outcome.
type Misdeed = (
    &'static str,
    u16,
    &'static str,
    fn(Dealing) -> Option<Dealing>,
);

const MISDEEDS: [Misdeed; 6] = [
    ("closes", 502, "upstream_reset", |dealing| {
        dealing.cut(false);
        None
    }),
    ("resets", 502, "upstream_reset", |dealing| {
        dealing.cut(true);
        None
    }),
    (
        "closes within the head",
        502,
        "upstream_reset",
        |mut dealing| {
            match dealing {
                Dealing::One(_) => dealing.raw(b"HTTP/1.1 200 OK\r\nContent-Le"),
                // A frame of ten bytes, of which three come.
                Dealing::Two(..) => dealing.raw(&[0, 0, 10, 1, 4, 0, 0, 0, 1, 0x88, 0, 1]),
            }
            dealing.cut(false);
            None
        },
    ),
    ("hangs", 504, "upstream_timeout", Some),
    ("is no HTTP", 502, "upstream_invalid", |mut dealing| {
        dealing.raw(b"SSH-2.0-OpenSSH_9.6\r\nand much more of it\r\n\r\n");
        Some(dealing)
    }),
    (
        "switches protocols",
        502,
        "upstream_invalid",
        |mut dealing| {
            match &mut dealing {
                Dealing::One(peer) => {
                    peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")
                }
                Dealing::Two(frames, stream) => frames.fields(*stream, &[(":status", "101")], true),
            }
            Some(dealing)
        },
    ),
];

#[test]
fn what_a_dealer_does_instead_of_answering_is_told_truthfully() {
    each_dealer(|dealer| {
        let ways = Ways::to(dealer, "", "response_timeout = \"400ms\"");
        let mut count = 0;
        for (what, status, outcome, misdeed) in MISDEEDS {
            for speech in SPEECHES {
                for (body, safe) in [(lead("\"a\"", None), false), (search("\"a\""), true)] {
                    let mut caller = ways.caller(speech);
                    caller.send(&body);
                    let kept = misdeed(ways.arrived(&body));
                    let (told, text) = caller.answer();
                    let way = format!("{what}, {speech:?}: {text}");
                    assert_eq!(told, status, "{way}");
                    let json: Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(json["id"], "a", "{way}");
                    assert_eq!(json["error"]["code"], -32603, "{way}");
                    let data = &json["error"]["data"];
                    assert_eq!(data[0]["reason"], "INTERNAL_ERROR", "{way}");
                    assert_eq!(data[1]["value"]["retryable"], safe, "{way}");
                    count += 1;
                    assert_eq!(ways.outcome(count), outcome, "{way}");
                    drop(kept);
                }
            }
        }
        // Nothing was ever sent twice.
        assert_eq!(ways.upstream.connections(), count);
    });
}

#[test]
fn interim_answers_are_not_answers() {
    each_dealer(|dealer| {
        let ways = Ways::to(dealer, "", "");
        for (index, speech) in SPEECHES.into_iter().enumerate() {
            let mut caller = ways.caller(speech);
            caller.send(&call("1"));
            let mut dealing = ways.arrived(&call("1"));
            match &mut dealing {
                Dealing::One(peer) => {
                    peer.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
                }
                Dealing::Two(frames, stream) => {
                    frames.fields(*stream, &[(":status", "103"), ("link", "</x>")], false);
                }
            }
            dealing.head(&[]);
            dealing.piece(b"{}");
            dealing.end();
            let (status, head) = caller.head();
            assert_eq!((status, head.has("link")), (200, false));
            assert_eq!(caller.bytes(2), b"{}");
            assert_eq!(caller.piece(), Ok(None));
            assert_eq!(ways.outcome(index + 1), "ok");
        }
    });
}
