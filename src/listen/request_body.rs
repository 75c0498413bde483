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
    /// What is still to be told to a client that waits before it sends its body; all of it is told
    /// when it has left.
    promise: Option<&'static [u8]>,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Reading<T> {
    pub(super) fn new(socket: T) -> Self {
        Self {
            wire: Wire::new(socket),
            decoder: Decoder::new(Length::Exact(0)),
            promise: None,
        }
    }

    /// A request's head was read; its body is next.
    pub(super) fn begin(&mut self, length: Length, waits: bool) {
        self.decoder = Decoder::new(length);
        let is_awaited = waits && !self.decoder.is_done() && self.wire.received.is_empty();
        self.promise = is_awaited.then_some(CONTINUE);
        if let Some(left) = self.missing() {
            self.wire.expect(left);
        }
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
            ready!(self.wire.poll_send(promise, &mut Bytes::new(), context))?;
            ready!(self.wire.poll_flush(context))?;
            self.promise = None;
        }
        loop {
            if self.missing().is_none() {
                if let Some(piece) = self.decoder.next(&mut self.wire.received)? {
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
        let left = self.0.borrow().decoder.left();
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
