//! Decides what is remembered of calls that steps in report mode would have refused: how many, when,
//! by whom, and one of them to look at.
//!
//! It outlives snapshots, as counters do, and lasts as long as its endpoint reports its step. Callers are
//! remembered by name, some for each rule (Space-Saving): traffic makes no more of them. Endpoints that
//! report nothing have no place here, and calls that would have been admitted never look. It decides
//! nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::snapshot::Endpoint;
use crate::limit::Caller;
use crate::observe::Timestamp;
use crate::protocol::{Outcome, Step, Steps};

/// How many callers are remembered for each rule.
pub const CALLERS: usize = 20;

/// What was found at all endpoints.
#[derive(Debug, Default)]
pub struct Findings(Mutex<BTreeMap<Box<str>, Arc<Found>>>);

/// What was found at one endpoint.
#[derive(Debug)]
pub struct Found(Mutex<Rules>);

#[derive(Debug)]
struct Rules {
    report: Steps,
    rules: Vec<Rule>,
}

/// A call that would have been refused.
#[derive(Clone, Copy, Debug)]
pub struct Finding<'f> {
    /// By which step.
    pub step: Step,
    /// How it would have ended.
    pub outcome: Outcome,
    /// The quota, where one would have refused it.
    pub quota: Option<&'f str>,
    /// Whose call it was, once that is known.
    pub caller: Option<&'f Caller>,
    /// Under which id it is known.
    pub request_id: &'f str,
    /// When it came.
    pub at: Timestamp,
    /// The generation of the configuration that decided.
    pub generation: u64,
}

/// All calls that one rule would have refused.
#[derive(Clone, Debug)]
pub struct Rule {
    /// By which step.
    pub step: Step,
    /// How they would have ended.
    pub outcome: Outcome,
    /// The quota, where one would have refused them.
    pub quota: Option<Box<str>>,
    /// How many.
    pub count: u64,
    /// When the first came.
    pub first: Timestamp,
    /// When the last came.
    pub last: Timestamp,
    /// The id of the last.
    pub request_id: Box<str>,
    /// The generation that decided on the last.
    pub generation: u64,
    /// Whose they were; at most [`CALLERS`], in no order.
    pub callers: Vec<Offender>,
}

/// One whose calls would have been refused.
#[derive(Clone, Debug)]
pub struct Offender {
    /// Who.
    pub caller: Caller,
    /// Calls since it is remembered.
    pub count: u64,
    /// When the last came.
    pub last: Timestamp,
    /// How often at most it came, what it took over included.
    rank: u64,
}

impl Findings {
    /// The place of an endpoint that reports these steps; `None` where it reports nothing.
    #[must_use]
    pub fn at(&self, endpoint: &str, report: Steps) -> Option<Arc<Found>> {
        if report == Steps::NONE {
            return None;
        }
        let mut all = self.0.lock();
        let found = all.entry(endpoint.into()).or_insert_with(|| {
            let rules = Vec::new();
            Arc::new(Found(Mutex::new(Rules { report, rules })))
        });
        let mut rules = found.0.lock();
        report.iter().for_each(|step| rules.report.insert(step));
        drop(rules);
        Some(Arc::clone(found))
    }

    /// Forgets what is not found at these endpoints any more. They are those that serve.
    pub fn keep(&self, endpoints: &[Arc<Endpoint>]) {
        let mut all = self.0.lock();
        let before = std::mem::take(&mut *all);
        for endpoint in endpoints {
            if let Some(found) = &endpoint.findings {
                found.keep(endpoint.report);
                all.insert(endpoint.name.clone(), Arc::clone(found));
            }
        }
        for (name, found) in before {
            if !all.contains_key(&name) {
                // Requests that are still being served may find more.
                found.keep(Steps::NONE);
            }
        }
    }

    /// Everything that was found, by endpoint; what is most first.
    #[must_use]
    pub fn all(&self) -> Vec<(Box<str>, Rule)> {
        let all = self.0.lock().clone();
        let mut found = Vec::new();
        for (name, here) in all {
            let mut rules = here.0.lock().rules.clone();
            rules.sort_by_key(|rule| std::cmp::Reverse(rule.count));
            for rule in &mut rules {
                rule.callers.sort_by_key(|it| std::cmp::Reverse(it.count));
            }
            found.extend(rules.into_iter().map(|rule| (name.clone(), rule)));
        }
        found
    }
}

impl Found {
    /// Remembers one call.
    pub fn note(&self, finding: &Finding<'_>) {
        let mut rules = self.0.lock();
        if !rules.report.contains(finding.step) {
            return;
        }
        let is_of = |rule: &Rule| {
            rule.step == finding.step
                && rule.outcome == finding.outcome
                && rule.quota.as_deref() == finding.quota
        };
        if let Some(rule) = rules.rules.iter_mut().find(|rule| is_of(rule)) {
            return rule.note(finding);
        }
        let mut rule = Rule {
            step: finding.step,
            outcome: finding.outcome,
            quota: finding.quota.map(Into::into),
            count: 0,
            first: finding.at,
            last: finding.at,
            request_id: "".into(),
            generation: 0,
            callers: Vec::new(),
        };
        rule.note(finding);
        rules.rules.push(rule);
    }

