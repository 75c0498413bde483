//! A client that sends exact bytes and says exactly what came back.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use super::head::{Head, Reader};
use super::wait::PATIENCE;

/// One connection to a gateway.
pub struct Client<S = TcpStream> {
    reader: Reader<S>,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: Head,
    pub body: Vec<u8>,
    /// The statuses of interim answers before it.
    pub interim: Vec<u16>,
}

impl Client {
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).unwrap()
    }

    pub fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            reader: Reader::new(stream),
        })
    }

    pub fn socket(&self) -> &TcpStream {
        &self.reader.source
    }

    /// Whether the gateway has closed or answered, without waiting for it.
    pub fn has_ended(&mut self) -> bool {
        !self.is_quiet()
    }

    /// Whether nothing has come so far.
    pub fn is_quiet(&mut self) -> bool {
        let socket = &self.reader.source;
        socket.set_nonblocking(true).unwrap();
        let peeked = socket.peek(&mut [0]);
        socket.set_nonblocking(false).unwrap();
        self.reader.buffer.is_empty()
            && peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl<S: Read + Write> Client<S> {
    /// Over a connection that was made elsewhere.
    pub fn over(stream: S) -> Self {
        Self {
            reader: Reader::new(stream),
        }
    }

    pub fn stream(&mut self) -> &mut S {
        &mut self.reader.source
    }

    /// Sends bytes as they are.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.reader.source.write_all(bytes.as_ref()).unwrap();
        self
    }

    /// Sends bytes; the other side may have hung up.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.reader.source.write_all(bytes.as_ref())
    }

    /// Reads a head, interim ones included.
    #[track_caller]
    pub fn head(&mut self) -> Head {
        let head = self.try_head().unwrap();
        head.expect("closed before a head came")
    }

    /// Reads a head; `None` when the connection is closed.
    pub fn try_head(&mut self) -> io::Result<Option<Head>> {
        let head = self.reader.until(b"\r\n\r\n")?;
        Ok(head.map(|head| Head::parse(&head)))
    }

    /// Reads a whole answer.
    #[track_caller]
    pub fn answer(&mut self) -> Answer {
        let answer = self.try_answer().unwrap();
        answer.expect("closed before an answer came")
    }

    /// Reads a whole answer; `None` when the connection is closed before it, an error when it is
    /// cut within.
    pub fn try_answer(&mut self) -> io::Result<Option<Answer>> {
        let mut interim = Vec::new();
        loop {
            let Some(head) = self.try_head()? else {
                return Ok(None);
            };
            let status: u16 = head.start[9..12].parse().unwrap();
            if status < 200 && status != 101 {
                interim.push(status);
                continue;
            }
            let mut body = Vec::new();
            if head.is_chunked() {
                assert_eq!(head.length(), None, "length beside chunks");
                self.reader.chunks(&mut body)?;
            } else if let Some(length) = head.length() {
                body = self.reader.exactly(length)?;
            } else if status != 204 && status != 304 {
                while self.reader.more()? {}
                body = std::mem::take(&mut self.reader.buffer);
            }
            return Ok(Some(Answer {
                status,
                head,
                body,
                interim,
            }));
        }
    }

    /// Sends a request and reads its answer.
    #[track_caller]
    pub fn ask(&mut self, bytes: impl AsRef<[u8]>) -> Answer {
        self.send(bytes).answer()
    }

    /// One chunk of the body whose head was read; `None` after the last.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.reader.chunk()
    }

    /// Reads chunks until this many bytes are there; exactly this many must come.
    #[track_caller]
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut body = Vec::new();
        while body.len() < count {
            let chunk = self.chunk().unwrap();
            body.extend(chunk.expect("the body ended early"));
        }
        assert_eq!(body.len(), count, "more came than was sent");
        body
    }

    /// Whether the gateway closes the connection, having sent nothing more.
    #[track_caller]
    pub fn is_closed(&mut self) -> bool {
        assert!(self.reader.buffer.is_empty(), "more was sent");
        match self.reader.source.read(&mut [0]) {
            Ok(0) => true,
            Ok(_) => panic!("more was sent"),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => true,
            Err(error) => panic!("not closed: {error}"),
        }
    }
}

impl Answer {
    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// The JSON-RPC error number.
    #[track_caller]
    pub fn code(&self) -> i64 {
        let json = self.json();
        json["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("no error: {json}"))
    }

    /// The exact JSON text of the id in an answer the gateway made.
    #[track_caller]
    pub fn id(&self) -> String {
        let text = std::str::from_utf8(&self.body).unwrap();
        let rest = text
            .strip_prefix(r#"{"jsonrpc":"2.0","id":"#)
            .unwrap_or_else(|| panic!("{text}"));
        let end = rest.find(r#","error":"#).unwrap();
        rest[..end].to_owned()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Whether it announces that the connection ends.
    pub fn closes(&self) -> bool {
        self.head.all("connection") == ["close"]
    }
}
