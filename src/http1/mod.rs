//! HTTP/1.1 as bytes (RFC 9112): heads read and written, bodies taken out of their framing.
//!
//! Both sides of the gateway stand on this room: what a client sends and what an upstream answers
//! is held to one framing with one meaning. What is not strict HTTP and could still be read (bare line
//! feeds, several lengths) is noted here for whoever decides. No socket and no clock: bytes go in,
//! heads and pieces come out. Must never guess where a body ends.

mod body;
mod fields;
mod head;
mod known;
mod lines;
mod write;

pub use body::{Decoder, Length, Malformed};
pub use fields::{Field, Fields};
pub use head::{
    BadHead, Framing, Limits, RequestHead, ResponseHead, ends_head, read_request, read_response,
};
pub use known::Known;
pub use lines::{Answer, Lines};
pub use write::{
    Frame, Headed, answer_head, chunk_end, chunk_start, digits, request_line, status_line,
};
