//! `forecourt explain`: what would become of a request, and why; by a file, or by a running gateway.
//! With `--id`, what a running gateway decided on one.

mod request;
mod text;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use http::{Method, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::EX_CONFIG;
use super::print::{Format, fail, print, print_json};
use super::remote::{Answered, Remote, Unanswered};
use crate::app::{self, Options, Unexplained};
use request::Asked;

/// What is asked, and of whom.
#[derive(Debug, clap::Args)]
pub(super) struct Explain {
    /// Explain by this configuration file, without a gateway: as one that has just started with it.
    /// Otherwise the running gateway is asked.
    #[arg(short, long = "config", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    asked: Asked,
    /// Who connects.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    client: IpAddr,
    /// The listener that is connected to, by its name. Otherwise the first.
    #[arg(long, value_name = "NAME")]
    listener: Option<String>,
    /// Explain what the running gateway decided: a request id, or the `error_id` of an answer.
    #[arg(
        long,
        value_name = "ID",
        conflicts_with_all = ["config", "request", "path", "listener", "body", "method", "host", "header"]
    )]
    id: Option<String>,
    /// For whom it is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(super) fn explain(explain: &Explain) -> ExitCode {
    if let Some(id) = &explain.id {
        return recall(explain, id);
    }
    let request = match explain.asked.bytes() {
        Ok(request) => request,
        Err(error) => return fail(error),
    };
    let told = match &explain.config {
        Some(file) => {
            let options = Options::new(file.clone());
            let listener = explain.listener.as_deref();
            match app::explained(&options, request.into(), explain.client, listener) {
                Ok(explanation) => serde_json::to_value(explanation).map_err(fail),
                Err(Unexplained::Config(problems)) => {
                    fail(problems);
                    return ExitCode::from(EX_CONFIG);
                }
                Err(error @ (Unexplained::Question(_) | Unexplained::Here(_))) => Err(fail(error)),
            }
        }
        None => told(explain.ask(request)),
    };
    match told {
        Ok(told) => match explain.format {
            Format::Json => print_json(&told),
            Format::Text => print(&text::explained(&told)),
        },
        Err(code) => code,
    }
}

impl Explain {
    fn ask(&self, request: Vec<u8>) -> Result<Answered, Unanswered> {
        let mut target = format!("/explain?client={}", self.client);
        if let Some(listener) = &self.listener {
            let listener = utf8_percent_encode(listener, NON_ALPHANUMERIC);
            target.push_str(&format!("&listener={listener}"));
        }
        self.remote.ask(Method::POST, &target, request)
    }
}

/// What a gateway remembers of a request.
fn recall(explain: &Explain, id: &str) -> ExitCode {
    let id = utf8_percent_encode(id, NON_ALPHANUMERIC);
    let asked = explain
        .remote
        .ask(Method::GET, &format!("/decisions/{id}"), Vec::new());
    match told(asked) {
        Ok(told) => match explain.format {
            Format::Json => print_json(&told),
            Format::Text => print(&text::recalled(&told)),
        },
        Err(code) => code,
    }
}

/// The JSON of an answer, or the exit code after it was said why there is none.
fn told(asked: Result<Answered, Unanswered>) -> Result<Value, ExitCode> {
    let answer = asked.map_err(|error| {
        fail(format_args!(
            "{error}\nwithout a gateway, -c FILE explains by a file"
        ))
    })?;
    match answer.status {
        StatusCode::OK => serde_json::from_slice(&answer.body).map_err(fail),
        StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND => Err(fail(answer.text().trim_end())),
        _ => Err(fail(answer)),
    }
}
