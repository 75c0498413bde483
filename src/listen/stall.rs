//! Decides how long a client may take nothing of what is sent to it. Must never change a byte.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::wire::Timer;

/// A client's socket that fails when nothing can be written for too long.
#[derive(Debug)]
pub(super) struct Stall<T> {
    socket: T,
    longest: Duration,
    since: Option<Instant>,
    timer: Timer,
}

impl<T> Stall<T> {
    /// Nothing is stalled yet.
    pub(super) fn new(socket: T, longest: Duration) -> Self {
        Self {
            socket,
            longest,
            since: None,
            timer: Timer::default(),
        }
    }

    fn poll_stall<R>(
        &mut self,
        wrote: Poll<io::Result<R>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        if wrote.is_ready() {
            self.since = None;
            return wrote;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let late = self.timer.poll(since + self.longest, context);
        late.map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Stall<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Stall<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.poll_stall(wrote, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.socket).poll_write_vectored(context, pieces);
        self.poll_stall(wrote, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(context);
        self.poll_stall(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt, duplex};

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_cut() {
        let (_client, server) = duplex(8);
        let mut socket = Stall::new(server, Duration::from_secs(75));
        let start = Instant::now();
        let error = socket.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 75);
    }
}
