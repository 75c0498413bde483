//! The walk's HTTP/1.1 client: writes the bytes that are printed, and reads an answer piece by
//! piece as it arrives.
//!
//! No client library stands between: what the walk shows is what was on the socket. It speaks only
//! to this process's own servers, so it knows just what they may send.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long any one step may take. Only a broken gateway needs it.
const PATIENCE: Duration = Duration::from_secs(20);

/// The head of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// The status line.
    pub(super) line: String,
    /// The status.
    pub(super) status: u16,
    /// The header lines in order, names in lower case.
    pub(super) headers: Vec<(String, String)>,
}

impl Head {
    /// The first value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find_map(|(it, value)| (it == name).then_some(value.as_str()))
    }
}

/// An answer whose head has been read.
#[derive(Debug)]
pub(super) struct Answer {
    /// Its head.
    pub(super) head: Head,
    stream: TcpStream,
    buffer: Vec<u8>,
    framing: Framing,
}

#[derive(Clone, Copy, Debug)]
enum Framing {
    Length(usize),
    Chunked,
    Done,
}

/// Sends a request and reads the head of its answer.
///
/// # Errors
/// The system's; `InvalidData` for an answer that is not HTTP; `TimedOut`.
pub(super) async fn send(address: SocketAddr, request: &[u8]) -> io::Result<Answer> {
    patiently(async {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        stream.write_all(request).await?;
        let mut buffer = Vec::new();
        let end = loop {
            if let Some(end) = position(&buffer, b"\r\n\r\n") {
                break end;
            }
            fill(&mut stream, &mut buffer).await?;
        };
        let rest = buffer.split_off(end + 4);
        let head = head(&String::from_utf8_lossy(&buffer))?;
        let framing = if head.header("transfer-encoding") == Some("chunked") {
            Framing::Chunked
        } else {
            let length = head.header("content-length").map(str::parse);
            Framing::Length(
                length
                    .and_then(Result::ok)
                    .ok_or_else(|| bad("no length"))?,
            )
        };
        Ok(Answer {
            head,
            stream,
            buffer: rest,
            framing,
        })
    })
    .await
}

impl Answer {
    /// The next piece of the body as it was framed; `None` after a clean end.
    ///
    /// # Errors
    /// As [`send`]; `UnexpectedEof` when the body was cut.
    pub(super) async fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        patiently(async {
            match self.framing {
                Framing::Done => Ok(None),
                Framing::Length(length) => {
                    self.framing = Framing::Done;
                    self.take(length).await.map(Some)
                }
                Framing::Chunked => {
                    let line = loop {
                        if let Some(end) = position(&self.buffer, b"\r\n") {
                            break self.take(end + 2).await?;
                        }
                        fill(&mut self.stream, &mut self.buffer).await?;
                    };
                    let size = String::from_utf8_lossy(&line);
                    let size = usize::from_str_radix(size.trim_ascii(), 16);
                    let size = size.map_err(|_| bad("no chunk size"))?;
                    let mut chunk = self.take(size + 2).await?;
                    if chunk.split_off(size) != b"\r\n" {
                        return Err(bad("a chunk without an end"));
                    }
                    if size == 0 {
                        self.framing = Framing::Done;
                        return Ok(None);
                    }
                    Ok(Some(chunk))
                }
            }
        })
        .await
    }

    /// All of the body that is left.
    ///
    /// # Errors
    /// As [`Answer::piece`].
    pub(super) async fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(piece) = self.piece().await? {
            all.extend(piece);
        }
        Ok(all)
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            fill(&mut self.stream, &mut self.buffer).await?;
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }
}

async fn patiently<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "no answer in 20 seconds",
        )),
    }
}

async fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    if stream.read_buf(buffer).await? == 0 {
        let why = "the connection was closed before the answer was whole";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
    }
    Ok(())
}

fn head(text: &str) -> io::Result<Head> {
    let mut lines = text.trim_end().split("\r\n");
    let line = lines.next().unwrap_or_default().to_owned();
    let status = line.split(' ').nth(1).and_then(|it| it.parse().ok());
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    });
    Ok(Head {
        status: status.ok_or_else(|| bad("no status"))?,
        headers: headers
            .collect::<Option<_>>()
            .ok_or_else(|| bad("a header line without a colon"))?,
        line,
    })
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|it| it == wanted)
}

fn bad(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
