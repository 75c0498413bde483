//! Decides which request is meant: one from a file, or one put together from arguments as `curl` does.
//!
//! People write files with the line ends of their editor and count no bytes: both is mended, unless
//! the bytes are to stay as they are. A head with a single CR LF was written by somebody who minds.

use std::fs;
use std::io::{self, Read};

/// The request.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true, args = ["request", "path", "id"])]
pub(super) struct Asked {
    /// A file with an HTTP/1.1 request, or `-`. Line ends may be bare line feeds, and a missing
    /// Content-Length is filled in.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["path", "method", "host", "header", "body"]
    )]
    request: Option<String>,
    /// Take the bytes of the request as they are.
    #[arg(long, requires = "request")]
    exact: bool,
    /// The request target, such as `/a2a`.
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// The HTTP method.
    #[arg(long, value_name = "METHOD", default_value = "POST")]
    method: String,
    /// The Host.
    #[arg(long, value_name = "HOST", default_value = "localhost")]
    host: String,
    /// A header line, such as `A2A-Version: 1.0`. May be given several times.
    #[arg(long, value_name = "LINE")]
    header: Vec<String>,
    /// The body: a text, `@FILE`, or `@-` for standard input. Without a Content-Type, it is JSON.
    #[arg(long, value_name = "BODY")]
    body: Option<String>,
}

impl Asked {
    /// The request to the byte.
    ///
    /// # Errors
    /// What cannot be read, or is no header.
    pub(super) fn bytes(&self) -> io::Result<Vec<u8>> {
        match &self.request {
            Some(file) => {
                let bytes = read(file)?;
                Ok(if self.exact { bytes } else { mended(&bytes) })
            }
            None => self.put_together(),
        }
    }

    fn put_together(&self) -> io::Result<Vec<u8>> {
        let body = match self.body.as_deref() {
            None => Vec::new(),
            Some(body) => match body.strip_prefix('@') {
                Some(file) => read(file)?,
                None => body.as_bytes().to_vec(),
            },
        };
        let path = self.path.as_deref().unwrap_or("/");
        let mut head = format!("{} {path} HTTP/1.1\r\n", self.method);
        let has = |name: &str| {
            let mut names = self.header.iter().filter_map(|line| line.split_once(':'));
            names.any(|(it, _)| it.trim().eq_ignore_ascii_case(name))
        };
        if !has("host") {
            head.push_str(&format!("Host: {}\r\n", self.host));
        }
        if self.body.is_some() && !has("content-type") {
            head.push_str("Content-Type: application/json\r\n");
        }
        for line in &self.header {
            if !line.contains(':') || line.contains(['\r', '\n']) {
                let why = format!("{line:?} is no header line such as \"A2A-Version: 1.0\"");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            head.push_str(line);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        Ok(with_length(head.into_bytes(), &body))
    }
}

/// A file, or standard input where it is `-`.
fn read(file: &str) -> io::Result<Vec<u8>> {
    if file == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    fs::read(file).map_err(|error| io::Error::new(error.kind(), format!("{file}: {error}")))
}

/// A request as people write it, as it goes over the wire.
fn mended(bytes: &[u8]) -> Vec<u8> {
    let (head, body) = if let Some(at) = memchr::memmem::find(bytes, b"\r\n\r\n") {
        bytes.split_at_checked(at + 4).unwrap_or((bytes, b""))
    } else if let Some(at) = memchr::memmem::find(bytes, b"\n\n") {
        bytes.split_at_checked(at + 2).unwrap_or((bytes, b""))
    } else {
        (bytes, &b""[..])
    };
    if head.contains(&b'\r') {
        return with_length(head.to_vec(), body);
    }
    let mut lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let mut mended = Vec::with_capacity(bytes.len() + lines.len() + 64);
    for line in lines {
        mended.extend_from_slice(line);
        mended.extend_from_slice(b"\r\n");
    }
    mended.extend_from_slice(b"\r\n");
    with_length(mended, body)
}

/// A head, which says how long its body is, and the body.
fn with_length(head: Vec<u8>, body: &[u8]) -> Vec<u8> {
    let mut whole = head;
    let frames = |line: &[u8]| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let name = name.trim_ascii();
        name.eq_ignore_ascii_case(b"content-length")
            || name.eq_ignore_ascii_case(b"transfer-encoding")
    };
    let is_framed = whole.split(|byte| *byte == b'\n').skip(1).any(frames);
    if !is_framed && !body.is_empty() && whole.ends_with(b"\r\n\r\n") {
        whole.truncate(whole.len() - 2);
        whole.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
    }
    whole.extend_from_slice(body);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(mended(bytes)).unwrap()
    }

    #[test]
    fn what_people_write_is_mended() {
        let wire = "POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{}\n";
        assert_eq!(text(b"POST /a2a HTTP/1.1\nHost: x\n\n{}\n"), wire);
        assert_eq!(text(b"POST /a2a HTTP/1.1\r\nHost: x\r\n\r\n{}\n"), wire);
        // A head alone, with or without its empty line.
        let head = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        for written in ["GET / HTTP/1.1\nHost: x", "GET / HTTP/1.1\nHost: x\n\n"] {
            assert_eq!(text(written.as_bytes()), head);
        }
        // The body's own empty lines are the body's.
        let text = text(b"POST / HTTP/1.1\nHost: x\n\n{\n\n}");
        assert!(
            text.ends_with("Content-Length: 4\r\n\r\n{\n\n}"),
            "{text:?}"
        );
    }

    #[test]
    fn what_says_its_length_keeps_it() {
        for line in [
            "content-length: 9",
            "Transfer-Encoding: chunked",
            "Content-Length : 1",
        ] {
            let written = format!("POST / HTTP/1.1\n{line}\n\nabc");
            let wire = format!("POST / HTTP/1.1\r\n{line}\r\n\r\nabc");
            assert_eq!(text(written.as_bytes()), wire);
        }
        // A body that speaks of it does not count.
        let wire = text(b"POST / HTTP/1.1\n\nContent-Length: 1");
        assert!(wire.contains("\r\nContent-Length: 17\r\n"), "{wire:?}");
        // Who mixes line ends means it.
        let mixed = b"GET / HTTP/1.1\r\nHost: x\n\r\n";
        assert_eq!(mended(mixed), mixed);
    }
}
