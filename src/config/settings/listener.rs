//! Decides what a valid `[listener.NAME]` is. Must never hold what a certificate file says.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::Front;

/// `[listener.NAME]`: a socket we accept on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name.
    pub name: Box<str>,
    /// Where it is bound. Port 0: any free port.
    pub address: SocketAddr,
    /// Its certificate. `None`: clear text.
    pub tls: Option<Tls>,
    /// Most connections that wait for being accepted. Default 4096.
    pub backlog: u16,
    /// What stands in front of it.
    pub front: Front,
}

/// `tls` of a listener. Paths are resolved against the directory of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// PEM file with the certificate chain.
    pub certificate: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
}
