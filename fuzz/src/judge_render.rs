//! Holds `judge`, `select` and `apply` to the header rules read slowly, and every answer to what
//! holds for all of them.
//!
//! The first line of the case names the contracts, the second is the JSON of an id, the third a
//! text of the caller's (a method, a skill), the others are header lines. A contract is a release's
//! name or one of its own: `VERSION|URI|WORDS`, where the words are those of [`contract`].

use std::collections::BTreeSet;

use forecourt::protocol::envelope::{Id, peek};
use forecourt::protocol::headers::{A2A_EXTENSIONS, A2A_VERSION, Supplied};
use forecourt::protocol::judge::{Activation, Verdict, judge, judge_reporting, select};
use forecourt::protocol::refusal::{Failure, Lack, Refusal, Violation};
use forecourt::protocol::{Absence, Contract, Dialect, Step, Steps, Violations, method, releases};
use http::HeaderMap;

use super::headers::{lists, names, trimmed};
use super::{answer, lines};

/// The URI of the one release that publishes none.
const DRAFT_URI: &str = "https://dealer.example/ext/aap/v2.0";

/// Any contracts, id and headers.
pub fn judge_render(data: &[u8]) {
    outcomes(data);
}

/// The same, telling which decisions it came by, so that seeds can be counted by them.
pub fn outcomes(data: &[u8]) -> BTreeSet<&'static str> {
    let mut seen = BTreeSet::new();
    let mut texts = lines::lines(data);
    let words = texts.next().unwrap_or_default();
    let id = texts.next().unwrap_or_default();
    let said = String::from_utf8_lossy(texts.next().unwrap_or_default());
    let map = lines::headers(texts);
    let mut contracts: Vec<Contract> = words
        .split(|byte| *byte == b' ')
        .filter_map(|word| contract(std::str::from_utf8(word).ok()?))
        .take(4)
        .collect();
    if contracts.is_empty() {
        contracts.extend(contract(releases::DEFAULT));
    }
    let [first, others @ ..] = &*contracts else {
        return seen;
    };
    let mut refusals = Vec::new();
    for contract in &contracts {
        match one(contract, &map) {
            Ok(how) => _ = seen.insert(how),
            Err(refusal) => refusals.push(refusal),
        }
        reporting(contract, &map);
    }
    match several(first, others, &map) {
        Ok(()) => _ = seen.insert("selected"),
        Err(refusal) => refusals.push(refusal),
    }
    let body = [&br#"{"jsonrpc":"2.0","method":"m","id":"#[..], id, b"}"].concat();
    let id = match peek(&body) {
        Ok(envelope) => envelope.id,
        Err(unreadable) => {
            refusals.push(unreadable.refusal);
            unreadable.id
        }
    };
    assert!(
        id == Id::NULL
            || body
                .windows(id.as_str().len())
                .any(|at| at == id.as_str().as_bytes())
    );
    refusals.extend(about(&said, first));
    // Several contracts often refuse alike.
    refusals.dedup();
    for refusal in &refusals {
        seen.insert(refusal.outcome().label());
        answer::holds(refusal, first, id);
    }
    seen
}

/// A release by its name, or `VERSION|URI|WORDS` with any of the words `refuse`, `optional`,
/// `bare`, `tagged`, `first`.
fn contract(word: &str) -> Option<Contract> {
    if let Some(release) = releases::find(word) {
        let contract = release.contract(None);
        return contract.or_else(|| release.contract(DRAFT_URI.parse().ok()));
    }
    let mut parts = word.split('|');
    let (version, uri) = (parts.next()?, parts.next()?);
    let words = parts.next().unwrap_or_default();
    Some(Contract {
        name: "own".into(),
        a2a_version: version.parse().ok()?,
        extension: uri.parse().ok()?,
        absent: match words.contains("refuse") {
            true => Absence::Refuse,
            false => Absence::Infer,
        },
        require_extension: !words.contains("optional"),
        dialect: match (words.contains("bare"), words.contains("tagged")) {
            (true, _) => Dialect::Bare,
            (false, true) => Dialect::Tagged,
            (false, false) => Dialect::Wrapped,
        },
        violations: match words.contains("first") {
            true => Violations::First,
            false => Violations::Every,
        },
    })
}

