//! Decides how often a caller may come, and how many of its requests there may be at once.
//!
//! [`identify`] says whose bucket a request falls into, [`Quota::compile`] turns a configured
//! [`Rule`] into a decision for one endpoint, and [`Limiter::check`] takes the decision for all
//! quotas of an endpoint at once, for a [`Subject`]. The buckets live in the limiter, outside every
//! snapshot of the configuration, so a reload neither refills nor forgets them.
//!
//! What several processes count together is kept in a store that they share ([`shared`]); only there is
//! anything waited for.
//!
//! All else in this room must never wait, never keep more than its configured number of buckets of strangers,
//! and never let a caller choose where in a table its key falls. It knows nothing of JSON-RPC:
//! what a refusal looks like is said elsewhere.

pub mod caller;
pub mod clock;
pub mod fields;
pub mod fingerprint;
pub mod ledger;
pub mod limiter;
pub mod notable;
pub mod pace;
pub mod quota;
pub mod seats;
mod several;
pub mod shared;
mod store;
pub mod subject;

pub use caller::{Caller, Source, identify, repeated};
pub use clock::{Clock, ManualClock, Moment, SystemClock};
pub use fields::{Announced, Announcement};
pub use fingerprint::Fingerprint;
pub use ledger::{Entry, Forgiven, Owner};
pub use limiter::{ASK_AGAIN, Admission, Decision, Limiter, Shortage};
pub use notable::{Notable, SAMPLED};
pub use pace::Standing;
pub use quota::{Quota, Rule};
pub use seats::Seats;
pub use subject::{Call, LONGEST_TENANT, Subject};

pub use crate::config::{Allowance, Dimension, Per};
pub use store::SHARDS;
