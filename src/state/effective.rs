//! Decides what is shown of the configuration that serves, and by which hash it is known.
//!
//! The hash is taken of what is shown, so anybody can take it again, and equal configurations have
//! equal hashes in every process. The values of headers are not part of either: a hash over a key
//! would let whoever sees it try out guesses.

use std::fmt::Write;

use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest, Sha256};

use crate::config::Settings;

/// The configuration that serves, as it is shown.
#[derive(Clone, Debug)]
pub struct Effective {
    /// The configuration in JSON, every default filled in, secrets masked.
    pub configuration: Box<RawValue>,
    /// `sha256:` and the digest of the bytes of `configuration`, in hexadecimal.
    pub hash: Box<str>,
    /// The first eight of its digits, for lines of logs.
    pub short: [u8; 8],
}

impl Effective {
    /// Shows settings.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let shown = to_raw_value(settings).unwrap_or_else(|error| {
            // Not reached: settings are a tree of texts, numbers and flags.
            tracing::error!(%error, "the configuration cannot be shown");
            RawValue::NULL.to_owned()
        });
        let mut hash = "sha256:".to_owned();
        for byte in Sha256::digest(shown.get()) {
            // Writing to a string does not fail.
            write!(hash, "{byte:02x}").ok();
        }
        let digits = hash.split_once(':').map_or("", |(_, digits)| digits);
        let short = digits.as_bytes().first_chunk().copied();
        Self {
            configuration: shown,
            short: short.unwrap_or(*b"00000000"),
            hash: hash.into(),
        }
    }
}
