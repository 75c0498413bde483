//! Decides every way the gateway says no: one exhaustive enum of facts.
//!
//! A refusal knows no binding and no dialect: `dialect` spells it, `proxy` sends it. It must never
//! carry an internal address, a path, a stack trace, or a header value that was not sanitized. A
//! new reason fails to compile until each dialect, label and status knows it.

use http::StatusCode;

use crate::protocol::outcome::Outcome;
use crate::protocol::status::Kind;
use crate::protocol::{ExtensionUri, Version};

/// Why a call is answered by the gateway instead of the dealer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The body is not JSON (JSON-RPC 2.0 section 5.1).
    ParseError,
    /// The body is JSON but not one request.
    InvalidRequest(Flaw),
    /// The body did not arrive in time.
    BodyTimeout,
    /// The body is larger than `limit` bytes.
    BodyTooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// A type that is not spoken here.
    ContentTypeNotSupported(Media),
    /// `params.tenant` is not the endpoint's.
    TenantRejected,
    /// A push notification method where push notifications are off.
    PushNotificationNotSupported {
        /// The method asked for.
        method: Box<str>,
    },
    /// A method whose capability is off.
    UnsupportedOperation {
        /// The method asked for.
        method: Box<str>,
    },
    /// A method not known here.
    MethodNotFound {
        /// The method asked for.
        method: Box<str>,
        /// The A2A version that had a method of this name, when it is an older one.
        older: Option<&'static str>,
    },
    /// The pinned extension was not activated (A2A 1.0 section 3.3.4).
    ExtensionSupportRequired {
        /// The URI the caller has to list.
        uri: ExtensionUri,
    },
    /// The A2A version is not served here (A2A 1.0 section 3.6).
    VersionNotSupported {
        /// What was asked for, sanitized; `None` when the header was absent.
        requested: Option<Box<str>>,
        /// The versions served, in configured order.
        served: Box<[Version]>,
    },
    /// Over quota.
    RateLimited {
        /// Milliseconds after which the same call is admitted, rounded up.
        retry_after_ms: u64,
    },
    /// The payload breaks its schema; every problem at once.
    PayloadInvalid {
        /// The problems, in a stable order; at least one.
        problems: Box<[Violation]>,
    },
    /// The skill is not offered.
    UnsupportedSkill {
        /// The skill asked for.
        skill: Box<str>,
    },
    /// Something failed on our side of the caller.
    Failed {
        /// What failed.
        failure: Failure,
        /// Whether sending the same call again is safe and may help.
        retryable: bool,
        /// Milliseconds to wait before that, where known.
        retry_after_ms: Option<u64>,
    },
    /// No or bad credential.
    Unauthenticated(Lack),
    /// A known caller that is not allowed here.
    PermissionDenied,
}

/// Why a JSON text is not one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A batch: A2A has none.
    Batch,
    /// Not an object.
    NotAnObject,
    /// No id: A2A has no notifications.
    NoId,
    /// The id is a boolean, an object or an array.
    IdType,
    /// Two ids.
    DuplicateId,
    /// A member that decides something stands twice.
    DuplicateMember,
    /// `jsonrpc` is not `"2.0"`.
    JsonRpcVersion,
    /// `method` is not a string.
    Method,
}

/// Which type was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Media {
    /// The HTTP content type is not `application/json`.
    ContentType,
    /// The HTTP body is compressed.
    ContentEncoding,
    /// The media type of the first part.
    Part,
    /// None of the accepted output modes can be produced.
    OutputModes,
}

/// What is wrong with the credentials of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// There are none.
    Absent,
    /// They prove nobody, or not one caller.
    Bad,
    /// The same, and a bearer token is among them.
    BadBearer,
}

/// What failed. Says whose fault it was and nothing of how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// No connection to the dealer.
    Unreachable,
    /// The dealer closed the connection.
    Reset,
    /// The dealer took too long.
    Timeout,
    /// The dealer's answer was not valid HTTP.
    Invalid,
    /// A budget of the gateway is used up.
    Overloaded,
    /// The gateway is shutting down.
    Draining,
    /// The gateway failed.
    Internal,
}

/// One problem of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer, relative to the payload.
    pub location: Box<str>,
    /// The schema keyword that failed.
    pub keyword: Box<str>,
    /// What is wrong, for a reader.
    pub error: Box<str>,
    /// The offending value as JSON text, shortened; contracts up to 1.0 show it.
    pub received: Option<Box<str>>,
}

