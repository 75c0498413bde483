//! Decides what the steps of admission are called, in which order they stand, and which text each of
//! them follows.
//!
//! Where a request stopped is read off what stopped it. A new reason to stop fails to compile until it
//! has its step.

use crate::observe::Decision;
use crate::protocol::refusal::Media;
use crate::protocol::{Failure, Outcome, Refusal, Step};
use crate::proxy::respond::Stop;
use crate::proxy::strict::{REPEATED_CALLER, Unfit};

/// A step on the way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The bytes are a head.
    Head,
    /// It is HTTP with one meaning.
    Http,
    /// Something is served at its host and path.
    Route,
    /// By this method.
    HttpMethod,
    /// The body says it is JSON.
    MediaType,
    /// Who is asking, and whether they may.
    Credential,
    /// The body came whole, in size and time.
    Body,
    /// It is one JSON-RPC request.
    Envelope,
    /// There is room for it.
    Load,
    /// The caller's quotas.
    Quota,
    /// `A2A-Version`.
    Version,
    /// `A2A-Extensions`.
    Extension,
    /// The JSON-RPC method is known.
    Method,
    /// The method is served.
    Capability,
    /// `params.tenant`.
    Tenant,
    /// Media types of parts.
    Media,
    /// The payload.
    Payload,
    /// The dealer.
    Upstream,
}

impl Stage {
    /// Those that every JSON-RPC call goes through, in the order of admission.
    pub const WALKED: [Self; 15] = [
        Self::Head,
        Self::Http,
        Self::Route,
        Self::HttpMethod,
        Self::MediaType,
        Self::Credential,
        Self::Body,
        Self::Envelope,
        Self::Load,
        Self::Quota,
        Self::Version,
        Self::Extension,
        Self::Method,
        Self::Capability,
        Self::Upstream,
    ];

