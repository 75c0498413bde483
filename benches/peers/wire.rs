//! One connection of the load generator: bytes out, and answers in with the few states that a
//! trusted HTTP/1.1 answer has, in clear text or over TLS.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use memchr::memmem;
use mio::net::TcpStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

use super::head;

/// The socket, with or without TLS on it.
pub(crate) struct Wire {
    pub(crate) stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    /// What the socket did not take yet.
    pending: Vec<u8>,
}

impl Wire {
    /// Begins to connect.
    pub(crate) fn connect(to: SocketAddr, tls: Option<&Arc<ClientConfig>>) -> io::Result<Self> {
        let stream = TcpStream::connect(to)?;
        let _ = stream.set_nodelay(true);
        let tls = match tls {
            Some(config) => {
                let name =
                    ServerName::try_from("lakeside.example.com").map_err(io::Error::other)?;
                let client = ClientConnection::new(Arc::clone(config), name);
                Some(Box::new(client.map_err(io::Error::other)?))
            }
            None => None,
        };
        Ok(Self {
            stream,
            tls,
            pending: Vec::new(),
        })
    }

    /// Sends, or keeps what does not fit.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes)?;
            return self.flush();
        }
        if self.pending.is_empty() {
            let sent = write(&mut self.stream, bytes)?;
            self.pending.extend_from_slice(&bytes[sent..]);
            return Ok(());
        }
        self.pending.extend_from_slice(bytes);
        self.flush()
    }

    /// Sends what was kept.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                match tls.write_tls(&mut self.stream) {
                    Ok(_) => {}
                    Err(error) if waits(&error) => break,
                    Err(error) => return Err(error),
                }
            }
        } else if !self.pending.is_empty() {
            let sent = write(&mut self.stream, &self.pending)?;
            self.pending.drain(..sent);
        }
        Ok(())
    }

    /// What arrived: `None` when nothing more is there now, 0 at the end.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(tls) = &mut self.tls else {
            return match self.stream.read(buffer) {
                Ok(count) => Ok(Some(count)),
                Err(error) if waits(&error) => Ok(None),
                Err(error) => Err(error),
            };
        };
        loop {
            match tls.reader().read(buffer) {
                Ok(count) => return Ok(Some(count)),
                Err(error) if waits(&error) => {}
                Err(error) => return Err(error),
            }
            match tls.read_tls(&mut self.stream) {
                Ok(0) => return Ok(Some(0)),
                Ok(_) => {}
                Err(error) if waits(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
            tls.process_new_packets().map_err(io::Error::other)?;
            while tls.wants_write() {
                if let Err(error) = tls.write_tls(&mut self.stream) {
                    if waits(&error) {
                        break;
                    }
                    return Err(error);
                }
            }
        }
    }
}

fn waits(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected
    )
}

fn write(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(count) => sent += count,
            Err(error) if waits(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

/// Where in an answer the reader is.
#[derive(Default)]
pub(crate) struct Answer {
    state: State,
    /// A line or head that came in pieces.
    kept: Vec<u8>,
    pub(crate) status: u16,
    pub(crate) length: usize,
    pub(crate) close: bool,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Head,
    Body(usize),
    Size,
    Chunk(usize),
    ChunkEnd,
    Trailers,
}

impl Answer {
    /// Takes `data`, handing what is body to `body`; whether the answer is whole with it. An error
    /// where it cannot be one.
    pub(crate) fn take(
        &mut self,
        mut data: &[u8],
        mut body: impl FnMut(&[u8]),
    ) -> io::Result<bool> {
        loop {
            if self.state != State::Body(0) && data.is_empty() {
                return Ok(false);
            }
            match self.state {
                State::Head => {
                    let Some(head) = self.upto(&mut data, b"\r\n\r\n") else {
                        return Ok(false);
                    };
                    let fields = head::fields(&head);
                    (self.status, self.close) = (head::status(&head), fields.close);
                    self.length = 0;
                    self.state = match (fields.chunked, fields.length) {
                        (true, _) => State::Size,
                        (false, Some(length)) => State::Body(length),
                        (false, None) => return Err(io::Error::other("an answer without length")),
                    };
                }
                State::Body(0) => {
                    self.state = State::Head;
                    return if data.is_empty() {
                        Ok(true)
                    } else {
                        Err(io::Error::other("bytes behind the answer"))
                    };
                }
                State::Body(left) => {
                    let count = left.min(data.len());
                    body(&data[..count]);
                    self.length += count;
                    data = &data[count..];
                    self.state = State::Body(left - count);
                }
                State::Size => {
                    let Some(line) = self.upto(&mut data, b"\r\n") else {
                        return Ok(false);
                    };
                    let text = String::from_utf8_lossy(&line);
                    let size = usize::from_str_radix(text.trim(), 16).map_err(io::Error::other)?;
                    self.state = if size == 0 {
                        State::Trailers
                    } else {
                        State::Chunk(size)
                    };
                }
                State::Chunk(left) => {
                    let count = left.min(data.len());
                    body(&data[..count]);
                    self.length += count;
                    data = &data[count..];
                    self.state = match left - count {
                        0 => State::ChunkEnd,
                        left => State::Chunk(left),
                    };
                }
                State::ChunkEnd => {
                    if self.upto(&mut data, b"\r\n").is_none() {
                        return Ok(false);
                    }
                    self.state = State::Size;
                }
                State::Trailers => match self.upto(&mut data, b"\r\n") {
                    None => return Ok(false),
                    Some(line) if line == b"\r\n" => self.state = State::Body(0),
                    Some(_) => {}
                },
            }
        }
    }

    /// What ends with `end`, taken from `data` and what was kept before; `None` keeps it all.
    fn upto(&mut self, data: &mut &[u8], end: &[u8]) -> Option<Vec<u8>> {
        if self.kept.is_empty()
            && let Some(at) = memmem::find(data, end)
        {
            let (line, rest) = data.split_at(at + end.len());
            *data = rest;
            return Some(line.to_vec());
        }
        while let Some((first, rest)) = data.split_first() {
            self.kept.push(*first);
            *data = rest;
            if self.kept.ends_with(end) {
                return Some(std::mem::take(&mut self.kept));
            }
        }
        None
    }
}
