//! Decides how contracts 0.1 to 1.3 spell AAP's own errors: `error.data` is the object itself.

use super::detail::AapError;
use super::{AapCode, Data};

/// The numbers of the published 1.x error tables.
pub(super) const fn number(code: AapCode) -> i32 {
    match code {
        AapCode::RateLimited => -32002,
        AapCode::SchemaValidationFailed => -32602,
        AapCode::UnsupportedSkill => -32601,
        AapCode::InternalError => -32603,
    }
}

pub(super) const fn data(error: AapError<'_>) -> Data<'_> {
    Data::Object(error)
}
