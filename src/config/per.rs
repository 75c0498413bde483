//! Decides what a quota counts apart: the dimensions of `per`.

/// One thing by which requests are told apart: one bucket for each combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// Whoever `[callers]` identifies: one bucket per caller, and per endpoint unless shared.
    Caller,
    /// One bucket per endpoint.
    Endpoint,
    /// One bucket for everything that names the quota. Stands alone.
    All,
    /// One bucket per client address, whoever it says it is, and per endpoint unless shared.
    Address,
    /// One bucket per `params.tenant`, and per endpoint unless shared. The caller's text.
    Tenant,
    /// One bucket per AAP skill that is known, and per endpoint unless shared.
    Skill,
}

impl Dimension {
    /// Every dimension.
    pub const ALL: [Self; 6] = [
        Self::Caller,
        Self::Endpoint,
        Self::All,
        Self::Address,
        Self::Tenant,
        Self::Skill,
    ];

    /// The name used in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Endpoint => "endpoint",
            Self::All => "all",
            Self::Address => "address",
            Self::Tenant => "tenant",
            Self::Skill => "skill",
        }
    }
}

/// A set of dimensions, never empty in settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Per(u8);

impl Per {
    /// Whether the dimension is in the set.
    #[must_use]
    pub const fn contains(self, dimension: Dimension) -> bool {
        self.0 & (1 << dimension as u8) != 0
    }

    /// Adds a dimension.
    pub const fn insert(&mut self, dimension: Dimension) {
        self.0 |= 1 << dimension as u8;
    }

    /// The dimensions in the set.
    pub fn iter(self) -> impl Iterator<Item = Dimension> {
        Dimension::ALL
            .into_iter()
            .filter(move |dimension| self.contains(*dimension))
    }
}

impl From<Dimension> for Per {
    fn from(dimension: Dimension) -> Self {
        Self::from_iter([dimension])
    }
}

impl FromIterator<Dimension> for Per {
    fn from_iter<I: IntoIterator<Item = Dimension>>(dimensions: I) -> Self {
        let mut set = Self::default();
        for dimension in dimensions {
            set.insert(dimension);
        }
        set
    }
}
