//! Decides what an upstream connection's bytes travel in. Must never know what they mean.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// An open connection to an upstream.
#[derive(Debug)]
pub(super) enum Stream {
    /// In clear.
    Clear(TcpStream),
    /// Over TLS. In a box: it is ten times as large.
    Secure(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Whether a write that fails has sent nothing. Over TLS some of it may have left before.
    pub(super) fn tells_what_left(&self) -> bool {
        matches!(self, Self::Clear(_))
    }

    /// Whether the upstream has agreed to speak HTTP/2. In clear nobody was asked.
    pub(super) fn may_speak_http2(&self) -> bool {
        match self {
            Self::Clear(_) => true,
            Self::Secure(socket) => socket.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_read(context, buffer),
            Self::Secure(socket) => Pin::new(socket).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Secure(socket) => Pin::new(socket).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_write_vectored(context, pieces),
            Self::Secure(socket) => Pin::new(socket).poll_write_vectored(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Clear(socket) => socket.is_write_vectored(),
            Self::Secure(socket) => socket.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_flush(context),
            Self::Secure(socket) => Pin::new(socket).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_shutdown(context),
            Self::Secure(socket) => Pin::new(socket).poll_shutdown(context),
        }
    }
}
