//! `forecourt reload`: has a running gateway read its file. Its answer decides the exit code.

use std::process::ExitCode;

use http::{Method, StatusCode};

use super::EX_CONFIG;
use super::print::{fail, print};
use super::remote::Remote;

pub(super) fn reload(remote: &Remote) -> ExitCode {
    match remote.ask(Method::POST, "/reload", Vec::new()) {
        Ok(answer) if answer.status == StatusCode::OK => print(&answer.text()),
        Ok(answer) if answer.status == StatusCode::UNPROCESSABLE_ENTITY => {
            fail(answer.text().trim_end());
            ExitCode::from(EX_CONFIG)
        }
        Ok(answer) => fail(answer),
        Err(error) => fail(error),
    }
}
