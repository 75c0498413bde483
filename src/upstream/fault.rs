//! Decides how the failures of an exchange are told apart: what happened, and whether the request
//! may have reached the dealer.
//!
//! A fault is for the log. What a caller is told is made from its cause alone, so no address and
//! no system error can reach an answer.

use std::error::Error;
use std::fmt;

/// Something went wrong between the gateway and an upstream.
#[derive(Debug)]
pub struct Fault {
    /// What happened.
    pub cause: Cause,
    /// Whether a byte of the request may have been written: then it must not be sent again.
    pub may_have_been_sent: bool,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What happened, for outcome and retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The name did not resolve, or no address accepted a connection.
    Unreachable,
    /// No connection within the connect timeout.
    ConnectTimeout,
    /// The TLS handshake failed: no certificate that is believed, or none of ours that is.
    Tls,
    /// The connection was closed or reset.
    Reset,
    /// No response head in time.
    ResponseTimeout,
    /// No further byte of the body in time.
    IdleTimeout,
    /// The answer was not valid HTTP, or an upgrade nobody asked for.
    Invalid,
    /// Every connection is in use and the queue is full.
    NoCapacity,
    /// The upstream carries as many requests as it may.
    Full,
    /// The request itself could not be written down: ours to mend.
    Unsendable,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 10] = [
        Self::Unreachable,
        Self::ConnectTimeout,
        Self::Tls,
        Self::Reset,
        Self::ResponseTimeout,
        Self::IdleTimeout,
        Self::Invalid,
        Self::NoCapacity,
        Self::Full,
        Self::Unsendable,
    ];

    /// What happened, in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Unreachable => "no connection",
            Self::ConnectTimeout => "no connection in time",
            Self::Tls => "no TLS",
            Self::Reset => "connection closed",
            Self::ResponseTimeout => "no response head in time",
            Self::IdleTimeout => "response body stalled",
            Self::Invalid => "invalid response",
            Self::NoCapacity => "no free connection",
            Self::Full => "too many requests at once",
            Self::Unsendable => "request cannot be sent",
        }
    }
}

impl Fault {
    /// A request that cannot be put on the wire; nothing was.
    #[must_use]
    pub fn unsendable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::unsent(Cause::Unsendable).because(source)
    }

    /// A fault before anything was written.
    pub(super) fn unsent(cause: Cause) -> Self {
        Self {
            cause,
            may_have_been_sent: false,
            source: None,
        }
    }

    /// A fault after something may have been written.
    pub(super) fn sent(cause: Cause) -> Self {
        Self {
            cause,
            may_have_been_sent: true,
            source: None,
        }
    }

    pub(super) fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The same fault within a body: the request was seen.
    pub(super) fn after_head(mut self) -> Self {
        self.may_have_been_sent = true;
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.cause.text())?;
        let mut source = self.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source
            .as_deref()
            .map(|error| error as &(dyn Error + 'static))
    }
}
