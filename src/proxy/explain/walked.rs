//! Decides what is said of each step: whether it let the request pass, and in a few words why.

use super::rehearse::{Ending, Rehearsal, Run};
use super::rules::{self, Names};
use super::step::Stage;
use super::told;
use crate::http1::{Known, RequestHead};
use crate::state::{Lines, Snapshot};

/// What was found out.
pub(super) struct Walked<'w> {
    pub(super) snapshot: &'w Snapshot,
    pub(super) lines: &'w Lines,
    pub(super) rehearsal: &'w Rehearsal,
    pub(super) run: &'w Run,
    pub(super) head: Option<&'w RequestHead>,
    pub(super) caller: Option<&'w told::Caller>,
    pub(super) quotas: &'w [told::Quota],
}

/// Each step, in the order of admission.
pub(super) fn steps(walked: &Walked<'_>) -> Vec<told::Step> {
    let stopped = match &walked.run.ending {
        Ending::Unreadable(..) => Some(Stage::Head),
        Ending::Stopped(stage, ..) => Some(*stage),
        Ending::Probe(_) | Ending::Sent(_) => None,
    };
    let mut stages = Stage::WALKED.to_vec();
    if let Some(stage) = stopped
        && !stages.contains(&stage)
    {
        stages.push(stage);
        stages.sort_unstable();
    }
    let step = |stage: Stage| {
        let (verdict, why) = walked.verdict(stage, stopped);
        let mut rules = rules::of(stage, &walked.names(stage), walked.lines);
        if verdict == "report" {
            let endpoint = walked.endpoint().unwrap_or_default();
            let key = ["endpoint", endpoint, "report"];
            rules.splice(0..0, walked.lines.rule(&[&key]));
        }
        told::Step {
            step: stage.name(),
            verdict,
            why,
            rules,
            section: stage.section(),
        }
    };
    stages.into_iter().map(step).collect()
}

