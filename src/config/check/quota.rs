//! Decides what a quota is: what is counted apart, how much of it, which calls it looks at.

use std::num::NonZeroU32;

use crate::config::check::allowance;
use crate::config::file;
use crate::config::per::{Dimension, Per};
use crate::config::read::{At, Field, List};
use crate::config::report::{Finding, Report};
use crate::config::settings::{Allowance, Quota};
use crate::config::suggest;
use crate::config::table::{Named, Tables};
use crate::config::word::Filled;

use super::names::Names;
use super::store;
use crate::protocol::{SKILLS, method::METHODS};

/// The quotas, in the order of the file; `None` where something was reported.
pub(crate) fn check(
    tables: &Tables<file::Quota>,
    stores: &Names<'_>,
    report: &Report<'_>,
) -> Vec<Option<Quota>> {
    let quotas = tables.iter();
    quotas.map(|named| quota(named, stores, report)).collect()
}

fn quota(named: &Named<file::Quota>, stores: &Names<'_>, report: &Report<'_>) -> Option<Quota> {
    let file = &named.value;
    let kept = store::kept(file, stores, report);
    let per = per(named, report);
    let is_shared = file.shared.or(false);
    if let Some(per) = per
        && per.contains(Dimension::Endpoint)
        && let Some(at) = file.shared.given()
        && at.value
    {
        let what =
            "contradicts per = \"endpoint\": one bucket across all endpoints, and one for each";
        let hint = "remove `shared`, or leave \"endpoint\" out of `per`".to_owned();
        report.add(Finding::error(at.span.clone(), at.path.clone(), what).hint(hint));
    }
    let skills = words(
        &file.skills,
        &SKILLS,
        "leave it out for every skill",
        report,
    );
    let methods = words(
        &file.methods,
        &METHODS,
        "leave it out for every method",
        report,
    );
    let allowance = allowance::of_quota(named, report);
    let cost = cost(file, allowance, report);
    Some(Quota {
        name: named.name.clone(),
        per: per?,
        allowance: allowance?,
        shared: is_shared,
        skills: skills?,
        methods: methods?,
        cost: cost?,
        kept: kept.ok()?,
    })
}

/// Names of skills or methods. Any will do, since extensions may define their own; one that looks
/// like a known one and is not is a warning.
fn words(
    field: &Field<List<Filled>>,
    known: &[&'static str],
    hint: &str,
    report: &Report<'_>,
) -> Option<Option<Vec<Box<str>>>> {
    let list = match field {
        Field::Absent => return Some(None),
        Field::Wrong => return None,
        Field::Given(list) => list,
    };
    if list.value.is_empty() {
        let finding = Finding::error(list.span.clone(), list.path.clone(), "is empty");
        report.add(finding.hint(hint.to_owned()));
    }
    let mut words: Vec<Box<str>> = Vec::new();
    for at in list.value.iter().filter_map(Field::given) {
        let word = &at.value.0;
        if words.contains(word) {
            report.add(Finding::error(
                at.span.clone(),
                at.path.clone(),
                "is listed twice",
            ));
        } else {
            unlike(word, known, at, report);
            words.push(word.clone());
        }
    }
    let is_whole = !words.is_empty() && words.len() == list.value.len();
    is_whole.then_some(Some(words))
}

/// Warns of a word that is nearly a known one.
fn unlike<T>(word: &str, known: &[&'static str], at: &At<T>, report: &Report<'_>) {
    if known.contains(&word) {
        return;
    }
    if let Some(meant) = suggest::nearest(word, known.iter().copied()) {
        let what = "is none of the protocol's";
        let hint = format!("did you mean {meant:?}?");
        report.add(Finding::warning(at.span.clone(), at.path.clone(), what).hint(hint));
    }
}

fn cost(
    file: &file::Quota,
    allowance: Option<Allowance>,
    report: &Report<'_>,
) -> Option<Vec<(Box<str>, NonZeroU32)>> {
    let pairs = match &file.cost {
        Field::Absent => return Some(Vec::new()),
        Field::Wrong => return None,
        Field::Given(pairs) => pairs,
    };
    if !file.allowance.concurrent.is_absent() {
        let what = "cannot stand beside `concurrent`: one request is one";
        report.add(Finding::error(pairs.span.clone(), pairs.path.clone(), what));
        return None;
    }
    let known: Vec<&str> = SKILLS.iter().chain(&METHODS).copied().collect();
    let mut costs = Vec::new();
    for (key, value) in &pairs.value {
        unlike(&key.value, &known, key, report);
        let Some(at) = value.given() else { continue };
        let cost = at.value.requests()?;
        if let Some(burst) = allowance.and_then(|it| it.burst())
            && cost > burst
        {
            let what =
                format!("is more than the burst, {burst}: no such call would be let through");
            let hint = "raise `burst`, or lower the cost".to_owned();
            report.add(Finding::error(at.span.clone(), at.path.clone(), what).hint(hint));
        }
        costs.push((key.value.as_str().into(), cost));
    }
    (costs.len() == pairs.value.len()).then_some(costs)
}

fn per(named: &Named<file::Quota>, report: &Report<'_>) -> Option<Per> {
    const CHOICES: &str = "\"caller\", \"endpoint\", \"address\", \"tenant\", \"skill\", \"all\", or a \
                           list such as [\"caller\", \"skill\"]";
    let list = match &named.value.per {
        Field::Wrong => return None,
        Field::Absent => {
            let hint = format!("per takes {CHOICES}");
            let finding = Finding::error(named.span.clone(), named.path.clone(), "per is missing");
            report.add(finding.hint(hint));
            return None;
        }
        Field::Given(list) => list,
    };
    if list.value.is_empty() {
        let hint = "everyone together is per = \"all\"".to_owned();
        report.add(Finding::error(list.span.clone(), list.path.clone(), "is empty").hint(hint));
        return None;
    }
    let mut set = Per::default();
    for at in list.value.iter().filter_map(Field::given) {
        if set.contains(at.value) {
            report.add(Finding::error(
                at.span.clone(),
                at.path.clone(),
                "is listed twice",
            ));
        }
        set.insert(at.value);
    }
    if set.contains(Dimension::All) && list.value.len() > 1 {
        let what = "\"all\" is everyone together and cannot stand beside another";
        let hint = "remove \"all\", or everything else".to_owned();
        report.add(Finding::error(list.span.clone(), list.path.clone(), what).hint(hint));
    }
    list.value
        .iter()
        .all(|field| field.given().is_some())
        .then_some(set)
}
