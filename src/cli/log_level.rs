//! `forecourt log-level`: shows the level of a running gateway's diagnostics, or changes it for a time.

use std::process::ExitCode;

use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::print::{Format, fail, print};
use super::remote::Remote;

/// The exit code for what the gateway cannot make sense of.
const USAGE: u8 = 2;

#[derive(Serialize)]
struct Wanted<'a> {
    level: &'a str,
    #[serde(rename = "for")]
    time: &'a str,
}

#[derive(Deserialize)]
struct Shown {
    level: String,
    configured: String,
    until: Option<String>,
}

pub(super) fn level(remote: &Remote, wanted: Option<&str>, time: &str, format: Format) -> ExitCode {
    let (method, body) = match wanted {
        None => (Method::GET, Vec::new()),
        Some(level) => match serde_json::to_vec(&Wanted { level, time }) {
            Ok(body) => (Method::PUT, body),
            Err(error) => return fail(error),
        },
    };
    let answer = match remote.ask(method, "/log", body) {
        Ok(answer) => answer,
        Err(error) => return fail(error),
    };
    if answer.status == StatusCode::BAD_REQUEST {
        fail(answer.text().trim_end());
        return ExitCode::from(USAGE);
    }
    if answer.status != StatusCode::OK {
        return fail(answer);
    }
    match format {
        Format::Json => print(&answer.text()),
        Format::Text => match serde_json::from_slice::<Shown>(&answer.body) {
            Ok(shown) => print(&told(&shown)),
            Err(error) => fail(error),
        },
    }
}

fn told(shown: &Shown) -> String {
    let Shown {
        level,
        configured,
        until,
    } = shown;
    match until {
        None => format!("{level}\n"),
        Some(until) => format!("{level} until {until}, then {configured}\n"),
    }
}
