//! Decides how `[reload]` is shown.

use crate::config::amount::spell_duration;
use crate::config::json::{Json, object, some};
use crate::config::settings::{Guard, Reload};

pub(super) fn reload(reload: &Reload) -> Json {
    let guard = reload.rollback_on_errors.as_ref().map(|guard| {
        let Guard {
            window,
            ratio,
            min_requests,
        } = guard;
        object([
            ("window", some(spell_duration(*window))),
            ("ratio", some(ratio.to_string())),
            ("min_requests", some(*min_requests)),
        ])
    });
    object([("keep", some(reload.keep)), ("rollback_on_errors", guard)])
}
