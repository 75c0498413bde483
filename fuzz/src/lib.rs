//! What fuzzing asks of the locked core: one plain function per target, which takes any bytes and
//! panics where a rule does not hold.
//!
//! libFuzzer calls them through `fuzz_targets/`. The gateway's tests include this file and call
//! them over `seeds/` on stable (`tests/it/fuzz.rs`), so it may use nothing that those tests lack.
//! Expected results are worked out slowly and by other means than the code under test; a model must
//! never call the function that it is there to check.

#![forbid(unsafe_code)]

mod answer;
mod config;
mod envelope;
mod headers;
mod http1;
mod judge_render;
mod lines;
mod query;

pub use config::{ENVIRONMENT, config};
pub use envelope::envelope;
pub use headers::headers;
pub use http1::{Ended, chunks, http1};
pub use judge_render::{judge_render, outcomes};
pub use query::query;

/// A target by its name, which is also that of its wrapper and of its directory of seeds.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 6] = [
    ("envelope", envelope),
    ("headers", headers),
    ("judge_render", judge_render),
    ("query", query),
    ("config", config),
    ("http1", http1),
];
