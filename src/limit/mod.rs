//! Decides how often a caller may come: per-caller quotas, kept in this process.
//!
//! [`identify`] says whose bucket a request falls into, [`Quota::compile`] turns a configured
//! [`Rule`] into a decision for one endpoint, and [`Limiter::check`] takes the decision for all
//! quotas of an endpoint at once. The buckets live in the limiter, outside every snapshot of the
//! configuration, so a reload neither refills nor forgets them.
//!
//! This room must never wait, never keep more than its configured number of buckets of strangers,
//! and never let a caller choose where in a table its key falls. It knows nothing of JSON-RPC:
//! what a refusal looks like is said elsewhere.

pub mod caller;
pub mod clock;
pub mod fields;
pub mod fingerprint;
pub mod limiter;
pub mod quota;
mod store;

pub use caller::{Caller, Source, Subject, identify, repeated};
pub use clock::{Clock, ManualClock, Moment, SystemClock};
pub use fields::{Announced, Announcement};
pub use fingerprint::Fingerprint;
pub use limiter::{Decision, Limiter, Shortage};
pub use quota::{Quota, Rule, Standing};

pub use crate::config::{Dimension, Per};
pub use store::SHARDS;
