//! What the gateway currently is: one compiled configuration, swapped whole.
//!
//! One request, one snapshot: a request loads it once and finishes on it, whatever is swapped in
//! meanwhile. Limiter buckets, connection pools, counters and certificates live outside and survive.

pub mod connection;
pub mod effective;
pub mod findings;
pub mod gate;
pub mod guard;
pub mod issuers;
pub mod leaving;
pub mod listener;
pub mod live;
pub mod logs;
pub mod readiness;
pub mod reload;
pub mod routes;
mod rule;
pub mod snapshot;
pub mod sockets;
mod stores;
pub mod tls;
pub mod twin;
pub mod watch;

pub use effective::Effective;
pub use findings::Findings;
pub use gate::Gate;
pub use issuers::{Issuer, Issuers, Keys};
pub use leaving::Leaving;
pub use listener::{Listener, Networks};
pub use live::Live;
pub use logs::Logs;
pub use readiness::Readiness;
pub use reload::{Attempt, Preview, Rejected, Reloader, Standing};
pub use rule::{Lines, Rule};
pub use snapshot::{Endpoint, Pin, Shared, Snapshot};
pub use tls::{Keyring, Terminator};