    /// Its name; where it can be listed in `report`, the name it has there.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Http => "http",
            Self::Route => "route",
            Self::HttpMethod => "http_method",
            Self::MediaType => "content_type",
            Self::Credential => "credential",
            Self::Body => "body",
            Self::Envelope => "envelope",
            Self::Load => "load",
            Self::Quota => Step::Quota.name(),
            Self::Version => Step::Version.name(),
            Self::Extension => Step::Extension.name(),
            Self::Method => "method",
            Self::Capability => Step::Capability.name(),
            Self::Tenant => Step::Tenant.name(),
            Self::Media => Step::Media.name(),
            Self::Payload => Step::Payload.name(),
            Self::Upstream => "upstream",
        }
    }

    /// What it follows.
    #[must_use]
    pub const fn section(self) -> &'static str {
        match self {
            Self::Head => "RFC 9112, 2, 3 and 5",
            Self::Http => "RFC 9112, 3.2 and 6; RFC 9110, 7.2, 7.6.1, 10.1.1 and 11.6.2",
            Self::Route => "Forecourt, the life of a request, 4",
            Self::HttpMethod => "A2A 1.0, 9; RFC 9110, 15.5.6",
            Self::MediaType => "A2A 1.0, 9; RFC 8259, 8.1",
            Self::Credential => "RFC 9110, 11; RFC 6750, 3; RFC 8725",
            Self::Body => "RFC 9112, 6; RFC 9110, 15.5.9 and 15.5.14",
            Self::Envelope => "JSON-RPC 2.0, 4 to 6; A2A 1.0, 9",
            Self::Load => "Forecourt, budgets; RFC 9110, 15.6.4",
            Self::Quota => "AAP 3.0, Errors (RATE_LIMITED); RFC 9110, 10.2.3",
            Self::Version => "A2A 1.0, 3.6; AAP 3.0, A2A JSON-RPC binding",
            Self::Extension => "A2A 1.0, 3.2.6, 3.3.4 and 4.6.3; AAP 3.0, A2A JSON-RPC binding",
            Self::Method => "A2A 1.0, 9.4; JSON-RPC 2.0, 5.1",
            Self::Capability => "A2A 1.0, 3.3.4 and 5.4",
            Self::Tenant => "A2A 1.0, 9; AAP 3.0, A2A JSON-RPC binding",
            Self::Media => "A2A 1.0, 5.4",
            Self::Payload => "AAP 3.0, Errors",
            Self::Upstream => "AAP 3.0, Errors (INTERNAL_ERROR); RFC 9110, 15.6",
        }
    }

    /// The step as it can be listed in `report`.
    pub(super) fn reportable(self) -> Option<Step> {
        let named = |step: &Step| step.name() == self.name();
        Step::ALL.into_iter().find(named)
    }

    /// Where a request stopped.
    pub(in crate::proxy) fn of(stop: &Stop) -> Self {
        match stop {
            Stop::Unfit(unfit) => Self::of_unfit(unfit),
            Stop::NoRoute => Self::Route,
            Stop::MethodNotAllowed => Self::HttpMethod,
            Stop::BrokenBody => Self::Body,
            Stop::RelayFailed(refusal) => Self::of_refusal(refusal),
            // Read as far as it went: only a body without room is shed unread.
            Stop::Refused(refused) => {
                let stage = Self::of_refusal(&refused.refusal);
                let is_unread = !refused.body_was_read && stage == Self::Load;
                if is_unread { Self::Body } else { stage }
            }
        }
    }

    fn of_unfit(unfit: &Unfit) -> Self {
        if *unfit == REPEATED_CALLER {
            Self::Credential
        } else {
            Self::Http
        }
    }

    const fn of_refusal(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::ParseError | Refusal::InvalidRequest(_) => Self::Envelope,
            Refusal::BodyTimeout | Refusal::BodyTooLarge { .. } => Self::Body,
            Refusal::ContentTypeNotSupported(Media::ContentType | Media::ContentEncoding) => {
                Self::MediaType
            }
            Refusal::ContentTypeNotSupported(Media::Part | Media::OutputModes) => Self::Media,
            Refusal::TenantRejected => Self::Tenant,
            Refusal::PushNotificationNotSupported { .. } | Refusal::UnsupportedOperation { .. } => {
                Self::Capability
            }
            Refusal::MethodNotFound { .. } => Self::Method,
            Refusal::ExtensionSupportRequired { .. } => Self::Extension,
            Refusal::VersionNotSupported { .. } => Self::Version,
            Refusal::RateLimited { .. } => Self::Quota,
            Refusal::PayloadInvalid { .. } | Refusal::UnsupportedSkill { .. } => Self::Payload,
            Refusal::Failed { failure, .. } => match failure {
                Failure::Overloaded | Failure::Draining => Self::Load,
                Failure::Unreachable
                | Failure::Reset
                | Failure::Timeout
                | Failure::Invalid
                | Failure::Internal => Self::Upstream,
            },
            Refusal::Unauthenticated(_) | Refusal::PermissionDenied => Self::Credential,
        }
    }

    /// Where a request stopped that is remembered; `None`: nowhere here, or nobody knows.
    #[must_use]
    pub fn of_decision(decision: &Decision) -> Option<Self> {
        let why = decision.why.as_deref();
        let was_read = decision.rpc_method.is_some();
        Some(match decision.outcome {
            Outcome::Ok | Outcome::UpstreamError => return None,
            Outcome::ClientGone if decision.upstream.is_none() => return None,
            Outcome::ClientGone
            | Outcome::UpstreamUnreachable
            | Outcome::UpstreamReset
            | Outcome::UpstreamTimeout
            | Outcome::UpstreamInvalid
            | Outcome::Internal => Self::Upstream,
            Outcome::Overloaded if decision.upstream.is_some() => Self::Upstream,
            Outcome::Overloaded if was_read || why.is_some() => Self::Load,
            Outcome::Overloaded => Self::Body,
            Outcome::Draining => Self::Load,
            Outcome::ParseError => Self::Envelope,
            // A body that came late was never read.
            Outcome::InvalidRequest if decision.bytes_in == 0 => Self::Body,
            Outcome::InvalidRequest => Self::Envelope,
            Outcome::BodyTooLarge => Self::Body,
            Outcome::ContentTypeNotSupported => Self::MediaType,
            Outcome::TenantRejected => Self::Tenant,
            Outcome::PushNotSupported | Outcome::UnsupportedOperation => Self::Capability,
            Outcome::MethodNotFound => Self::Method,
            Outcome::ExtensionRequired => Self::Extension,
            Outcome::VersionNotSupported => Self::Version,
            Outcome::RateLimited => Self::Quota,
            Outcome::PayloadInvalid | Outcome::UnsupportedSkill => Self::Payload,
            Outcome::Unauthenticated | Outcome::PermissionDenied => Self::Credential,
            Outcome::NoRoute if decision.endpoint.is_some() => Self::HttpMethod,
            Outcome::NoRoute => Self::Route,
            Outcome::BadHttp => match why {
                None => Self::Body,
                Some(why) if REPEATED_CALLER.why.starts_with(why) => Self::Credential,
                Some(_) => Self::Http,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_steps_are_in_order() {
        let mut names: Vec<_> = Stage::WALKED.iter().map(|stage| stage.name()).collect();
        assert!(Stage::WALKED.is_sorted());
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Stage::WALKED.len());
    }

    #[test]
    fn every_step_that_can_be_reported_is_one() {
        for step in Step::ALL {
            let stages = [Stage::Tenant, Stage::Media, Stage::Payload];
            let mut all = Stage::WALKED.into_iter().chain(stages);
            assert!(all.any(|it| it.reportable() == Some(step)), "{step:?}");
        }
    }
}
