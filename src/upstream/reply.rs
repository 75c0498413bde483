//! Decides what an answer of an upstream is, whatever protocol it came in.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::fault::Fault;
use super::{http1, http2};
use crate::http1::Fields;

/// A response whose body is still to come.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The fields, as the upstream sent them.
    pub fields: Fields,
    /// The body.
    pub body: ReplyBody,
    /// When the head came.
    pub at: Instant,
    /// How often the request was put on a connection for it.
    pub attempts: u8,
}

/// The body of a response. Dropped before its end, it ends the exchange.
#[derive(Debug)]
pub struct ReplyBody(Kind);

#[derive(Debug)]
enum Kind {
    Http1(http1::Body),
    Http2(http2::Body),
}

impl From<http1::Body> for ReplyBody {
    fn from(body: http1::Body) -> Self {
        Self(Kind::Http1(body))
    }
}

impl From<http2::Body> for ReplyBody {
    fn from(body: http2::Body) -> Self {
        Self(Kind::Http2(body))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        match &mut self.0 {
            Kind::Http1(body) => Pin::new(body).poll_frame(context),
            Kind::Http2(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Http1(body) => body.is_end_stream(),
            Kind::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Http1(body) => body.size_hint(),
            Kind::Http2(body) => body.size_hint(),
        }
    }
}
