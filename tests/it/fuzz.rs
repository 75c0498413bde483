//! The fuzz targets over their named seeds, on stable: what libFuzzer asks of random bytes is asked
//! here of the cases that have a name. docs/security-testing.md says what each target holds.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use forecourt::config::{Format, parse};
use forecourt::protocol::refusal::Flaw;
use forecourt::protocol::{Refusal, peek, query};

#[path = "../../fuzz/src/lib.rs"]
pub mod targets;

/// How many seeds each target has, so that a walker that finds none fails.
const SEEDS: [(&str, usize); 6] = [
    ("envelope", 35),
    ("headers", 28),
    ("judge_render", 24),
    ("query", 17),
    ("config", 29),
    ("http1", 42),
];

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz")
        .join(name)
}

/// The seeds of a target by name, in order.
fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut seeds: Vec<_> = fs::read_dir(directory("seeds").join(target))
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    seeds.sort();
    seeds
}

#[test]
fn every_target_holds_over_its_seeds() {
    let mut failed = Vec::new();
    let mut found = Vec::new();
    for (target, hold) in targets::TARGETS {
        let seeds = seeds(target);
        for (name, bytes) in &seeds {
            if catch_unwind(|| hold(bytes)).is_err() {
                failed.push(format!("{target}/{name}"));
            }
        }
        found.push((target, seeds.len()));
    }
    assert_eq!(failed, [""; 0]);
    assert_eq!(found, SEEDS);
}

#[test]
fn every_target_has_its_door_and_no_seed_is_without_a_target() {
    let names: BTreeSet<_> = targets::TARGETS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let listed = |name: &str, suffix: &str| -> BTreeSet<String> {
        fs::read_dir(directory(name))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .map(|name| name.strip_suffix(suffix).unwrap().to_owned())
            .collect()
    };
    assert_eq!(listed("seeds", ""), names);
    assert_eq!(listed("fuzz_targets", ".rs"), names);
    let manifest = fs::read_to_string(directory("Cargo.toml")).unwrap();
    for name in names {
        let door = fs::read_to_string(directory("fuzz_targets").join(format!("{name}.rs")));
        let call = format!("forecourt_fuzz::{name}(data)");
        assert!(door.unwrap().contains(&call), "{name}");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}

/// Each rule is met by a seed: a target whose seeds all end at the first check would hold, too.
#[test]
fn the_seeds_reach_every_decision() {
    let mut flaws = Vec::new();
    let (mut read, mut unreadable) = (0, 0);
    for (_, body) in seeds("envelope") {
        match peek(&body).map_err(|why| why.refusal) {
            Ok(_) => read += 1,
            Err(Refusal::InvalidRequest(flaw)) => flaws.push(flaw),
            Err(refusal) => {
                assert_eq!(refusal, Refusal::ParseError);
                unreadable += 1;
            }
        }
    }
    for flaw in [
        Flaw::Batch,
        Flaw::NotAnObject,
        Flaw::NoId,
        Flaw::IdType,
        Flaw::DuplicateId,
        Flaw::DuplicateMember,
        Flaw::JsonRpcVersion,
        Flaw::Method,
    ] {
        assert!(flaws.contains(&flaw), "{flaw:?}");
    }
    assert!(read >= 8 && unreadable >= 8, "{read} and {unreadable}");

    let mut decided = BTreeSet::new();
    for (_, case) in seeds("judge_render") {
        decided.extend(targets::outcomes(&case));
    }
    for decision in [
        "inferred",
        "listed",
        "untouched",
        "selected",
        "version_not_supported",
        "extension_required",
        "method_not_found",
        "push_not_supported",
        "invalid_request",
        "parse_error",
        "rate_limited",
        "payload_invalid",
        "upstream_timeout",
        "tenant_rejected",
        "unauthenticated",
    ] {
        assert!(decided.contains(decision), "{decision} among {decided:?}");
    }

    let stripped = seeds("query")
        .iter()
        .filter_map(|(_, query)| std::str::from_utf8(query).ok())
        .filter_map(query::strip)
        .count();
    assert!((6..17).contains(&stripped), "{stripped} are stripped");

    let env = |name: &str| {
        let mut variables = targets::ENVIRONMENT.iter();
        let variable = variables.find(|(known, _)| *known == name);
        variable.map(|(_, value)| (*value).to_owned())
    };
    let accepted = |format| {
        seeds("config")
            .iter()
            .filter_map(|(_, text)| std::str::from_utf8(text).ok())
            .filter(|text| parse(text, format, Path::new("f"), &env).is_ok())
            .count()
    };
    let (toml, json) = (accepted(Format::Toml), accepted(Format::Json));
    assert!((6..29).contains(&toml) && json >= 2, "{toml} and {json}");
}
