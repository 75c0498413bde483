//! Decides what a valid `[reload]` is.

use std::time::Duration;

use crate::config::amount::Percent;
use crate::config::file;
use crate::config::read::Field;
use crate::config::report::{Finding, Report};
use crate::config::settings::{Guard, Ratio, Reload};
use crate::config::word::Integer;

/// What a new configuration may be watched for.
const WINDOW: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(3600);

/// The whole, in millionths.
const WHOLE: u32 = 1_000_000;

pub(super) fn check(file: &file::Reload, report: &Report<'_>) -> Reload {
    Reload {
        keep: file.keep.or(Integer(10)).count(),
        rollback_on_errors: file.guard.as_ref().map(|it| guard(it, &file.keep, report)),
    }
}

fn guard(file: &file::Guard, keep: &Field<Integer<1, 100>>, report: &Report<'_>) -> Guard {
    if let Some(at) = file.window.given()
        && !WINDOW.contains(&at.value)
    {
        let what = "is out of bounds: 1s to 1h";
        report.add(Finding::error(at.span.clone(), at.path.clone(), what));
    }
    if let Some(at) = file.ratio.given()
        && at.value.0 >= WHOLE
    {
        let what = "is never exceeded: there cannot be more failures than requests";
        let hint = "a ratio such as \"5%\"".to_owned();
        report.add(Finding::error(at.span.clone(), at.path.clone(), what).hint(hint));
    }
    if let Some(at) = keep.given()
        && at.value.0 < 2
    {
        let what = "leaves nothing to go back to, and rollback_on_errors goes back";
        let hint = "keep at least 2, or leave rollback_on_errors out".to_owned();
        report.add(Finding::error(at.span.clone(), at.path.clone(), what).hint(hint));
    }
    Guard {
        window: file.window.or(Duration::from_secs(30)),
        ratio: Ratio::of_millionths(file.ratio.or(Percent(50_000)).0),
        min_requests: u32::try_from(file.min_requests.or(Integer(100)).0).unwrap_or(u32::MAX),
    }
}
