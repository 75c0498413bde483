//! What is let through how often, and what a plan changes of it.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::config::amount::spell_rate;
use crate::config::per::Per;

use super::Kept;

/// `[quota.NAME]`: so much, so often; or so many at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Its name.
    pub name: Box<str>,
    /// What is counted apart.
    pub per: Per,
    /// How much it lets through, where no plan says otherwise.
    pub allowance: Allowance,
    /// One bucket across every endpoint that names the quota. Default false: each endpoint its own.
    pub shared: bool,
    /// Only calls for one of these AAP skills, never empty. `None`: whatever the skill.
    pub skills: Option<Vec<Box<str>>>,
    /// Only calls of one of these methods, never empty. `None`: whatever the method.
    pub methods: Option<Vec<Box<str>>>,
    /// What a call of a skill or method counts, at most the burst of any plan. Others count 1.
    pub cost: Vec<(Box<str>, NonZeroU32)>,
    /// Where it is counted together with other processes. Default: this one counts alone.
    pub kept: Option<Kept>,
}

impl Quota {
    /// Whether it looks at every call, whatever its skill and method.
    #[must_use]
    pub const fn is_for_every_call(&self) -> bool {
        self.skills.is_none() && self.methods.is_none()
    }
}

/// How much a quota lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// So much, so often.
    Rate {
        /// One request per interval in the long run: the rate's period divided by its count, at
        /// least 1 ns, rounded down to whole nanoseconds.
        interval: Duration,
        /// Requests at once after a rest; `burst` times `interval` is below 2^62 ns. Default: the
        /// count of the rate.
        burst: NonZeroU32,
    },
    /// So many requests at once. A stream counts while it is open.
    Concurrent(NonZeroU32),
}

impl Allowance {
    /// The rate as a configuration writes it, in the smallest period that has it exactly: `60/min`
    /// is `1/s`. `None` where it is no rate.
    #[must_use]
    pub fn rate(&self) -> Option<String> {
        match self {
            Self::Rate { interval, .. } => Some(spell_rate(*interval)),
            Self::Concurrent(_) => None,
        }
    }

    /// How many requests at once after a rest. `None` where it is no rate.
    #[must_use]
    pub const fn burst(&self) -> Option<NonZeroU32> {
        match self {
            Self::Rate { burst, .. } => Some(*burst),
            Self::Concurrent(_) => None,
        }
    }

    /// How many requests at once, at any time. `None` where it is a rate.
    #[must_use]
    pub const fn concurrent(&self) -> Option<NonZeroU32> {
        match self {
            Self::Rate { .. } => None,
            Self::Concurrent(most) => Some(*most),
        }
    }
}

/// `[plan.NAME]`: what some callers may use in place of what a quota says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its name.
    pub name: Box<str>,
    /// Places in [`Settings::quotas`](super::Settings::quotas), each once, and what holds there.
    /// A rate never takes the place of a number of requests at once, nor the other way round.
    pub quotas: Vec<(usize, Allowance)>,
}
