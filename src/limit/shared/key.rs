//! Decides under which key a bucket is kept in a store: the same in every replica, and nothing of
//! the caller in clear.
//!
//! The fingerprints of [`crate::limit::fingerprint`] are keyed anew in every process, so they cannot
//! name a bucket that several share. These are SHA-256, cut to 128 bits, over what the configuration
//! and the caller say. Whoever reads the store and can guess a caller's header value or address can
//! check the guess: a store is to be guarded like the gateway itself.

use sha2::{Digest as _, Sha256};

/// What stands before every key. Another way to keep buckets gets another number.
const PREFIX: &str = "fc1:";

/// 128 bits that every replica finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest([u8; 16]);

/// Keeps equal bytes that mean different things apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limit) enum Meaning {
    /// A quota in its scope.
    Quota,
    /// Somebody who has proven who it is.
    Proven,
    /// A tenant, or none.
    Tenant,
    /// A skill, or any that is not known.
    Skill,
    /// Somebody known by a header.
    Header,
    /// Somebody known by the address only.
    Caller,
    /// Nobody known.
    Nobody,
    /// An address, whoever it says it is.
    Address,
    /// A whole bucket.
    Bucket,
}

impl Meaning {
    const fn tag(self) -> &'static [u8] {
        match self {
            Self::Quota => b"forecourt 1 quota\0",
            Self::Proven => b"forecourt 1 proven\0",
            Self::Tenant => b"forecourt 1 tenant\0",
            Self::Skill => b"forecourt 1 skill\0",
            Self::Header => b"forecourt 1 header\0",
            Self::Caller => b"forecourt 1 caller\0",
            Self::Nobody => b"forecourt 1 nobody\0",
            Self::Address => b"forecourt 1 address\0",
            Self::Bucket => b"forecourt 1 bucket\0",
        }
    }
}

impl Digest {
    /// The digest of these parts, each framed by its length.
    pub(in crate::limit) fn of<'p>(
        meaning: Meaning,
        parts: impl IntoIterator<Item = &'p [u8]>,
    ) -> Self {
        let mut hash = Sha256::new();
        hash.update(meaning.tag());
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let whole: [u8; 32] = hash.finalize().into();
        let mut cut = [0; 16];
        for (to, from) in cut.iter_mut().zip(whole) {
            *to = from;
        }
        Self(cut)
    }

    /// Of nobody and nothing.
    pub(super) fn nothing() -> Self {
        Self::of(Meaning::Nobody, [])
    }

    /// Its bytes, as a part of another.
    pub(in crate::limit) const fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key in the store. The braces make the whole of it the hash tag of a cluster: each bucket
    /// stands in a slot of its own.
    pub(super) fn key(&self) -> String {
        let mut key = String::with_capacity(PREFIX.len() + 34);
        key.push_str(PREFIX);
        key.push('{');
        for byte in self.0 {
            for half in [byte >> 4, byte & 0xf] {
                key.extend(char::from_digit(half.into(), 16));
            }
        }
        key.push('}');
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_in_every_process_and_version() {
        // Written down: a change of this value splits every count while versions are mixed.
        let digest = Digest::of(Meaning::Quota, [b"per-buyer".as_slice(), b"lakeside"]);
        assert_eq!(digest.key(), "fc1:{d901d8be45e1611a58fc8b1bec53aae6}");
    }

    #[test]
    fn parts_and_meanings_are_apart() {
        let of = |meaning, parts: &[&[u8]]| Digest::of(meaning, parts.iter().copied());
        assert_ne!(
            of(Meaning::Header, &[b"ab", b"c"]),
            of(Meaning::Header, &[b"a", b"bc"])
        );
        assert_ne!(of(Meaning::Header, &[b"a"]), of(Meaning::Caller, &[b"a"]));
        assert_ne!(of(Meaning::Header, &[]), of(Meaning::Header, &[b""]));
    }
}
