//! Decides how contract 3.0 spells AAP's own errors: an array, the object inside a protobuf Struct.

use super::detail::{AapError, Entry};
use super::{AapCode, Data};

/// The numbers of AAP's "A2A JSON-RPC binding" page (contract 3.0).
pub(super) const fn number(code: AapCode) -> i32 {
    match code {
        AapCode::RateLimited => -32000,
        AapCode::SchemaValidationFailed | AapCode::UnsupportedSkill => -32602,
        AapCode::InternalError => -32603,
    }
}

pub(super) fn data(error: AapError<'_>) -> Data<'_> {
    Data::Entries(error.entries(|value| Entry::Struct { value }))
}
