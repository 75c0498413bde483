//! Decides what a contract is: everything an endpoint is pinned to, as one row of data.
//!
//! A contract carries facts, never behaviour chosen by its name. The rules that read its columns
//! stand in `judge` (headers) and `dialect` (spelling).

use crate::protocol::{ExtensionUri, Version};

/// What an endpoint holds its callers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The name it was configured by, such as `aap/3.0`. For logs and messages to the operator;
    /// no rule reads it.
    pub name: Box<str>,
    /// The one A2A version served, `Major.Minor`.
    pub a2a_version: Version,
    /// The one extension URI that is activated.
    pub extension: ExtensionUri,
    /// What an absent header means.
    pub absent: Absence,
    /// Whether a supplied list that lacks the URI is refused (`true`) or forwarded untouched.
    pub require_extension: bool,
    /// How its refusals are spelled.
    pub dialect: Dialect,
    /// How its dialect lists the problems of an invalid payload.
    pub violations: Violations,
}

/// What an absent header means (protocol: field absent, no line at all).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Absence {
    /// The pinned value is filled in.
    Infer,
    /// The call is refused.
    Refuse,
}

impl Absence {
    /// Every meaning.
    pub const ALL: [Self; 2] = [Self::Infer, Self::Refuse];

    /// The name used in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Infer => "infer",
            Self::Refuse => "refuse",
        }
    }
}

/// How a contract spells `error.data` and AAP's own error numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// 1.x: `error.data` is the `aap.error` object itself.
    Bare,
    /// 2.0 draft: an array, the `aap.error` members tagged by an `@type` of their own.
    Tagged,
    /// 3.0: an array, the `aap.error` object inside a `google.protobuf.Struct`.
    Wrapped,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 3] = [Self::Bare, Self::Tagged, Self::Wrapped];

    /// The name used in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Tagged => "tagged",
            Self::Wrapped => "wrapped",
        }
    }
}

/// How `details` of SCHEMA_VALIDATION_FAILED lists what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Violations {
    /// 0.1 to 1.0: the first problem only, as `instancePath` and `received`.
    First,
    /// 1.1 onward: `errors[]` with every problem.
    Every,
}
