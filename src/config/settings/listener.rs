//! Decides what a valid `[listener.NAME]` is. Must never hold what a certificate file says.

use std::net::SocketAddr;

use super::{Front, NamedFile, PairFiles, Place};

/// `[listener.NAME]`: a socket we accept on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name.
    pub name: Box<str>,
    /// Where it is bound. Port 0: any free port.
    pub address: SocketAddr,
    /// Where its address stands.
    pub place: Place,
    /// Its certificates. `None`: clear text.
    pub tls: Option<Tls>,
    /// Most connections that wait for being accepted. Default 4096.
    pub backlog: u16,
    /// What stands in front of it.
    pub front: Front,
}

/// `tls` of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// What is served where no name matches, or none is asked for.
    pub default: PairFiles,
    /// Served to clients that ask for a name in them, in the order of the file.
    pub others: Vec<PairFiles>,
    /// Whom clients' certificates must come from. `None`: clients are not asked for one.
    pub clients: Option<Clients>,
}

/// `client_ca` and `client_certificate` of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    /// PEM file with the roots.
    pub ca: NamedFile,
    /// Whether a client without a certificate is turned away. One with a wrong one always is.
    pub is_required: bool,
}

impl Tls {
    /// The default certificate, then the others.
    pub fn certificates(&self) -> impl Iterator<Item = &PairFiles> {
        std::iter::once(&self.default).chain(&self.others)
    }
}

impl Listener {
    /// Whether the socket of this one serves another: the address decides, and at any port the name.
    #[must_use]
    pub fn is_open_for(&self, other: &Self) -> bool {
        self.address == other.address && (self.address.port() != 0 || self.name == other.name)
    }
}
