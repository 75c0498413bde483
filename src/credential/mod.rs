//! Who is asking, proven: what a caller shows, and whether it is believed.
//!
//! Pure: the time is handed in, and nothing here waits. Must never show a credential, nor a byte of
//! one.

pub mod token;

pub use token::{Bad, Cache, Keyset, Rules, Verified};
