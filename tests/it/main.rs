//! The integration tests: the project as a whole, its pure core, and a running gateway on port 0
//! between raw sockets.
//!
//! One binary, no network beyond loopback, no fixed port, no sleep as synchronisation. A test that
//! waits does so for an event, or for a condition within a generous deadline.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "tests say what must be there and fail where it is not"
)]

mod support;

mod admin;
mod ambiguous;
mod architecture;
mod callers;
mod caps;
mod change;
mod commands;
mod contract;
mod decisions;
mod docs;
mod drain;
mod explain;
mod faults;
mod flood;
mod forward;
mod framing;
mod front;
mod fuzz;
mod golden;
mod http2;
mod http2_upstream;
mod ids;
mod including;
mod limit;
mod listeners;
mod log;
mod memory;
mod office;
mod pools;
mod refuse;
mod reload;
mod soak;
mod spread;
mod stream;
mod strict;
mod tls;
mod tokens;
mod trace;
mod watch;
mod ways;
mod wire;
