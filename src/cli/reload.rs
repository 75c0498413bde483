//! `forecourt reload`: has a running gateway read its file, or say what that would change. Its answer
//! decides the exit code.

use std::process::ExitCode;

use http::{Method, StatusCode};

use super::EX_CONFIG;
use super::diff::show;
use super::print::{Format, fail, print};
use super::remote::{Answered, Remote, Unanswered};

pub(super) fn reload(is_dry: bool, format: Format, remote: &Remote) -> ExitCode {
    if is_dry {
        let answer = remote.ask(Method::POST, "/reload?dry-run&as=json", Vec::new());
        return match answer {
            Ok(answer) if answer.status == StatusCode::OK => show(&answer, format),
            other => told(other, format),
        };
    }
    let target = target("/reload", None, format);
    told(remote.ask(Method::POST, &target, Vec::new()), format)
}

/// Where an order is given.
pub(super) fn target(path: &str, generation: Option<u64>, format: Format) -> String {
    let format = match format {
        Format::Text => "text",
        Format::Json => "json",
    };
    match generation {
        None => format!("{path}?as={format}"),
        Some(generation) => format!("{path}?as={format}&generation={generation}"),
    }
}

/// Prints what became of an order.
pub(super) fn told(answer: Result<Answered, Unanswered>, format: Format) -> ExitCode {
    match answer {
        Ok(answer) if answer.status == StatusCode::OK => print(&answer.text()),
        Ok(answer) if answer.status == StatusCode::UNPROCESSABLE_ENTITY => {
            rejected(&answer, format);
            ExitCode::from(EX_CONFIG)
        }
        Ok(answer) if answer.status == StatusCode::NOT_FOUND => {
            rejected(&answer, format);
            ExitCode::FAILURE
        }
        Ok(answer) => fail(answer),
        Err(error) => fail(error),
    }
}

/// Prints why an order was not carried out: for programs where they look for it.
pub(super) fn rejected(answer: &Answered, format: Format) {
    match format {
        Format::Json => print(&answer.text()),
        Format::Text => fail(answer.said().trim_end()),
    };
}
