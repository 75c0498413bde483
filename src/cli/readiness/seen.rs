//! Decides what a line of an access log tells of one call, and holds it to a contract by the protocol's
//! own rules.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::protocol::{Contract, Noted, Outcome, Supplied, Verdict, judge, method};

/// The fields of a line that count here.
#[derive(Debug, Deserialize)]
pub(super) struct Seen {
    /// When the call came.
    pub(super) ts: Box<str>,
    /// Nothing is decided by it; a line without one is none of ours.
    #[serde(rename = "outcome")]
    _outcome: Box<str>,
    pub(super) request_id: Option<Box<str>>,
    pub(super) endpoint: Option<Box<str>>,
    pub(super) caller: Option<Box<str>>,
    rpc_method: Option<Box<str>>,
    a2a_version: Option<Box<str>>,
    a2a_extensions: Option<Vec<Box<str>>>,
    other_extensions: Option<u16>,
    normalized: Option<Vec<Box<str>>>,
    /// On every line of a version that tells what was supplied.
    config_hash: Option<IgnoredAny>,
    /// Of lines like this, so many in a hundred were written.
    sampled: Option<f64>,
    #[serde(skip)]
    at: Timestamp,
}

/// What would become of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// It would be admitted.
    Ready,
    /// It would be refused like this, for what it says.
    Breaks(Outcome, String),
    /// The line does not tell.
    Unknown,
}

impl Seen {
    /// Reads a line; `None` where it is none of ours.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let mut seen: Self = serde_json::from_slice(line).ok()?;
        seen.at = seen.ts.parse().ok()?;
        let is_share = |percent: f64| percent > 0.0 && percent <= 100.0;
        if seen.sampled.is_some_and(|percent| !is_share(percent)) {
            return None;
        }
        Some(seen)
    }

    /// When the call came.
    pub(super) const fn at(&self) -> Timestamp {
        self.at
    }

    /// For how many calls it stands, in hundredths of one.
    pub(super) fn weight(&self) -> u64 {
        (10_000.0 / self.sampled.unwrap_or(100.0)).round() as u64
    }

    /// Whether it stands for others like it.
    pub(super) const fn is_sampled(&self) -> bool {
        self.sampled.is_some()
    }

    /// What would become of the call under this contract; `None` where it is no call: an agent card, or
    /// a body that nobody could read.
    pub(super) fn judge(&self, contract: &Contract) -> Option<Judged> {
        let called = self.rpc_method.as_deref()?;
        let supplied = self.supplied();
        if let Some(supplied) = &supplied
            && let Verdict::Refuse(refusal) = judge(contract, Supplied::new(supplied))
        {
            let outcome = refusal.outcome();
            return Some(Judged::Breaks(outcome, said(outcome, supplied)));
        }
        match method::judge(called, &contract.a2a_version, None) {
            Err(refusal) => Some(Judged::Breaks(refusal.outcome(), called.to_owned())),
            Ok(()) if supplied.is_none() => Some(Judged::Unknown),
            Ok(()) => Some(Judged::Ready),
        }
    }

    /// What was supplied, where the line tells.
    fn supplied(&self) -> Option<Noted> {
        let listed = self.a2a_extensions.as_deref();
        if self.config_hash.is_some() {
            return Some(Noted::read(
                self.a2a_version.as_deref(),
                listed.map(|words| words.iter().map(|word| &**word)),
                self.other_extensions.unwrap_or(0),
            ));
        }
        // An older line says of what was filled in that it was absent, and of the rest nothing.
        let filled = self.normalized.as_deref().unwrap_or_default();
        let was_filled = |name: &str| filled.iter().any(|it| **it == *name);
        let is_all = was_filled("a2a-version") && was_filled("a2a-extensions");
        is_all.then_some(Noted::NOTHING)
    }
}

/// What a call says that is refused like this.
fn said(outcome: Outcome, supplied: &Noted) -> String {
    if outcome == Outcome::VersionNotSupported {
        return format!("A2A-Version {}", supplied.version().unwrap_or("absent"));
    }
    let Some(listed) = supplied.extensions() else {
        return "A2A-Extensions absent".to_owned();
    };
    let mut listed: Vec<_> = listed.map(str::to_owned).collect();
    match supplied.others() {
        0 if listed.is_empty() => listed.push("nothing".to_owned()),
        0 => {}
        1 => listed.push("1 other".to_owned()),
        others => listed.push(format!("{others} others")),
    }
    format!("A2A-Extensions lists {}", listed.join(", "))
}
