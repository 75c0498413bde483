//! Decides what valid `[issuer.NAME]` tables mean for serving: whose tokens are believed, and with
//! which keys at this moment.
//!
//! Keys live outside every snapshot, as certificates do: a snapshot holds where they are found
//! ([`Keys`]), not what they are.

mod fetch;
mod keys;

use std::sync::Arc;

use super::tls::Keyring;
use crate::config::{self, Settings};
use crate::credential::token::{Bad, Rules};
use crate::observe::{Metrics, Timestamp, TokenMeters};

pub use fetch::follow;
pub use keys::{Keys, Told};
pub(super) use keys::{Read, Source};

/// Whose tokens are believed.
#[derive(Debug)]
pub struct Issuers {
    all: Box<[Arc<Issuer>]>,
    /// Counts tokens of nobody's.
    pub strays: TokenMeters,
}

/// Somebody whose tokens are believed.
#[derive(Debug)]
pub struct Issuer {
    /// Its name in the configuration.
    pub name: Box<str>,
    /// What its tokens are held to.
    pub rules: Rules,
    /// The plan of its callers, where their tokens name none that there is.
    pub plan: Option<usize>,
    /// Its keys.
    pub keys: Arc<Keys>,
    /// Its counters.
    pub meters: TokenMeters,
}

impl Issuers {
    pub(super) fn compile(settings: &Settings, keyring: &Keyring, metrics: &Metrics) -> Self {
        let issuers = settings.issuers.iter();
        // Settings whose files were loaded have keys for each, empty ones at the least.
        let issuers = issuers.filter_map(|issuer| {
            let keys = keyring.keys(&issuer.name)?;
            keys.count_with(metrics, &issuer.name);
            Some(Arc::new(Issuer::compile(issuer, keys, metrics)))
        });
        let all: Box<[_]> = issuers.collect();
        Self {
            strays: if all.is_empty() {
                TokenMeters::default()
            } else {
                metrics.tokens("", &Bad::ALL.map(Bad::label))
            },
            all,
        }
    }

    /// The same with the keys of this moment, which are not fetched anew.
    #[must_use]
    pub(super) fn still(&self) -> Self {
        let still = |issuer: &Arc<Issuer>| {
            let read = issuer.keys.told().read.unwrap_or(Timestamp::UNIX_EPOCH);
            Arc::new(Issuer {
                name: issuer.name.clone(),
                rules: issuer.rules.clone(),
                plan: issuer.plan,
                keys: Arc::new(Keys::of_file(issuer.keys.current(), read)),
                meters: issuer.meters.clone(),
            })
        };
        Self {
            all: self.all.iter().map(still).collect(),
            strays: self.strays.clone(),
        }
    }

    /// Whether there is none: then no token is looked at.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Them, in the order of the settings.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Issuer>> {
        self.all.iter()
    }

    /// The one whose tokens have this `iss`, and its place.
    #[must_use]
    pub fn find(&self, issuer: &str) -> Option<(usize, &Arc<Issuer>)> {
        let mut all = self.all.iter().enumerate();
        all.find(|(_, it)| *it.rules.issuer == *issuer)
    }
}

impl Issuer {
    fn compile(issuer: &config::Issuer, keys: Arc<Keys>, metrics: &Metrics) -> Self {
        Self {
            name: issuer.name.clone(),
            rules: Rules {
                issuer: issuer.issuer.clone(),
                audience: issuer.audience.clone().into(),
                algorithms: issuer.algorithms.clone().into(),
                leeway: i64::try_from(issuer.leeway.as_secs()).unwrap_or(0),
                caller_claim: issuer.caller_claim.clone(),
                plan_claim: issuer.plan_claim.clone(),
            },
            plan: issuer.plan,
            keys,
            meters: metrics.tokens(&issuer.name, &Bad::ALL.map(Bad::label)),
        }
    }
}
