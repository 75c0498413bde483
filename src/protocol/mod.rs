//! The locked core: what A2A and AAP say, as pure functions over bytes and tables.
//!
//! Three doors: `peek` reads a JSON-RPC envelope, `judge` holds the supplied headers to a contract,
//! `render` spells a refusal in that contract's dialect.
//!
//! Nothing in this room does I/O, reads a clock, draws randomness, logs, or is async. Time and
//! identifiers come in as a stamp. No contract is known by name in code: the published ones are
//! rows of a table ([`releases`]), and an operator's own is the same type.

pub mod card;
pub mod contract;
pub mod dialect;
pub mod envelope;
pub mod extension;
pub mod headers;
pub mod json;
pub mod judge;
pub mod method;
pub mod noted;
pub mod outcome;
pub mod query;
pub mod raw;
pub mod refusal;
pub mod releases;
pub mod status;
pub mod step;
pub mod version;
pub mod wording;

pub use card::CARDS;
pub use contract::{Absence, Contract, Dialect, Violations};
pub use dialect::{Answer, ErrorText, Stamp, render};
pub use envelope::{Envelope, Id, SKILLS, Unreadable, peek};
pub use extension::ExtensionUri;
pub use headers::Supplied;
pub use judge::{Activation, Verdict, judge};
pub use noted::Noted;
pub use outcome::Outcome;
pub use refusal::{Failure, Refusal};
pub use status::HttpStatus;
pub use step::{Step, Steps};
pub use version::Version;
