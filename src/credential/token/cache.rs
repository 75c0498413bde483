//! Decides which tokens need not be verified again: those that were, as long as nothing that decided
//! about them has changed.
//!
//! Only what was believed is kept, so that made-up tokens, however many, take the place of none. What
//! is kept is bounded, is found by the SHA-256 of the whole token, and holds no byte of it.

use sha2::{Digest, Sha256};

/// How many tokens share a place.
const WAYS: usize = 4;

/// What a token is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print([u8; 32]);

/// What came of tokens that were verified, for one thread.
#[derive(Debug)]
pub struct Cache<T> {
    /// None before the first is kept.
    sets: Box<[[Option<Known<T>>; WAYS]]>,
    most: usize,
    /// Counts what was asked for, so that of a full set the one that was not asked for longest goes.
    asked: u64,
}

#[derive(Debug)]
struct Known<T> {
    print: Print,
    asked: u64,
    value: T,
}

impl Print {
    /// Of a token.
    #[must_use]
    pub fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }

    fn place(&self) -> usize {
        let [a, b, c, d, ..] = self.0;
        u32::from_le_bytes([a, b, c, d]) as usize
    }
}

impl<T> Cache<T> {
    /// Keeps at most this many tokens, or up to three more. Takes no memory before the first is kept.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            sets: [].into(),
            most,
            asked: 0,
        }
    }

    /// What came of a token, where that `is_current`. If it is not, it is forgotten.
    pub fn find(&mut self, print: &Print, is_current: impl FnOnce(&T) -> bool) -> Option<&T> {
        self.asked += 1;
        let asked = self.asked;
        let place = print.place().checked_rem(self.sets.len())?;
        let set = self.sets.get_mut(place)?;
        let way = set
            .iter_mut()
            .find(|way| way.as_ref().is_some_and(|known| known.print == *print))?;
        if !way.as_ref().is_some_and(|known| is_current(&known.value)) {
            *way = None;
            return None;
        }
        let known = way.as_mut()?;
        known.asked = asked;
        Some(&known.value)
    }

    /// Keeps what came of a token that was believed.
    pub fn keep(&mut self, print: Print, value: T) {
        if self.sets.is_empty() {
            let sets = self.most.div_ceil(WAYS).max(1);
            self.sets = (0..sets).map(|_| [const { None }; WAYS]).collect();
        }
        self.asked += 1;
        let known = Known {
            print,
            asked: self.asked,
            value,
        };
        let place = print.place() % self.sets.len();
        let Some(set) = self.sets.get_mut(place) else {
            return;
        };
        let is_own = |way: &Option<Known<T>>| way.as_ref().is_some_and(|it| it.print == print);
        let own = set.iter().position(is_own);
        let oldest = || {
            let ways = set.iter().enumerate();
            ways.min_by_key(|(_, way)| way.as_ref().map_or(0, |it| it.asked))
                .map(|(at, _)| at)
        };
        let at = own.or_else(oldest);
        if let Some(way) = at.and_then(|at| set.get_mut(at)) {
            *way = Some(known);
        }
    }

    /// How many are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sets.iter().flatten().flatten().count()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(number: u32) -> Print {
        Print::of(&number.to_le_bytes())
    }

    #[test]
    fn what_was_kept_is_found_while_it_is_current() {
        let mut cache = Cache::new(16);
        assert!(cache.is_empty());
        cache.keep(print(1), "one");
        assert_eq!(cache.find(&print(1), |_| true), Some(&"one"));
        assert_eq!(cache.find(&print(2), |_| true), None);
        assert_eq!(cache.find(&print(1), |_| false), None);
        assert_eq!(cache.find(&print(1), |_| true), None, "it was forgotten");
        assert_eq!(cache.len(), 0);
    }

    #[test]
    fn a_token_is_kept_once() {
        let mut cache = Cache::new(16);
        cache.keep(print(1), 1);
        cache.keep(print(1), 2);
        assert_eq!(
            (cache.len(), cache.find(&print(1), |_| true)),
            (1, Some(&2))
        );
    }

    #[test]
    fn never_more_are_kept_and_what_is_asked_for_stays() {
        let mut cache = Cache::new(64);
        cache.keep(print(0), 0);
        for number in 1..10_000 {
            cache.keep(print(number), number);
            assert!(cache.find(&print(0), |_| true).is_some(), "{number}");
        }
        assert_eq!(cache.len(), 64);
    }

    #[test]
    fn asking_for_what_is_not_there_takes_the_place_of_nothing() {
        let mut cache = Cache::new(8);
        for number in 0..4 {
            cache.keep(print(number), number);
        }
        let kept = cache.len();
        for number in 100..10_000 {
            assert_eq!(cache.find(&print(number), |_| true), None);
        }
        assert_eq!(cache.len(), kept);
    }
}
