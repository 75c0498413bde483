//! Decides whose an API key is, by its SHA-256: the keys themselves are nowhere.
//!
//! What a look-up costs must not tell an outsider how near a guess came. The table is found by a hash
//! of the digest under keys drawn for this process, so which entries a guess is compared with says
//! nothing about how the digests are ordered; and digests are compared in constant time, so a
//! comparison says nothing about where they differ. Beside that a guess would have to be of the
//! digest's making: whoever learns the beginning of a digest has still to find a key that has it.
//!
//! Must never keep a key, and never hash more than [`LONGEST`] bytes for a stranger.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

/// The longest key that is looked at, in bytes.
pub const LONGEST: usize = 4096;

/// The SHA-256 of a key.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The bytes of the digest.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_slice().ct_eq(other.0.as_slice()).into()
    }
}

impl Eq for Digest {}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// Whose each key is, by place of the caller.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys(HashMap<Digest, usize>);

impl Keys {
    pub(super) fn add(&mut self, digest: Digest, caller: usize) {
        self.0.insert(digest, caller);
    }

    /// Whose key this is.
    ///
    /// # Errors
    /// Why it is nobody's.
    pub(super) fn find(&self, key: &[u8]) -> Result<usize, &'static str> {
        if key.is_empty() {
            return Err("the key is empty");
        }
        if key.len() > LONGEST {
            return Err("the key is too long");
        }
        let place = self.0.get(&Digest::of(key)).copied();
        place.ok_or("the key is not known")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        let mut keys = Keys::default();
        keys.add(Digest::of(b"old"), 0);
        keys.add(Digest::of(b"new"), 0);
        keys.add(Digest::of(b"other"), 1);
        keys
    }

    #[test]
    fn a_key_is_its_callers_and_no_other_is() {
        let keys = keys();
        assert_eq!(keys.find(b"old"), Ok(0));
        assert_eq!(keys.find(b"new"), Ok(0));
        assert_eq!(keys.find(b"other"), Ok(1));
        for wrong in [&b"Old"[..], b"ol", b"old ", b"oldd", b"\0", &[0xff; 32]] {
            assert!(keys.find(wrong).is_err(), "{wrong:?}");
        }
        // The digest is no key.
        assert!(keys.find(Digest::of(b"old").bytes()).is_err());
        assert!(Keys::default().find(b"old").is_err());
    }

    #[test]
    fn no_key_is_empty_or_endless() {
        let mut keys = Keys::default();
        let (longest, longer) = ([b'k'; LONGEST], [b'k'; LONGEST + 1]);
        for key in [&b""[..], &longest, &longer] {
            keys.add(Digest::of(key), 0);
        }
        assert!(keys.find(b"").is_err());
        assert_eq!(keys.find(&longest), Ok(0));
        assert!(keys.find(&longer).is_err());
    }

    #[test]
    fn digests_differ_in_any_bit_and_are_not_shown() {
        let one = Digest::of(b"key");
        for bit in 0..256 {
            let mut bytes = one.0;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(one, Digest::from(bytes), "{bit}");
        }
        assert_eq!(one, Digest::of(b"key"));
        assert_eq!(format!("{one:?}"), "***");
    }
}
