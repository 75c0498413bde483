//! Decides whether what a request carries proves that it is from a caller the configuration knows.
//!
//! [`Callers::examine`] looks at an API key (in the configured header, or as `Authorization: Bearer`)
//! and at what the connection's client certificate shows, and gives a [`Verdict`]. Who is asking is
//! told by its place among the configured callers; whose bucket that is, whether it may call here and
//! what the answer looks like is decided elsewhere.
//!
//! One rule where a request carries more than one credential: each that is carried must be good, and
//! all must prove the same caller. A certificate that no caller is configured with proves nobody and
//! is as none: TLS has let it in, and perhaps for another reason.
//!
//! This room must never keep, show or log a credential, and never let the time it takes tell how much
//! of a guessed one was right ([`key`]).

pub mod callers;
pub mod certificate;
pub mod fresh;
pub mod key;
pub mod token;

pub use callers::Callers;
pub use certificate::{Certificate, Shows};

/// What came of looking at the credentials that a request carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It carries none.
    Absent,
    /// All that it carries prove this.
    Proven(Proof),
    /// One of them proves nobody, or two of them prove different callers.
    Bad(Flaw),
    /// A header that carries credentials stands on more than one line: whom the request is from
    /// depends on who reads it.
    Repeated,
}

/// Who is asking, and where that stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Who is asking.
    pub who: Who,
    /// Which headers proved it.
    pub by: Carriers,
}

/// Somebody who is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The caller at this place of the configuration's `[caller.NAME]` tables.
    Caller(usize),
    /// Whoever a token names of the issuer at this place of its `[issuer.NAME]` tables.
    Token {
        /// That place.
        issuer: usize,
    },
}

/// The headers that carried what was verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carriers {
    /// The header of API keys.
    pub key_header: bool,
    /// `Authorization: Bearer`.
    pub bearer: bool,
}

/// Why a credential is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// For the log; says nothing of the credential itself.
    pub why: &'static str,
    /// Whether the request carries a bearer token: its challenge says so (RFC 6750 section 3.1).
    pub is_bearer: bool,
}
