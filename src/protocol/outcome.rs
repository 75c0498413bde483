//! Decides the closed set of names for how a request ended.
//!
//! The labels are stable: they are metric label values, access-log values and the entries of
//! `docs/errors.md`. They come from this enum only, never from traffic.

/// How one request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Forwarded and answered.
    Ok,
    /// Forwarded; the upstream answered with an HTTP error of its own.
    UpstreamError,
    /// Refused: unreadable JSON.
    ParseError,
    /// Refused: not a JSON-RPC request, a batch, a duplicate member, no id, a body too slow.
    InvalidRequest,
    /// Refused: `params.tenant` wrong or missing.
    TenantRejected,
    /// Refused: push notifications are off.
    PushNotSupported,
    /// Refused: a capability is off.
    UnsupportedOperation,
    /// Refused: method unknown here.
    MethodNotFound,
    /// Refused: content type or media type.
    ContentTypeNotSupported,
    /// Refused: the pinned extension was not activated.
    ExtensionRequired,
    /// Refused: the A2A version is not served.
    VersionNotSupported,
    /// Refused: over quota.
    RateLimited,
    /// Refused: the payload breaks its schema.
    PayloadInvalid,
    /// Refused: the skill is not offered.
    UnsupportedSkill,
    /// Refused: the body is over the size limit.
    BodyTooLarge,
    /// Fault: no connection to the upstream.
    UpstreamUnreachable,
    /// Fault: the upstream closed or reset the connection.
    UpstreamReset,
    /// Fault: the upstream took too long.
    UpstreamTimeout,
    /// Fault: the upstream's answer was not valid HTTP.
    UpstreamInvalid,
    /// Fault: shed, a budget is used up.
    Overloaded,
    /// Fault: shutting down.
    Draining,
    /// Fault: ours.
    Internal,
    /// Refused: no or bad credential.
    Unauthenticated,
    /// Refused: credential not allowed here.
    PermissionDenied,
    /// The caller went away before its answer was complete.
    ClientGone,
    /// No endpoint at this host and path, or a method it does not serve.
    NoRoute,
    /// Not acceptable HTTP.
    BadHttp,
}

impl Outcome {
    /// Every outcome, in the order of the protocol's table of refusals.
    pub const ALL: [Self; 27] = [
        Self::Ok,
        Self::UpstreamError,
        Self::ParseError,
        Self::InvalidRequest,
        Self::TenantRejected,
        Self::PushNotSupported,
        Self::UnsupportedOperation,
        Self::MethodNotFound,
        Self::ContentTypeNotSupported,
        Self::ExtensionRequired,
        Self::VersionNotSupported,
        Self::RateLimited,
        Self::PayloadInvalid,
        Self::UnsupportedSkill,
        Self::BodyTooLarge,
        Self::UpstreamUnreachable,
        Self::UpstreamReset,
        Self::UpstreamTimeout,
        Self::UpstreamInvalid,
        Self::Overloaded,
        Self::Draining,
        Self::Internal,
        Self::Unauthenticated,
        Self::PermissionDenied,
        Self::ClientGone,
        Self::NoRoute,
        Self::BadHttp,
    ];

    /// The stable label.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::UpstreamError => "upstream_error",
            Self::ParseError => "parse_error",
            Self::InvalidRequest => "invalid_request",
            Self::TenantRejected => "tenant_rejected",
            Self::PushNotSupported => "push_not_supported",
            Self::UnsupportedOperation => "unsupported_operation",
            Self::MethodNotFound => "method_not_found",
            Self::ContentTypeNotSupported => "content_type_not_supported",
            Self::ExtensionRequired => "extension_required",
            Self::VersionNotSupported => "version_not_supported",
            Self::RateLimited => "rate_limited",
            Self::PayloadInvalid => "payload_invalid",
            Self::UnsupportedSkill => "unsupported_skill",
            Self::BodyTooLarge => "body_too_large",
            Self::UpstreamUnreachable => "upstream_unreachable",
            Self::UpstreamReset => "upstream_reset",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamInvalid => "upstream_invalid",
            Self::Overloaded => "overloaded",
            Self::Draining => "draining",
            Self::Internal => "internal",
            Self::Unauthenticated => "unauthenticated",
            Self::PermissionDenied => "permission_denied",
            Self::ClientGone => "client_gone",
            Self::NoRoute => "no_route",
            Self::BadHttp => "bad_http",
        }
    }

    /// Whether the gateway failed the request: neither a mistake of its caller nor an answer of the
    /// dealer's, and nothing that comes with a restart.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        match self {
            Self::UpstreamUnreachable
            | Self::UpstreamReset
            | Self::UpstreamTimeout
            | Self::UpstreamInvalid
            | Self::Overloaded
            | Self::Internal => true,
            Self::Ok
            | Self::UpstreamError
            | Self::ParseError
            | Self::InvalidRequest
            | Self::TenantRejected
            | Self::PushNotSupported
            | Self::UnsupportedOperation
            | Self::MethodNotFound
            | Self::ContentTypeNotSupported
            | Self::ExtensionRequired
            | Self::VersionNotSupported
            | Self::RateLimited
            | Self::PayloadInvalid
            | Self::UnsupportedSkill
            | Self::BodyTooLarge
            | Self::Draining
            | Self::Unauthenticated
            | Self::PermissionDenied
            | Self::ClientGone
            | Self::NoRoute
            | Self::BadHttp => false,
        }
    }

    /// Its place in [`Outcome::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_complete_ordered_and_labels_are_distinct() {
        let mut labels: Vec<_> = Outcome::ALL.iter().map(|outcome| outcome.label()).collect();
        for (index, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome.index(), index);
        }
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), Outcome::ALL.len());
    }
}
