//! Decides what one endpoint makes of credentials: whether it needs one, whose it takes, and whether
//! it passes on to the dealer. Must never look at one: that is `credential`'s.

use crate::config::{self, Authenticate, Settings};
use crate::credential::Who;
use crate::observe::{CredentialMeters, Metrics};

/// What stands before an endpoint that asks who is calling.
#[derive(Debug)]
pub struct Gate {
    /// Whether a call without a credential is refused.
    pub is_required: bool,
    /// Whether the header that proved the caller passes on to the dealer.
    pub forwards: bool,
    /// What is counted of it.
    pub meters: CredentialMeters,
    /// Who may call here, in the order of the configured callers.
    callers: Box<[bool]>,
    /// Whose tokens are good here, in the order of the configured issuers.
    issuers: Box<[bool]>,
}

impl Gate {
    /// The gate of the endpoint at this place of the settings; `None`: it asks nobody.
    pub(super) fn compile(
        place: usize,
        endpoint: &config::Endpoint,
        settings: &Settings,
        metrics: &Metrics,
    ) -> Option<Self> {
        let is_required = match endpoint.authenticate {
            Authenticate::Off => return None,
            Authenticate::Optional => false,
            Authenticate::Required => true,
        };
        let may = |endpoints: &Option<Vec<usize>>| {
            let endpoints = endpoints.as_ref();
            endpoints.is_none_or(|all| all.contains(&place))
        };
        let callers = settings.known.iter().map(|it| may(&it.endpoints));
        let issuers = settings.issuers.iter().map(|it| may(&it.endpoints));
        Some(Self {
            is_required,
            forwards: endpoint.forward_credential,
            meters: metrics.credentials(&endpoint.name),
            callers: callers.collect(),
            issuers: issuers.collect(),
        })
    }

    /// Whether somebody may call here.
    #[must_use]
    pub fn admits(&self, who: &Who) -> bool {
        let may = match who {
            Who::Caller(place) => self.callers.get(*place),
            Who::Token { issuer } => self.issuers.get(*issuer),
        };
        may.copied().unwrap_or(false)
    }
}
