//! Decides the names of the refusing steps an operator can put in report mode.
//!
//! A step in `report` only counts and logs what it would have refused (design: `report`).

/// A step of admission that can be listed in `report`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// `A2A-Version`.
    Version,
    /// `A2A-Extensions`.
    Extension,
    /// The caller's quotas.
    Quota,
    /// `params.tenant`.
    Tenant,
    /// Methods behind a capability.
    Capability,
    /// Media types.
    Media,
    /// The payload against its schema.
    Payload,
}

impl Step {
    /// Every step, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Version,
        Self::Extension,
        Self::Quota,
        Self::Tenant,
        Self::Capability,
        Self::Media,
        Self::Payload,
    ];

    /// The name used in configuration, logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Extension => "extension",
            Self::Quota => "quota",
            Self::Tenant => "tenant",
            Self::Capability => "capability",
            Self::Media => "media",
            Self::Payload => "payload",
        }
    }

    /// Its place in [`Step::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A set of steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Steps(u8);

impl Steps {
    /// No step: everything is enforced.
    pub const NONE: Self = Self(0);

    /// Whether the step is in the set.
    #[must_use]
    pub const fn contains(self, step: Step) -> bool {
        self.0 & (1 << step.index()) != 0
    }

    /// The steps in the set, in the order of [`Step::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Step> {
        Step::ALL
            .into_iter()
            .filter(move |step| self.contains(*step))
    }

    /// Adds a step.
    pub const fn insert(&mut self, step: Step) {
        self.0 |= 1 << step.index();
    }
}

impl FromIterator<Step> for Steps {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        let mut set = Self::NONE;
        for step in steps {
            set.insert(step);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set: Steps = [Step::Version, Step::Payload].into_iter().collect();
        for (index, step) in Step::ALL.into_iter().enumerate() {
            assert_eq!(step.index(), index);
            assert_eq!(
                set.contains(step),
                matches!(step, Step::Version | Step::Payload)
            );
        }
    }
}
