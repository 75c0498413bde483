//! Decides what answers of the admin socket look like: text for people and probes, JSON for tools.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;

/// A whole answer.
pub(super) type Answer = Response<Full<Bytes>>;

/// A line or more of text.
pub(super) fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let type_ = HeaderValue::from_static("text/plain; charset=utf-8");
    whole(status, type_, body.into())
}

/// One JSON value and a line feed.
pub(super) fn json(value: &impl Serialize) -> Answer {
    json_as(StatusCode::OK, value)
}

/// The same under another status.
pub(super) fn json_as(status: StatusCode, value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(mut body) => {
            body.push(b'\n');
            let type_ = HeaderValue::from_static("application/json");
            whole(status, type_, body.into())
        }
        Err(error) => {
            // Not reached: what is told is made of texts, numbers and flags.
            tracing::error!(%error, "cannot spell an answer of the admin socket");
            text(StatusCode::INTERNAL_SERVER_ERROR, "cannot be spelled\n")
        }
    }
}

/// Any body of a type.
pub(super) fn whole(status: StatusCode, type_: HeaderValue, body: Bytes) -> Answer {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, type_);
    response
}
