//! Decides by its first bytes whether a connection in clear speaks HTTP/1.1 or HTTP/2.
//!
//! A client that knows HTTP/2 begins with a preface of 24 bytes (RFC 9113 section 3.4) that no
//! HTTP/1.1 request begins with. What was read is read again by whoever serves the connection, once;
//! later reads go straight to the socket. Must never answer, and never wait longer than its caller.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::serve::Transport;

/// What a client says first when it speaks HTTP/2.
const PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// HTTP/1.1 or HTTP/1.0.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A socket whose first bytes were looked at.
#[derive(Debug)]
pub(super) struct Opened<T> {
    socket: T,
    first: [u8; PREFACE.len()],
    /// How many of `first` came.
    held: u8,
    /// How many of them were read again.
    given: u8,
}

impl<T> Opened<T> {
    /// A socket of which nothing was read.
    pub(super) fn new(socket: T) -> Self {
        Self {
            socket,
            first: [0; PREFACE.len()],
            held: 0,
            given: 0,
        }
    }

    /// Whether anything came.
    pub(super) fn has_begun(&self) -> bool {
        self.held > 0
    }

    fn held(&self) -> &[u8] {
        self.first.get(..self.held.into()).unwrap_or_default()
    }
}

impl<T: AsyncRead + Unpin> Opened<T> {
    /// Reads as far as it takes to tell. An end of the stream is HTTP/1.1's to judge.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) async fn protocol(&mut self) -> io::Result<Protocol> {
        loop {
            let held = self.held();
            if !PREFACE.starts_with(held) {
                return Ok(Protocol::Http1);
            }
            if held.len() == PREFACE.len() {
                return Ok(Protocol::Http2);
            }
            let free = self.first.get_mut(self.held.into()..).unwrap_or_default();
            let more = self.socket.read(free).await?;
            if more == 0 {
                return Ok(Protocol::Http1);
            }
            self.held = self.held.saturating_add(u8::try_from(more).unwrap_or(0));
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Opened<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.given < self.held {
            return self.again(context, buffer);
        }
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl<T: AsyncRead + Unpin> Opened<T> {
    /// Gives the first bytes once more, and with them what follows by now.
    #[cold]
    fn again(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = self.held().get(self.given.into()..).unwrap_or_default();
        let some = left.len().min(buffer.remaining());
        buffer.put_slice(left.get(..some).unwrap_or_default());
        self.given = self.given.saturating_add(u8::try_from(some).unwrap_or(0));
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        // An error or an end of the stream shows at the next read again.
        match Pin::new(&mut self.socket).poll_read(context, buffer) {
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }
}

impl<T: Transport> Transport for Opened<T> {
    fn reset_on_close(&mut self) {
        self.socket.reset_on_close();
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Opened<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt, duplex};

    async fn opened(pieces: &[&[u8]]) -> (Protocol, Vec<u8>) {
        let (mut client, server) = duplex(1024);
        let mut opened = Opened::new(server);
        let write = async {
            for piece in pieces {
                client.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            drop(client);
        };
        let (protocol, ()) = tokio::join!(opened.protocol(), write);
        let mut all = Vec::new();
        opened.read_to_end(&mut all).await.unwrap();
        (protocol.unwrap(), all)
    }

    #[tokio::test]
    async fn the_preface_tells_in_whatever_pieces_and_no_byte_is_lost() {
        let long = [&PREFACE[..], &[7; 100]].concat();
        for at in 0..long.len() {
            let (one, two) = long.split_at(at);
            let (protocol, all) = opened(&[one, two]).await;
            assert_eq!(protocol, Protocol::Http2, "{at}");
            assert_eq!(all, long, "{at}");
        }
        let bytes: Vec<_> = long.chunks(1).collect();
        assert_eq!(opened(&bytes).await, (Protocol::Http2, long.clone()));
    }

    #[tokio::test]
    async fn anything_else_is_for_the_older_parser() {
        for pieces in [
            &[&b"POST /a2a HTTP/1.1\r\nhost: a\r\n\r\n"[..]][..],
            &[b"P", b"OST / HTTP/1.1\r\n\r\n"],
            &[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", b"X"],
            &[b"PRI * HTTP/2.0\r\n\r\n"],
            &[b"PRI * HTTP/1.1\r\n\r\n"],
            &[b"x"],
            &[],
        ] {
            let (protocol, all) = opened(pieces).await;
            assert_eq!(protocol, Protocol::Http1, "{pieces:?}");
            assert_eq!(all, pieces.concat());
        }
    }

    #[tokio::test]
    async fn a_small_buffer_gets_the_first_bytes_in_pieces() {
        let (mut client, server) = duplex(1024);
        let mut opened = Opened::new(server);
        client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        assert_eq!(opened.protocol().await.unwrap(), Protocol::Http1);
        let mut all = [0; 16];
        for byte in &mut all {
            *byte = opened.read_u8().await.unwrap();
        }
        assert_eq!(&all, b"GET / HTTP/1.1\r\n");
    }
}
