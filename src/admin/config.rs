//! Decides what operators are shown of configurations, and lets them compare, reload and roll back.
//!
//! Must never show the value of a header: it is not in what is shown at all.

use std::path::Path;
use std::time::Duration;

use http::StatusCode;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::Office;
use super::answer::{Answer, json};
use super::attempt::{As, ended, ended_with, previewed};
use super::query::{Query, Wrong};
use crate::config::{Format, Settings};
use crate::observe::rfc3339;
use crate::state::Rejected;
use crate::state::reload::{Generation, How, Reloaded};

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

pub(super) async fn reload(office: &Office, query: Option<&str>) -> Result<Answer, Wrong> {
    let query = Query::read(query, &["dry-run", "as"])?;
    let (is_dry, to) = (query.flag("dry-run")?, query.to()?);
    if !is_dry {
        return Ok(obeyed(office, office.reloader.reload(), to).await);
    }
    let preview = office.reloader.preview();
    let would_fail = preview
        .as_ref()
        .is_ok_and(|it| !it.restart_needed.is_empty());
    let status = match would_fail {
        true => StatusCode::UNPROCESSABLE_ENTITY,
        false => StatusCode::OK,
    };
    Ok(previewed(preview, status, to))
}

/// Says what a candidate's text would change.
pub(super) fn diff(
    office: &Office,
    query: Option<&str>,
    candidate: &[u8],
) -> Result<Answer, Wrong> {
    let query = Query::read(query, &["format", "directory", "name", "as"])?;
    let format = match query.value("format") {
        None | Some("toml") => Format::Toml,
        Some("json") => Format::Json,
        Some(_) => return Err(Wrong::because("format takes toml or json")),
    };
    let directory = query.value("directory").map(Path::new);
    if directory.is_some_and(|it| !it.is_absolute()) {
        return Err(Wrong::because("directory takes an absolute path"));
    }
    let to = query.to()?;
    let candidate =
        std::str::from_utf8(candidate).map_err(|_| Wrong::because("the text is not UTF-8"))?;
    let name = query.value("name").unwrap_or("candidate");
    let preview = office
        .reloader
        .compare((name, candidate), format, directory);
    Ok(previewed(
        preview.map_err(Rejected::Problems),
        StatusCode::OK,
        to,
    ))
}

pub(super) async fn roll_back(office: &Office, query: Option<&str>) -> Result<Answer, Wrong> {
    let query = Query::read(query, &["generation", "as"])?;
    let to = query.to()?;
    let generation = number(&query)?;
    Ok(obeyed(office, office.reloader.roll_back(generation), to).await)
}

/// Answers an order once the workers have taken up what it changed about listeners, or after a moment.
async fn obeyed(office: &Office, result: Result<Reloaded, Rejected>, to: As) -> Answer {
    let generation = match result {
        Ok(Reloaded::Applied(generation) | Reloaded::Unchanged(generation)) => Some(generation),
        Ok(Reloaded::Again { generation, .. }) => Some(generation),
        Err(_) => None,
    };
    let behind = match generation.and_then(|it| office.reloader.uptake(it)) {
        None => None,
        Some(uptake) => {
            // Late or not, it is told how it stands.
            let _ = timeout(PATIENCE, uptake.by_all()).await;
            Some(uptake.waiting())
        }
    };
    ended_with(result, behind, to)
}

/// `GET /generations`.
#[derive(Serialize)]
struct Kept<'g> {
    /// The one that serves first.
    generations: Vec<One<'g>>,
    /// How many are kept at most.
    keep: usize,
}

#[derive(Serialize)]
struct One<'g> {
    generation: u64,
    hash: &'g str,
    at: String,
    /// `start`, `file`, `rollback`, `guard`.
    how: &'static str,
    /// Which it is again.
    of: Option<u64>,
    /// Why the guard went back to it.
    why: Option<String>,
    endpoints: usize,
    /// Where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<&'g Settings>,
}

/// All generations that are kept; or the one that is asked for, with what it says.
pub(super) fn generations(office: &Office, query: Option<&str>) -> Result<Answer, Wrong> {
    let query = Query::read(query, &["generation"])?;
    let wanted = number(&query)?;
    let all = office.reloader.generations();
    let Some(wanted) = wanted else {
        let keep = all.first().map_or(0, |it| it.settings.reload.keep);
        let generations = all.iter().map(one).collect();
        return Ok(json(&Kept { generations, keep }));
    };
    let Some(found) = all.iter().find(|it| it.number == wanted) else {
        let kept = all.iter().map(|it| it.number).collect();
        let wanted = Some(wanted);
        return Ok(ended(Err(Rejected::NotKept { wanted, kept }), As::Json));
    };
    Ok(json(&One {
        configuration: Some(&found.settings),
        ..one(found)
    }))
}

fn one(kept: &Generation) -> One<'_> {
    One {
        generation: kept.number,
        hash: &kept.hash,
        at: rfc3339(kept.at),
        how: kept.how.name(),
        of: kept.how.of(),
        why: match kept.how {
            How::Guard { figures, .. } => Some(figures.to_string()),
            How::Start | How::File | How::Rollback { .. } => None,
        },
        endpoints: kept.settings.endpoints.len(),
        configuration: None,
    }
}

/// The generation that a query names.
fn number(query: &Query) -> Result<Option<u64>, Wrong> {
    let Some(number) = query.value("generation") else {
        return Ok(None);
    };
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse().ok().filter(|_| is_plain);
    let number = number.ok_or_else(|| Wrong::because("generation takes a number"))?;
    Ok(Some(number))
}
