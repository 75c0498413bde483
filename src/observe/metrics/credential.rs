//! Decides what is counted of the credentials at one endpoint: four results, and nothing of whose.

use prometheus_client::metrics::counter::Counter;

use super::labels::Examined;
use super::{Metrics, made};

/// What came of a request's credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialResult {
    /// They prove a caller who may call here.
    Proven,
    /// There are none.
    Absent,
    /// They prove nobody, or several, or stand twice.
    Bad,
    /// They prove a caller who may not call here.
    Forbidden,
}

impl CredentialResult {
    /// Every result.
    pub const ALL: [Self; 4] = [Self::Proven, Self::Absent, Self::Bad, Self::Forbidden];

    /// As metrics spell it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Absent => "absent",
            Self::Bad => "bad",
            Self::Forbidden => "forbidden",
        }
    }
}

/// What is counted of the credentials at one endpoint. Clones count together.
#[derive(Clone, Debug)]
pub struct CredentialMeters {
    examined: [Counter; CredentialResult::ALL.len()],
}

impl CredentialMeters {
    /// A request's credentials were looked at.
    pub fn examined(&self, result: CredentialResult) {
        if let Some(counter) = self.examined.get(result as usize) {
            counter.inc();
        }
    }
}

impl Metrics {
    /// The handles of an endpoint that looks at credentials.
    #[must_use]
    pub fn credentials(&self, endpoint: &str) -> CredentialMeters {
        let examined = CredentialResult::ALL;
        CredentialMeters {
            examined: examined.map(|it| made(&self.credentials, Examined::at(endpoint, it))),
        }
    }

    /// Drops the series of an endpoint that looks at credentials no longer.
    pub fn forget_credentials(&self, endpoint: &str) {
        for result in CredentialResult::ALL {
            self.credentials.remove(&Examined::at(endpoint, result));
        }
    }
}
