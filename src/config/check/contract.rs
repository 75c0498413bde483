//! Decides what a contract of the operator's own is, and which contract a name means.

use crate::config::check::names::Names;
use crate::config::file::{self, Columns};
use crate::config::read::{At, Field};
use crate::config::report::{Finding, Report};
use crate::config::table::Tables;
use crate::config::word::Name;
use crate::protocol::releases::{self, RELEASES, Release};
use crate::protocol::{Contract, ExtensionUri, Violations};

/// The operator's own contracts, in the order of the file; `None` where something was reported.
///
/// What they leave out is as in the newest release.
pub(crate) fn check(tables: &Tables<file::Contract>, report: &Report<'_>) -> Vec<Option<Contract>> {
    let own = tables.iter().map(|named| {
        let extension = match &named.value.columns.extension {
            Field::Absent => {
                let hint = format!("extension takes {EXTENSION}");
                let what = "extension is missing";
                report.add(Finding::error(named.span.clone(), named.path.clone(), what).hint(hint));
                None
            }
            Field::Wrong => None,
            Field::Given(at) => Some(at.value.clone()),
        }?;
        let newest = releases::find(releases::DEFAULT)?.contract(Some(extension))?;
        let contract = Contract {
            name: named.name.clone(),
            dialect: named.value.dialect.or(newest.dialect),
            violations: Violations::Every,
            ..newest
        };
        Some(with(contract, &named.value.columns))
    });
    own.collect()
}

/// The URI that callers must name.
const EXTENSION: &str = <ExtensionUri as crate::config::read::FromText>::EXPECTED;

/// A contract with some of its columns replaced.
pub(crate) fn with(contract: Contract, columns: &Columns) -> Contract {
    Contract {
        a2a_version: columns.a2a_version.or(contract.a2a_version),
        extension: columns.extension.or(contract.extension),
        absent: columns.absent.or(contract.absent),
        require_extension: columns.require_extension.or(contract.require_extension),
        ..contract
    }
}

/// What a name means.
pub(crate) enum Meaning {
    /// A published release, or the draft.
    Release(&'static Release),
    /// A place among the operator's own.
    Own(usize),
}

/// What a name means; reported where it means nothing.
pub(crate) fn resolve(name: &At<Name>, own: &Names<'_>, report: &Report<'_>) -> Option<Meaning> {
    if let Some(release) = releases::find(&name.value.0) {
        return Some(Meaning::Release(release));
    }
    if let Some(place) = own.find(&name.value) {
        return Some(Meaning::Own(place));
    }
    // `3.0` and `aap-3.0` are the commonest slips.
    let digits = name
        .value
        .0
        .trim_start_matches(|c: char| !c.is_ascii_digit());
    let meant = RELEASES.iter().find(|release| {
        release
            .name
            .strip_prefix("aap/")
            .is_some_and(|version| version == digits)
    });
    match meant {
        Some(release) => {
            let written = super::names::written(name, report);
            let what = format!("no contract is named {written}");
            let hint = format!("did you mean {:?}?", release.name);
            report.add(Finding::error(name.span.clone(), name.path.clone(), what).hint(hint));
        }
        None => own.unknown(name, RELEASES.iter().map(|release| release.name), report),
    }
    None
}
