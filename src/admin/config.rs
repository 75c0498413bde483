//! Decides what operators are shown of the configuration, and lets them reload it.
//!
//! Must never show the value of a header: it is not in what is shown at all.

use std::path::Path;
use std::time::Duration;

use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::Office;
use super::answer::{Answer, json, text};
use crate::observe::rfc3339;
use crate::state::reload::Reloaded;

/// How long workers have to take up a change before the answer says who has not.
const PATIENCE: Duration = Duration::from_secs(1);

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

pub(super) async fn reload(office: &Office) -> Answer {
    let (what, generation) = match office.reloader.reload() {
        Ok(Reloaded::Applied(generation)) => ("applied", generation),
        Ok(Reloaded::Unchanged(generation)) => ("unchanged", generation),
        Err(rejected) => return text(StatusCode::UNPROCESSABLE_ENTITY, format!("{rejected}\n")),
    };
    let taken_up = taken_up(office, generation).await;
    let told = format!("{what}, generation {generation}\n{taken_up}");
    text(StatusCode::OK, told)
}

/// Whether the workers have taken up what a generation changed about listeners; a line, or nothing where
/// it changed nothing of them. Waits for them a little.
async fn taken_up(office: &Office, generation: u64) -> String {
    let Some(uptake) = office.reloader.uptake(generation) else {
        return String::new();
    };
    // Late or not, it is told how it stands.
    let _ = timeout(PATIENCE, uptake.by_all()).await;
    match uptake.waiting().as_slice() {
        [] => "listeners: every worker has taken them up\n".to_owned(),
        behind => format!("listeners: not yet taken up by workers {behind:?}\n"),
    }
}
