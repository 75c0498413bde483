//! Decides what is known of the proxies and load balancers in front of a listener.

use ipnet::IpNet;

/// What stands in front of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Front {
    /// The path that load balancers probe.
    pub health: Option<Box<str>>,
    /// Who must, and alone may, begin a connection with a PROXY protocol header. Never empty.
    /// `None`: nobody does.
    pub proxy_protocol: Option<Vec<IpNet>>,
    /// Whose word on the client's address is believed. Default nobody's.
    pub trusted_proxies: Vec<IpNet>,
    /// The header that has their word.
    pub client_header: ClientHeader,
}

/// The header in which trusted proxies name the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClientHeader {
    /// `X-Forwarded-For`, with `X-Forwarded-Proto` and `X-Forwarded-Host`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

impl ClientHeader {
    /// Every choice.
    pub const ALL: [Self; 2] = [Self::XForwardedFor, Self::Forwarded];

    /// The name used in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        }
    }
}
