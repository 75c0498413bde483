//! Asks each proxy once, before it is measured, whether it does the job at all: the headers filled
//! in, the refusal as it must be. Whoever cheats is not measured.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use super::payload::{EXTENSION, ID, Request, SMALL, call};
use super::proxies::Who;
use super::{Failure, certificate};

/// An error that says what is wrong with the answers of `who`.
pub(crate) fn probe(who: Who, at: SocketAddr) -> Result<(), Failure> {
    if who == Who::Direct {
        return Ok(());
    }
    let seen = ask(at, "/a2a/echo", &[])?.to_lowercase();
    for line in [
        "a2a-version: 1.0\r\n".to_owned(),
        format!("a2a-extensions: {EXTENSION}\r\n"),
        "x-api-key: buyer-00000000-4f1c2b7a9d3e\r\n".to_owned(),
        format!("content-length: {SMALL}\r\n"),
    ] {
        if !seen.contains(&line) {
            return Err(format!("{} does not send {line:?} upstream: {seen}", who.name()).into());
        }
    }
    let refusal = ask(at, "/a2a", &[("A2A-Version".to_owned(), "0.9".to_owned())])?;
    let status = if who == Who::Forecourt {
        " 200 "
    } else {
        " 400 "
    };
    let id = match who {
        Who::Haproxy => "null",
        Who::Direct | Who::Forecourt | Who::Nginx => ID,
    };
    let compact = refusal.replace(": ", ":");
    for part in [
        status.to_owned(),
        "-32009".to_owned(),
        format!("\"id\":{id}"),
    ] {
        if !refusal.contains(&part) && !compact.contains(&part) {
            return Err(format!("{} refuses without {part:?}: {refusal}", who.name()).into());
        }
    }
    Ok(())
}

/// Why HTTP/2 cannot be spoken there; `None`: it can.
pub(crate) fn without_http2(at: SocketAddr, der: &Path) -> Result<Option<String>, Failure> {
    let mut config = certificate::trusting(der)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from("lakeside.example.com")?;
    let mut client = ClientConnection::new(Arc::new(config), name)?;
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    while client.is_handshaking() {
        client.complete_io(&mut stream)?;
    }
    let chosen = client.alpn_protocol().unwrap_or(b"none");
    let chosen = String::from_utf8_lossy(chosen).into_owned();
    Ok((chosen != "h2").then(|| format!("of h2 and http/1.1 it chooses {chosen}")))
}

/// The whole answer.
fn ask(at: SocketAddr, path: &str, headers: &[(String, String)]) -> Result<String, Failure> {
    let mut headers = headers.to_vec();
    headers.push(("Connection".to_owned(), "close".to_owned()));
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(&Request::new(path, &headers, &call(SMALL)).bytes)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
