//! `forecourt rollback`: has a running gateway serve again what it served before.

use std::process::ExitCode;

use http::Method;

use super::print::Format;
use super::reload::{target, told};
use super::remote::Remote;

pub(super) fn roll_back(to: Option<u64>, format: Format, remote: &Remote) -> ExitCode {
    let target = target("/rollback", to, format);
    told(remote.ask(Method::POST, &target, Vec::new()), format)
}
