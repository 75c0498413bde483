//! Decides what the sockets are: listeners, the admin socket, and that none is in another's way.

use std::net::SocketAddr;
use std::path::Path;

use crate::config::check::front;
use crate::config::file::File;
use crate::config::problem::Problem;
use crate::config::read::{At, Field};
use crate::config::report::{Finding, Report};
use crate::config::settings::{Admin, Listener, Tls};
use crate::config::word::Integer;

/// Where the admin socket is when the file does not say.
const ADMIN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9901);

/// How many connections may wait for being accepted when the file does not say.
const BACKLOG: u64 = 4096;

/// The admin socket.
pub(crate) fn admin(field: &Field<SocketAddr>) -> Admin {
    Admin {
        address: field.given().map_or(ADMIN, |at| at.value),
    }
}

/// The listeners, in the order of the file; `None` where something was reported.
pub(crate) fn check(
    file: &File,
    admin: SocketAddr,
    directory: &Path,
    report: &Report<'_>,
    unserved: &mut Vec<Problem>,
) -> Vec<Option<Listener>> {
    let mut taken: Vec<(&At<SocketAddr>, &str)> = Vec::new();
    let mut listeners = Vec::new();
    for named in file.listeners.iter() {
        let tls = named.value.tls.as_ref().map(|tls| {
            let finding = Finding::error(
                tls.span.clone(),
                format!("{}.tls", named.path),
                "this version does not serve TLS, and never serves a `tls` listener in clear",
            )
            .hint("end TLS in front of the gateway and remove `tls`".to_owned());
            unserved.push(report.problem(&finding));
            Some(Tls {
                certificate: directory.join(&*tls.certificate.given()?.value.0),
                key: directory.join(&*tls.key.given()?.value.0),
            })
        });
        let address = named.value.address.given();
        if let Some(at) = address {
            if let Some((first, other)) = taken
                .iter()
                .find(|(first, _)| overlap(first.value, at.value))
            {
                let line = report.position(first.span.start).0;
                clash(at, &format!("{other} on line {line}"), first.value, report);
            } else if overlap(admin, at.value) {
                let holder = match file.admin.given() {
                    Some(at) => {
                        let line = report.position(at.span.start).0;
                        format!("the admin socket, line {line}")
                    }
                    None => "the admin socket (default 127.0.0.1:9901)".to_owned(),
                };
                clash(at, &holder, admin, report);
            }
            taken.push((at, &named.path));
        }
        let front = front::check(named, report);
        let backlog = named.value.backlog.or(Integer(BACKLOG));
        let listener = |address: &At<SocketAddr>, tls, front| Listener {
            name: named.name.clone(),
            address: address.value,
            tls,
            backlog: u16::try_from(backlog.0).unwrap_or(u16::MAX),
            front,
        };
        listeners.push(match (address, tls, front) {
            (Some(address), None, Some(front)) => Some(listener(address, None, front)),
            (Some(address), Some(Some(tls)), Some(front)) => {
                Some(listener(address, Some(tls), front))
            }
            (None, ..) | (_, Some(None), _) | (.., None) => None,
        });
    }
    listeners
}

fn clash(at: &At<SocketAddr>, holder: &str, held: SocketAddr, report: &Report<'_>) {
    let what = if held == at.value {
        format!("is the address of {holder}")
    } else {
        format!("shares its port with {holder}, and one of the two is for every address")
    };
    let hint = "give one of them another port".to_owned();
    report.add(Finding::error(at.span.clone(), at.path.clone(), what).hint(hint));
}

/// Whether two sockets cannot both be bound, or would take each other's connections.
fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let covers = |wide: SocketAddr, narrow: SocketAddr| {
        // `[::]` takes IPv4 as well, on most systems.
        wide.ip().is_unspecified() && (wide.is_ipv6() || narrow.is_ipv4())
    };
    one.port() != 0
        && one.port() == other.port()
        && (one.ip() == other.ip() || covers(one, other) || covers(other, one))
}
