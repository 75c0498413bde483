//! Decides what operators are told of the level of the diagnostics, and lets them change it for a time.

use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::Office;
use super::answer::{Answer, json, text};
use crate::config;
use crate::observe::dial::{Refused, USUAL};
use crate::observe::log::Problem;
use crate::observe::rfc3339;

/// The largest body that is read, in bytes.
pub(super) const LARGEST: usize = 4096;

/// `GET /log`, and part of `GET /status`.
#[derive(Serialize)]
pub(super) struct Shown {
    level: Box<str>,
    configured: Box<str>,
    /// When it is the configured one again; none where it is.
    until: Option<String>,
}

/// `PUT /log`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    level: Box<str>,
    /// As the configuration writes durations.
    #[serde(rename = "for")]
    time: Option<Box<str>>,
}

pub(super) fn shown(office: &Office) -> Shown {
    let standing = office.shared.logs.level.standing();
    Shown {
        level: standing.level,
        configured: standing.configured,
        until: standing.until.map(rfc3339),
    }
}

pub(super) fn show(office: &Office) -> Answer {
    json(&shown(office))
}

pub(super) fn turn(office: &Office, body: &[u8]) -> Answer {
    let wrong = |why: String| text(StatusCode::BAD_REQUEST, format!("{why}\n"));
    let wanted: Wanted = match serde_json::from_slice(body) {
        Ok(wanted) => wanted,
        Err(error) => {
            let like = r#"expected {"level": "debug", "for": "10m"}"#;
            return wrong(format!("{like}: {error}"));
        }
    };
    let time = match wanted.time.as_deref() {
        None => USUAL,
        Some(text) => match config::duration(text) {
            Some(time) => time,
            None => return wrong(format!("`{text}` is not a duration such as 10m")),
        },
    };
    match office
        .shared
        .logs
        .level
        .turn(&wanted.level, time, office.wall.now())
    {
        Ok(()) => show(office),
        Err(Refused::Level(problem @ Problem::Gone)) => {
            text(StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n"))
        }
        Err(refused) => wrong(refused.to_string()),
    }
}
