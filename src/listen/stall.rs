//! Decides how long a client may take nothing of what is sent to it, and how long what it still sends is
//! read past when its connection ends in order. Must never change a byte.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::wire::Timer;

/// How long, and for how many bytes, a connection that ends in order reads past what its client still sends:
/// closed with anything unread it would be reset, and that can take from the client what was sent to it last.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;

/// A client's socket that fails when nothing can be written for too long.
#[derive(Debug)]
pub(super) struct Stall<'c, T> {
    socket: T,
    /// Whether the connection ends in order, if it ends.
    in_order: &'c Cell<bool>,
    longest: Duration,
    since: Option<Instant>,
    timer: Timer,
    /// Since when nothing more is sent, and how much may still come.
    ended: Option<(Instant, usize)>,
}

impl<'c, T> Stall<'c, T> {
    /// Nothing is stalled yet.
    pub(super) fn new(socket: T, longest: Duration, in_order: &'c Cell<bool>) -> Self {
        Self {
            socket,
            in_order,
            longest,
            since: None,
            timer: Timer::default(),
            ended: None,
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

impl<T: AsyncRead + Unpin> Stall<'_, T> {
    /// Ready when the client has closed its end, too, or has had its time.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut past = [0; 2048];
        while let Some((since, left)) = &mut self.ended {
            if self.timer.poll(*since + LINGER, context).is_ready() {
                break;
            }
            let mut buffer = ReadBuf::new(&mut past);
            let read = ready!(Pin::new(&mut self.socket).poll_read(context, &mut buffer));
            let some = buffer.filled().len();
            if read.is_err() || some == 0 || *left < some {
                break;
            }
            *left -= some;
        }
        Poll::Ready(())
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Stall<'_, T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stall<'_, T> {
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
        if self.ended.is_none() {
            ready!(Pin::new(&mut self.socket).poll_shutdown(context))?;
            self.ended = Some((Instant::now(), LINGER_BYTES));
        }
        match self.in_order.get() {
            true => self.poll_linger(context).map(Ok),
            false => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt, duplex};

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_cut() {
        let (_client, server) = duplex(8);
        let in_order = Cell::new(false);
        let mut socket = Stall::new(server, Duration::from_secs(75), &in_order);
        let start = Instant::now();
        let error = socket.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 75);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_client_still_sends_is_read_past_for_a_moment() {
        for closes in [true, false] {
            let (mut client, server) = duplex(8);
            let in_order = Cell::new(true);
            let mut socket = Stall::new(server, Duration::from_secs(75), &in_order);
            let start = Instant::now();
            let sending = async {
                // More than its socket would hold.
                client.write_all(&[0; 64]).await.unwrap();
                if !closes {
                    std::future::pending::<()>().await;
                }
                drop(client);
            };
            tokio::select! {
                ended = async { socket.shutdown().await } => ended.unwrap(),
                () = sending => socket.shutdown().await.unwrap(),
            }
            let took = if closes { Duration::ZERO } else { LINGER };
            assert_eq!(start.elapsed(), took);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_holds_a_connection_by_sending_on() {
        let (mut client, server) = duplex(1 << 16);
        let in_order = Cell::new(true);
        let mut socket = Stall::new(server, Duration::from_secs(75), &in_order);
        let flood = async {
            let mut sent = 0;
            while client.write_all(&[0; 1 << 12]).await.is_ok() {
                sent += 1 << 12;
            }
            sent
        };
        let ended = async {
            socket.shutdown().await.unwrap();
            drop(socket);
        };
        let (sent, ()) = tokio::join!(flood, ended);
        assert!(sent <= LINGER_BYTES + (1 << 17), "{sent}");
    }
}
