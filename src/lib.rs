//! Forecourt: the reverse-proxy ingress gateway in front of A2A dealer agents.
//!
//! This file is the map of the house and holds its one feature gate. Rooms import only from
//! storeys below their own; rooms on one storey never import each other (`tests/it/architecture.rs`
//! enforces it).
//!
//! | storey | room | what stands there |
//! |---|---|---|
//! | 0 | [`protocol`] | the rules: contracts, header judgement, envelopes, refusals. Pure. |
//! | 1 | [`config`] | text to valid settings, with every problem at once. Pure but for reading files. |
//! | 1 | [`http1`] | HTTP/1.1 as bytes: heads, body framing. Pure. |
//! | 1 | [`wire`] | a byte stream with what was received of it; timers moved late. |
//! | 2 | [`credential`] | who is asking, proven: API keys, client certificates, signed tokens. |
//! | 2 | [`limit`] | per-caller quotas: whose bucket, how full, how long to wait. |
//! | 2 | [`observe`] | what is told to operators: access log, metrics, diagnostics. |
//! | 2 | [`upstream`] | where requests are forwarded: pools and one exchange. |
//! | 3 | [`state`] | one compiled configuration, swapped whole; connections, routes, certificates. |
//! | 4 | [`listen`] | sockets in: bind, accept, deadlines, drain. |
//! | 4 | [`proxy`] | the request path: read, judge, forward. |
//! | 5 | [`admin`] | its own socket: probes, metrics, status, reload, explain. |
//! | 6 | [`app`] | the composition root: starts the threads, stops them in order. |
//! | 7 | [`demo`] | `forecourt demo`: a strict dealer, the gateway, and a walk through the rules. |
//! | 8 | [`cli`] | the commands, their arguments and exit codes. |
//!
//! `protocol`, `config` and `http1` are the locked core: they compile with `--no-default-features`, that is
//! without any crate that does I/O.

#[cfg(feature = "gateway")]
pub mod admin;
#[cfg(feature = "gateway")]
pub mod app;
#[cfg(feature = "gateway")]
pub mod cli;
pub mod config;
#[cfg(feature = "gateway")]
pub mod credential;
#[cfg(feature = "gateway")]
pub mod demo;
pub mod http1;
#[cfg(feature = "gateway")]
pub mod limit;
#[cfg(feature = "gateway")]
pub mod listen;
#[cfg(feature = "gateway")]
pub mod observe;
pub mod protocol;
#[cfg(feature = "gateway")]
pub mod proxy;
#[cfg(feature = "gateway")]
pub mod state;
#[cfg(feature = "gateway")]
pub mod upstream;
#[cfg(feature = "gateway")]
pub mod wire;