impl Refusal {
    /// The stable label's outcome.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::ParseError => Outcome::ParseError,
            Self::InvalidRequest(_) | Self::BodyTimeout => Outcome::InvalidRequest,
            Self::BodyTooLarge { .. } => Outcome::BodyTooLarge,
            Self::ContentTypeNotSupported(_) => Outcome::ContentTypeNotSupported,
            Self::TenantRejected => Outcome::TenantRejected,
            Self::PushNotificationNotSupported { .. } => Outcome::PushNotSupported,
            Self::UnsupportedOperation { .. } => Outcome::UnsupportedOperation,
            Self::MethodNotFound { .. } => Outcome::MethodNotFound,
            Self::ExtensionSupportRequired { .. } => Outcome::ExtensionRequired,
            Self::VersionNotSupported { .. } => Outcome::VersionNotSupported,
            Self::RateLimited { .. } => Outcome::RateLimited,
            Self::PayloadInvalid { .. } => Outcome::PayloadInvalid,
            Self::UnsupportedSkill { .. } => Outcome::UnsupportedSkill,
            Self::Failed { failure, .. } => failure.outcome(),
            Self::Unauthenticated(_) => Outcome::Unauthenticated,
            Self::PermissionDenied => Outcome::PermissionDenied,
        }
    }

    /// The HTTP status of the protocol's `mapped` column.
    #[must_use]
    pub const fn mapped_status(&self) -> StatusCode {
        match self {
            Self::ParseError
            | Self::InvalidRequest(_)
            | Self::TenantRejected
            | Self::PushNotificationNotSupported { .. }
            | Self::UnsupportedOperation { .. }
            | Self::ExtensionSupportRequired { .. }
            | Self::VersionNotSupported { .. }
            | Self::PayloadInvalid { .. } => StatusCode::BAD_REQUEST,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::ContentTypeNotSupported(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::MethodNotFound { .. } | Self::UnsupportedSkill { .. } => StatusCode::NOT_FOUND,
            Self::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Failed { failure, .. } => failure.mapped_status(),
            Self::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
            Self::PermissionDenied => StatusCode::FORBIDDEN,
        }
    }

    /// When it was decided, which tells with `http_status` what HTTP status is sent.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::BodyTimeout
            | Self::BodyTooLarge { .. }
            | Self::ContentTypeNotSupported(Media::ContentType | Media::ContentEncoding) => {
                Kind::BeforeBody
            }
            Self::Failed { .. } => Kind::Fault,
            Self::Unauthenticated(_) | Self::PermissionDenied => Kind::Credential,
            Self::ParseError
            | Self::InvalidRequest(_)
            | Self::ContentTypeNotSupported(Media::Part | Media::OutputModes)
            | Self::TenantRejected
            | Self::PushNotificationNotSupported { .. }
            | Self::UnsupportedOperation { .. }
            | Self::MethodNotFound { .. }
            | Self::ExtensionSupportRequired { .. }
            | Self::VersionNotSupported { .. }
            | Self::RateLimited { .. }
            | Self::PayloadInvalid { .. }
            | Self::UnsupportedSkill { .. } => Kind::Refusal,
        }
    }

    /// Milliseconds until the same call can succeed, where known.
    #[must_use]
    pub const fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::RateLimited { retry_after_ms } => Some(*retry_after_ms),
            Self::Failed { retry_after_ms, .. } => *retry_after_ms,
            Self::ParseError
            | Self::InvalidRequest(_)
            | Self::BodyTimeout
            | Self::BodyTooLarge { .. }
            | Self::ContentTypeNotSupported(_)
            | Self::TenantRejected
            | Self::PushNotificationNotSupported { .. }
            | Self::UnsupportedOperation { .. }
            | Self::MethodNotFound { .. }
            | Self::ExtensionSupportRequired { .. }
            | Self::VersionNotSupported { .. }
            | Self::PayloadInvalid { .. }
            | Self::UnsupportedSkill { .. }
            | Self::Unauthenticated(_)
            | Self::PermissionDenied => None,
        }
    }

    /// `Retry-After`, in whole seconds, rounded up.
    #[must_use]
    pub const fn retry_after_seconds(&self) -> Option<u64> {
        match self.retry_after_ms() {
            Some(ms) => Some(ms.div_ceil(1000)),
            None => None,
        }
    }
}

impl Failure {
    /// Every failure.
    pub const ALL: [Self; 7] = [
        Self::Unreachable,
        Self::Reset,
        Self::Timeout,
        Self::Invalid,
        Self::Overloaded,
        Self::Draining,
        Self::Internal,
    ];

    /// The stable label's outcome.
    #[must_use]
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Unreachable => Outcome::UpstreamUnreachable,
            Self::Reset => Outcome::UpstreamReset,
            Self::Timeout => Outcome::UpstreamTimeout,
            Self::Invalid => Outcome::UpstreamInvalid,
            Self::Overloaded => Outcome::Overloaded,
            Self::Draining => Outcome::Draining,
            Self::Internal => Outcome::Internal,
        }
    }

    const fn mapped_status(self) -> StatusCode {
        match self {
            Self::Unreachable | Self::Reset | Self::Invalid => StatusCode::BAD_GATEWAY,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Overloaded | Self::Draining => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}
