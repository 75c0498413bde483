//! Decides which AAP contracts are known without the operator describing them: one table.
//!
//! A row is data. Adding a release is adding a row; no other file names one.

use crate::protocol::{Absence, Contract, Dialect, ExtensionUri, Version, Violations};

/// The contract of an endpoint that names none: the newest published one.
pub const DEFAULT: &str = "aap/3.0";

/// One published AAP contract, or the 2.0 draft, which publishes no URI.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// The name used in configuration: `aap/` and the AAP version.
    pub name: &'static str,
    /// The published extension URI. `None`: the operator must give one.
    pub extension: Option<&'static str>,
    absent: Absence,
    require_extension: bool,
    dialect: Dialect,
    violations: Violations,
}

/// All of them ride on this A2A version.
const A2A_VERSION: &str = "1.0";

/// A 1.x release: fills in, never refuses for a missing extension, bare errors.
const fn one(name: &'static str, extension: &'static str, violations: Violations) -> Release {
    Release {
        name,
        extension: Some(extension),
        absent: Absence::Infer,
        require_extension: false,
        dialect: Dialect::Bare,
        violations,
    }
}

/// Every release, oldest first.
pub const RELEASES: [Release; 8] = [
    one(
        "aap/0.1",
        "https://autoagentprotocol.org/extensions/a2a-automotive-retail/v0.1",
        Violations::First,
    ),
    one(
        "aap/0.2",
        "https://autoagentprotocol.org/extensions/a2a-automotive-retail/v0.2",
        Violations::First,
    ),
    one(
        "aap/1.0",
        "https://autoagentprotocol.org/extensions/a2a-automotive-retail/v1.0",
        Violations::First,
    ),
    one(
        "aap/1.1",
        "https://autoagentprotocol.org/extensions/aap/v1.1",
        Violations::Every,
    ),
    one(
        "aap/1.2",
        "https://autoagentprotocol.org/extensions/aap/v1.2",
        Violations::Every,
    ),
    one(
        "aap/1.3",
        "https://autoagentprotocol.org/extensions/aap/v1.3",
        Violations::Every,
    ),
    Release {
        name: "aap/2.0",
        extension: None,
        absent: Absence::Refuse,
        require_extension: true,
        dialect: Dialect::Tagged,
        violations: Violations::Every,
    },
    Release {
        name: "aap/3.0",
        extension: Some("https://autoagentprotocol.org/extensions/aap/v3.0"),
        absent: Absence::Infer,
        require_extension: true,
        dialect: Dialect::Wrapped,
        violations: Violations::Every,
    },
];

/// Finds a release by its configured name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Release> {
    RELEASES.iter().find(|release| release.name == name)
}

impl Release {
    /// The contract, with the operator's URI where one is given.
    ///
    /// `None` when neither the release nor the operator names a URI.
    #[must_use]
    pub fn contract(&self, extension: Option<ExtensionUri>) -> Option<Contract> {
        let extension = match extension {
            Some(given) => given,
            None => self.extension?.parse().ok()?,
        };
        Some(Contract {
            name: self.name.into(),
            a2a_version: A2A_VERSION.parse::<Version>().ok()?,
            extension,
            absent: self.absent,
            require_extension: self.require_extension,
            dialect: self.dialect,
            violations: self.violations,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_makes_a_contract_but_the_draft_needs_a_uri() {
        for release in RELEASES {
            assert_eq!(
                release.contract(None).is_some(),
                release.name != "aap/2.0",
                "{}",
                release.name
            );
        }
        let uri = "https://dealer.example/ext/aap/v2.0".parse().ok();
        assert!(find("aap/2.0").unwrap().contract(uri).is_some());
        assert!(find(DEFAULT).is_some());
        assert!(find("3.0").is_none());
    }
}
