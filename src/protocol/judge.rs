//! Decides whether supplied headers satisfy a contract: door two, [`judge`].
//!
//! Follows A2A 1.0 sections 3.2.6, 3.3.4 and 3.6 and AAP's "A2A JSON-RPC binding". Version before
//! extensions when both are wrong (**our reading**). Only absent headers are ever filled in; a
//! supplied value is never edited, reordered or joined, and the query never counts. An admitted
//! request is judged without allocating.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::protocol::headers::{A2A_EXTENSIONS, A2A_VERSION, Supplied, Supplies, VersionLines};
use crate::protocol::refusal::Refusal;
use crate::protocol::step::{Step, Steps};
use crate::protocol::version::{EMPTY_MEANS, trim};
use crate::protocol::wording::sanitize;
use crate::protocol::{Absence, Contract, Version};

/// The decision over one request's headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'c> {
    /// The request goes on, with what will be in force.
    Admit(Activation<'c>),
    /// The request is answered by the gateway.
    Refuse(Refusal),
}

/// What will be in force for an admitted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation<'c> {
    contract: &'c Contract,
    fills_version: bool,
    fills_extensions: bool,
    activated: bool,
}

impl<'c> Activation<'c> {
    /// The contract in force.
    #[must_use]
    pub const fn contract(&self) -> &'c Contract {
        self.contract
    }

    /// Whether `A2A-Version` was absent and is filled in.
    #[must_use]
    pub const fn fills_version(&self) -> bool {
        self.fills_version
    }

    /// Whether `A2A-Extensions` was absent and is filled in.
    #[must_use]
    pub const fn fills_extensions(&self) -> bool {
        self.fills_extensions
    }

    /// Whether the pinned extension is activated, by the caller or by inference: then the answer
    /// names it in `A2A-Extensions`.
    #[must_use]
    pub const fn is_activated(&self) -> bool {
        self.activated
    }

    /// The lines that are added: those of the two headers that were absent.
    pub fn filled(&self) -> impl Iterator<Item = (HeaderName, &'c HeaderValue)> + use<'c> {
        let contract = self.contract;
        let version = (A2A_VERSION, contract.a2a_version.value());
        let extensions = (A2A_EXTENSIONS, contract.extension.value());
        let version = self.fills_version.then_some(version);
        let extensions = self.fills_extensions.then_some(extensions);
        version.into_iter().chain(extensions)
    }

    /// Makes a request's headers those that go out: what is absent is filled in, what was supplied
    /// stands as it came, without white space around it.
    pub fn apply(&self, headers: &mut HeaderMap) {
        for name in [A2A_VERSION, A2A_EXTENSIONS] {
            trim_lines(headers, &name);
        }
        for (name, value) in self.filled() {
            headers.insert(name, value.clone());
        }
    }
}

/// HTTP/1.1 parsers trim values; HTTP/2 does not.
fn trim_lines(headers: &mut HeaderMap, name: &HeaderName) {
    let http::header::Entry::Occupied(mut lines) = headers.entry(name) else {
        return;
    };
    for value in lines.iter_mut() {
        let trimmed = trim(value.as_bytes());
        if trimmed.len() != value.len()
            && let Ok(trimmed) = HeaderValue::from_bytes(trimmed)
        {
            *value = trimmed;
        }
    }
}

/// Holds the supplied headers to a contract.
#[must_use]
pub fn judge<'c, S: Supplies>(contract: &'c Contract, supplied: Supplied<'_, S>) -> Verdict<'c> {
    judge_reporting(contract, supplied, Steps::NONE, |_, _| {})
}

/// The same, but a step in `report` never refuses: what it would have refused goes to `would`,
/// and the request goes on with its headers as they came.
#[must_use]
pub fn judge_reporting<'c, S: Supplies>(
    contract: &'c Contract,
    supplied: Supplied<'_, S>,
    report: Steps,
    mut would: impl FnMut(Step, Refusal),
) -> Verdict<'c> {
    let fills_version = match version(contract, supplied) {
        Ok(fills) => fills,
        Err(refusal) if report.contains(Step::Version) => {
            would(Step::Version, refusal);
            false
        }
        Err(refusal) => return Verdict::Refuse(refusal),
    };
    let (fills_extensions, activated) = match extensions(contract, supplied) {
        Ok(Extensions::Inferred) => (true, true),
        Ok(Extensions::Listed) => (false, true),
        Ok(Extensions::Untouched) => (false, false),
        Err(refusal) if report.contains(Step::Extension) => {
            would(Step::Extension, refusal);
            (false, false)
        }
        Err(refusal) => return Verdict::Refuse(refusal),
    };
    Verdict::Admit(Activation {
        contract,
        fills_version,
        fills_extensions,
        activated,
    })
}

