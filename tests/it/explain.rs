//! What would become of a request: the answer's bytes are those of the wire, for every fixture and
//! every refusal, live and by a file; and nothing is consumed by asking.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use forecourt::app::{self, Options};
use forecourt::limit::ManualClock;
use forecourt::observe::ManualWallClock;
use serde_json::Value;

use crate::support::gateway::NOW_MS;
use crate::support::{Gateway, PATIENCE, Post};

mod fixtures;
mod kinds;
mod odd;
mod told;

/// Asks a running gateway.
#[track_caller]
pub fn ask(gateway: &Gateway, request: &[u8]) -> Value {
    ask_as(gateway, request, "")
}

/// The same with a query.
#[track_caller]
pub fn ask_as(gateway: &Gateway, request: &[u8], query: &str) -> Value {
    let post = Post::method("POST", &format!("/explain{query}"))
        .field("Host", "127.0.0.1")
        .field("Content-Length", &request.len().to_string())
        .without_length()
        .body(request);
    let answer = gateway.admin().ask(post.bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// Explains by a file, on clocks that stand as those of the gateways of tests.
#[track_caller]
pub fn by_file(file: &Path, request: &[u8]) -> Value {
    let options = Options {
        path: file.to_owned(),
        env: Arc::new(|name| (name == "DEALER_TOKEN").then(|| "dealer-secret".to_owned())),
        clock: Arc::new(ManualClock::new()),
        wall: Arc::new(ManualWallClock::at(NOW_MS)),
    };
    let client = [127, 0, 0, 1].into();
    let told = app::explained(&options, request.to_vec().into(), client, None);
    serde_json::to_value(told.unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

/// What an answer is told to be, to the byte.
pub fn told(explanation: &Value) -> Option<String> {
    let answer = &explanation["answer"];
    let text = |member: &str| answer[member].as_str().unwrap().to_owned();
    answer.is_object().then(|| text("head") + &text("body"))
}

/// What is answered on the wire, to the byte.
#[track_caller]
pub fn wire(address: SocketAddr, request: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(request).unwrap();
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        assert_eq!(
            socket.read(&mut byte).unwrap(),
            1,
            "closed without an answer"
        );
        bytes.push(byte[0]);
        if bytes.ends_with(b"HTTP/1.1 100 Continue\r\n\r\n") {
            bytes.clear();
        }
    }
    let head = String::from_utf8(bytes).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    let is_head = request.starts_with(b"HEAD ");
    let mut body = vec![0; if is_head { 0 } else { length }];
    socket.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

/// Without what is drawn anew for each answer: error id, times, and an id that the gateway made.
pub fn masked(answer: &str) -> String {
    let mut text = answer.to_owned();
    for (start, end) in [
        ("\r\ndate: ", "\r\n"),
        ("\r\nx-request-id: 0", "\r\n"),
        ("\"error_id\":\"", "\""),
        ("\"created_at\":\"", "\""),
    ] {
        let mut from = 0;
        while let Some(at) = text[from..].find(start) {
            let begin = from + at + start.len();
            let length = text[begin..].find(end).unwrap();
            text.replace_range(begin..begin + length, "*");
            from = begin;
        }
    }
    text
}

#[test]
fn a_mask_hides_nothing_else() {
    let answer = "HTTP/1.1 200 OK\r\nx-request-id: 0190\r\ndate: Mon\r\nx: 1\r\n\r\n\
                  {\"a\":[{\"error_id\":\"e\"},{\"error_id\":\"f\",\"created_at\":\"t\"}]}";
    let expected = "HTTP/1.1 200 OK\r\nx-request-id: 0*\r\ndate: *\r\nx: 1\r\n\r\n\
                    {\"a\":[{\"error_id\":\"*\"},{\"error_id\":\"*\",\"created_at\":\"*\"}]}";
    assert_eq!(masked(answer), expected);
    assert_eq!(
        masked("HTTP/1.1 200 OK\r\nx: 1\r\n\r\n{}"),
        "HTTP/1.1 200 OK\r\nx: 1\r\n\r\n{}"
    );
}
