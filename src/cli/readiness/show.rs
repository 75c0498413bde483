//! Decides how people read who is ready. Names and words come from a log, so from strangers: nothing in
//! them reaches a terminal that is not plain.

use std::fmt::Write;

use super::tally::{Report, Sum, Why};

/// How many callers are shown; the others are in the JSON.
const SHOWN: usize = 50;

pub(super) fn text(report: &Report) -> String {
    let mut out = String::new();
    let callers = &report.callers;
    let breaking = callers
        .iter()
        .filter(|it| it.sum.breaks.whole() > 0)
        .count();
    // Writing to a string does not fail.
    let _ = match report.ready_percent {
        None => writeln!(
            out,
            "{}: the log tells of no call whether it is ready",
            report.to
        ),
        Some(percent) => writeln!(
            out,
            "{}: {percent} % of {} calls are ready; {breaking} of {} callers would break",
            report.to,
            report.sum.ready.whole() + report.sum.breaks.whole(),
            callers.len(),
        ),
    };
    notes(report, &mut out);
    let told = callers.iter().filter(|it| it.sum.ready != it.sum.calls);
    let told: Vec<_> = told.collect();
    let width = told.iter().take(SHOWN).map(|it| plain(&it.caller).len());
    let width = width.max().unwrap_or(0).max("caller".len());
    if !told.is_empty() {
        let _ = writeln!(
            out,
            "\n{:width$}  {:>9}  {:>9}  {:>9}  {:>9}  why",
            "caller", "calls", "ready", "breaks", "unknown"
        );
    }
    for one in told.iter().take(SHOWN) {
        row(&mut out, &plain(&one.caller), width, &one.sum);
    }
    if let Some(more) = told.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let _ = writeln!(out, "{more} more callers: --format json");
    }
    if let Some(others) = &report.others {
        row(&mut out, "others", width, others);
    }
    out
}

fn notes(report: &Report, out: &mut String) {
    let lines = &report.lines;
    let unknown = report.sum.unknown.whole();
    if unknown > 0 {
        let _ = writeln!(
            out,
            "{unknown} calls are unknown: their lines do not say what was supplied"
        );
    }
    if report.is_estimate {
        let text = "lines of calls that went well were sampled: numbers are estimated, and whoever \
                    calls seldom may be missing";
        let _ = writeln!(out, "{text}");
    }
    if lines.foreign > 0 {
        let _ = writeln!(
            out,
            "{} of {} lines are no access log in JSON",
            lines.foreign, lines.read
        );
    }
}

fn row(out: &mut String, name: &str, width: usize, sum: &Sum) {
    let _ = write!(
        out,
        "{name:width$}  {:>9}  {:>9}  {:>9}  {:>9}",
        sum.calls.whole(),
        sum.ready.whole(),
        sum.breaks.whole(),
        sum.unknown.whole(),
    );
    let why: Vec<_> = sum.why.iter().map(because).collect();
    let _ = match why.is_empty() {
        true => writeln!(out),
        false => writeln!(out, "  {}", why.join("; ")),
    };
}

fn because(why: &Why) -> String {
    let id = why
        .request_id
        .as_deref()
        .map_or_else(String::new, |id| format!(", {}", plain(id)));
    format!(
        "{} {} ({}; last {}{id})",
        why.calls.whole(),
        why.outcome.label(),
        plain(&why.said),
        plain(&why.last),
    )
}

/// Text with everything escaped that is not plain ASCII.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            ' '..='~' => out.push(character),
            _ => out.extend(character.escape_default()),
        }
    }
    out
}
