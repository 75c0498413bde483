//! Some hundred streams of requests, well and badly framed, in random pieces over real sockets, held
//! to a reading of their own: as many requests arrive as that reading finds, with its very bodies;
//! as many answers come; and every connection ends in time.

use std::fmt::Write;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;

use crate::fuzz::targets::{Ended, chunks};
use crate::support::call::call;
use crate::support::gateway::dealer;
use crate::support::{Client, Gateway, Upstream, Watch};

/// How many streams.
const STREAMS: usize = 600;

/// How many at once.
const AT_ONCE: usize = 24;

/// What a client may wait for longest: heads, bodies and silence all have this.
const LIMIT: &str = "1s";

/// A connection must have ended by then: one limit, a moment for reading past the rest, and a busy
/// machine.
const DEADLINE: Duration = Duration::from_secs(15);

/// What a stream is to lead to.
#[derive(Debug, Default)]
struct Reading {
    /// The bodies of the requests that go through, and of those that are answered here: they are no
    /// JSON.
    bodies: Vec<Vec<u8>>,
    /// How it ends.
    end: End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    /// The last answer says that it does.
    #[default]
    Closed,
    /// With an answer that is none of the dealer's.
    Refused,
    /// Something is missing, or nothing more comes: after its time.
    Late,
}

/// A request's head, as strictly as it can be read.
struct Head {
    framing: Framing,
    keeps: bool,
}

enum Framing {
    Length(usize),
    Chunked,
}

/// Reads a stream of requests.
fn read(stream: &[u8]) -> Reading {
    let mut reading = Reading::default();
    let mut rest = stream;
    loop {
        while let [b'\r' | b'\n', after @ ..] = rest {
            rest = after;
        }
        let Some(end) = head_end(rest) else {
            reading.end = End::Late;
            return reading;
        };
        let (head, after) = rest.split_at(end);
        let Some(head) = parse(head) else {
            reading.end = End::Refused;
            return reading;
        };
        let (body, after) = match head.framing {
            Framing::Length(length) => match after.split_at_checked(length) {
                Some((body, after)) => (body.to_vec(), after.to_vec()),
                None => {
                    reading.end = End::Refused;
                    return reading;
                }
            },
            Framing::Chunked => match chunks(after) {
                (body, Ended::Whole { rest }) => (body, rest),
                (_, Ended::Open | Ended::Broken) => {
                    reading.end = End::Refused;
                    return reading;
                }
            },
        };
        reading.bodies.push(body);
        if !head.keeps {
            return reading;
        }
        rest = &stream[stream.len() - after.len()..];
    }
}

/// Where a head ends: after the first empty line.
fn head_end(stream: &[u8]) -> Option<usize> {
    let mut at = 0;
    for line in stream.split_inclusive(|byte| *byte == b'\n') {
        at += line.len();
        if matches!(line, b"\n" | b"\r\n") {
            return Some(at);
        }
    }
    None
}

