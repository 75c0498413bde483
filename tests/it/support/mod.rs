//! What the tests stand on: a gateway, a scripted upstream, a client that sends exact bytes.

pub mod call;
pub mod client;
pub mod fixture;
pub mod frames;
pub mod gateway;
pub mod head;
pub mod http2;
pub mod process;
pub mod tls;
pub mod token;
pub mod upstream;
pub mod wait;
pub mod ways;

pub use call::Post;
pub use client::{Answer, Client};
pub use gateway::Gateway;
pub use upstream::{Nobody, Peer, Upstream};
pub use wait::{PATIENCE, Watch, wait_until};

/// The extension URI of contract aap/3.0.
pub const U: &str = "https://autoagentprotocol.org/extensions/aap/v3.0";
