//! Decides what operators are told: the access log, the metrics and the diagnostics.
//!
//! [`AccessLog`] writes one line per request, [`Metrics`] counts, [`log::install`] sets up the
//! diagnostics of the process itself. Label values come from the configuration only, never from
//! traffic: a caller cannot make a series. No body, no key, no header value that identifies and no
//! query string is ever written here, and no worker waits for a disk or a terminal.

pub mod access;
pub mod clock;
mod combined;
pub mod decisions;
pub mod dial;
mod histogram;
mod json;
pub mod line;
pub mod log;
pub mod metrics;
pub mod otlp;
mod sample;
pub mod trace;

pub use access::{AccessLog, Destination, Manner, Pen, Prepared, Spelling, Switch};
pub use clock::{
    ManualWallClock, Rfc3339, SystemWallClock, Timestamp, WallClock, http_date, rfc3339,
};
pub use decisions::{Decision, Decisions, Ring};
pub use dial::Dial;
pub use histogram::Histogram;
pub use line::Line;
pub use metrics::{
    Cause, CredentialMeters, CredentialResult, EndpointMeters, Exposition, HandshakeFailure,
    HandshakeMeters, KeyMeters, LOCAL, ListenerMeters, Metrics, NAMES, Presence, QuotaMeters,
    StoreMeters, StoredQuotaMeters, TokenMeters, UpstreamMeters,
};
