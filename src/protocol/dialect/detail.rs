//! Decides the shapes that go into `error.data`: google.rpc details and AAP's typed error.
//!
//! All values of an ErrorInfo's metadata are strings (google.rpc.ErrorInfo). Must never choose a
//! number or an order: that is the dialect's.

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{AapCode, Stamp};
use crate::protocol::refusal::Violation;

/// One entry of an `error.data` array, told apart by its `@type`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "@type")]
pub(super) enum Entry<'a> {
    #[serde(rename = "type.googleapis.com/google.rpc.ErrorInfo")]
    ErrorInfo(ErrorInfo<'a>),
    #[serde(rename = "type.googleapis.com/google.rpc.BadRequest")]
    BadRequest(BadRequest<'a>),
    #[serde(rename = "https://autoagentprotocol.org/extensions/aap/error")]
    AapError(AapError<'a>),
    #[serde(rename = "type.googleapis.com/google.protobuf.Struct")]
    Struct { value: AapError<'a> },
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct ErrorInfo<'a> {
    pub(super) reason: &'static str,
    pub(super) domain: &'static str,
    pub(super) metadata: Metadata<'a>,
}

/// Ordered string pairs.
#[derive(Clone, Debug, Default)]
pub(super) struct Metadata<'a>(Vec<(&'static str, Cow<'a, str>)>);

impl<'a> Metadata<'a> {
    pub(super) fn put(&mut self, name: &'static str, value: impl Into<Cow<'a, str>>) {
        self.0.push((name, value.into()));
    }
}

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct BadRequest<'a> {
    #[serde(rename = "fieldViolations")]
    pub(super) field_violations: Vec<FieldViolation<'a>>,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct FieldViolation<'a> {
    pub(super) field: &'a str,
    pub(super) description: Cow<'a, str>,
}

/// AAP's typed error payload.
#[derive(Clone, Debug, Serialize)]
pub(super) struct AapError<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    error_id: &'a str,
    code: &'static str,
    message: &'a str,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'a>>,
    created_at: &'a str,
}

impl<'a> AapError<'a> {
    pub(super) const fn new(
        code: AapCode,
        message: &'a str,
        retryable: bool,
        details: Option<Details<'a>>,
        stamp: Stamp<'a>,
    ) -> Self {
        Self {
            kind: "aap.error",
            error_id: stamp.error_id,
            code: code.name(),
            message,
            retryable,
            details,
            created_at: stamp.created_at,
        }
    }

    /// The ErrorInfo that leads the arrays of 2.0 and 3.0: the same facts, all as strings.
    pub(super) fn info(&self) -> ErrorInfo<'a> {
        let mut metadata = Metadata::default();
        metadata.put("code", self.code);
        metadata.put("error_id", self.error_id);
        metadata.put("retryable", if self.retryable { "true" } else { "false" });
        metadata.put("created_at", self.created_at);
        ErrorInfo {
            reason: self.code,
            domain: "autoagentprotocol.org",
            metadata,
        }
    }

    /// The BadRequest that mirrors validation problems; other errors have none.
    pub(super) fn bad_request(&self) -> Option<BadRequest<'a>> {
        let problems = self.details.as_ref()?.problems?;
        Some(BadRequest {
            field_violations: problems
                .iter()
                .map(|problem| FieldViolation {
                    field: &problem.location,
                    description: format!("{}: {}", problem.keyword, problem.error).into(),
                })
                .collect(),
        })
    }

    /// ErrorInfo, BadRequest where there is one, then the typed payload.
    pub(super) fn entries(self, payload: impl FnOnce(Self) -> Entry<'a>) -> Vec<Entry<'a>> {
        let mut entries = Vec::with_capacity(3);
        entries.push(Entry::ErrorInfo(self.info()));
        entries.extend(self.bad_request().map(Entry::BadRequest));
        entries.push(payload(self));
        entries
    }
}

/// `details` of an AAP error.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Details<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skill: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<ListedProblem<'a>>,
    #[serde(flatten)]
    only: Option<OnlyProblem<'a>>,
    #[serde(skip)]
    problems: Option<&'a [Violation]>,
}

/// 1.1 onward: one of all problems.
#[derive(Clone, Debug, Serialize)]
struct ListedProblem<'a> {
    #[serde(rename = "instanceLocation")]
    instance_location: &'a str,
    keyword: &'a str,
    error: &'a str,
}

/// 0.1 to 1.0: the first problem.
#[derive(Clone, Debug, Serialize)]
struct OnlyProblem<'a> {
    #[serde(rename = "instancePath")]
    instance_path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    received: Option<&'a RawValue>,
}

impl<'a> Details<'a> {
    pub(super) fn retry_after(ms: u64) -> Self {
        Self {
            retry_after_ms: Some(ms),
            ..Self::default()
        }
    }

    pub(super) fn skill(skill: &'a str) -> Self {
        Self {
            skill: Some(skill),
            ..Self::default()
        }
    }

    pub(super) fn every(problems: &'a [Violation]) -> Self {
        Self {
            errors: problems
                .iter()
                .map(|problem| ListedProblem {
                    instance_location: &problem.location,
                    keyword: &problem.keyword,
                    error: &problem.error,
                })
                .collect(),
            problems: Some(problems),
            ..Self::default()
        }
    }

    pub(super) fn first(problems: &'a [Violation]) -> Self {
        Self {
            only: problems.first().map(|problem| OnlyProblem {
                instance_path: &problem.location,
                received: problem
                    .received
                    .as_deref()
                    .and_then(|text| serde_json::from_str(text).ok()),
            }),
            problems: Some(problems),
            ..Self::default()
        }
    }
}
