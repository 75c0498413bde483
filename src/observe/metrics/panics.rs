//! Decides how panics are told apart: by what caught them.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::made;

/// What caught a panic, and so what it cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caught {
    /// A request: it was answered as a failure of ours, or its answer was cut.
    Request,
    /// A client's connection, or one stream of it, outside a request: it was cut.
    Connection,
    /// Something that goes on for ever beside requests: it was begun anew.
    Loop,
}

impl Caught {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Request, Self::Connection, Self::Loop];

    /// The label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Connection => "connection",
            Self::Loop => "loop",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct By {
    caught: &'static str,
}

/// The counter of panics that were caught by this.
pub(super) fn counted(family: &Family<By, Counter>, by: Caught) -> Counter {
    made(family, By { caught: by.label() })
}
