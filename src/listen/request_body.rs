//! Decides how a request's body is taken off its connection: when it is asked for, never before.
//!
//! The body and its connection share the bytes received; both stand on one thread, and neither
//! holds them while it waits. A body announced by its length comes in one piece, because whoever
//! asks wants it whole. A client that waits for `100 Continue` gets it when the body is first asked
//! for. Must never take a byte of the next request.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::http1::{Decoder, Length, Malformed};
use crate::wire::Wire;

/// What answers `Expect: 100-continue` (RFC 9110 section 10.1.1).
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A client's connection, as its requests' bodies see it.
#[derive(Debug)]
pub(super) struct Reading<T> {
    pub(super) wire: Wire<T>,
    /// The current request's body.
    pub(super) decoder: Decoder,
    /// What is still to be told to a client that waits before it sends its body.
    promise: Option<&'static [u8]>,
    /// Whether the current request's body was asked for: whoever does has accounted for its length.
    is_asked_for: bool,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Reading<T> {
    pub(super) fn new(socket: T) -> Self {
        Self {
            wire: Wire::new(socket),
            decoder: Decoder::new(Length::Exact(0)),
            promise: None,
            is_asked_for: false,
        }
    }

    /// A request's head was read; its body is next.
    pub(super) fn begin(&mut self, length: Length, waits: bool) {
        self.decoder = Decoder::new(length);
        let is_due = waits && !self.decoder.is_done() && self.wire.received.is_empty();
        self.promise = is_due.then_some(CONTINUE);
        self.is_asked_for = false;
    }

    /// How many bytes of a body of known length were not received yet.
    fn missing(&self) -> Option<u64> {
        let received = self.wire.received.len() as u64;
        self.decoder
            .left()?
            .checked_sub(received)
            .filter(|it| *it > 0)
    }

    /// The next piece of the body; `None`: it has ended.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        if let Some(promise) = &mut self.promise {
            let polled = self.wire.poll_send(promise, &mut Bytes::new(), context);
            ready!(polled)?;
            ready!(self.wire.poll_flush(context))?;
            self.promise = None;
        }
        if !self.is_asked_for {
            self.is_asked_for = true;
            if let Some(left) = self.missing() {
                self.wire.expect_whole(left);
            }
        }
        loop {
            if self.missing().is_none() {
                if let Some(piece) = self.decoder.next(&mut self.wire.received)? {
                    if self.decoder.is_done() {
                        // While its request is served, a connection holds no room.
                        self.wire.rest();
                    }
                    return Poll::Ready(Ok(Some(piece)));
                }
                if self.decoder.is_done() {
                    return Poll::Ready(Ok(None));
                }
            }
            if ready!(self.wire.poll_receive(context))? == 0 {
                return Poll::Ready(Err(BodyError::Gone));
            }
        }
    }
}

/// Why a request's body did not come whole.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// Its framing is broken.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The client closed its side.
    #[error("the client is gone")]
    Gone,
    /// The connection failed.
    #[error(transparent)]
    Failed(#[from] io::Error),
}

/// The body of a request over HTTP/1.1.
#[derive(Debug)]
pub(super) struct RequestBody<T>(pub(super) Rc<RefCell<Reading<T>>>);

impl<T: AsyncRead + AsyncWrite + Unpin> Body for RequestBody<T> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let piece = ready!(self.0.borrow_mut().poll_piece(context));
        Poll::Ready(piece.transpose().map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.borrow().decoder.is_done()
    }

    fn size_hint(&self) -> SizeHint {
        let reading = self.0.borrow();
        let mut hint = SizeHint::default();
        // At least what is here already: whoever waits for the whole accounts for it.
        if let Some(left) = reading.decoder.left() {
            hint.set_upper(left);
            hint.set_lower(left.min(reading.wire.received.len() as u64));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, BufWriter, duplex};

    use super::*;

    async fn piece<T: AsyncRead + AsyncWrite + Unpin>(reading: &mut Reading<T>) -> Option<Bytes> {
        poll_fn(|context| reading.poll_piece(context))
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_connection_whose_request_is_served_holds_no_room() {
        let (mut client, server) = duplex(1 << 20);
        let mut reading = Reading::new(server);
        // Of a small one, the byte of room that told that nothing else had come is no matter.
        for (length, held) in [(1000, 1), (100_000, 0)] {
            reading.begin(Length::Exact(length as u64), false);
            client.write_all(&vec![b'x'; length]).await.unwrap();
            assert_eq!(piece(&mut reading).await.unwrap().len(), length);
            let mut nobody = Context::from_waker(std::task::Waker::noop());
            assert!(reading.wire.poll_receive(&mut nobody).is_pending());
            assert_eq!(reading.wire.received.capacity(), held);
        }
    }

    #[tokio::test]
    async fn who_waits_for_a_word_gets_all_of_it() {
        // What is written may be held back, and leaves in small pieces.
        let (mut client, server) = duplex(3);
        let mut reading = Reading::new(BufWriter::new(server));
        reading.begin(Length::Exact(1), true);
        let told = async {
            let mut told = [0; CONTINUE.len()];
            client.read_exact(&mut told).await.unwrap();
            client.write_all(b"x").await.unwrap();
            told
        };
        let (came, told) = tokio::join!(piece(&mut reading), told);
        assert_eq!(came.unwrap(), "x");
        assert_eq!(told, CONTINUE);
    }
}
