//! Decides how much is let through: by a quota, and by a plan in the quota's place.

use std::num::NonZeroU32;

use crate::config::amount::Rate;
use crate::config::check::names::Names;
use crate::config::file;
use crate::config::read::{At, Field, FromNode};
use crate::config::report::{Finding, Report, Span};
use crate::config::settings::{Allowance, Plan, Quota};
use crate::config::table::{Named, Tables};
use crate::config::word::Name;

/// The longest a bucket may take to refill, in ns: twice this is where its arithmetic ends.
const FULLEST_NS: u128 = 1 << 62;

/// What a quota lets through; `None` where something was reported.
pub(crate) fn of_quota(named: &Named<file::Quota>, report: &Report<'_>) -> Option<Allowance> {
    let file = &named.value.allowance;
    match (&file.rate, &file.concurrent) {
        (Field::Absent, Field::Absent) => {
            let hint = format!(
                "rate takes {}; or give `concurrent`, so many at once",
                <Rate as FromNode>::EXPECTED
            );
            let what = "rate is missing";
            let finding = Finding::error(named.span.clone(), named.path.clone(), what);
            report.add(finding.hint(hint));
            None
        }
        (Field::Absent, concurrent) => {
            has_no_burst(file, report);
            concurrent
                .given()?
                .value
                .requests()
                .map(Allowance::Concurrent)
        }
        (rate, Field::Absent) => {
            let rate = rate.given()?.value;
            let burst = match &file.burst {
                Field::Absent => NonZeroU32::new(rate.count),
                Field::Wrong => None,
                Field::Given(at) => at.value.requests(),
            }?;
            filling(file, rate, burst, (&named.span, &named.path), report)
        }
        (_, Field::Wrong) => None,
        (_, Field::Given(at)) => {
            let hint = "make two quotas of it, and have the endpoint name both".to_owned();
            let what = "cannot stand beside `rate`: how often, or how many at once";
            report.add(Finding::error(at.span.clone(), at.path.clone(), what).hint(hint));
            None
        }
    }
}

/// The plans, in the order of the file; `None` where something was reported.
pub(crate) fn plans(
    tables: &Tables<file::Plan>,
    names: &Names<'_>,
    quotas: &[Option<Quota>],
    report: &Report<'_>,
) -> Vec<Option<Plan>> {
    let plan = |named: &Named<file::Plan>| {
        let mut changed = Vec::new();
        for at in named.value.quotas.iter() {
            let Some(place) = names.place(&at.name) else {
                let name = At {
                    value: Name(at.name.clone()),
                    span: at.span.clone(),
                    path: at.path.clone(),
                };
                names.unknown(&name, [], report);
                continue;
            };
            let Some(quota) = quotas.get(place)?.as_ref() else {
                continue;
            };
            if let Some(allowance) = in_place_of(quota, at, report) {
                changed.push((place, allowance));
            }
        }
        let tables = &named.value.quotas;
        let is_whole = tables.is_complete && changed.len() == tables.entries.len();
        is_whole.then(|| Plan {
            name: named.name.clone(),
            quotas: changed,
        })
    };
    tables.iter().map(plan).collect()
}

/// What holds in place of what the quota says. What is left out stays as it is.
fn in_place_of(
    quota: &Quota,
    named: &Named<file::Allowance>,
    report: &Report<'_>,
) -> Option<Allowance> {
    let file = &named.value;
    let whole = (&named.span, named.path.as_str());
    if file.rate.is_absent() && file.burst.is_absent() && file.concurrent.is_absent() {
        let what = "says nothing";
        let hint = match quota.allowance {
            Allowance::Rate { .. } => "give rate, burst or both",
            Allowance::Concurrent(_) => "give concurrent",
        };
        let finding = Finding::error(named.span.clone(), named.path.clone(), what);
        report.add(finding.hint(hint.to_owned()));
        return None;
    }
    match quota.allowance {
        Allowance::Concurrent(_) => {
            if let Some(at) = file.rate.given() {
                other_kind(
                    &at.span,
                    &at.path,
                    "the quota says how many at once",
                    report,
                );
            }
            has_no_burst(file, report);
            file.concurrent
                .given()?
                .value
                .requests()
                .map(Allowance::Concurrent)
        }
        Allowance::Rate { interval, burst } => {
            if let Some(at) = file.concurrent.given() {
                other_kind(&at.span, &at.path, "the quota says how often", report);
                return None;
            }
            let given = match &file.burst {
                Field::Absent => None,
                Field::Wrong => return None,
                Field::Given(at) => at.value.requests(),
            };
            let allowance = match &file.rate {
                Field::Wrong => None,
                Field::Absent => Some(Allowance::Rate {
                    interval,
                    burst: given.unwrap_or(burst),
                }),
                Field::Given(at) => {
                    let burst = given.or(NonZeroU32::new(at.value.count))?;
                    filling(file, at.value, burst, whole, report)
                }
            }?;
            if let Some((name, cost)) = quota.cost.iter().max_by_key(|(_, cost)| *cost)
                && allowance.burst().is_some_and(|burst| *cost > burst)
            {
                let what = format!("is less than what {name:?} costs, {cost}: never let through");
                let at = file.burst.given();
                let (span, path) = at.map_or(whole, |at| (&at.span, at.path.as_str()));
                let hint = format!("a burst of {cost} or more");
                report.add(Finding::error(span.clone(), path, what).hint(hint));
            }
            Some(allowance)
        }
    }
}

/// A rate and a burst, unless a bucket of them takes too long to fill.
fn filling(
    file: &file::Allowance,
    rate: Rate,
    burst: NonZeroU32,
    (span, path): (&Span, &str),
    report: &Report<'_>,
) -> Option<Allowance> {
    let interval = rate.interval();
    if interval.as_nanos() * u128::from(burst.get()) < FULLEST_NS {
        return Some(Allowance::Rate { interval, burst });
    }
    let span = file.burst.given().map_or(span, |at| &at.span);
    let most = (FULLEST_NS - 1) / interval.as_nanos().max(1);
    let what = format!("takes centuries to refill at this rate: at most {most}");
    report.add(Finding::error(span.clone(), format!("{path}.burst"), what));
    None
}

fn has_no_burst(file: &file::Allowance, report: &Report<'_>) {
    if let Some(at) = file.burst.given() {
        let what = "has no meaning beside `concurrent`: that many are let through at once";
        report.add(Finding::error(at.span.clone(), at.path.clone(), what));
    }
}

fn other_kind(span: &Span, path: &str, is: &str, report: &Report<'_>) {
    let what = format!("cannot take its place: {is}");
    report.add(Finding::error(span.clone(), path, what));
}
