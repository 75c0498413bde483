//! HTTP/2 frame by frame, for what no well-behaved peer does. Field blocks are spelled without
//! compression, so that a test knows every byte.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::upstream::Peer;
use super::wait::PATIENCE;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

pub const NO_ERROR: u32 = 0;
pub const PROTOCOL_ERROR: u32 = 1;
pub const REFUSED_STREAM: u32 = 7;
pub const CANCEL: u32 = 8;
pub const HTTP_1_1_REQUIRED: u32 = 13;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#[derive(Clone, Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// The four bytes from here on.
    pub fn word(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }
}

/// One end of a connection.
pub struct Frames {
    pub stream: TcpStream,
}

impl Frames {
    /// A client that has sent its preface and settings.
    #[track_caller]
    pub fn client(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut frames = Self::silent(address);
        frames.stream.write_all(PREFACE).unwrap();
        frames.settings(settings);
        frames
    }

    /// A client that has said nothing.
    #[track_caller]
    pub fn silent(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        Self::over(stream)
    }

    /// A dealer that has read the gateway's preface and sent its settings.
    #[track_caller]
    pub fn dealer(peer: &Peer, settings: &[(u16, u32)]) -> Self {
        let mut frames = Self::over(peer.socket().try_clone().unwrap());
        let mut preface = [0; 24];
        frames.stream.read_exact(&mut preface).unwrap();
        assert_eq!(preface, PREFACE);
        frames.settings(settings);
        frames
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream }
    }

    pub fn try_send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        let mut bytes = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        self.stream.write_all(&bytes)
    }

    #[track_caller]
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.try_send(kind, flags, stream, payload).unwrap();
    }

    #[track_caller]
    pub fn settings(&mut self, settings: &[(u16, u32)]) {
        let mut payload = Vec::new();
        for (name, value) in settings {
            payload.extend(name.to_be_bytes());
            payload.extend(value.to_be_bytes());
        }
        self.send(SETTINGS, 0, 0, &payload);
    }

    #[track_caller]
    pub fn reset(&mut self, stream: u32, reason: u32) {
        self.send(RST_STREAM, 0, stream, &reason.to_be_bytes());
    }

    #[track_caller]
    pub fn go_away(&mut self, last: u32, reason: u32) {
        let payload = [last.to_be_bytes(), reason.to_be_bytes()].concat();
        self.send(GOAWAY, 0, 0, &payload);
    }

    #[track_caller]
    pub fn window(&mut self, stream: u32, more: u32) {
        self.send(WINDOW_UPDATE, 0, stream, &more.to_be_bytes());
    }

    /// A POST of a JSON body to the usual endpoint.
    #[track_caller]
    pub fn post(&mut self, stream: u32, body: &str) {
        self.head(stream, &[], false);
        self.send(DATA, END_STREAM, stream, body.as_bytes());
    }

    /// The head of a POST to the usual endpoint, with further fields.
    #[track_caller]
    pub fn head(&mut self, stream: u32, fields: &[(&str, &str)], ends: bool) {
        self.fields(stream, &post_fields(fields), ends);
    }

    /// A head of exactly these fields.
    #[track_caller]
    pub fn fields(&mut self, stream: u32, fields: &[(&str, &str)], ends: bool) {
        let flags = END_HEADERS | if ends { END_STREAM } else { 0 };
        self.send(HEADERS, flags, stream, &block(fields));
    }

    /// The next frame that is no housekeeping; `None` when the connection is closed. Settings and
    /// pings are answered.
    pub fn next(&mut self) -> Option<Frame> {
        loop {
            let frame = self.any()?;
            match frame.kind {
                SETTINGS if frame.flags & ACK == 0 => {
                    let _ = self.try_send(SETTINGS, ACK, 0, &[]);
                }
                PING if frame.flags & ACK == 0 => {
                    let _ = self.try_send(PING, ACK, 0, &frame.payload);
                }
                SETTINGS | PING | WINDOW_UPDATE => {}
                _ => return Some(frame),
            }
        }
    }

    /// The next frame, whatever it is.
    pub fn any(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).ok()?;
        Some(Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes(head[5..9].try_into().unwrap()),
            payload,
        })
    }

    /// The next frame of this kind, past others.
    #[track_caller]
    pub fn until(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next().expect("closed before the frame came");
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// Reads a request to its end and returns its stream and body; `None` when the gateway closed
    /// or gave the stream up.
    pub fn request(&mut self) -> Option<(u32, Vec<u8>)> {
        let mut body = Vec::new();
        loop {
            let frame = self.next()?;
            if frame.kind == DATA {
                body.extend_from_slice(&frame.payload);
            }
            if frame.ends_stream() {
                return Some((frame.stream, body));
            }
        }
    }

    /// Answers well.
    #[track_caller]
    pub fn answer(&mut self, stream: u32, body: &str) {
        self.answer_head(stream);
        self.send(DATA, END_STREAM, stream, body.as_bytes());
    }

    /// The head of a good answer.
    #[track_caller]
    pub fn answer_head(&mut self, stream: u32) {
        let fields = [(":status", "200"), ("content-type", "application/json")];
        self.fields(stream, &fields, false);
    }
}

/// The fields of a POST to the usual endpoint, and further ones.
pub fn post_fields<'f>(more: &[(&'f str, &'f str)]) -> Vec<(&'f str, &'f str)> {
    let mut all = vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "gw.example"),
        (":path", "/a2a"),
        ("content-type", "application/json"),
    ];
    all.extend_from_slice(more);
    all
}

/// A field block, each field as it is, none remembered (RFC 7541 section 6.2.2).
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.push(0);
        for text in [name, value] {
            length(&mut bytes, text.len());
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    bytes
}

/// An integer with a prefix of seven bits (section 5.1).
fn length(bytes: &mut Vec<u8>, length: usize) {
    if length < 127 {
        bytes.push(u8::try_from(length).unwrap());
        return;
    }
    bytes.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        bytes.push(u8::try_from(rest % 128 + 128).unwrap());
        rest /= 128;
    }
    bytes.push(u8::try_from(rest).unwrap());
}
