//! Decides which key of the configuration decides at each step.
//!
//! Of the keys that could, the first that stands in the file does: an endpoint's own before its
//! contract's, a plan's before the quota's. Keys are spelled here as text; what they say is not known.

use super::step::Stage;
use crate::state::{Lines, Rule};

/// What a step is about, by name.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Names<'n> {
    pub(super) endpoint: Option<&'n str>,
    pub(super) contract: Option<&'n str>,
    pub(super) quota: Option<&'n str>,
    pub(super) plan: Option<&'n str>,
    pub(super) upstream: Option<&'n str>,
    /// Who is proven, and by which of the tables.
    pub(super) proven: Option<(&'n str, &'n str)>,
    /// Whether the header that the step is about is absent; `None`: not known.
    pub(super) is_absent: Option<bool>,
    /// Whether what is known of its caller was not enough.
    pub(super) is_forbidden: bool,
}

/// The keys that decide at a step, the first most.
pub(super) fn of(stage: Stage, names: &Names<'_>, lines: &Lines) -> Vec<Rule> {
    let rule = |keys: &[&[&str]]| lines.rule(keys);
    let own = names.endpoint.unwrap_or_default();
    let contract = names.contract.unwrap_or_default();
    let pinned: [&[&str]; 2] = [
        &["endpoint", own, "contracts"],
        &["endpoint", own, "contract"],
    ];
    let column = |column: &str| {
        rule(&[
            &["endpoint", own, column],
            &["contract", contract, column],
            pinned[0],
            pinned[1],
        ])
    };
    let all: Vec<Option<Rule>> = match stage {
        Stage::Head => vec![
            rule(&[&["limits", "header_bytes"]]),
            rule(&[&["limits", "header_count"]]),
        ],
        Stage::Http
        | Stage::HttpMethod
        | Stage::Envelope
        | Stage::MediaType
        | Stage::Media
        | Stage::Tenant
        | Stage::Payload => Vec::new(),
        Stage::Route => match names.endpoint {
            None => Vec::new(),
            Some(own) => vec![
                rule(&[&["endpoint", own, "path"]]),
                rule(&[&["endpoint", own, "host"]]),
            ],
        },
        Stage::Credential => {
            let asks = rule(&[&["endpoint", own, "authenticate"]]);
            match names.proven {
                Some((table, who)) if names.is_forbidden => {
                    vec![rule(&[&[table, who, "endpoints"]]), asks]
                }
                Some((table, who)) => vec![rule(&[&[table, who]]), asks],
                None => vec![asks, rule(&[&["callers", "identify"]])],
            }
        }
        Stage::Body => vec![
            rule(&[&["limits", "body"]]),
            rule(&[&["limits", "body_timeout"]]),
        ],
        Stage::Load => vec![rule(&[&["limits", "in_flight_requests"]])],
        Stage::Quota => match names.quota {
            None => vec![rule(&[&["endpoint", own, "quotas"]])],
            Some(quota) => {
                let plan = names.plan.unwrap_or_default();
                let amount = rule(&[
                    &["plan", plan, "quotas", quota],
                    &["quota", quota, "concurrent"],
                    &["quota", quota, "rate"],
                ]);
                vec![amount, rule(&[&["endpoint", own, "quotas"]])]
            }
        },
        Stage::Version => match names.is_absent {
            Some(true) => vec![column("absent"), column("a2a_version")],
            Some(false) | None => vec![column("a2a_version")],
        },
        Stage::Extension => match names.is_absent {
            Some(true) => vec![column("absent"), column("extension")],
            Some(false) => vec![column("require_extension"), column("extension")],
            None => vec![column("extension")],
        },
        Stage::Method => vec![rule(&[&["endpoint", own, "methods"], pinned[0], pinned[1]])],
        Stage::Capability => vec![rule(&[&["endpoint", own, "methods"]])],
        Stage::Upstream => match names.upstream {
            None => Vec::new(),
            Some(upstream) => vec![
                rule(&[
                    &["endpoint", own, "upstreams", contract],
                    &["endpoint", own, "upstream"],
                ]),
                rule(&[&["upstream", upstream, "url"]]),
            ],
        },
    };
    let mut rules: Vec<Rule> = Vec::new();
    for rule in all.into_iter().flatten() {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}
