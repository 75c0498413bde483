//! Decides what operators are told of sockets in: who is connected, and until when certificates hold.

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

use super::Office;
use crate::observe::rfc3339;
use crate::state::tls::Shown;

#[derive(Serialize)]
pub(super) struct Listener {
    name: Box<str>,
    address: SocketAddr,
    connections: i64,
    refused: u64,
    /// The default one first; none where it is in clear.
    certificates: Vec<Certificate>,
}

#[derive(Serialize)]
struct Certificate {
    file: String,
    names: Vec<Box<str>>,
    addresses: Vec<IpAddr>,
    serial: Box<str>,
    not_before: String,
    not_after: String,
    /// Why what its files hold now is not what is in force.
    refused: Option<String>,
}

pub(super) fn listeners(office: &Office) -> Vec<Listener> {
    let reloader = &office.reloader;
    let addresses = reloader.sockets().addresses().into_iter();
    addresses
        .map(|(name, address)| {
            let meters = office.shared.metrics.listener(&name);
            let certificates = reloader.keyring().shown(&name).into_iter();
            Listener {
                address,
                connections: meters.connections.get(),
                refused: meters.refused.get(),
                certificates: certificates.map(certificate).collect(),
                name,
            }
        })
        .collect()
}

fn certificate(shown: Shown) -> Certificate {
    Certificate {
        file: shown.certificate.display().to_string(),
        names: shown.names,
        addresses: shown.addresses,
        serial: shown.serial,
        not_before: rfc3339(shown.not_before),
        not_after: rfc3339(shown.not_after),
        refused: shown.refused,
    }
}