/// `None`: it must be refused.
fn parse(head: &[u8]) -> Option<Head> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.strip_suffix("\r\n\r\n")?.split("\r\n");
    let is_old = match lines.next()? {
        "POST /a2a HTTP/1.1" => false,
        "POST /a2a HTTP/1.0" => true,
        _ => return None,
    };
    let (mut hosts, mut lengths, mut codings) = (Vec::new(), Vec::new(), Vec::new());
    let (mut closes, mut keeps) = (false, false);
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) || value.contains(['\r', '\n', '\0']) {
            return None;
        }
        let value = value.trim_matches([' ', '\t']);
        match &*name.to_ascii_lowercase() {
            "host" => hosts.push(value),
            "content-length" => lengths.push(value),
            "transfer-encoding" => codings.push(value.to_ascii_lowercase()),
            "expect" if value != "100-continue" => return None,
            "connection" => {
                for option in value.split(',').map(str::trim) {
                    match &*option.to_ascii_lowercase() {
                        "close" => closes = true,
                        "keep-alive" => keeps = true,
                        "host" | "content-length" | "transfer-encoding" => return None,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    match *hosts {
        [] if is_old => {}
        ["gw.example"] => {}
        _ => return None,
    }
    let framing = match (&*lengths, &*codings) {
        ([], []) => Framing::Length(0),
        ([length], []) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            Framing::Length(length.parse().ok()?)
        }
        ([], [coding]) if coding == "chunked" && !is_old => Framing::Chunked,
        _ => return None,
    };
    Some(Head {
        framing,
        keeps: !closes && (keeps || !is_old),
    })
}

/// A few times in 250 something else than usual.
fn pick<'t>(random: &mut Rng, times: u8, usual: &'t str, odd: &[&'t str]) -> &'t str {
    match random.u8(..250) < times {
        true => random.choice(odd).copied().unwrap_or(usual),
        false => usual,
    }
}

/// One request, more or less.
fn request(random: &mut Rng, id: &str, is_last: bool) -> String {
    let body = call(&format!("{id:?}"));
    let mut text = pick(
        random,
        6,
        "POST /a2a HTTP/1.1",
        &[
            "POST /a2a HTTP/1.0",
            "POST /a2a  HTTP/1.1",
            "POST /a2a HTTP/1.2",
            "POST /a2a",
            "GET /evil HTTP/1.1",
            "POST\t/a2a HTTP/1.1",
            "POST /a2a HTTP/1.1 ",
            " POST /a2a HTTP/1.1",
        ],
    )
    .to_owned();
    text += "\r\n";
    text += pick(
        random,
        6,
        "Host: gw.example\r\n",
        &[
            "",
            "Host: gw.example\r\nHost: gw.example\r\n",
            "Host: gw.example\r\nhost: other\r\n",
            "Host : gw.example\r\n",
            "Host: gw.example\n",
            "Host: gw.example\r",
            "Host: a b\r\n",
        ],
    );
    text += "Content-Type: application/json\r\n";
    text += pick(
        random,
        15,
        "",
        &[
            "Expect: 100-continue\r\n",
            "Expect: something\r\n",
            "Connection: keep-alive\r\n",
            "Connection: close\r\n",
            "Connection: x, Close\r\n",
            "Connection: transfer-encoding\r\n",
            "Connection: content-length, close\r\n",
            "Upgrade: h2c\r\nConnection: upgrade\r\n",
            "X-Folded: a\r\n b\r\n",
            " X: leading\r\n",
            "X-Bare: a\rTransfer-Encoding: chunked\r\n",
            "X: \u{e9}\r\n",
            "X\u{e9}: x\r\n",
            "no colon\r\n",
            "Transfer_Encoding: chunked\r\n",
            "X-Transfer-Encoding: chunked\r\n",
        ],
    );
    if is_last && random.u8(..100) >= 4 {
        text += "Connection: close\r\n";
    }
    let length = body.len();
    let right = format!("Content-Length: {length}\r\n");
    let by_length = random.bool();
    if by_length || random.u8(..100) < 3 {
        let odd = [
            format!("Content-Length: 0{length}\r\n"),
            format!("Content-Length: \t{length} \r\n"),
            format!("content-LENGTH:{length}\r\n"),
            format!("Content-Length: +{length}\r\n"),
            format!("Content-Length: {length}, {length}\r\n"),
            format!("Content-Length: {length}\r\nContent-Length: {length}\r\n"),
            format!("Content-Length: {length}\r\nContent-Length: 0\r\n"),
            format!("Content-Length: {length:#x}\r\n"),
            format!("Content-Length : {length}\r\n"),
            format!("Content-Length:\r\n {length}\r\n"),
            format!("Content-Length: {}\r\n", length - 1),
            format!("Content-Length: {}\r\n", length + 1),
            format!("Content-Length: {}\r\n", length + 60),
            format!("Content-Length: {length}\n"),
            "Content-Length: 99999999999999999999\r\n".to_owned(),
            "Content-Length: -1\r\n".to_owned(),
            "Content-Length: \r\n".to_owned(),
            "Content-Length: 0\r\n".to_owned(),
            String::new(),
        ];
        let odd: Vec<_> = odd.iter().map(String::as_str).collect();
        text += pick(random, 25, &right, &odd);
    }
    if !by_length || random.u8(..100) < 3 {
        text += pick(
            random,
            20,
            "Transfer-Encoding: chunked\r\n",
            &[
                "transfer-encoding:CHUNKED \r\n",
                "Transfer-Encoding: chunked, chunked\r\n",
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                "Transfer-Encoding: gzip, chunked\r\n",
                "Transfer-Encoding: identity\r\n",
                "Transfer-Encoding: xchunked\r\n",
                "Transfer-Encoding: \"chunked\"\r\n",
                "Transfer-Encoding: chunked;q=1\r\n",
                "Transfer-Encoding: \u{b}chunked\r\n",
                "Transfer-Encoding : chunked\r\n",
                "Transfer-Encoding:\r\n chunked\r\n",
                "Transfer-Encoding: chunked\n",
                "Transfer-Encoding:\r\n",
            ],
        );
    }
    text += pick(random, 3, "\r\n", &["\n", "\r", "\r\r\n"]);
    match by_length {
        true => text += &body,
        false => in_chunks(random, &body, &mut text),
    }
    text
}

fn in_chunks(random: &mut Rng, body: &str, text: &mut String) {
    let mut rest = body;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(random.usize(1..=rest.len()));
        let size = chunk.len();
        let spelled = [
            format!("{size:X}"),
            format!("000{size:x}"),
            format!("{size:x};a=\"b\""),
            format!("{size:x} ;a"),
            format!("{size:x} "),
            format!(" {size:x}"),
            format!("{size:#x}"),
            format!("+{size:x}"),
            format!("{:x}", size + 1),
            format!("{:x}", size - 1),
            format!("{size:x};a\rb"),
            format!("1{size:016x}"),
            String::new(),
        ];
        let odd: Vec<_> = spelled.iter().map(String::as_str).collect();
        let usual = format!("{size:x}");
        let line = pick(random, 6, &usual, &odd);
        let end = pick(random, 2, "\r\n", &["\n", "\r", "\r\r\n", "\r\n\r\n"]);
        let after_it = pick(random, 2, "\r\n", &["\n", "\r", "", "x\r\n"]);
        write!(text, "{line}{end}{chunk}{after_it}").unwrap();
        rest = after;
    }
    *text += pick(
        random,
        15,
        "0\r\n\r\n",
        &[
            "00\r\nX: 1\r\n\r\n",
            "0;a\r\n\r\n",
            "0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
            "0\r\n",
            "0\n\n",
            "0\r\nX: 1\n\r\n",
            "-0\r\n\r\n",
            "",
        ],
    );
}

/// Three requests one after the other; the last one ends the connection, if it is found.
fn stream(random: &mut Rng, number: usize) -> Vec<u8> {
    let requests = (0..3).map(|place| request(random, &format!("s{number}-{place}"), place == 2));
    // Characters up to U+00FF stand for bytes of UTF-8, two each: bytes above 0x7f.
    requests.collect::<String>().into_bytes()
}

/// Sends a stream in pieces and reads all answers; their statuses, and whether the last one closes.
fn answers(gateway: &Gateway, random: &mut Rng, stream: &[u8]) -> (Vec<u16>, bool) {
    let mut client = gateway.client();
    let mut rest = stream;
    while !rest.is_empty() {
        let most = [1, 20, 4000][random.usize(..3)];
        let (piece, after) = rest.split_at(random.usize(1..=most).min(rest.len()));
        if client.try_send(piece).is_err() {
            break;
        }
        if random.u8(..8) == 0 {
            thread::yield_now();
        }
        rest = after;
    }
    let mut statuses = Vec::new();
    let mut closes = false;
    while let Ok(Some(answer)) = client.try_answer() {
        statuses.push(answer.status);
        closes = answer.closes();
    }
    assert!(ended(&mut client), "the connection stays open");
    (statuses, closes)
}

fn ended(client: &mut Client) -> bool {
    match client.stream().read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

fn is_call(body: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(body).is_ok()
}

#[test]
fn no_stream_leads_to_a_request_that_it_does_not_hold() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_two(&format!(
        "[limits]\nheader_timeout = \"{LIMIT}\"\nbody_timeout = \"{LIMIT}\"\nidle_timeout = \"{LIMIT}\"\n{}",
        dealer(&upstream)
    ));
    let next = AtomicUsize::new(0);
    let (whole, refused, late) = Default::default();
    let counts: [&AtomicUsize; 3] = [&whole, &refused, &late];
    let one = |number: usize| {
        let mut random = Rng::with_seed(number as u64);
        let stream = stream(&mut random, number);
        let expected = read(&stream);
        let shown = || format!("stream {number}: {:?}", String::from_utf8_lossy(&stream));
        let watch = Watch::start();
        let (statuses, closes) = answers(&gateway, &mut random, &stream);
        assert!(watch.elapsed() < DEADLINE, "{}", shown());
        let well = statuses.iter().filter(|status| **status == 200).count();
        let requests = expected.bodies.len();
        assert_eq!(well, requests, "{statuses:?} {expected:?} {}", shown());
        match expected.end {
            End::Closed => {
                assert_eq!(statuses.len(), requests, "{statuses:?} {}", shown());
                assert!(closes, "{}", shown());
            }
            End::Refused => {
                assert_eq!(statuses.len(), requests + 1, "{statuses:?} {}", shown());
                assert!(closes && statuses.last() >= Some(&400), "{}", shown());
            }
            // What cannot become a head may be told so at once.
            End::Late => assert!(statuses.len() <= requests + 1, "{statuses:?} {}", shown()),
        }
        counts[expected.end as usize].fetch_add(1, Ordering::Relaxed);
        expected
    };
    let mut bodies: Vec<_> = thread::scope(|scope| {
        let run = || {
            let mut bodies = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= STREAMS {
                    return bodies;
                }
                bodies.extend(one(number).bodies.into_iter().filter(|it| is_call(it)));
            }
        };
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(run)).collect();
        threads
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect()
    });
    let mut arrived: Vec<_> = upstream.arrivals().into_iter().map(|it| it.body).collect();
    bodies.sort();
    arrived.sort();
    assert_eq!(arrived.len(), bodies.len());
    assert!(arrived == bodies, "other bodies arrived than were sent");
    // All kinds of ends were met, and not only by a few.
    let counts = counts.map(|count| count.load(Ordering::Relaxed));
    assert!(
        counts[0] > STREAMS / 5 && counts[1] > STREAMS / 5,
        "{counts:?}"
    );
    assert!(counts[2] > 3, "{counts:?}");
}
