//! Decides what operators are shown of the configuration, and lets them reload it.
//!
//! Must never show the value of a header: it is not in what is shown at all.

use std::path::Path;

use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;

use super::Office;
use super::answer::{Answer, json, text};
use crate::observe::rfc3339;
use crate::state::reload::Reloaded;

/// `GET /config`.
#[derive(Serialize)]
struct Shown<'s> {
    generation: u64,
    hash: &'s str,
    loaded: String,
    file: std::borrow::Cow<'s, str>,
    /// A configuration in JSON, every default filled in, secrets masked. The hash is of these bytes.
    configuration: &'s RawValue,
}

pub(super) fn show(office: &Office) -> Answer {
    let snapshot = office.reloader.live().load();
    let file: &Path = office.reloader.path();
    json(&Shown {
        generation: snapshot.generation,
        hash: &snapshot.effective.hash,
        loaded: rfc3339(office.reloader.loaded()),
        file: file.to_string_lossy(),
        configuration: &snapshot.effective.configuration,
    })
}

pub(super) fn reload(office: &Office) -> Answer {
    match office.reloader.reload() {
        Ok(Reloaded::Applied(generation)) => text(
            StatusCode::OK,
            format!("applied, generation {generation}\n"),
        ),
        Ok(Reloaded::Unchanged(generation)) => text(
            StatusCode::OK,
            format!("unchanged, generation {generation}\n"),
        ),
        Err(rejected) => text(StatusCode::UNPROCESSABLE_ENTITY, format!("{rejected}\n")),
    }
}
