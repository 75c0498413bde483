//! Decides how an answer is put on the wire: its head with what there is of its body at once, then
//! each piece as it comes.
//!
//! One write carries all that is ready; when the body makes us wait, what came is sent before. While
//! the client takes nothing, nothing is asked of the body: a slow reader holds the dealer back. A
//! body that breaks is cut after what came of it. Must never change a byte of a body.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Version;
use http_body::Body;

use super::http1::Asked;
use super::serve::Transport;
use crate::http1::{Answer, Frame, Headed, Length, answer_head, chunk_end, chunk_start};
use crate::wire::Wire;

/// A piece of a body up to so many bytes is copied behind what else is to be sent.
const SMALL: usize = 4 * 1024;

/// From so many bytes on, what is ready is sent before more is asked for.
const ENOUGH: usize = 16 * 1024;

/// What the first line, the framing and the date take at most, and a short body.
const FRAMING: usize = 1536;

/// A buffer larger than this is not kept for the next answer.
const KEPT: usize = 4 * 1024;

/// An answer on its way out.
pub(super) struct Sending<B> {
    body: B,
    length: Length,
    keeps: bool,
    /// How much of the buffer was sent.
    sent: usize,
    /// A large piece, which follows the buffer.
    piece: Bytes,
    /// What follows that.
    tail: &'static [u8],
    /// Whether what was sent may not have left yet: TLS holds it back while the client takes nothing.
    is_held: bool,
    end: End,
    /// Whether the body makes us wait, not the client.
    is_waiting: bool,
    /// Whether the client took anything when it was last sent to.
    was_taken: bool,
}

/// How the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Not yet.
    Open,
    /// Whole: nothing is to be asked of it any more.
    Whole,
    /// Cut: what came of it is sent, then the connection is.
    Cut,
}

impl<B: Body<Data = Bytes> + Unpin> Sending<B> {
    /// Writes the head down.
    pub(super) fn begin(
        answer: Answer<B>,
        asked: Asked,
        keeps: bool,
        date: &str,
        out: &mut Vec<u8>,
    ) -> Self {
        let Answer {
            status,
            lines,
            body,
        } = answer;
        let length = match body.size_hint().exact() {
            Some(length) => Length::Exact(length),
            None if asked.version == Version::HTTP_11 => Length::Chunked,
            None => Length::Close,
        };
        out.clear();
        out.reserve(lines.as_bytes().len() + FRAMING);
        let frame = Frame {
            length,
            version: asked.version,
            is_head: asked.is_head,
            keeps,
            date,
        };
        let Headed { has_body, keeps } = answer_head(out, status, &lines, frame);
        let is_whole = !has_body || body.is_end_stream();
        if is_whole && has_body && length == Length::Chunked {
            chunk_end(out);
        }
        Self {
            body,
            length,
            keeps,
            sent: 0,
            piece: Bytes::new(),
            tail: b"",
            is_held: false,
            end: if is_whole { End::Whole } else { End::Open },
            is_waiting: false,
            was_taken: false,
        }
    }

    /// Whether the connection can carry another request.
    pub(super) const fn keeps(&self) -> bool {
        self.keeps
    }

    /// Whether the client learns the end of the body from the end of the connection.
    pub(super) fn ends_with_connection(&self) -> bool {
        self.length == Length::Close
    }

    /// Whether the client has not taken what was there for it.
    pub(super) const fn is_stalled(&self) -> bool {
        !self.is_waiting
    }

    /// Whether it took some of it when it was last sent to.
    pub(super) const fn was_taken(&self) -> bool {
        self.was_taken
    }

    /// Sends what is ready, until all is sent.
    ///
    /// # Errors
    /// The connection's, or `BrokenPipe` when the body was cut.
    pub(super) fn poll_send<T: Transport>(
        &mut self,
        wire: &mut Wire<T>,
        out: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.is_waiting = false;
        self.was_taken = false;
        loop {
            self.gather(out, context);
            let mut start = out.get(self.sent..).unwrap_or_default();
            if start.is_empty() && self.piece.is_empty() && !self.is_held {
                return match self.end {
                    End::Whole => Poll::Ready(Ok(())),
                    End::Cut => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                    End::Open => Poll::Pending,
                };
            }
            self.is_held = true;
            let before = start.len() + self.piece.len();
            let mut polled = wire.poll_send(&mut start, &mut self.piece, context);
            self.was_taken |= start.len() + self.piece.len() < before;
            self.sent = out.len() - start.len();
            if let Poll::Ready(Ok(())) = polled {
                polled = wire.poll_flush(context);
            }
            if polled.is_pending() {
                self.is_waiting = false;
            }
            ready!(polled)?;
            self.is_held = false;
            self.sent = 0;
            out.clear();
            if out.capacity() > KEPT {
                *out = Vec::new();
            }
            out.extend_from_slice(std::mem::take(&mut self.tail));
        }
    }

    /// Asks the body for what is ready, unless something is half sent.
    fn gather(&mut self, out: &mut Vec<u8>, context: &mut Context<'_>) {
        while self.end == End::Open
            && !self.is_waiting
            && !self.is_held
            && self.piece.is_empty()
            && out.len() < ENOUGH
        {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers were not asked for: not passed on.
                    if let Ok(piece) = frame.into_data() {
                        self.put(piece, out);
                    }
                    if self.body.is_end_stream() {
                        self.close(out);
                    }
                }
                Poll::Ready(Some(Err(_))) => self.end = End::Cut,
                Poll::Ready(None) => self.close(out),
                Poll::Pending => self.is_waiting = true,
            }
        }
    }

    fn put(&mut self, piece: Bytes, out: &mut Vec<u8>) {
        let is_chunked = self.length == Length::Chunked;
        if piece.is_empty() {
            return;
        }
        if is_chunked {
            chunk_start(out, piece.len());
        }
        let tail: &[u8] = if is_chunked { b"\r\n" } else { b"" };
        if piece.len() <= SMALL {
            out.extend_from_slice(&piece);
            out.extend_from_slice(tail);
        } else {
            self.piece = piece;
            self.tail = tail;
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.end = End::Whole;
        if self.length != Length::Chunked {
            return;
        }
        if self.piece.is_empty() {
            chunk_end(out);
        } else {
            self.tail = b"\r\n0\r\n\r\n";
        }
    }
}

#[cfg(test)]
mod tests;
