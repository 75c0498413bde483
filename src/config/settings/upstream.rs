//! Decides what a valid `[upstream.NAME]` is. Must never show a header's value.

use std::time::Duration;

use http::HeaderName;

use super::{NamedFile, PairFiles, Place, Secret};
use crate::config::web::UpstreamUrl;

/// `[upstream.NAME]`: where we forward.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// Its name.
    pub name: Box<str>,
    /// Where it is.
    pub url: UpstreamUrl,
    /// How it is spoken to over TLS: `Some` where the URL is `https`.
    pub tls: Option<UpstreamTls>,
    /// Time to connect, the TLS handshake included. Default 2 s.
    pub connect_timeout: Duration,
    /// Time from the request's last byte to the response head. Default 120 s.
    pub response_timeout: Duration,
    /// Time between two pieces of the response body, streams included. Default 300 s.
    pub idle_timeout: Duration,
    /// How long an unused connection is kept; 0: connections are not reused. Default 4 s.
    pub keep_alive: Duration,
    /// Whether it is spoken to in HTTP/2. Default false: HTTP/1.1.
    pub http2: bool,
    /// Most connections at once, over all workers. Default 1024.
    pub max_connections: usize,
    /// Most requests that wait for a connection, over all workers. Default 1024.
    pub max_waiting: usize,
    /// Most requests at once, over all workers. Default: no limit but the connections.
    pub max_in_flight: Option<usize>,
    /// Whether the caller's `Host` is sent instead of the URL's authority. Default false.
    pub preserve_host: bool,
    /// Request headers that are set, replacing the caller's; sorted by place in the file.
    pub headers: Vec<(HeaderName, Secret)>,
}

/// How an upstream proves who it is, and we do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTls {
    /// The name in its certificate, and the one asked for: a host name, or an address without
    /// brackets. Default the URL's host.
    pub server_name: Box<str>,
    /// Where that name is given.
    pub place: Place,
    /// PEM file with the roots it must come from. `None`: the system's.
    pub ca: Option<NamedFile>,
    /// What we show where it asks for a certificate.
    pub client: Option<PairFiles>,
}
