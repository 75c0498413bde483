//! Decides how judged calls are summed up: by caller, of whom a bounded number is kept apart.

use std::cmp::Reverse;
use std::collections::HashMap;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use super::seen::{Judged, Seen};
use crate::protocol::Outcome;

/// How many callers are told apart; further ones are one.
const CALLERS: usize = 100_000;

/// What was read so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    lines: Lines,
    is_estimate: bool,
    callers: HashMap<Box<str>, Sum>,
    others: Sum,
}

/// What became of the lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Lines {
    /// All of them.
    pub(super) read: u64,
    /// Those that tell of a call.
    pub(super) calls: u64,
    /// Those of agent cards, probes of strangers, and bodies that nobody could read.
    pub(super) no_calls: u64,
    /// Those of other endpoints and times.
    pub(super) unasked: u64,
    /// Those that are no line of an access log in JSON.
    pub(super) foreign: u64,
}

/// Calls, in hundredths: where lines were sampled, each stands for several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Calls(u64);

impl Calls {
    /// Rounded to whole ones.
    pub(super) const fn whole(self) -> u64 {
        self.0.saturating_add(50) / 100
    }

    fn add(&mut self, hundredths: u64) {
        self.0 = self.0.saturating_add(hundredths);
    }
}

impl Serialize for Calls {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.whole())
    }
}

/// The calls of one caller, or of several.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Sum {
    pub(super) calls: Calls,
    pub(super) ready: Calls,
    pub(super) breaks: Calls,
    pub(super) unknown: Calls,
    /// Why they break, most often first.
    pub(super) why: Vec<Why>,
}

/// Calls that break for one reason.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Why {
    #[serde(serialize_with = "label")]
    pub(super) outcome: Outcome,
    pub(super) calls: Calls,
    /// What the last of them says.
    pub(super) said: Box<str>,
    pub(super) first: Box<str>,
    pub(super) last: Box<str>,
    /// The id of the last of them.
    pub(super) request_id: Option<Box<str>>,
}

fn label<S: Serializer>(outcome: &Outcome, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(outcome.label())
}

/// The answer.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The contract.
    pub(super) to: Box<str>,
    pub(super) endpoint: Option<Box<str>>,
    pub(super) since: Option<String>,
    pub(super) lines: Lines,
    /// Whether some lines stand for others that were not written.
    pub(super) is_estimate: bool,
    #[serde(flatten)]
    pub(super) sum: Sum,
    /// Of the calls that the log tells enough about, those that are ready; none where there are none.
    pub(super) ready_percent: Option<f64>,
    /// Who made most calls first.
    pub(super) callers: Vec<Named>,
    /// Callers beyond those; none where there are none.
    pub(super) others: Option<Sum>,
}

/// A caller and its calls.
#[derive(Debug, Serialize)]
pub(super) struct Named {
    pub(super) caller: Box<str>,
    #[serde(flatten)]
    pub(super) sum: Sum,
}

impl Tally {
    /// A line that is none of ours.
    pub(super) const fn foreign(&mut self) {
        self.lines.read += 1;
        self.lines.foreign += 1;
    }

    /// A line that was not asked about.
    pub(super) const fn unasked(&mut self) {
        self.lines.read += 1;
        self.lines.unasked += 1;
    }

    /// A line of ours, and what would become of its call.
    pub(super) fn add(&mut self, seen: &Seen, judged: Option<Judged>) {
        self.lines.read += 1;
        let Some(judged) = judged else {
            self.lines.no_calls += 1;
            return;
        };
        self.lines.calls += 1;
        self.is_estimate |= seen.is_sampled();
        self.caller(seen.caller.as_deref().unwrap_or("nobody"))
            .add(seen, judged);
    }

    fn caller(&mut self, name: &str) -> &mut Sum {
        if self.callers.contains_key(name) || self.callers.len() < CALLERS {
            self.callers.entry(name.into()).or_default()
        } else {
            &mut self.others
        }
    }

    /// What there is to say.
    pub(super) fn report(
        self,
        to: &str,
        endpoint: Option<&str>,
        since: Option<Timestamp>,
    ) -> Report {
        let mut sum = Sum::default();
        for one in self.callers.values().chain([&self.others]) {
            sum.take(one);
        }
        sum.sort();
        let named = self.callers.into_iter();
        let mut callers: Vec<_> = named.map(|(caller, sum)| Named { caller, sum }).collect();
        // By name where they are equal, so that the same log gives the same answer.
        callers.sort_by(|one, other| {
            let key = |it: &Named| Reverse(it.sum.calls);
            (key(one), &one.caller).cmp(&(key(other), &other.caller))
        });
        callers.iter_mut().for_each(|it| it.sum.sort());
        let mut others = self.others;
        others.sort();
        let judged = sum.ready.0.saturating_add(sum.breaks.0);
        let percent = || (sum.ready.0 as f64 / judged as f64 * 100_000.0).floor() / 1000.0;
        Report {
            to: to.into(),
            endpoint: endpoint.map(Into::into),
            since: since.map(|since| since.to_string()),
            lines: self.lines,
            is_estimate: self.is_estimate,
            ready_percent: (judged > 0).then(percent),
            sum,
            callers,
            others: (others.calls.0 > 0).then_some(others),
        }
    }
}

impl Sum {
    fn add(&mut self, seen: &Seen, judged: Judged) {
        let weight = seen.weight();
        self.calls.add(weight);
        match judged {
            Judged::Ready => self.ready.add(weight),
            Judged::Unknown => self.unknown.add(weight),
            Judged::Breaks(outcome, said) => {
                self.breaks.add(weight);
                let why = Why {
                    outcome,
                    calls: Calls(weight),
                    said: said.into(),
                    first: seen.ts.clone(),
                    last: seen.ts.clone(),
                    request_id: seen.request_id.clone(),
                };
                self.because(why);
            }
        }
    }

    fn because(&mut self, why: Why) {
        match self.why.iter_mut().find(|it| it.outcome == why.outcome) {
            None => self.why.push(why),
            Some(known) => {
                known.calls.add(why.calls.0);
                if why.first < known.first {
                    known.first = why.first;
                }
                // Equal times: the later line.
                if why.last >= known.last {
                    known.last = why.last;
                    known.said = why.said;
                    known.request_id = why.request_id;
                }
            }
        }
    }

    fn take(&mut self, other: &Self) {
        self.calls.add(other.calls.0);
        self.ready.add(other.ready.0);
        self.breaks.add(other.breaks.0);
        self.unknown.add(other.unknown.0);
        other.why.iter().for_each(|why| self.because(why.clone()));
    }

    fn sort(&mut self) {
        self.why
            .sort_by_key(|why| (Reverse(why.calls), why.outcome));
    }
}

impl Report {
    /// Whether every call that the log tells enough about is ready; `None` where there is none.
    pub(super) fn is_ready(&self) -> Option<bool> {
        self.ready_percent.map(|_| self.sum.breaks.0 == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_beyond_the_most_are_one() {
        let mut tally = Tally::default();
        for number in 0..CALLERS + 10 {
            let line = format!(
                r#"{{"ts":"2026-11-30T16:53:23.042Z","outcome":"ok","caller":"c{number}"}}"#
            );
            let seen = Seen::read(line.as_bytes()).unwrap();
            tally.add(&seen, Some(Judged::Ready));
        }
        let report = tally.report("aap/3.0", None, None);
        assert_eq!(report.callers.len(), CALLERS);
        assert_eq!(report.others.unwrap().calls.whole(), 10);
        assert_eq!(report.sum.calls.whole(), CALLERS as u64 + 10);
    }
}
