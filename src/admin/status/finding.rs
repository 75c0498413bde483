//! Decides what operators are told of calls that steps in report mode would have refused. Callers go by
//! their loggable names, which come from traffic: JSON escapes them, and whoever shows them must too.

use serde::Serialize;

use crate::observe::rfc3339;
use crate::state::Findings;

/// All calls at an endpoint that one rule would have refused.
#[derive(Serialize)]
pub(super) struct Finding {
    endpoint: Box<str>,
    step: &'static str,
    /// How the calls would have ended.
    outcome: &'static str,
    /// The quota, where one would have refused them.
    quota: Option<Box<str>>,
    count: u64,
    first: String,
    last: String,
    /// The id of the last one.
    request_id: Box<str>,
    /// The generation that decided on it.
    generation: u64,
    /// Who most; not all.
    callers: Vec<Offender>,
}

#[derive(Serialize)]
struct Offender {
    caller: String,
    count: u64,
    last: String,
}

pub(super) fn findings(findings: &Findings) -> Vec<Finding> {
    let all = findings.all().into_iter();
    let shown = all.map(|(endpoint, rule)| Finding {
        endpoint,
        step: rule.step.name(),
        outcome: rule.outcome.label(),
        quota: rule.quota,
        count: rule.count,
        first: rfc3339(rule.first),
        last: rfc3339(rule.last),
        request_id: rule.request_id,
        generation: rule.generation,
        callers: rule
            .callers
            .into_iter()
            .map(|it| Offender {
                caller: it.caller.name().into_owned(),
                count: it.count,
                last: rfc3339(it.last),
            })
            .collect(),
    });
    shown.collect()
}
