//! Decides which header fields the protocol reads, and what a request supplied under them.
//!
//! Must never pick one line of several: every reading here goes over all lines of a name.
//! `X-A2A-Extensions` (0.3 SDKs) is an unrelated name and does not count.

use http::header::{GetAll, HeaderMap, HeaderName, HeaderValue};

/// `A2A-Version` (A2A 1.0 section 3.6).
pub const A2A_VERSION: HeaderName = HeaderName::from_static("a2a-version");
/// `A2A-Extensions` (A2A 1.0 section 3.2.6).
pub const A2A_EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");
/// How messages spell the version header.
pub const VERSION_NAME: &str = "A2A-Version";
/// How messages spell the extensions header.
pub const EXTENSIONS_NAME: &str = "A2A-Extensions";

/// Names that CGI-style upstreams merge with the real ones: dropped, never counted.
pub const LOOK_ALIKES: [&str; 2] = ["a2a_version", "a2a_extensions"];

/// What the caller sent under the two headers.
#[derive(Clone, Copy, Debug)]
pub struct Supplied<'h>(&'h HeaderMap);

/// The `A2A-Version` lines of a request: absent, empty and several are three different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionLines<'h> {
    /// No line at all.
    Absent,
    /// Exactly one line, perhaps empty.
    One(&'h [u8]),
    /// Two or more lines, even equal ones.
    Several,
}

impl<'h> Supplied<'h> {
    /// Reads from a request's headers.
    #[must_use]
    pub const fn new(headers: &'h HeaderMap) -> Self {
        Self(headers)
    }

    /// The `A2A-Version` lines.
    #[must_use]
    pub fn version(self) -> VersionLines<'h> {
        let mut lines = self.version_values().iter();
        match (lines.next(), lines.next()) {
            (None, _) => VersionLines::Absent,
            (Some(line), None) => VersionLines::One(line.as_bytes()),
            (Some(_), Some(_)) => VersionLines::Several,
        }
    }

    /// Every `A2A-Version` line, in order.
    #[must_use]
    pub fn version_values(self) -> GetAll<'h, HeaderValue> {
        self.0.get_all(A2A_VERSION)
    }

    /// The `A2A-Extensions` lines, in order; `None` when there is no line at all.
    #[must_use]
    pub fn extensions(self) -> Option<impl Iterator<Item = &'h [u8]>> {
        let mut lines = self
            .0
            .get_all(A2A_EXTENSIONS)
            .iter()
            .map(HeaderValue::as_bytes)
            .peekable();
        lines.peek().is_some().then_some(lines)
    }
}
