//! Heads as they come, whole and in pieces, and what is none.

use super::*;

const LIMITS: Limits = Limits {
    bytes: 1024,
    lines: 10,
};

fn request(bytes: &str) -> Result<Option<RequestHead>, BadHead> {
    read_request(&mut BytesMut::from(bytes), LIMITS)
}

fn response(bytes: &str) -> Result<Option<ResponseHead>, BadHead> {
    read_response(&mut BytesMut::from(bytes), LIMITS)
}

#[test]
fn a_request_head_is_read_and_nothing_after_it() {
    let bytes =
        "\r\n\r\nPOST /a2a?x=1 HTTP/1.1\r\nHost: a\r\nX-Empty:\r\nContent-Length: 2\r\n\r\n{}GET";
    let start = bytes.find("{}").unwrap();
    for cut in 4..start {
        let mut received = BytesMut::from(&bytes.as_bytes()[..cut]);
        assert!(read_request(&mut received, LIMITS).unwrap().is_none());
        received.extend_from_slice(&bytes.as_bytes()[cut..]);
        let head = read_request(&mut received, LIMITS).unwrap().unwrap();
        assert_eq!(head.method, Method::POST);
        assert_eq!(head.uri, "/a2a?x=1");
        assert_eq!(head.fields.first(Known::Host), Some(&b"a"[..]));
        let name = http::HeaderName::from_static("x-empty");
        assert!(head.fields.named(&name).eq([b""]));
        assert_eq!(head.length(), Some(Length::Exact(2)));
        assert!(head.keeps_alive);
        assert_eq!(received, "{}GET");
    }
}

#[test]
fn a_request_frames_its_body_in_one_way_or_in_none() {
    for (fields, length) in [
        ("", Some(Length::Exact(0))),
        ("Content-Length: 0012\r\n", Some(Length::Exact(12))),
        ("Transfer-Encoding: Chunked\r\n", Some(Length::Chunked)),
        ("Content-Length: 1\r\nContent-Length: 1\r\n", None),
        ("Content-Length: 1, 1\r\n", None),
        ("Content-Length: +1\r\n", None),
        ("Content-Length:\r\n", None),
        ("Content-Length: 18446744073709551616\r\n", None),
        ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", None),
        ("Transfer-Encoding: gzip, chunked\r\n", None),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            None,
        ),
    ] {
        let head = request(&format!("POST / HTTP/1.1\r\n{fields}\r\n"));
        assert_eq!(head.unwrap().unwrap().length(), length, "{fields}");
    }
    let old = request("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(old.unwrap().unwrap().length(), None);
}

#[test]
fn what_the_parser_lets_pass_is_noted() {
    for (bytes, bare, fragment) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, false),
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", true, false),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", true, false),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", true, false),
        ("GET /#x HTTP/1.1\r\nHost: a\r\n\r\n", false, true),
    ] {
        let head = request(bytes).unwrap().unwrap();
        assert_eq!(head.has_bare_line_feed, bare, "{bytes:?}");
        assert_eq!(head.has_fragment, fragment, "{bytes:?}");
    }
}

#[test]
fn what_is_no_head_is_told_at_once() {
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: 1\r\n".repeat(11));
    let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(1024));
    let longer = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1024));
    for (bytes, why) in [
        ("\u{16}\u{3}\u{1}", BadHead::Malformed),
        ("GET  / HTTP/1.1\r\n", BadHead::Malformed),
        ("GET / HTTP/1.1\r\nA B: 1\r\n", BadHead::Malformed),
        ("GET / HTTP/1.1\r\nA : 1\r\n", BadHead::Malformed),
        ("GET / HTTP/1.1\r\n A: 1\r\n", BadHead::Malformed),
        ("GET / HTTP/1.1\r\nA: 1\r\n B\r\n", BadHead::Malformed),
        ("GET / HTTP/1.1\r\nA: \u{0}\r\n", BadHead::Malformed),
        ("GET / HTTP/2.0\r\n\r\n", BadHead::Version),
        ("GET / 2 HTTP/1.1\r\n\r\n", BadHead::Malformed),
        (&many, BadHead::TooLarge),
        (&long, BadHead::TooLarge),
        (&longer, BadHead::TooLarge),
    ] {
        assert_eq!(request(bytes).unwrap_err(), why, "{bytes:?}");
    }
}

#[test]
fn as_many_lines_as_a_limit_allows() {
    let limits = Limits {
        bytes: 1 << 20,
        lines: 1000,
    };
    let fields = "X: 1\r\n".repeat(1000);
    let mut received = BytesMut::from(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_str());
    let head = read_request(&mut received, limits).unwrap().unwrap();
    assert_eq!(head.fields.len(), 1000);
}

