//! A byte stream with what was received of it, and timers that are moved late.
//!
//! Both sides' connections stand on these. A connection that waits holds a small buffer or none: what
//! comes first is read on the stack and kept in memory of its size. A message whose length is known
//! gets the room that it still needs, one that turns out long gets more step by step. Must never know
//! what the bytes mean.

use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// How much is read first, in bytes: most messages are shorter, and of a longer one little is moved.
const FIRST: usize = 4 * 1024;

/// The most that is read on the stack, in bytes.
const ON_STACK: usize = 16 * 1024;

/// The room for more of a message that is long, in bytes.
const ROOM: usize = 64 * 1024;

/// The most room that is made for a message of known length, in bytes.
const MOST: usize = 128 * 1024;

/// A buffer up to so many bytes is kept while a connection rests.
const KEPT: usize = 2 * 1024;

/// A byte stream with what was received of it.
#[derive(Debug)]
pub struct Wire<T> {
    stream: T,
    /// What was received and not taken yet.
    pub received: BytesMut,
    /// How much the next read may bring, where nothing else is known. It grows while reads are full.
    next: usize,
    /// How many bytes of the message are known to be still to come.
    expected: u64,
    /// The most that was held at once, of which the buffer is.
    largest: usize,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Wire<T> {
    /// Takes a stream over.
    pub fn new(stream: T) -> Self {
        Self {
            stream,
            received: BytesMut::new(),
            next: FIRST,
            expected: 0,
            largest: 0,
        }
    }

    /// The stream itself.
    pub fn stream(&mut self) -> &mut T {
        &mut self.stream
    }

    /// Receives more bytes; 0: the other side sends no more.
    ///
    /// # Errors
    /// The stream's.
    pub fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let count = if self.expected > 0 || self.next > ON_STACK {
            ready!(self.poll_into_room(context))?
        } else {
            ready!(self.poll_onto_stack(context))?
        };
        self.expected = self.expected.saturating_sub(count as u64);
        Poll::Ready(Ok(count))
    }

    fn poll_onto_stack(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut on_stack = [const { MaybeUninit::<u8>::uninit() }; ON_STACK];
        let mut buffer = ReadBuf::uninit(on_stack.get_mut(..self.next).unwrap_or_default());
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        let bytes = buffer.filled();
        if bytes.len() == self.next {
            self.next *= 4;
        }
        self.received.extend_from_slice(bytes);
        self.largest = self.largest.max(self.received.len());
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_into_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let room = match self.expected {
            0 => ROOM,
            expected => room(expected, MOST),
        };
        let free = self.received.capacity() - self.received.len();
        if free < room.min(FIRST) {
            self.make_room(room);
        }
        pin!(self.stream.read_buf(&mut self.received)).poll(context)
    }

    fn make_room(&mut self, room: usize) {
        self.received.reserve(room);
        self.largest = self.largest.max(self.received.len() + room);
    }

    /// So many bytes of a message are still to come, over what was received: the next reads get
    /// room for them, within a bound.
    pub fn expect(&mut self, bytes: u64) {
        self.expected = bytes;
    }

    /// The same for a message whose size is accounted for by whoever asks: room for all of it, at
    /// once, so that it is never moved.
    pub fn expect_whole(&mut self, bytes: u64) {
        self.expected = bytes;
        self.make_room(room(bytes, usize::MAX));
    }

    /// A message has ended: what is not taken yet belongs to the next. Gives much memory back, and
    /// keeps a little for the next message.
    pub fn rest(&mut self) {
        self.next = FIRST;
        self.expected = 0;
        if self.largest > KEPT && self.received.len() <= KEPT {
            // The start of the next message does not hold the room of this one.
            self.received = BytesMut::from(&*self.received);
            self.largest = self.received.len();
        }
    }

    /// Whether the other side has neither sent anything nor gone, as far as the system has told:
    /// asks nothing of it while nothing has happened.
    pub fn is_quiet(&mut self) -> bool {
        if !self.received.is_empty() {
            return false;
        }
        // A task that has done much is told to wait although there is something to read.
        let mut nobody = Context::from_waker(Waker::noop());
        let receive = poll_fn(|context| self.poll_receive(context));
        pin!(unconstrained(receive)).poll(&mut nobody).is_pending()
    }

    /// Sends these two pieces, the first before the second, and takes what was sent away from them.
    /// Ready when both are empty.
    ///
    /// # Errors
    /// The stream's; `WriteZero` when it takes no more.
    pub fn poll_send(
        &mut self,
        first: &mut impl Buf,
        second: &mut impl Buf,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let stream = Pin::new(&mut self.stream);
            let sent = match (first.has_remaining(), second.has_remaining()) {
                (false, false) => return Poll::Ready(Ok(())),
                (true, false) => ready!(stream.poll_write(context, first.chunk()))?,
                (false, true) => ready!(stream.poll_write(context, second.chunk()))?,
                (true, true) => {
                    let pieces = [
                        io::IoSlice::new(first.chunk()),
                        io::IoSlice::new(second.chunk()),
                    ];
                    ready!(stream.poll_write_vectored(context, &pieces))?
                }
            };
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_first = sent.min(first.remaining());
            first.advance(of_first);
            second.advance(sent - of_first);
        }
    }

    /// Sees to it that what was sent leaves. Streams that encrypt may hold bytes back.
    ///
    /// # Errors
    /// The stream's.
    pub fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Tells the other side that nothing more will be sent.
    ///
    /// # Errors
    /// The stream's.
    pub fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The room for so many bytes, and for one more: a read that leaves some of it free has brought all
/// there was, and the system is not asked again.
fn room(bytes: u64, most: usize) -> usize {
    usize::try_from(bytes).map_or(most, |bytes| bytes.saturating_add(1).min(most))
}

/// A timer that is only moved when it fires before it is due, so that it costs next to nothing
/// while bytes flow.
#[derive(Debug, Default)]
pub struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready when it is `due`, whatever this timer was set to before.
    pub fn poll(&mut self, due: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if due < timer.deadline() {
            timer.as_mut().reset(due);
        }
        loop {
            // A task that has done much is told to wait although the time is over: who always has
            // something for it would never be late.
            ready!(pin!(unconstrained(timer.as_mut())).poll(context));
            if timer.deadline() >= due {
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
        }
    }
}

#[cfg(test)]
mod tests;
