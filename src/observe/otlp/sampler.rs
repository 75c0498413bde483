//! Decides which traces are recorded (OpenTelemetry's samplers). A trace that others recorded or left
//! out before us is treated the same, unless the operator says otherwise.

use crate::observe::trace::Context;

/// Which traces are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// Whoever sent a context has decided.
    follows: bool,
    /// Of 2^63 traces so many are recorded.
    of_all: u64,
}

impl Sampler {
    /// Follows the caller's context; of traces that begin here this share is recorded, 0 to 1.
    #[must_use]
    pub fn of_parent(ratio: f64) -> Self {
        Self {
            follows: true,
            ..Self::of_itself(ratio)
        }
    }

    /// Records this share of all traces, 0 to 1, whatever the caller's context says.
    #[must_use]
    pub fn of_itself(ratio: f64) -> Self {
        let all = 1_u64 << 63;
        Self {
            follows: false,
            of_all: if ratio >= 1.0 {
                all
            } else {
                (ratio.max(0.0) * all as f64) as u64
            },
        }
    }

    /// Whether a trace is recorded. Everybody with the same ratio decides the same: by its id.
    #[must_use]
    pub fn records(self, trace: [u8; 16], parent: Option<&Context>) -> bool {
        if let Some(parent) = parent.filter(|_| self.follows) {
            return parent.is_sampled();
        }
        let [.., a, b, c, d, e, f, g, h] = trace;
        u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1 < self.of_all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(flags: u8) -> Context {
        Context {
            trace: [7; 16],
            span: [1; 8],
            flags,
        }
    }

    #[test]
    fn the_parent_decides_where_it_is_followed() {
        for flags in [0, 1] {
            let parent = context(flags);
            for ratio in [0.0, 1.0] {
                let of_parent = Sampler::of_parent(ratio).records(parent.trace, Some(&parent));
                assert_eq!(of_parent, flags == 1);
                let of_itself = Sampler::of_itself(ratio).records(parent.trace, Some(&parent));
                assert_eq!(of_itself, ratio == 1.0);
                assert_eq!(
                    Sampler::of_parent(ratio).records(parent.trace, None),
                    ratio == 1.0
                );
            }
        }
    }

    #[test]
    fn a_ratio_is_a_share_of_the_ids() {
        let mut random = fastrand::Rng::with_seed(1);
        let sampler = Sampler::of_itself(0.25);
        let recorded = (0..10_000).filter(|_| sampler.records(random.u128(..).to_be_bytes(), None));
        let recorded = recorded.count();
        assert!((2300..2700).contains(&recorded), "{recorded}");
        assert!(Sampler::of_itself(1.0).records([0xff; 16], None));
        assert!(!Sampler::of_itself(0.0).records([0; 16], None));
    }
}