    fn keep(&self, report: Steps) {
        let mut rules = self.0.lock();
        rules.report = report;
        rules.rules.retain(|rule| report.contains(rule.step));
    }
}

impl Rule {
    fn note(&mut self, finding: &Finding<'_>) {
        self.count += 1;
        self.first = self.first.min(finding.at);
        self.last = self.last.max(finding.at);
        self.generation = finding.generation;
        if *self.request_id != *finding.request_id {
            self.request_id = finding.request_id.into();
        }
        let Some(caller) = finding.caller else {
            return;
        };
        let print = caller.fingerprint();
        let known = self.callers.iter_mut();
        let mut known = known.filter(|it| it.caller.fingerprint() == print);
        if let Some(offender) = known.next() {
            offender.rank += 1;
            offender.count += 1;
            offender.last = offender.last.max(finding.at);
            return;
        }
        let new = |rank| Offender {
            caller: caller.clone(),
            count: 1,
            last: finding.at,
            rank,
        };
        if self.callers.len() < CALLERS {
            self.callers.push(new(1));
        } else if let Some(least) = self.callers.iter_mut().min_by_key(|it| it.rank) {
            // Whoever comes in place of another may have come as often as that one.
            *least = new(least.rank + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Caller {
        Caller::proven(name.into(), None)
    }

    fn finding<'f>(step: Step, outcome: Outcome, caller: &'f Caller, second: i64) -> Finding<'f> {
        Finding {
            step,
            outcome,
            quota: None,
            caller: Some(caller),
            request_id: "r",
            at: Timestamp::from_second(second).unwrap(),
            generation: 1,
        }
    }

    fn steps(steps: &[Step]) -> Steps {
        steps.iter().copied().collect()
    }

    #[test]
    fn each_rule_is_summed_up_apart() {
        let findings = Findings::default();
        let found = findings
            .at("e", steps(&[Step::Quota, Step::Version]))
            .unwrap();
        let (acme, other) = (caller("acme"), caller("other"));
        let version =
            |caller, second| finding(Step::Version, Outcome::VersionNotSupported, caller, second);
        found.note(&version(&acme, 5));
        found.note(&Finding {
            request_id: "later",
            generation: 2,
            ..version(&acme, 9)
        });
        found.note(&Finding {
            generation: 2,
            ..version(&other, 7)
        });
        for quota in ["few", "fewer", "few"] {
            let over = finding(Step::Quota, Outcome::RateLimited, &other, 1);
            found.note(&Finding {
                quota: Some(quota),
                ..over
            });
        }
        let all = findings.all();
        let shown: Vec<_> = all
            .iter()
            .map(|(name, rule)| (&**name, rule.step, rule.quota.as_deref(), rule.count))
            .collect();
        assert_eq!(
            shown,
            [
                ("e", Step::Version, None, 3),
                ("e", Step::Quota, Some("few"), 2),
                ("e", Step::Quota, Some("fewer"), 1),
            ]
        );
        let rule = &all[0].1;
        assert_eq!((rule.first.as_second(), rule.last.as_second()), (5, 9));
        assert_eq!((&*rule.request_id, rule.generation), ("r", 2));
        let callers: Vec<_> = rule
            .callers
            .iter()
            .map(|it| (it.caller.name(), it.count))
            .collect();
        assert_eq!(callers, [("acme".into(), 2), ("other".into(), 1)]);
    }

    #[test]
    fn a_flood_of_callers_makes_no_more_of_them_and_hides_nobody_who_comes_often() {
        let findings = Findings::default();
        let found = findings.at("e", steps(&[Step::Version])).unwrap();
        let often = caller("often");
        for number in 0..2000 {
            let stranger = caller(&format!("stranger-{number}"));
            for who in [&stranger, &often] {
                found.note(&finding(
                    Step::Version,
                    Outcome::VersionNotSupported,
                    who,
                    number,
                ));
            }
        }
        let (_, rule) = findings.all().remove(0);
        assert_eq!((rule.count, rule.callers.len()), (4000, CALLERS));
        let first = &rule.callers[0];
        assert_eq!((first.caller.name(), first.count), ("often".into(), 2000));
    }

    #[test]
    fn nothing_is_found_where_nothing_is_reported_or_no_longer() {
        let findings = Findings::default();
        assert!(findings.at("e", Steps::NONE).is_none());
        let found = findings
            .at("e", steps(&[Step::Version, Step::Quota]))
            .unwrap();
        let acme = caller("acme");
        let version = finding(Step::Version, Outcome::VersionNotSupported, &acme, 1);
        let over = finding(Step::Quota, Outcome::RateLimited, &acme, 1);
        found.note(&version);
        found.note(&over);
        found.keep(steps(&[Step::Quota]));
        found.note(&version);
        let steps_left: Vec<_> = findings.all().iter().map(|(_, rule)| rule.step).collect();
        assert_eq!(steps_left, [Step::Quota]);
        // Its endpoint serves no more.
        findings.keep(&[]);
        found.note(&over);
        assert!(findings.all().is_empty());
    }
}
