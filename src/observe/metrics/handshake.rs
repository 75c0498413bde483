//! Decides why handshakes fail, as far as operators need to tell apart. A closed set: nothing that a
//! client sent becomes a label.

use prometheus_client::metrics::counter::Counter;

/// Why a client's TLS handshake came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// It was not done in time.
    Timeout,
    /// The client hung up.
    Closed,
    /// What came was not TLS: plain HTTP, mostly.
    NotTls,
    /// No version in common: the client speaks TLS 1.1 or older.
    Version,
    /// No cipher suite, group or signature in common.
    Parameters,
    /// No application protocol in common.
    Protocol,
    /// A certificate was required and none came.
    NoCertificate,
    /// The client's certificate is not believed.
    Certificate,
    /// The client sent an alert: it may not believe our certificate.
    Alert,
    /// Anything else.
    Other,
}

impl HandshakeFailure {
    /// Every reason.
    pub const ALL: [Self; 10] = [
        Self::Timeout,
        Self::Closed,
        Self::NotTls,
        Self::Version,
        Self::Parameters,
        Self::Protocol,
        Self::NoCertificate,
        Self::Certificate,
        Self::Alert,
        Self::Other,
    ];

    /// As metrics and log lines spell it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::NotTls => "not_tls",
            Self::Version => "version",
            Self::Parameters => "parameters",
            Self::Protocol => "protocol",
            Self::NoCertificate => "no_certificate",
            Self::Certificate => "certificate",
            Self::Alert => "alert",
            Self::Other => "other",
        }
    }
}

/// What is counted of one listener's handshakes. Clones count together.
#[derive(Clone, Debug)]
pub struct HandshakeMeters {
    pub(super) failed: [Counter; HandshakeFailure::ALL.len()],
}

impl HandshakeMeters {
    /// A handshake came to nothing.
    pub fn failed(&self, why: HandshakeFailure) {
        if let Some(counter) = self.failed.get(why as usize) {
            counter.inc();
        }
    }
}
