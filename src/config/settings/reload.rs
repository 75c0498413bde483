//! Decides what a valid `[reload]` is.

use std::time::Duration;

use crate::config::amount::spell_percent;

/// `[reload]`: what becomes of configurations that served, and when one is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reload {
    /// How many configurations are kept in memory, the one that serves included; 1 to 100. Default
    /// 10.
    pub keep: usize,
    /// When the gateway goes back by itself. Default never.
    pub rollback_on_errors: Option<Guard>,
}

/// `rollback_on_errors`: goes back to the configuration before, where the new one makes requests
/// fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// How long a new configuration is watched; 1 s to 1 h.
    pub window: Duration,
    /// More failures than this part of the requests that ended are too many. Below the whole.
    pub ratio: Ratio,
    /// Fewer requests than this prove nothing; at least 1.
    pub min_requests: u32,
}

/// A part of a whole, exactly, from nothing to all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    millionths: u32,
}

impl Ratio {
    pub(in crate::config) const fn of_millionths(millionths: u32) -> Self {
        Self { millionths }
    }

    /// Whether so many of so many are more than this.
    #[must_use]
    pub fn is_exceeded(self, some: u64, of: u64) -> bool {
        u128::from(some) * 1_000_000 > u128::from(of) * u128::from(self.millionths)
    }
}

impl std::fmt::Display for Ratio {
    /// In percent, as a configuration writes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&spell_percent(self.millionths))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_exact() {
        let five = Ratio::of_millionths(50_000);
        for (some, of, exceeded) in [
            (0, 0, false),
            (1, 0, true),
            (5, 100, false),
            (6, 100, true),
            (50_000, 1_000_000, false),
            (50_001, 1_000_000, true),
            (u64::MAX, u64::MAX, true),
        ] {
            assert_eq!(five.is_exceeded(some, of), exceeded, "{some} of {of}");
        }
        assert_eq!(five.to_string(), "5%");
        assert_eq!(Ratio::of_millionths(5_500).to_string(), "0.55%");
        assert!(!Ratio::of_millionths(1_000_000).is_exceeded(7, 7));
    }
}
