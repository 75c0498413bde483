//! Decides what the sockets are: listeners, the admin socket, and that none is in another's way.

use std::net::SocketAddr;
use std::path::Path;

use crate::config::check::front;
use crate::config::file::{self, File};
use crate::config::read::{At, Field};
use crate::config::report::{Finding, Report, Span};
use crate::config::settings::{Admin, Clients, Listener, Tls};
use crate::config::word::{Demand, Integer};

use super::files::Files;

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
) -> Vec<Option<Listener>> {
    let mut taken: Vec<(&At<SocketAddr>, &str)> = Vec::new();
    let mut listeners = Vec::new();
    for named in file.listeners.iter() {
        let files = Files { directory, report };
        let tls = named.value.tls.as_ref().map(|read| tls(read, files));
        let address = named.value.address.given();
        if let Some(at) = address {
            if let Some((first, other)) = taken
                .iter()
                .find(|(first, _)| overlap(first.value, at.value))
            {
                let line = report.line(&first.span, &at.span);
                clash(at, &format!("{other} on {line}"), first.value, report);
            } else if overlap(admin, at.value) {
                let holder = match file.admin.given() {
                    Some(admin) => {
                        let line = report.line(&admin.span, &at.span);
                        format!("the admin socket, {line}")
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
            place: files.place(&address.span, &address.path),
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

/// What a `tls` listener shows and asks for; `None` where something was reported.
fn tls(read: &file::Tls, files: Files<'_, '_>) -> Option<Tls> {
    let default = files.pair(&read.default);
    let others = read.others.iter().map(|pair| files.pair(pair));
    let others = others.collect::<Option<_>>();
    let clients = clients(read, files);
    Some(Tls {
        default: default?,
        others: others?,
        clients: clients?,
    })
}

/// Whom clients' certificates must come from; `None` where something was reported.
fn clients(read: &file::Tls, files: Files<'_, '_>) -> Option<Option<Clients>> {
    let alone = |span: &Span, path: &str, what: &str, hint: &str| {
        let finding = Finding::error(span.clone(), path, what).hint(hint.to_owned());
        files.report.add(finding);
        None
    };
    match (&read.client_ca, &read.client_certificate) {
        (Field::Wrong, _) | (_, Field::Wrong) => None,
        (Field::Absent, Field::Absent) => Some(None),
        (Field::Given(ca), Field::Given(demand)) => Some(Some(Clients {
            ca: files.named(ca),
            is_required: demand.value == Demand::Required,
        })),
        (Field::Given(ca), Field::Absent) => alone(
            &ca.span,
            &ca.path,
            "asks clients for a certificate, and does not say whether they need one",
            "add client_certificate = \"required\" or \"optional\"",
        ),
        (Field::Absent, Field::Given(demand)) => alone(
            &demand.span,
            &demand.path,
            "names nobody whose certificates are taken",
            "add client_ca = \"ca.pem\", the roots they come from",
        ),
    }
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
