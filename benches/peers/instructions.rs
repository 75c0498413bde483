//! The gate of instructions: how many user-space instructions the shipped binary spends on one
//! request, under callgrind, compared with the committed figure. Counts, unlike times, are the same
//! on a busy machine.
//!
//! Each figure is the difference of two runs of a fresh process that differ only in how many
//! requests they get on connections that stay open: what starting and ending cost is in both. All
//! threads count, so the access log's writer does too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::Failure;
use super::helpers::load;
use super::load::{Job, Until};
use super::proxies::{Ground, Manner, Who, find};
use super::scenarios::{job, refused};

/// What the admitted 1 KB request may cost at most, whatever is committed; `None`: no such limit.
const CEILING: Option<u64> = None;
/// By how much a figure may move before it must be committed anew, in percent.
const TOLERANCE: f64 = 3.0;

const FEW: u64 = 500;
const MANY: u64 = 4500;
const CONNECTIONS: usize = 8;

const ADMITTED: &str = "admitted-1kb";

const HEAD: &str = "\
# User-space instructions of one request, as `cargo peers instructions` counts them.
# The gate in .ci/run fails when one rises by more than 3 %.
# A change that moves one writes it anew with `cargo peers instructions --update` and says why.
";

/// Measures, prints, and compares or, with `update`, writes the figures.
pub(crate) fn gate(ground: &Ground, update: bool) -> Result<(), Failure> {
    if find("valgrind").is_none() {
        return Err("no valgrind (Debian package valgrind): instructions are not counted".into());
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/instructions.txt");
    let committed = read(&fs::read_to_string(&file).unwrap_or_default())?;
    let to = ([127, 0, 0, 1], 0).into();
    let call = Job {
        connections: CONNECTIONS,
        ..job(to, Until::Answers(FEW))
    };
    let mut measured = BTreeMap::new();
    for (name, call) in [
        (ADMITTED, call.clone()),
        ("refusal", refused(call, Who::Forecourt)),
    ] {
        let few = total(ground, &call, FEW)?;
        let many = total(ground, &call, MANY)?;
        measured.insert(name.to_owned(), many.saturating_sub(few) / (MANY - FEW));
    }
    if update {
        let mut text = HEAD.to_owned();
        for (name, figure) in &measured {
            writeln!(text, "{name} {figure}")?;
            println!("{name:14} {figure:>8}  written");
        }
        fs::write(&file, text)?;
        return Ok(());
    }
    compare(&measured, &committed)
}

fn compare(
    measured: &BTreeMap<String, u64>,
    committed: &BTreeMap<String, u64>,
) -> Result<(), Failure> {
    let mut wrong = Vec::new();
    println!("instructions    measured committed   change");
    for (name, &figure) in measured {
        let Some(&before) = committed.get(name) else {
            println!("{name:14} {figure:>9}         -");
            wrong.push(format!("{name} has no committed figure"));
            continue;
        };
        let change = (figure as f64 / before as f64 - 1.0) * 100.0;
        println!("{name:14} {figure:>9} {before:>9} {change:>+7.1} %");
        if change > TOLERANCE {
            wrong.push(format!("{name} rose by {change:.1} %"));
        } else if change < -TOLERANCE {
            println!("{name} has fallen: commit it with `cargo peers instructions --update`");
        }
    }
    if let (Some(ceiling), Some(&figure)) = (CEILING, committed.get(ADMITTED))
        && figure > ceiling
    {
        wrong.push(format!(
            "{ADMITTED}: {figure} committed, at most {ceiling} allowed"
        ));
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("; ").into())
    }
}

/// All instructions of a process that gets `count` requests.
fn total(ground: &Ground, call: &Job, count: u64) -> Result<u64, Failure> {
    let out: PathBuf = ground.directory.join(format!("callgrind.{count}"));
    let under = [
        "valgrind".to_owned(),
        "--tool=callgrind".to_owned(),
        format!("--callgrind-out-file={}", out.display()),
    ];
    let manner = Manner {
        under: under.into(),
        ..Manner::plain(false)
    };
    let mut started = ground.start(Who::Forecourt, &manner)?;
    let told = load(&Job {
        to: started.clear,
        until: Until::Answers(count),
        ..call.clone()
    })?;
    started.stop();
    if told.answers != count {
        return Err(format!("{} answers instead of {count}", told.answers).into());
    }
    let text = fs::read_to_string(&out)?;
    let line = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals: "));
    Ok(line.ok_or("callgrind tells no totals")?.trim().parse()?)
}

/// `name figure`, one a line; `#` begins a comment.
fn read(text: &str) -> Result<BTreeMap<String, u64>, Failure> {
    let lines = text.lines().filter(|it| !it.starts_with('#'));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, figure)| Ok((name.to_owned(), figure.trim().parse()?)))
        .collect()
}
