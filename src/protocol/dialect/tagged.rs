//! Decides how the 2.0 draft spells AAP's own errors: an array, the object tagged by its own type.

use super::detail::{AapError, Entry};
use super::{AapCode, Data};

/// The numbers of AAP's "Errors" page (planned contract 2.0).
pub(super) const fn number(code: AapCode) -> i32 {
    match code {
        AapCode::RateLimited => -32000,
        AapCode::SchemaValidationFailed => -32602,
        AapCode::UnsupportedSkill => -32004,
        AapCode::InternalError => -32603,
    }
}

pub(super) fn data(error: AapError<'_>) -> Data<'_> {
    Data::Entries(error.entries(Entry::AapError))
}
