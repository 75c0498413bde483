//! Decides what a valid `[upstream.NAME]` is. Must never show a header's value.

use std::time::Duration;

use http::HeaderName;

use super::Secret;
use crate::config::web::UpstreamUrl;

/// `[upstream.NAME]`: where we forward.
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// Its name.
    pub name: Box<str>,
    /// Where it is.
    pub url: UpstreamUrl,
    /// Time to connect. Default 2 s.
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
