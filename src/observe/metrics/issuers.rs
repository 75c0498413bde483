//! Decides what is counted of tokens and of the keys that verify them. Why a token is refused is one of
//! a closed set of words of our own: nothing that a token says becomes a label.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Metrics, add, made};

/// The metrics of issuers.
#[derive(Debug, Default)]
pub(super) struct Families {
    tokens: Family<Judged, Counter>,
    unknown_plans: Family<Of, Counter>,
    refreshes: Family<Refreshed, Counter>,
    keys: Family<Of, Gauge>,
}

/// What is counted of one issuer's tokens. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct TokenMeters {
    /// Verified and believed.
    pub ok: Counter,
    /// Believed, as it was before.
    pub cached: Counter,
    /// Believed, but naming a plan that there is not.
    pub unknown_plans: Counter,
    refused: Box<[Counter]>,
}

/// What is counted of reading one issuer's keys. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct KeyMeters {
    /// They were read.
    pub read: Counter,
    /// They could not be.
    pub failed: Counter,
    /// How many there are that can be used.
    pub keys: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    issuer: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Judged {
    issuer: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refreshed {
    issuer: String,
    result: &'static str,
}

impl TokenMeters {
    /// A token was refused for the reason at this place.
    pub fn refused(&self, reason: usize) {
        if let Some(counter) = self.refused.get(reason) {
            counter.inc();
        }
    }
}

impl Families {
    pub(super) fn register(&self, registry: &mut Registry) {
        add(registry, "forecourt_tokens_total", self.tokens.clone());
        add(
            registry,
            "forecourt_token_unknown_plans_total",
            self.unknown_plans.clone(),
        );
        add(
            registry,
            "forecourt_jwks_refreshes_total",
            self.refreshes.clone(),
        );
        add(registry, "forecourt_jwks_keys", self.keys.clone());
    }
}

impl Metrics {
    /// The handles of an issuer's tokens, which are refused for one of these reasons. An empty name
    /// stands for tokens of no issuer that is known.
    #[must_use]
    pub fn tokens(&self, issuer: &str, reasons: &[&'static str]) -> TokenMeters {
        let families = &self.issuers;
        let counter = |result| made(&families.tokens, judged(issuer, result));
        if issuer.is_empty() {
            return TokenMeters {
                refused: reasons.iter().copied().map(counter).collect(),
                ..TokenMeters::default()
            };
        }
        TokenMeters {
            ok: counter("ok"),
            cached: counter("cached"),
            unknown_plans: made(&families.unknown_plans, of(issuer)),
            refused: reasons.iter().copied().map(counter).collect(),
        }
    }

    /// The handles of an issuer's keys.
    #[must_use]
    pub fn keys(&self, issuer: &str) -> KeyMeters {
        let families = &self.issuers;
        KeyMeters {
            read: made(&families.refreshes, refreshed(issuer, "success")),
            failed: made(&families.refreshes, refreshed(issuer, "failure")),
            keys: made(&families.keys, of(issuer)),
        }
    }

    /// Drops the series of an issuer that is no longer configured, whose tokens are refused for one of
    /// these reasons.
    pub fn forget_issuer(&self, issuer: &str, reasons: &[&'static str]) {
        let families = &self.issuers;
        for result in ["ok", "cached"].iter().chain(reasons) {
            families.tokens.remove(&judged(issuer, result));
        }
        for result in ["success", "failure"] {
            families.refreshes.remove(&refreshed(issuer, result));
        }
        families.unknown_plans.remove(&of(issuer));
        families.keys.remove(&of(issuer));
    }
}

fn of(issuer: &str) -> Of {
    Of {
        issuer: issuer.to_owned(),
    }
}

fn judged(issuer: &str, result: &'static str) -> Judged {
    Judged {
        issuer: issuer.to_owned(),
        result,
    }
}

fn refreshed(issuer: &str, result: &'static str) -> Refreshed {
    Refreshed {
        issuer: issuer.to_owned(),
        result,
    }
}
