//! Decides what a valid `[store.NAME]` is. Must never show a password.

use std::num::NonZeroU32;
use std::time::Duration;

use super::{NamedFile, Secret};
use crate::config::store::{Node, StoreUrl};

/// `[store.NAME]`: what several processes count together in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Its name.
    pub name: Box<str>,
    /// Where it is, or the first of its nodes, or of its sentinels.
    pub url: StoreUrl,
    /// Further nodes, or sentinels.
    pub nodes: Vec<Node>,
    /// What is there.
    pub topology: StoreTopology,
    /// Who we are. Default the server's default user.
    pub username: Option<Box<str>>,
    /// What proves it.
    pub password: Option<Secret>,
    /// PEM file with the roots its certificate must come from. `None`: the system's.
    pub ca: Option<NamedFile>,
    /// The longest that a request waits for it. Default 10 ms.
    pub timeout: Duration,
    /// How many gateways share it: each counts by itself with this part of a limit while the store
    /// does not answer. Default 1.
    pub replicas: NonZeroU32,
}

/// What is at a store's addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreTopology {
    /// One server.
    Single,
    /// Some nodes of a cluster.
    Cluster,
    /// Sentinels, which know the server under this name.
    Sentinel(Box<str>),
}

/// What is done while a quota's store does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnStoreError {
    /// Each process counts by itself, with its part of the limit.
    #[default]
    Local,
    /// Everything is let through.
    Allow,
    /// Nothing is.
    Deny,
}

impl OnStoreError {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Local, Self::Allow, Self::Deny];

    /// The name used in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

/// `store` and `on_store_error` of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// A place in [`super::Settings::stores`].
    pub store: usize,
    /// What is done while it does not answer.
    pub on_error: OnStoreError,
}
