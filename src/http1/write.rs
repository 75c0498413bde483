//! Decides how first lines and chunks are written: one space, CR LF.
//!
//! Appends to a buffer and nothing else. Must never be given a value that was not checked to be one:
//! `Method` and a parsed target are.

use http::{Method, StatusCode, Version};

use super::body::Length;
use super::lines::Lines;

/// `POST /a2a HTTP/1.1`.
pub fn request_line(out: &mut Vec<u8>, method: &Method, target: &str) {
    out.extend_from_slice(method.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
}

/// `HTTP/1.1 200 OK`. A status without a common reason has none.
pub fn status_line(out: &mut Vec<u8>, status: StatusCode) {
    if status == StatusCode::OK {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        return;
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    let reason = status.canonical_reason().unwrap_or_default();
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// What an answer's head depends on beside what it says.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'d> {
    /// How the body is framed.
    pub length: Length,
    /// The version that was asked in.
    pub version: Version,
    /// Whether only the head was asked for.
    pub is_head: bool,
    /// Whether the connection could carry another request.
    pub keeps: bool,
    /// The time of day as `Date` has it.
    pub date: &'d str,
}

/// What became of an answer's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headed {
    /// Whether a body follows.
    pub has_body: bool,
    /// Whether the connection can carry another request.
    pub keeps: bool,
}

/// The head of an answer, to its empty line.
#[inline]
pub fn answer_head(
    out: &mut Vec<u8>,
    status: StatusCode,
    lines: &Lines,
    frame: Frame<'_>,
) -> Headed {
    let length = frame.length;
    let has_body = !frame.is_head && may_have_body(status);
    let keeps = frame.keeps && (length != Length::Close || !has_body) && !lines.closes;
    status_line(out, status);
    out.extend_from_slice(lines.as_bytes());
    match length {
        Length::Exact(length) if has_body => {
            out.extend_from_slice(b"content-length: ");
            digits(out, length);
            out.extend_from_slice(b"\r\n");
        }
        Length::Chunked if has_body => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        }
        Length::Exact(_) | Length::Chunked | Length::Close => {}
    }
    if !lines.has_date {
        out.extend_from_slice(b"date: ");
        out.extend_from_slice(frame.date.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if !keeps {
        out.extend_from_slice(b"connection: close\r\n");
    } else if frame.version == Version::HTTP_10 {
        out.extend_from_slice(b"connection: keep-alive\r\n");
    }
    out.extend_from_slice(b"\r\n");
    Headed { has_body, keeps }
}

/// Whether an answer of this status may have a body (RFC 9110 section 6.4.1).
fn may_have_body(status: StatusCode) -> bool {
    !status.is_informational()
        && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// A number in decimal digits.
pub fn digits(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// What stands before a chunk of so many bytes; one of 0 bytes would end the body.
pub fn chunk_start(out: &mut Vec<u8>, bytes: usize) {
    let mut started = false;
    for place in (0..16).rev() {
        let digit = bytes >> (4 * place) & 0xf;
        started |= digit != 0;
        if started {
            let digit = digit as u8;
            out.push(if digit < 10 {
                b'0' + digit
            } else {
                b'A' - 10 + digit
            });
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// What stands after the last chunk.
pub fn chunk_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_are_written_as_the_specification_has_them() {
        let line = written(|out| request_line(out, &Method::POST, "/a2a?x=1"));
        assert_eq!(line, "POST /a2a?x=1 HTTP/1.1\r\n");
        for (status, line) in [
            (200, "HTTP/1.1 200 OK\r\n"),
            (429, "HTTP/1.1 429 Too Many Requests\r\n"),
            (799, "HTTP/1.1 799 \r\n"),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(written(|out| status_line(out, status)), line);
        }
    }

    #[test]
    fn numbers_are_written_in_full() {
        for number in [0, 7, 10, 1024, u64::MAX] {
            assert_eq!(written(|out| digits(out, number)), number.to_string());
        }
        for size in [1, 15, 16, 4096, usize::MAX] {
            let expected = format!("{size:X}\r\n");
            assert_eq!(written(|out| chunk_start(out, size)), expected);
        }
    }
}
