//! What `[admin]` means.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::KeySha256;

/// `[admin]`: the socket for probes, metrics and operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Where it is bound. Default 127.0.0.1:9901. Needs a restart.
    pub address: SocketAddr,
    /// The SHA-256 of each token by which an operator is known. Empty: none is asked for.
    pub token_sha256: Vec<KeySha256>,
}

impl Admin {
    /// Where it is bound unless something else is said.
    pub const USUAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9901);

    /// Whether only this machine reaches it.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.address.ip().to_canonical().is_loopback()
    }
}
