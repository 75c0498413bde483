//! Reads from `/proc` what a process used: its processor time, its memory, its connections.

use std::collections::BTreeSet;
use std::fs;

use super::Failure;

/// The process and all that it started.
fn family(pid: u32) -> Vec<u32> {
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(&member) = family.get(next) {
        for thread in threads(member) {
            let path = format!("/proc/{member}/task/{thread}/children");
            let children = fs::read_to_string(path).unwrap_or_default();
            family.extend(
                children
                    .split_whitespace()
                    .filter_map(|it| it.parse::<u32>().ok()),
            );
        }
        next += 1;
    }
    family
}

fn threads(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"));
    entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// Nanoseconds of user and system time so far, of every living thread of the family.
pub(crate) fn cpu(pid: u32) -> Result<u64, Failure> {
    let mut sum = 0;
    for member in family(pid) {
        for thread in threads(member) {
            let text = fs::read_to_string(format!("/proc/{member}/task/{thread}/schedstat"))?;
            let spent: u64 = text.split(' ').next().unwrap_or_default().parse()?;
            sum += spent;
        }
    }
    Ok(sum)
}

/// KB of memory of the family; what is shared counts once.
pub(crate) fn memory(pid: u32) -> Result<f64, Failure> {
    let mut sum = 0.0;
    for member in family(pid) {
        let text = fs::read_to_string(format!("/proc/{member}/smaps_rollup"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
        let kilobytes = line.unwrap_or_default().trim().trim_end_matches(" kB");
        sum += kilobytes.parse::<f64>()?;
    }
    Ok(sum)
}

/// Nanoseconds that anybody used of processor `core` so far, to 10 ms.
pub(crate) fn busy(core: &str) -> Result<u64, Failure> {
    let text = fs::read_to_string("/proc/stat")?;
    let name = format!("cpu{core} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name));
    let fields: Vec<u64> = line
        .ok_or("no such core")?
        .split(' ')
        .filter_map(|it| it.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal: all but the two of doing nothing.
    let ticks: u64 = [0, 1, 2, 5, 6]
        .iter()
        .filter_map(|at| fields.get(*at))
        .sum();
    Ok(ticks * 10_000_000)
}

/// How connections are spread over event loops.
pub(crate) struct Share {
    /// How many are watched by any.
    pub(crate) connections: usize,
    /// Of these, what the busiest has.
    pub(crate) percent: f64,
}

/// Of the connections to `port` of the process `pid`.
pub(crate) fn share(pid: u32, port: u16) -> Result<Share, Failure> {
    let text = fs::read_to_string("/proc/net/tcp")?;
    let ours = format!("0100007F:{port:04X}");
    let accepted: BTreeSet<&str> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|line| line.get(1) == Some(&ours.as_str()) && line.get(3) == Some(&"01"))
        .filter_map(|line| line.get(9).copied())
        .collect();
    // One event loop may have several descriptors; it watches the same connections through each.
    let mut loops = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        let text = fs::read_to_string(entry?.path()).unwrap_or_default();
        let watched: BTreeSet<u64> = text
            .lines()
            .filter(|line| line.starts_with("tfd:"))
            .filter_map(|line| line.split_once("ino:"))
            .filter_map(|(_, rest)| u64::from_str_radix(rest.split(' ').next()?, 16).ok())
            .filter(|inode| accepted.contains(inode.to_string().as_str()))
            .collect();
        loops.insert(watched);
    }
    let connections: usize = loops.iter().map(BTreeSet::len).sum();
    let most = loops.iter().map(BTreeSet::len).max().unwrap_or(0);
    Ok(Share {
        connections,
        percent: 100.0 * most as f64 / connections.max(1) as f64,
    })
}
