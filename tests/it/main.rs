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

mod architecture;
mod contract;
mod docs;
mod faults;
mod forward;
mod fuzz;
mod ids;
mod limit;
mod refuse;
mod stream;
mod strict;
mod wire;
