//! Decides what a valid `[admin]` is, and warns where nobody could see inside.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::config::file;
use crate::config::read::Field;
use crate::config::report::{Finding, Report};
use crate::config::settings::{Admin, KeySha256};

/// Where the admin socket is when the file does not say.
const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9901);

/// The admin socket.
pub(super) fn check(file: &file::Admin, report: &Report<'_>) -> Admin {
    Admin {
        address: file.address.given().map_or(DEFAULT, |at| at.value),
        token_sha256: tokens(file, report),
    }
}

fn tokens(file: &file::Admin, report: &Report<'_>) -> Vec<KeySha256> {
    let Some(list) = file.token_sha256.given() else {
        return Vec::new();
    };
    if list.value.is_empty() {
        let hint = "leave it out, or list at least one".to_owned();
        report.add(Finding::error(list.span.clone(), list.path.clone(), "is empty").hint(hint));
    }
    let mut tokens = Vec::new();
    for at in list.value.iter().filter_map(Field::given) {
        if tokens.contains(&at.value) {
            let what = "is listed twice";
            report.add(Finding::error(at.span.clone(), at.path.clone(), what));
        } else {
            tokens.push(at.value);
        }
    }
    tokens
}

/// An address that others reach, and no token by which operators are told from them.
pub(super) fn unprotected(file: &file::Admin, admin: &Admin, report: &Report<'_>) {
    let Some(at) = file.address.given() else {
        return;
    };
    if admin.is_local() || !admin.token_sha256.is_empty() {
        return;
    }
    let what = "is not loopback, and there is no token: only probes and metrics are answered";
    let hint = "add token_sha256, which `forecourt key admin` prints with a new token".to_owned();
    report.add(Finding::warning(at.span.clone(), at.path.clone(), what).hint(hint));
}