/// One pinned contract: the verdict, and what becomes of the headers.
fn one(contract: &Contract, map: &HeaderMap) -> Result<&'static str, Refusal> {
    let versions = lines::values(map, &A2A_VERSION);
    let extensions = lines::values(map, &A2A_EXTENSIONS);
    let uri = contract.extension.as_str();
    let infers = contract.absent == Absence::Infer;
    let is_version_right = match *versions {
        [] => infers,
        [line] => names(line, contract.a2a_version.as_str()),
        _ => false,
    };
    let is_listed = lists(&extensions.join(&b","[..]), uri);
    let is_extension_right = match *extensions {
        [] => infers,
        _ => is_listed || !contract.require_extension,
    };
    let activation = match judge(contract, Supplied::new(map)) {
        Verdict::Admit(activation) => activation,
        Verdict::Refuse(refusal) => {
            if is_version_right {
                assert!(!is_extension_right);
                extension_refusal(&refusal, contract);
            } else {
                version_refusal(&refusal, &[contract], &versions);
            }
            return Err(refusal);
        }
    };
    assert!(is_version_right && is_extension_right);
    assert_eq!(activation.contract(), contract);
    assert_eq!(activation.fills_version(), versions.is_empty());
    assert_eq!(activation.fills_extensions(), extensions.is_empty());
    assert_eq!(
        activation.is_activated(),
        is_listed || extensions.is_empty()
    );
    let normalized = applied(&activation, map);
    let Verdict::Admit(again) = judge(contract, Supplied::new(&normalized)) else {
        panic!("what was admitted is refused: {normalized:?}");
    };
    assert!(!again.fills_version() && !again.fills_extensions());
    assert_eq!(again.is_activated(), activation.is_activated());
    assert_eq!(
        applied(&again, &normalized),
        normalized,
        "twice is not once"
    );
    Ok(match (extensions.is_empty(), is_listed) {
        (true, _) => "inferred",
        (false, true) => "listed",
        (false, false) => "untouched",
    })
}

/// The headers that travel: what was supplied, trimmed; what was absent, filled in; the rest as it
/// came.
fn applied(activation: &Activation<'_>, map: &HeaderMap) -> HeaderMap {
    let mut sent = map.clone();
    activation.apply(&mut sent);
    let contract = activation.contract();
    for name in map.keys().chain([&A2A_VERSION, &A2A_EXTENSIONS]) {
        let supplied = lines::values(map, name);
        let (fills, pinned) = match name.as_str() {
            "a2a-version" => (activation.fills_version(), contract.a2a_version.as_str()),
            "a2a-extensions" => (activation.fills_extensions(), contract.extension.as_str()),
            _ => {
                assert_eq!(lines::values(&sent, name), supplied, "{name}");
                continue;
            }
        };
        let trimmed: Vec<_> = supplied.iter().map(|line| trimmed(line)).collect();
        let expected = if fills {
            vec![pinned.as_bytes()]
        } else {
            trimmed
        };
        assert_eq!(lines::values(&sent, name), expected, "{name}");
    }
    let added = activation.fills_version() as usize + activation.fills_extensions() as usize;
    assert_eq!(sent.len(), map.len() + added, "a header appeared");
    sent
}

/// With both steps in `report` nothing is refused, and what would have been goes on as it came.
fn reporting(contract: &Contract, map: &HeaderMap) {
    let supplied = Supplied::new(map);
    let mut would = Vec::new();
    let report: Steps = [Step::Version, Step::Extension].into_iter().collect();
    let verdict = judge_reporting(contract, supplied, report, |step, refusal| {
        would.push((step, refusal));
    });
    let Verdict::Admit(activation) = verdict else {
        panic!("refused in report mode");
    };
    applied(&activation, map);
    for (step, _) in &would {
        if *step == Step::Version {
            assert!(!activation.fills_version());
        } else {
            assert_eq!(*step, Step::Extension);
            assert!(!activation.fills_extensions() && !activation.is_activated());
        }
    }
    let refused = would.into_iter().next().map(|(_, refusal)| refusal);
    match judge(contract, supplied) {
        Verdict::Admit(strict) => {
            assert_eq!(refused, None);
            assert_eq!(strict, activation);
        }
        Verdict::Refuse(refusal) => assert_eq!(refused, Some(refusal)),
    }
}

