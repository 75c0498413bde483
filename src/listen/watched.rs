//! Decides how long a client's socket may stay silent, and has each head's framing noted.
//!
//! The deadlines follow the connection's phase: a head is due within the header timeout, a quiet
//! connection is closed after the idle timeout, and a client that takes none of an answer for the
//! idle timeout is cut. A request being served has no read deadline here: its body has its own.
//! Must never change a byte.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::heads::Heads;
use crate::state::connection::{Connection, Phase};

/// Waiting times of client connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadlines {
    /// For a request head to be complete.
    pub(super) head: Duration,
    /// For a quiet connection, and for a client that takes nothing of its answer.
    pub(super) idle: Duration,
}

/// A client's socket with its deadlines.
#[derive(Debug)]
pub(super) struct Watched<T> {
    socket: T,
    connection: Rc<Connection>,
    deadlines: Deadlines,
    reading: Timer,
    writing: Timer,
    stalled_since: Option<Instant>,
    /// `None` over HTTP/2, whose streams have their own deadlines.
    heads: Option<Heads>,
}

impl<T> Watched<T> {
    /// A socket that speaks HTTP/1.1.
    pub(super) fn new(socket: T, connection: Rc<Connection>, deadlines: Deadlines) -> Self {
        Self {
            socket,
            connection,
            deadlines,
            reading: Timer::default(),
            writing: Timer::default(),
            stalled_since: None,
            heads: Some(Heads::default()),
        }
    }

    /// A socket that speaks HTTP/2: only a client that takes nothing is cut here.
    pub(super) fn many(socket: T, connection: Rc<Connection>, deadlines: Deadlines) -> Self {
        Self {
            heads: None,
            ..Self::new(socket, connection, deadlines)
        }
    }

    fn received(&mut self, bytes: &[u8]) {
        if self.connection.phase() == Phase::Idle {
            self.connection.enter(Phase::Head, Instant::now());
        }
        let Self {
            heads, connection, ..
        } = self;
        if let Some(heads) = heads {
            heads.read(bytes, |framing| connection.note_framing(framing));
        }
    }

    fn is_absurd(&self) -> bool {
        self.heads.as_ref().is_some_and(Heads::is_absurd)
    }

    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let limit = match self.connection.phase() {
            Phase::Busy => return Poll::Pending,
            Phase::Head => self.deadlines.head,
            Phase::Idle => self.deadlines.idle,
        };
        let due = self.connection.since() + limit;
        self.reading.poll(due, context).map(|()| timed_out())
    }

    fn poll_stall<R>(
        &mut self,
        wrote: Poll<io::Result<R>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        if wrote.is_ready() {
            self.stalled_since = None;
            return wrote;
        }
        let since = *self.stalled_since.get_or_insert_with(Instant::now);
        let due = since + self.deadlines.idle;
        self.writing.poll(due, context).map(|()| Err(timed_out()))
    }
}

fn timed_out() -> io::Error {
    io::ErrorKind::TimedOut.into()
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.heads.is_none() {
            return Pin::new(&mut self.socket).poll_read(context, buffer);
        }
        let before = buffer.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut self.socket).poll_read(context, buffer) {
            let new = buffer.filled().get(before..).unwrap_or_default();
            if read.is_ok() && !new.is_empty() {
                self.received(new);
                if self.is_absurd() {
                    return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
                }
            }
            return Poll::Ready(read);
        }
        let error = ready!(self.poll_silence(context));
        Poll::Ready(Err(error))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
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

/// A timer that is only moved when it fires before it is due, so that it costs nothing while
/// bytes flow.
#[derive(Debug, Default)]
pub(super) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Resolves at `due`.
    pub(super) fn poll(&mut self, due: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if due < timer.deadline() {
            timer.as_mut().reset(due);
        }
        loop {
            ready!(timer.as_mut().poll(context));
            if timer.deadline() >= due {
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    fn deadlines() -> Deadlines {
        Deadlines {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
        }
    }

    fn connection() -> Rc<Connection> {
        let peer = "127.0.0.1:1".parse().unwrap();
        Rc::new(Connection::new(
            peer,
            "public".into(),
            "http",
            Instant::now(),
        ))
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_closed_by_phase() {
        for (phase, seconds) in [(Phase::Head, 10), (Phase::Idle, 75)] {
            let (_client, server) = duplex(64);
            let connection = connection();
            connection.enter(phase, Instant::now());
            let mut watched = Watched::new(server, connection, deadlines());
            let start = Instant::now();
            let error = watched.read_u8().await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert_eq!(start.elapsed().as_secs(), seconds);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_dripping_head_does_not_move_its_deadline() {
        let (mut client, server) = duplex(64);
        let mut watched = Watched::new(server, connection(), deadlines());
        let start = Instant::now();
        let drip = async {
            loop {
                client.write_all(b"x").await.unwrap();
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
        };
        let read = async { while watched.read_u8().await.is_ok() {} };
        tokio::select! { () = drip => {}, () = read => {} }
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_cut() {
        let (_client, server) = duplex(8);
        let connection = connection();
        connection.enter(Phase::Busy, Instant::now());
        let mut watched = Watched::new(server, connection, deadlines());
        let start = Instant::now();
        let error = watched.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 75);
    }
}