#[test]
fn a_response_frames_its_body_in_one_way_or_in_none() {
    for (head, answers_head, length) in [
        (
            "200 OK\r\nContent-Length: 3\r\n",
            false,
            Some(Length::Exact(3)),
        ),
        (
            "200 OK\r\nContent-Length: 3\r\n",
            true,
            Some(Length::Exact(0)),
        ),
        (
            "200\r\nTransfer-Encoding: chunked\r\n",
            false,
            Some(Length::Chunked),
        ),
        ("200 OK\r\n", false, Some(Length::Close)),
        ("204 No Content\r\n", false, Some(Length::Exact(0))),
        (
            "304 Not Modified\r\nContent-Length: 3\r\n",
            false,
            Some(Length::Exact(0)),
        ),
        ("100 Continue\r\n", false, Some(Length::Exact(0))),
        (
            "200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n",
            false,
            None,
        ),
        ("200 OK\r\nContent-Length: x\r\n", false, None),
        (
            "200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            false,
            None,
        ),
        ("200 OK\r\nTransfer-Encoding: gzip\r\n", false, None),
        ("204 No Content\r\nTransfer-Encoding: gzip\r\n", false, None),
    ] {
        let read = response(&format!("HTTP/1.1 {head}\r\n")).unwrap().unwrap();
        assert_eq!(read.length(answers_head), length, "{head}");
    }
    let old = response("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(old.unwrap().unwrap().length(false), None);
}

#[test]
fn a_connection_is_kept_by_version_and_option() {
    for (version, fields, keeps) in [
        ("1.1", "", true),
        ("1.1", "Connection: x, Close\r\n", false),
        (
            "1.1",
            "Connection: keep-alive\r\nConnection: close\r\n",
            false,
        ),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
    ] {
        let read = response(&format!("HTTP/{version} 200 OK\r\n{fields}\r\n"));
        assert_eq!(
            read.unwrap().unwrap().keeps_alive,
            keeps,
            "{version} {fields}"
        );
        let read = request(&format!("GET / HTTP/{version}\r\n{fields}\r\n"));
        assert_eq!(
            read.unwrap().unwrap().keeps_alive,
            keeps,
            "{version} {fields}"
        );
    }
}

#[test]
fn what_is_no_response_is_told() {
    for bytes in [
        "<html>",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 099 No\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA B: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: 1\r\n folded\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
    ] {
        assert!(response(bytes).is_err(), "{bytes:?}");
    }
    assert!(response("HTTP/1.1 200 OK\r\n").unwrap().is_none());
}

#[test]
fn options_of_a_connection_are_bounded_over_all_lines() {
    let head = |lines: usize, options: usize| {
        let line = format!("Connection: x{}\r\n", ",".repeat(options - 1));
        line.repeat(lines)
    };
    for (fields, is_fine) in [
        (head(1, MOST_OPTIONS), true),
        (head(2, MOST_OPTIONS / 2), true),
        (head(1, MOST_OPTIONS + 1), false),
        (head(2, MOST_OPTIONS / 2 + 1), false),
    ] {
        let read = request(&format!("GET / HTTP/1.1\r\n{fields}\r\n"));
        let answer = response(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"));
        assert_eq!(read.is_ok_and(|it| it.is_some()), is_fine, "{fields}");
        assert_eq!(answer.is_ok_and(|it| it.is_some()), is_fine, "{fields}");
    }
}

#[test]
fn the_end_of_a_head_is_seen_however_its_lines_end_and_in_whatever_pieces() {
    for (bytes, ends) in [
        ("GET / HTTP/1.1\r\nA: b\r\n\r\n", true),
        ("GET / HTTP/1.1\nA: b\n\n", true),
        ("GET / HTTP/1.1\nA: b\n\r\n", true),
        ("GET / HTTP/1.1\r\nA: b\r\n\n", true),
        ("GET / HTTP/1.1\r\nA: b\r\n", false),
        ("GET / HTTP/1.1\r\nA: b\r\n\r", false),
        ("\r\r", false),
        ("", false),
    ] {
        let bytes = bytes.as_bytes();
        assert_eq!(ends_head(bytes, 0), ends, "{bytes:?}");
        for size in 1..=bytes.len() {
            let mut seen = 0;
            let found = (size..=bytes.len())
                .step_by(size)
                .chain([bytes.len()])
                .any(|at| {
                    let found = ends_head(&bytes[..at], seen);
                    seen = at;
                    found
                });
            assert_eq!(found, ends, "{bytes:?} in pieces of {size}");
        }
    }
}
