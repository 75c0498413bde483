//! Decides what a quota is: what is counted apart, how often, how many at once.

use std::num::NonZeroU32;

use crate::config::file;
use crate::config::per::{Dimension, Per};
use crate::config::read::Field;
use crate::config::report::{Finding, Report};
use crate::config::settings::Quota;
use crate::config::table::{Named, Tables};

/// The longest a bucket may take to refill, in ns: twice this is where its arithmetic ends.
const FULLEST_NS: u128 = 1 << 62;

/// The quotas, in the order of the file; `None` where something was reported.
pub(crate) fn check(tables: &Tables<file::Quota>, report: &Report<'_>) -> Vec<Option<Quota>> {
    tables.iter().map(|named| quota(named, report)).collect()
}

fn quota(named: &Named<file::Quota>, report: &Report<'_>) -> Option<Quota> {
    let per = per(named, report);
    let shared = &named.value.shared;
    let is_shared = shared.or(false);
    if let Some(per) = per
        && per.contains(Dimension::Endpoint)
        && let Some(at) = shared.given()
        && at.value
    {
        let what =
            "contradicts per = \"endpoint\": one bucket across all endpoints, and one for each";
        let hint = "remove `shared`, or count per caller, address or all".to_owned();
        report.add(Finding::error(at.span.clone(), at.path.clone(), what).hint(hint));
    }
    let rate = named.value.rate.given()?.value;
    let burst = match &named.value.burst {
        Field::Absent => NonZeroU32::new(rate.count),
        Field::Wrong => None,
        Field::Given(at) => at.value.requests(),
    }?;
    let interval = rate.interval();
    if interval.as_nanos() * u128::from(burst.get()) >= FULLEST_NS {
        let at = named.value.burst.given();
        let span = at.map_or_else(|| named.span.clone(), |at| at.span.clone());
        let most = (FULLEST_NS - 1) / interval.as_nanos().max(1);
        let what = format!("takes centuries to refill at this rate: at most {most}");
        report.add(Finding::error(span, format!("{}.burst", named.path), what));
    }
    Some(Quota {
        name: named.name.clone(),
        per: per?,
        rate,
        interval,
        burst,
        shared: is_shared,
    })
}

fn per(named: &Named<file::Quota>, report: &Report<'_>) -> Option<Per> {
    const CHOICES: &str = "\"caller\", \"endpoint\", \"address\", \"all\", or a list such as \
                           [\"caller\", \"address\"]";
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
