//! Decides why a store did not answer, as far as operators need to tell apart. A closed set: nothing
//! that a server sent becomes a label.

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why a store did not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It did not answer in time.
    Timeout,
    /// There is no connection to it.
    Unreachable,
    /// The connection broke off while it was asked.
    Closed,
    /// What came was no answer of a store that runs our script.
    Protocol,
    /// It does not know us, or does not let us.
    Denied,
    /// It is still reading its data set.
    Loading,
    /// It is a replica.
    ReadOnly,
    /// It is out of memory and may not forget anything.
    OutOfMemory,
    /// It answered with another error.
    Other,
    /// It failed so often that it was not asked.
    CircuitOpen,
}

impl Failure {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Timeout,
        Self::Unreachable,
        Self::Closed,
        Self::Protocol,
        Self::Denied,
        Self::Loading,
        Self::ReadOnly,
        Self::OutOfMemory,
        Self::Other,
        Self::CircuitOpen,
    ];

    /// As metrics and log lines spell it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Closed => "closed",
            Self::Protocol => "protocol",
            Self::Denied => "denied",
            Self::Loading => "loading",
            Self::ReadOnly => "readonly",
            Self::OutOfMemory => "oom",
            Self::Other => "other",
            Self::CircuitOpen => "circuit_open",
        }
    }

    /// Whether the connection is of no further use.
    pub(super) const fn breaks(self) -> bool {
        match self {
            Self::Closed | Self::Protocol | Self::Denied | Self::ReadOnly => true,
            Self::Timeout
            | Self::Unreachable
            | Self::Loading
            | Self::OutOfMemory
            | Self::Other
            | Self::CircuitOpen => false,
        }
    }

    /// What an error of the client library means.
    pub(super) fn of(error: &RedisError) -> Self {
        if error.is_timeout() {
            return Self::Timeout;
        }
        match error.code() {
            Some("OOM") => return Self::OutOfMemory,
            Some("NOAUTH" | "WRONGPASS" | "NOPERM") => return Self::Denied,
            Some("LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN") => return Self::Loading,
            Some("READONLY") => return Self::ReadOnly,
            Some(_) | None => {}
        }
        #[allow(
            clippy::wildcard_enum_match_arm,
            reason = "the library's list is open: what is not known is other"
        )]
        match error.kind() {
            ErrorKind::AuthenticationFailed | ErrorKind::Server(ServerErrorKind::NoPerm) => {
                Self::Denied
            }
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => Self::Protocol,
            ErrorKind::Io | ErrorKind::ClusterConnectionNotFound => Self::Closed,
            ErrorKind::MasterNameNotFoundBySentinel => Self::Unreachable,
            _ if error.is_connection_dropped() => Self::Closed,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_server_is_known_by_its_word() {
        let of = |code: &str| {
            let line = format!("-{code} what it says\r\n");
            let value = redis::parse_redis_value(line.as_bytes()).unwrap();
            Failure::of(&value.extract_error().unwrap_err())
        };
        for (code, kind) in [
            ("OOM", Failure::OutOfMemory),
            ("READONLY", Failure::ReadOnly),
            ("LOADING", Failure::Loading),
            ("MASTERDOWN", Failure::Loading),
            ("CLUSTERDOWN", Failure::Loading),
            ("NOAUTH", Failure::Denied),
            ("WRONGPASS", Failure::Denied),
            ("NOPERM", Failure::Denied),
            ("ERR", Failure::Other),
            ("FOREIGN", Failure::Other),
        ] {
            assert_eq!(of(code), kind, "{code}");
        }
    }

    #[test]
    fn labels_are_distinct() {
        let mut labels = Failure::ALL.map(Failure::label).to_vec();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), Failure::ALL.len());
    }
}