impl Walked<'_> {
    fn endpoint(&self) -> Option<&str> {
        self.run.endpoint.as_ref().map(|it| &*it.name)
    }

    /// Whether the policy for calls applies.
    fn is_call(&self) -> bool {
        self.head.is_some_and(|it| it.method == http::Method::POST)
    }

    fn verdict(&self, stage: Stage, stopped: Option<Stage>) -> (&'static str, String) {
        if let Ending::Probe(_) = self.run.ending {
            let why = "a probe is answered before anything else";
            return ("not reached", why.to_owned());
        }
        let decision = self.run.decision.as_ref();
        let reported = decision.map(|it| it.reported).unwrap_or_default();
        let is_reported = stage.reportable().is_some_and(|it| reported.contains(it));
        match (stopped, &self.run.ending) {
            (Some(at), Ending::Stopped(_, why, _)) if at == stage => ("refuse", why.clone()),
            (Some(at), Ending::Unreadable(bad, _)) if at == stage => ("refuse", bad.to_string()),
            (Some(at), _) if at < stage => ("not reached", String::new()),
            _ if is_reported => ("report", "would refuse, and is only reported".to_owned()),
            _ if !self.is_call() && !is_for_all(stage) => {
                let why = "the policy is for calls, and this is passed on without it";
                ("not reached", why.to_owned())
            }
            _ => ("pass", self.passed(stage)),
        }
    }

    /// Why a step let it pass.
    fn passed(&self, stage: Stage) -> String {
        let decision = self.run.decision.as_ref();
        let fills = |name: &str| decision.is_some_and(|it| it.normalized.contains(&name));
        let endpoint = self.run.endpoint.as_deref();
        let pin = endpoint.map(|it| {
            let contract = decision.and_then(|it| it.contract.as_deref());
            let others = it
                .others
                .iter()
                .find(|pin| Some(&*pin.contract.name) == contract);
            &others.unwrap_or(&it.first).contract
        });
        let version = || pin.map_or("", |it| it.a2a_version.as_str());
        let uri = || pin.map_or("", |it| it.extension.as_str());
        match stage {
            Stage::Head => "a complete head".to_owned(),
            Stage::Http => "HTTP with one meaning".to_owned(),
            Stage::Route => format!("endpoint {}", self.endpoint().unwrap_or_default()),
            Stage::HttpMethod if self.is_call() => "POST is a JSON-RPC call".to_owned(),
            Stage::HttpMethod => "an agent card, or OPTIONS".to_owned(),
            Stage::MediaType => "JSON in UTF-8, or nothing said".to_owned(),
            Stage::Credential => match (endpoint.and_then(|it| it.gate.as_deref()), self.caller) {
                (None, Some(caller)) => {
                    format!("nothing is asked; {}, by {}", caller.name, caller.by)
                }
                (Some(_), Some(caller)) => format!("{}, by {}", caller.name, caller.by),
                (_, None) => String::new(),
            },
            Stage::Body => {
                let bytes = decision.map_or(0, |it| it.bytes_in);
                let most = self.snapshot.settings.limits.body;
                format!("{bytes} of {most} bytes")
            }
            Stage::Envelope => "one JSON-RPC request".to_owned(),
            Stage::Load => {
                let now = self
                    .rehearsal
                    .worker
                    .shared
                    .metrics
                    .requests_in_flight
                    .get();
                let most = self.snapshot.settings.limits.in_flight_requests;
                format!("{now} of {most} requests are being served")
            }
            Stage::Quota => match self.quotas.iter().filter(|it| it.looks_at_it).count() {
                0 => "none looks at this call".to_owned(),
                1 => "1 quota admits it".to_owned(),
                count => format!("{count} quotas admit it"),
            },
            Stage::Version if fills("a2a-version") => {
                format!("absent, filled in with {}", version())
            }
            Stage::Version => format!("names {}", version()),
            Stage::Extension if fills("a2a-extensions") => {
                format!("absent, filled in with {}", uri())
            }
            Stage::Extension if self.lists(uri()) => format!("lists {}", uri()),
            Stage::Extension => format!("lacks {}, which is not required", uri()),
            Stage::Method => "known, or another's to know".to_owned(),
            Stage::Capability => "served".to_owned(),
            Stage::Tenant | Stage::Media | Stage::Payload => String::new(),
            Stage::Upstream => "would be sent; no connection is opened".to_owned(),
        }
    }

    /// Whether the list that was supplied has this URI.
    fn lists(&self, uri: &str) -> bool {
        let lines = self.head.map(|it| it.fields.all(Known::A2aExtensions));
        let mut members = lines.into_iter().flatten().flat_map(|line| {
            let members = line.split(|byte| *byte == b',');
            members.map(<[u8]>::trim_ascii)
        });
        members.any(|member| member == uri.as_bytes())
    }

    fn names(&self, stage: Stage) -> Names<'_> {
        let decision = self.run.decision.as_ref();
        let has = |known| self.head.is_some_and(|it| it.fields.has(known));
        let rule = self.caller.and_then(|it| it.rules.first());
        let proven = rule.and_then(|it| {
            let (table, who) = it.key.split_once('.')?;
            matches!(table, "caller" | "issuer").then_some((table, who.trim_matches('"')))
        });
        let is_stop = matches!(self.run.ending, Ending::Stopped(at, ..) if at == stage);
        // Of several quotas, the one that refuses; else the first that looks.
        let looking = self.quotas.iter().find(|it| it.looks_at_it);
        let refusing = decision.and_then(|it| it.quota.as_deref());
        Names {
            endpoint: self.endpoint(),
            contract: decision.and_then(|it| it.contract.as_deref()),
            quota: refusing.or(looking.map(|it| &*it.name)),
            plan: self.caller.and_then(|it| it.plan.as_deref()),
            upstream: match &self.run.ending {
                Ending::Sent(sent) => Some(&sent.upstream.name),
                Ending::Unreadable(..) | Ending::Probe(_) | Ending::Stopped(..) => None,
            },
            proven,
            is_absent: Some(match stage == Stage::Version {
                true => !has(Known::A2aVersion),
                false => !has(Known::A2aExtensions),
            }),
            is_forbidden: is_stop && proven.is_some(),
        }
    }
}

/// Whether a step is for whatever is asked, not for calls alone.
const fn is_for_all(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::Head
            | Stage::Http
            | Stage::Route
            | Stage::HttpMethod
            | Stage::Load
            | Stage::Upstream
    )
}
