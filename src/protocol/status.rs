//! Decides which HTTP status carries a JSON-RPC answer made by the gateway.
//!
//! Follows the protocol's section on refusals: a refusal rides on 200 by default because SDK clients
//! throw the body of any other status away; faults and what is decided before the body was read
//! carry their mapped status so that load balancers and monitors see them.

use http::StatusCode;

/// The endpoint's choice (`http_status`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpStatus {
    /// Refusals on 200, everything else mapped.
    #[default]
    Split,
    /// Mapped for all.
    Mapped,
    /// 200 for all but 401 and 403.
    Ok,
}

/// When in the life of a request an answer was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The call was read and understood, and the answer is no.
    Refusal,
    /// Decided before the body was read: method, type, size, time.
    BeforeBody,
    /// Something failed: the upstream, a budget, shutdown.
    Fault,
    /// 401 or 403: always sent as such.
    Credential,
}

impl HttpStatus {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Split, Self::Mapped, Self::Ok];

    /// The name used in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Mapped => "mapped",
            Self::Ok => "ok",
        }
    }

    /// The status to send for an answer of this kind whose mapped status is given.
    #[must_use]
    pub const fn choose(self, kind: Kind, mapped: StatusCode) -> StatusCode {
        match (kind, self) {
            (Kind::Credential, _)
            | (_, Self::Mapped)
            | (Kind::BeforeBody | Kind::Fault, Self::Split) => mapped,
            (Kind::Refusal, Self::Split) | (_, Self::Ok) => StatusCode::OK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_sends_refusals_on_200_and_the_rest_mapped() {
        let mapped = StatusCode::TOO_MANY_REQUESTS;
        for (choice, kind, status) in [
            (HttpStatus::Split, Kind::Refusal, StatusCode::OK),
            (HttpStatus::Split, Kind::BeforeBody, mapped),
            (HttpStatus::Split, Kind::Fault, mapped),
            (HttpStatus::Split, Kind::Credential, mapped),
            (HttpStatus::Mapped, Kind::Refusal, mapped),
            (HttpStatus::Mapped, Kind::Fault, mapped),
            (HttpStatus::Ok, Kind::Refusal, StatusCode::OK),
            (HttpStatus::Ok, Kind::BeforeBody, StatusCode::OK),
            (HttpStatus::Ok, Kind::Fault, StatusCode::OK),
            (HttpStatus::Ok, Kind::Credential, mapped),
        ] {
            assert_eq!(choice.choose(kind, mapped), status, "{choice:?} {kind:?}");
        }
    }
}
