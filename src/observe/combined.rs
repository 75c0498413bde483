//! Decides how a line is spelled for tools that read what nginx and Apache write: their combined format,
//! with the request's id and outcome after it.
//!
//! Where those have `Referer`, a `-` stands: it may carry whatever the page before had in its address.
//! Text from strangers is cut and escaped as nginx does, `\xHH`: no quote, no control character and no
//! byte that is not ASCII gets through.

use super::clock::Rfc3339;
use super::line::{Line, most, without_query};

/// The longest name of a caller, in bytes.
const CALLER: usize = 128;

/// Appends the line and a line feed.
pub(super) fn append(line: &Line<'_>, out: &mut Vec<u8>, spelled: &mut Rfc3339) {
    field(out, line.client_ip.unwrap_or("-").as_bytes(), CALLER);
    out.extend_from_slice(b" - ");
    field(out, user(line.caller).as_bytes(), CALLER);
    out.push(b' ');
    spelled.append_common(out, line.ts);
    out.extend_from_slice(b" \"");
    field(out, line.method.unwrap_or("-").as_bytes(), most::METHOD);
    out.push(b' ');
    let path = line.path.map_or("-", without_query);
    field(out, path.as_bytes(), most::PATH);
    out.push(b' ');
    field(out, line.protocol.unwrap_or("-").as_bytes(), most::METHOD);
    out.extend_from_slice(b"\" ");
    match line.status {
        Some(status) => number(out, status.into()),
        // nginx has this for a client that closed before it was answered.
        None => number(out, 499),
    }
    out.push(b' ');
    number(out, line.bytes_out);
    out.extend_from_slice(b" \"-\" \"");
    text(out, line.user_agent.unwrap_or(b"-"), most::USER_AGENT);
    out.extend_from_slice(b"\" \"");
    text(out, line.request_id.unwrap_or(b"-"), most::REQUEST_ID);
    out.extend_from_slice(b"\" ");
    out.extend_from_slice(line.outcome.label().as_bytes());
    out.push(b'\n');
}

/// The user is who has proven to be somebody; an address stands at the beginning of the line already.
fn user(caller: Option<&str>) -> &str {
    caller
        .filter(|name| *name != "nobody" && !name.starts_with("address "))
        .unwrap_or("-")
}

fn number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Text that stands between spaces, and so has none.
fn field(out: &mut Vec<u8>, bytes: &[u8], most: usize) {
    escape(out, bytes, most, |byte| byte.is_ascii_graphic());
}

/// Text that stands in quotes.
fn text(out: &mut Vec<u8>, bytes: &[u8], most: usize) {
    escape(out, bytes, most, |byte| matches!(byte, b' '..=b'~'));
}

fn escape(out: &mut Vec<u8>, bytes: &[u8], most: usize, is_plain: impl Fn(u8) -> bool) {
    for byte in bytes.iter().copied().take(most) {
        if is_plain(byte) && !matches!(byte, b'"' | b'\\') {
            out.push(byte);
        } else {
            let digit = |half: u8| char::from_digit(half.into(), 16).map_or(b'0', |it| it as u8);
            let high = digit(byte >> 4).to_ascii_uppercase();
            let low = digit(byte & 0xf).to_ascii_uppercase();
            out.extend_from_slice(&[b'\\', b'x', high, low]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Timestamp;
    use crate::protocol::Outcome;
    use proptest::prelude::*;

    fn written(line: &Line<'_>) -> String {
        let mut out = Vec::new();
        append(line, &mut out, &mut Rfc3339::default());
        String::from_utf8(out).unwrap()
    }

    fn at() -> Timestamp {
        Timestamp::from_millisecond(1_796_057_603_042).unwrap()
    }

    #[test]
    fn a_line_as_nginx_writes_it() {
        let line = Line {
            client_ip: Some("192.0.2.7"),
            caller: Some("acme"),
            method: Some("POST"),
            path: Some("/a2a?key=secret"),
            protocol: Some("HTTP/1.1"),
            status: Some(200),
            bytes_out: 512,
            user_agent: Some(b"curl/8 \"x\""),
            request_id: Some(b"req-1"),
            ..Line::new(at(), Outcome::RateLimited)
        };
        let expected = "192.0.2.7 - acme [30/Nov/2026:16:53:23 +0000] \"POST /a2a HTTP/1.1\" 200 512 \
                        \"-\" \"curl/8 \\x22x\\x22\" \"req-1\" rate_limited\n";
        assert_eq!(written(&line), expected);
        let unknown = written(&Line::new(at(), Outcome::ClientGone));
        let expected =
            "- - - [30/Nov/2026:16:53:23 +0000] \"- - -\" 499 0 \"-\" \"-\" \"-\" client_gone\n";
        assert_eq!(unknown, expected);
    }

    #[test]
    fn who_is_not_proven_is_no_user() {
        for (caller, user) in [
            ("address 192.0.2.7", "-"),
            ("nobody", "-"),
            ("x-api-key#1a2b3c4d", "x-api-key#1a2b3c4d"),
            ("Acme Motors", "Acme\\x20Motors"),
        ] {
            let line = Line {
                caller: Some(caller),
                ..Line::new(at(), Outcome::Ok)
            };
            let written = written(&line);
            assert_eq!(written.split(' ').nth(2), Some(user), "{written}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_a_second_line_or_field(
            text in any::<String>(),
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let line = Line {
                client_ip: Some(&text),
                caller: Some(&text),
                method: Some(&text),
                path: Some(&text),
                user_agent: Some(&bytes),
                request_id: Some(&bytes),
                ..Line::new(at(), Outcome::Ok)
            };
            let written = written(&line);
            prop_assert!(written.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')));
            prop_assert_eq!(written.matches('\n').count(), 1);
            // Four pairs of quotes, whatever stands in them.
            prop_assert_eq!(written.matches('"').count(), 8);
            prop_assert!(written.ends_with(" ok\n"));
        }
    }
}
