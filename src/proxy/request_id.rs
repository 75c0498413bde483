//! Decides under which id a request is known: upstream, in the answer, and in the log.
//!
//! The caller's own where it is one line of 1 to 128 visible ASCII characters, else a new one. Must
//! never be taken for a secret: it is unique, not unguessable.

use bytes::Bytes;
use uuid::Uuid;

use crate::http1::{Fields, Known};

/// The longest id of a caller's that is kept, in bytes.
const LONGEST: usize = 128;

/// The id of one request.
#[derive(Clone, Debug)]
pub(super) enum RequestId {
    /// The caller's.
    Given(Bytes),
    /// Ours, in the spelling of a UUID.
    Made([u8; uuid::fmt::Hyphenated::LENGTH]),
}

impl RequestId {
    /// The id of a request with these fields; `make` gives a new one.
    pub(super) fn of(fields: &Fields, make: impl FnOnce() -> Uuid) -> Self {
        let mut lines = fields.all(Known::XRequestId);
        if let (Some(id), None) = (lines.next(), lines.next())
            && (1..=LONGEST).contains(&id.len())
            && id.iter().all(u8::is_ascii_graphic)
            && let Some(kept) = fields.keep_first(Known::XRequestId)
        {
            return Self::Given(kept);
        }
        let mut text = [0; uuid::fmt::Hyphenated::LENGTH];
        make().hyphenated().encode_lower(&mut text);
        Self::Made(text)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Given(id) => id,
            Self::Made(id) => id,
        }
    }

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}
