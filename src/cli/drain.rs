//! `forecourt drain`: has a running gateway leave, as SIGTERM does, and waits for its end where asked to:
//! the hook of an orchestrator that ends a process.

use std::process::ExitCode;
use std::time::Duration;

use http::{Method, StatusCode};
use serde::Deserialize;

use super::print::{fail, print};
use super::remote::{Remote, Unanswered};

/// What the end itself may take beside what the gateway grants its calls.
const MARGIN: Duration = Duration::from_secs(5);

/// What the gateway answers.
#[derive(Deserialize)]
struct Drains {
    at_most_ms: u64,
}

pub(super) fn drain(remote: &Remote, wait: bool) -> ExitCode {
    let answer = match remote.ask(Method::POST, "/drain", Vec::new()) {
        Ok(answer) if answer.status == StatusCode::ACCEPTED => answer,
        Ok(answer) => return fail(answer),
        Err(error) => return fail(error),
    };
    let Ok(Drains { at_most_ms }) = serde_json::from_slice(&answer.body) else {
        return fail(answer);
    };
    let at_most = Duration::from_millis(at_most_ms);
    if !wait {
        return print(&format!("draining, for {at_most:?} at most\n"));
    }
    // Its answer is the end of the connection, which is the end of the process.
    let limit = at_most.saturating_add(MARGIN);
    match remote.ask_within(limit, Method::POST, "/drain?wait", Vec::new()) {
        Err(Unanswered::Unreachable { .. }) => print("drained\n"),
        Err(Unanswered::Late { .. }) => fail(format_args!("still there after {limit:?}")),
        Err(error @ Unanswered::Here(_)) => fail(error),
        Ok(answer) => fail(answer),
    }
}