/// Several contracts on one endpoint: nothing is inferred.
fn several(first: &Contract, others: &[Contract], map: &HeaderMap) -> Result<(), Refusal> {
    let contracts: Vec<&Contract> = std::iter::once(first).chain(others).collect();
    let versions = lines::values(map, &A2A_VERSION);
    let list = lines::values(map, &A2A_EXTENSIONS).join(&b","[..]);
    let serves = |contract: &Contract| match *versions {
        [line] => names(line, contract.a2a_version.as_str()),
        _ => false,
    };
    let mut found = (0..contracts.len())
        .filter(|at| serves(contracts[*at]) && lists(&list, contracts[*at].extension.as_str()));
    let only = found.next().filter(|_| found.next().is_none());
    match select(first, others.iter(), Supplied::new(map)) {
        Ok((index, activation)) => {
            assert_eq!(Some(index), only);
            assert_eq!(activation.contract(), contracts[index]);
            assert!(!activation.fills_version() && !activation.fills_extensions());
            assert!(activation.is_activated());
            applied(&activation, map);
            Ok(())
        }
        Err(refusal) => {
            assert_eq!(only, None);
            let is_served = contracts.iter().any(|contract| serves(contract));
            if is_served {
                extension_refusal(&refusal, first);
            } else {
                version_refusal(&refusal, &contracts, &versions);
            }
            Err(refusal)
        }
    }
}

/// Which URI -32008 names.
fn extension_refusal(refusal: &Refusal, contract: &Contract) {
    let uri = contract.extension.clone();
    assert_eq!(*refusal, Refusal::ExtensionSupportRequired { uri });
}

/// What -32009 says was asked for and is served.
fn version_refusal(refusal: &Refusal, contracts: &[&Contract], versions: &[&[u8]]) {
    let Refusal::VersionNotSupported { requested, served } = refusal else {
        panic!("{refusal:?}");
    };
    let shown = |line: &&[u8]| match trimmed(line) {
        b"" => "0.3".to_owned(),
        line => line
            .iter()
            .map(|byte| {
                if byte.is_ascii_graphic() {
                    char::from(*byte)
                } else {
                    '?'
                }
            })
            .collect(),
    };
    let all = versions
        .iter()
        .map(shown)
        .collect::<Vec<String>>()
        .join(", ");
    let expected = all.get(..32).unwrap_or(&all);
    assert_eq!(
        requested.as_deref(),
        (!versions.is_empty()).then_some(expected)
    );
    let mut expected: Vec<&str> = Vec::new();
    for contract in contracts {
        if !expected.contains(&contract.a2a_version.as_str()) {
            expected.push(contract.a2a_version.as_str());
        }
    }
    assert!(served.iter().map(|version| version.as_str()).eq(expected));
}

/// Refusals that repeat a text of the caller's, and one of those that repeat nothing.
fn about(said: &str, contract: &Contract) -> Vec<Refusal> {
    let number = said.trim().parse().unwrap_or(said.len() as u64);
    let violation = |location: &str, error: &str| Violation {
        location: location.into(),
        keyword: "type".into(),
        error: error.into(),
        received: serde_json::to_string(said).ok().map(Into::into),
    };
    let problems = match number % 3 {
        0 => vec![violation("", said)],
        1 => vec![violation(said, "is not a string")],
        _ => vec![violation(said, said), violation("/a", "is missing")],
    };
    let failure = Failure::ALL[(number % 7) as usize];
    let served: [Box<str>; 1] = ["SendMessage".into()];
    let methods = [None, Some(&served[..])]
        .map(|served| method::judge(said, &contract.a2a_version, served).err());
    let mut refusals = vec![
        Refusal::UnsupportedOperation {
            method: said.into(),
        },
        Refusal::UnsupportedSkill { skill: said.into() },
        Refusal::PayloadInvalid {
            problems: problems.into(),
        },
        Refusal::RateLimited {
            retry_after_ms: number,
        },
        Refusal::Failed {
            failure,
            retryable: number % 2 == 0,
            retry_after_ms: (number % 5 != 0).then_some(number),
        },
        match number % 7 {
            0 => Refusal::TenantRejected,
            1 => Refusal::BodyTimeout,
            2 => Refusal::BodyTooLarge { limit: number },
            3 => Refusal::Unauthenticated(Lack::Absent),
            4 => Refusal::Unauthenticated(Lack::Bad),
            5 => Refusal::Unauthenticated(Lack::BadBearer),
            _ => Refusal::PermissionDenied,
        },
    ];
    refusals.extend(methods.into_iter().flatten());
    refusals
}