/// Selects one of several contracts by what the caller supplied: nothing may be inferred.
///
/// `first` and `others` are in configured order. The version must be one contract's, then the
/// list must contain the URI of exactly one contract of that version. The index tells which.
///
/// # Errors
/// The refusal, to be spelled in the first contract's dialect.
pub fn select<'c, S: Supplies>(
    first: &'c Contract,
    others: impl Iterator<Item = &'c Contract> + Clone,
    supplied: Supplied<'_, S>,
) -> Result<(usize, Activation<'c>), Refusal> {
    let contracts = std::iter::once(first).chain(others);
    let named = match supplied.version() {
        VersionLines::One(line) => Some(line),
        VersionLines::Absent | VersionLines::Several => None,
    };
    let serves =
        |contract: &&Contract| named.is_some_and(|line| contract.a2a_version.is_named_by(line));
    if !contracts.clone().any(|contract| serves(&contract)) {
        return Err(not_served(contracts.map(|it| &it.a2a_version), supplied));
    }
    let mut listed = contracts.clone().enumerate().filter(|(_, contract)| {
        serves(contract)
            && supplied
                .extensions()
                .is_some_and(|lines| contract.extension.is_listed(lines))
    });
    match (listed.next(), listed.next()) {
        (Some((index, contract)), None) => Ok((
            index,
            Activation {
                contract,
                fills_version: false,
                fills_extensions: false,
                activated: true,
            },
        )),
        (None, _) | (Some(_), Some(_)) => Err(not_activated(first)),
    }
}

/// The version step: whether the header is to be filled in.
fn version<S: Supplies>(contract: &Contract, supplied: Supplied<'_, S>) -> Result<bool, Refusal> {
    let pinned = &contract.a2a_version;
    match (supplied.version(), contract.absent) {
        (VersionLines::Absent, Absence::Infer) => Ok(true),
        (VersionLines::One(line), _) if pinned.is_named_by(line) => Ok(false),
        (VersionLines::Absent, Absence::Refuse)
        | (VersionLines::One(_) | VersionLines::Several, _) => {
            Err(not_served(std::iter::once(pinned), supplied))
        }
    }
}

enum Extensions {
    /// Absent: filled in.
    Inferred,
    /// Supplied with the pinned URI.
    Listed,
    /// Supplied without it, where that is allowed.
    Untouched,
}

fn extensions<S: Supplies>(
    contract: &Contract,
    supplied: Supplied<'_, S>,
) -> Result<Extensions, Refusal> {
    let Some(lines) = supplied.extensions() else {
        return match contract.absent {
            Absence::Infer => Ok(Extensions::Inferred),
            Absence::Refuse => Err(not_activated(contract)),
        };
    };
    if contract.extension.is_listed(lines) {
        Ok(Extensions::Listed)
    } else if contract.require_extension {
        Err(not_activated(contract))
    } else {
        Ok(Extensions::Untouched)
    }
}

fn not_activated(contract: &Contract) -> Refusal {
    Refusal::ExtensionSupportRequired {
        uri: contract.extension.clone(),
    }
}

fn not_served<'c, S: Supplies>(
    versions: impl Iterator<Item = &'c Version>,
    supplied: Supplied<'_, S>,
) -> Refusal {
    let mut served: Vec<Version> = Vec::with_capacity(1);
    for version in versions {
        if !served.contains(version) {
            served.push(version.clone());
        }
    }
    let mut lines = supplied
        .version_values()
        .map(|line| match trim(line) {
            [] => EMPTY_MEANS.as_bytes(),
            line => line,
        })
        .peekable();
    Refusal::VersionNotSupported {
        requested: lines.peek().is_some().then(|| sanitize(lines)),
        served: served.into(),
    }
}

#[cfg(test)]
mod tests;
