//! Decides where a bucket stands in the table: 128 keyed bits over what the bucket is for.
//!
//! Callers choose the bytes that are hashed, so the hash is SipHash under two keys drawn
//! once per process: nobody outside can find two callers that share a bucket, or crowd one shard.
//! Every part is framed by its length: `("ab", "c")` and `("a", "bc")` differ. The bytes
//! themselves are never kept.

use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

/// The keys of this process. They outlive every snapshot, as the buckets do.
static KEYS: LazyLock<[RandomState; 2]> =
    LazyLock::new(|| [RandomState::new(), RandomState::new()]);

/// 128 keyed bits. Stable within the process, meaningless outside of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    high: u64,
    low: u64,
}

impl Fingerprint {
    /// The fingerprint of these parts within a domain. The same parts in another domain have an
    /// unrelated one.
    pub(super) fn of<'a>(domain: Domain, parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut print = Print::new(domain);
        for part in parts {
            print.part(part);
        }
        print.finish()
    }

    /// The fingerprint of the pair. Both must come from different domains; then neither side can
    /// undo the other.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self {
            high: self.high ^ other.high,
            low: self.low ^ other.low,
        }
    }

    /// 32 bits to show to an operator.
    #[must_use]
    pub const fn short(self) -> u32 {
        (self.high & 0xffff_ffff) as u32
    }

    /// 64 bits of which the topmost choose a shard.
    pub(super) const fn high(self) -> u64 {
        self.high
    }
}

impl Hash for Fingerprint {
    /// The bits are evenly spread already: the table takes 64 of them as they are.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.low);
    }
}

/// What a fingerprint is of. Keeps equal bytes that mean different things apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    /// A quota in its scope.
    Quota,
    /// Somebody who has proven their name.
    Proven,
    /// Somebody known by a header.
    Header,
    /// Somebody known by the address only.
    Caller,
    /// Nobody known.
    Nobody,
    /// An address, whoever it says it is.
    Address,
    /// A tenant, whatever it is.
    Tenant,
    /// A skill that is known.
    Skill,
}

impl Domain {
    const fn tag(self) -> u8 {
        match self {
            Self::Quota => b'q',
            Self::Proven => b'p',
            Self::Header => b'h',
            Self::Caller => b'c',
            Self::Nobody => b'n',
            Self::Address => b'a',
            Self::Tenant => b't',
            Self::Skill => b's',
        }
    }
}

/// A fingerprint in the making. What is hashed is gathered first: a hasher takes one long piece
/// faster than many short ones, and to the same end.
pub(super) struct Print {
    hashers: [DefaultHasher; 2],
    gathered: [u8; Print::ROOM],
    used: usize,
}

impl Print {
    /// Usual parts fit in.
    const ROOM: usize = 96;

    pub(super) fn new(domain: Domain) -> Self {
        let mut gathered = [0; Self::ROOM];
        if let Some(first) = gathered.first_mut() {
            *first = domain.tag();
        }
        Self {
            hashers: KEYS.each_ref().map(BuildHasher::build_hasher),
            gathered,
            used: 1,
        }
    }

    pub(super) fn part(&mut self, bytes: &[u8]) {
        self.put(&(bytes.len() as u64).to_ne_bytes());
        self.put(bytes);
    }

    fn put(&mut self, bytes: &[u8]) {
        let end = self.used + bytes.len();
        if let Some(room) = self.gathered.get_mut(self.used..end) {
            room.copy_from_slice(bytes);
            self.used = end;
            return;
        }
        self.hand_over();
        for hasher in &mut self.hashers {
            hasher.write(bytes);
        }
    }

    fn hand_over(&mut self) {
        let gathered = self.gathered.get(..self.used).unwrap_or_default();
        for hasher in &mut self.hashers {
            hasher.write(gathered);
        }
        self.used = 0;
    }

    pub(super) fn finish(mut self) -> Fingerprint {
        self.hand_over();
        let [high, low] = self.hashers.map(|hasher| hasher.finish());
        Fingerprint { high, low }
    }
}

/// The hasher of a table of fingerprints: hands 64 of their bits through.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread(u64);

impl BuildHasher for Spread {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        Self(0)
    }
}

impl Hasher for Spread {
    fn write_u64(&mut self, bits: u64) {
        self.0 = bits;
    }

    /// Not reached by [`Fingerprint`]; folds so that any key would still be found again.
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(parts: &[Vec<u8>]) -> Fingerprint {
        Fingerprint::of(Domain::Header, parts.iter().map(Vec::as_slice))
    }

    proptest! {
        #[test]
        fn different_splits_of_the_same_bytes_differ(
            left in prop::collection::vec(prop::collection::vec(0_u8..3, 0..4), 0..4),
            right in prop::collection::vec(prop::collection::vec(0_u8..3, 0..4), 0..4),
        ) {
            prop_assert_eq!(left == right, of(&left) == of(&right));
        }
    }

    #[test]
    fn domains_are_apart() {
        let parts = || [b"192.0.2.7".as_slice()];
        let caller = Fingerprint::of(Domain::Caller, parts());
        let address = Fingerprint::of(Domain::Address, parts());
        assert_ne!(caller, address);
        assert_ne!(caller.with(address), Fingerprint::default());
    }

    #[test]
    fn a_pair_depends_on_both() {
        let quota = Fingerprint::of(Domain::Quota, [b"q".as_slice()]);
        let one = Fingerprint::of(Domain::Header, [b"1".as_slice()]);
        let two = Fingerprint::of(Domain::Header, [b"2".as_slice()]);
        assert_ne!(quota.with(one), quota.with(two));
        assert_eq!(quota.with(one).with(one), quota);
    }
}
