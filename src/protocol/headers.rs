//! Decides which header fields the protocol reads, and what a request supplied under them.
//!
//! Must never pick one line of several: every reading here goes over all lines of a name.
//! `X-A2A-Extensions` (0.3 SDKs) is an unrelated name and does not count.

use http::header::{HeaderMap, HeaderName, HeaderValue};

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

/// Where the lines of the two headers can be read, in the order they came.
pub trait Supplies {
    /// The values of the `A2A-Version` lines.
    fn versions(&self) -> impl Iterator<Item = &[u8]>;

    /// The values of the `A2A-Extensions` lines.
    fn extensions(&self) -> impl Iterator<Item = &[u8]>;
}

impl Supplies for HeaderMap {
    fn versions(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.get_all(A2A_VERSION).iter();
        lines.map(HeaderValue::as_bytes)
    }

    fn extensions(&self) -> impl Iterator<Item = &[u8]> {
        let lines = self.get_all(A2A_EXTENSIONS).iter();
        lines.map(HeaderValue::as_bytes)
    }
}

/// What the caller sent under the two headers.
#[derive(Debug)]
pub struct Supplied<'h, S = HeaderMap>(&'h S);

impl<S> Clone for Supplied<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Supplied<'_, S> {}

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

impl<'h, S: Supplies> Supplied<'h, S> {
    /// Reads from a request's headers.
    #[must_use]
    pub const fn new(headers: &'h S) -> Self {
        Self(headers)
    }

    /// The `A2A-Version` lines.
    #[must_use]
    pub fn version(self) -> VersionLines<'h> {
        let mut lines = self.0.versions();
        match (lines.next(), lines.next()) {
            (None, _) => VersionLines::Absent,
            (Some(line), None) => VersionLines::One(line),
            (Some(_), Some(_)) => VersionLines::Several,
        }
    }

    /// Every `A2A-Version` line, in order.
    pub fn version_values(self) -> impl Iterator<Item = &'h [u8]> {
        self.0.versions()
    }

    /// The `A2A-Extensions` lines, in order; `None` when there is no line at all.
    #[must_use]
    pub fn extensions(self) -> Option<impl Iterator<Item = &'h [u8]>> {
        let mut lines = self.0.extensions().peekable();
        lines.peek().is_some().then_some(lines)
    }
}
