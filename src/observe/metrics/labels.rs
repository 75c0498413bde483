//! Decides which labels a series carries: configured names, and closed sets of our own.

use prometheus_client::encoding::EncodeLabelSet;

use super::CredentialResult;
use crate::protocol::{Outcome, Step};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct At {
    pub(super) endpoint: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct EndedAt {
    pub(super) endpoint: String,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Examined {
    endpoint: String,
    result: &'static str,
}

impl Examined {
    pub(super) fn at(endpoint: &str, result: CredentialResult) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
            result: result.label(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Filled {
    pub(super) endpoint: String,
    pub(super) header: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Reported {
    pub(super) endpoint: String,
    pub(super) step: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Decided {
    pub(super) quota: String,
    pub(super) decision: &'static str,
    pub(super) source: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct On {
    pub(super) listener: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Worker {
    pub(super) worker: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Shaken {
    pub(super) listener: String,
    pub(super) reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Unproxied {
    pub(super) listener: String,
    pub(super) reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Certified {
    pub(super) listener: String,
    pub(super) name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Pooled {
    pub(super) upstream: String,
    pub(super) state: &'static str,
}

pub(super) fn at(endpoint: &str) -> At {
    At {
        endpoint: endpoint.to_owned(),
    }
}

pub(super) fn ended_at(endpoint: &str, outcome: Outcome) -> EndedAt {
    EndedAt {
        endpoint: endpoint.to_owned(),
        outcome: outcome.label(),
    }
}

pub(super) fn filled(endpoint: &str, header: &'static str) -> Filled {
    Filled {
        endpoint: endpoint.to_owned(),
        header,
    }
}

pub(super) fn reported(endpoint: &str, step: Step) -> Reported {
    Reported {
        endpoint: endpoint.to_owned(),
        step: step.name(),
    }
}

pub(super) fn decided(quota: &str, decision: &'static str, source: &'static str) -> Decided {
    Decided {
        quota: quota.to_owned(),
        decision,
        source,
    }
}

pub(super) fn on(listener: &str) -> On {
    On {
        listener: listener.to_owned(),
    }
}

pub(super) fn shaken(listener: &str, reason: &'static str) -> Shaken {
    Shaken {
        listener: listener.to_owned(),
        reason,
    }
}

pub(super) fn unproxied(listener: &str, reason: &'static str) -> Unproxied {
    Unproxied {
        listener: listener.to_owned(),
        reason,
    }
}

pub(super) fn certified(listener: &str, name: &str) -> Certified {
    Certified {
        listener: listener.to_owned(),
        name: name.to_owned(),
    }
}

pub(super) fn pooled(upstream: &str, state: &'static str) -> Pooled {
    Pooled {
        upstream: upstream.to_owned(),
        state,
    }
}
