//! The house rules that a compiler does not hold: who may import whom, where error bodies and wire
//! numbers stand, what every file opens with. Reads the sources as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which rooms a room may import. A room that is not listed here may not exist.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("config", &["protocol"]),
    ("credential", &["config", "http1"]),
    ("limit", &["protocol", "config", "http1"]),
    ("http1", &["protocol"]),
    ("wire", &[]),
    ("upstream", &["config", "http1", "wire"]),
    ("observe", &["protocol"]),
    (
        "state",
        &[
            "protocol",
            "config",
            "credential",
            "http1",
            "limit",
            "upstream",
            "observe",
        ],
    ),
    (
        "proxy",
        &[
            "protocol",
            "http1",
            "credential",
            "limit",
            "upstream",
            "state",
            "observe",
        ],
    ),
    (
        "listen",
        &["protocol", "config", "http1", "wire", "state", "observe"],
    ),
    (
        "admin",
        &[
            "protocol",
            "config",
            "credential",
            "limit",
            "state",
            "observe",
            "proxy",
        ],
    ),
    ("demo", &["protocol", "config", "app"]),
    (
        "app",
        &[
            "protocol", "config", "http1", "limit", "upstream", "observe", "state", "proxy",
            "listen", "admin",
        ],
    ),
    ("cli", &["protocol", "config", "credential", "app", "demo"]),
];

/// The most production lines of a file: those above its tests.
const LONGEST: usize = 420;

struct Source {
    path: String,
    room: String,
    /// The whole text.
    text: String,
    /// What stands above `#[cfg(test)]`, without comments.
    code: String,
    is_test: bool,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    walk(&root().join("src"), &mut files);
    files.sort();
    let sources: Vec<_> = files.iter().map(|file| read(file)).collect();
    assert!(
        sources.len() >= 60,
        "the walker found {} files",
        sources.len()
    );
    sources
}

fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
}

fn read(file: &Path) -> Source {
    let text = fs::read_to_string(file).unwrap();
    let path = file
        .strip_prefix(root())
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let room = path.split(['/', '.']).nth(1).unwrap().to_owned();
    let production = text.split("#[cfg(test)]").next().unwrap();
    let code = production
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
    Source {
        path,
        room,
        text,
        code,
        is_test,
    }
}

/// Every room named after `crate::` in the code, groups over several lines included.
fn imported_rooms(code: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            // The heads of a group's entries at its first level.
            let mut depth = 0;
            let mut head = String::new();
            for char in group.chars() {
                match char {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        rooms.insert(first_name(&head));
                        head.clear();
                    }
                    _ if depth == 0 => head.push(char),
                    _ => {}
                }
            }
            rooms.insert(first_name(&head));
        } else {
            rooms.insert(first_name(rest));
        }
    }
    rooms.remove("");
    rooms
}

fn first_name(text: &str) -> String {
    text.trim_start()
        .chars()
        .take_while(|char| char.is_alphanumeric() || *char == '_')
        .collect()
}

#[test]
fn rooms_import_only_downward() {
    let allowed: BTreeMap<_, _> = MAY_IMPORT.iter().copied().collect();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for source in sources() {
        if matches!(source.room.as_str(), "lib" | "main") {
            continue;
        }
        let Some(may) = allowed.get(source.room.as_str()) else {
            wrong.push(format!("{}: a room with no storey", source.path));
            continue;
        };
        seen.insert(source.room.clone());
        for room in imported_rooms(&source.code) {
            if room != source.room && !may.contains(&room.as_str()) {
                wrong.push(format!("{} imports {room}", source.path));
            }
        }
        // A chain of `super` that leaves the room would slip past the rule above.
        let depth = source.path.matches('/').count();
        if source.code.contains(&"super::".repeat(depth)) && !source.path.ends_with("/mod.rs") {
            wrong.push(format!("{} leaves its room through super", source.path));
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert_eq!(
        seen.len(),
        MAY_IMPORT.len(),
        "rooms listed but not there: {seen:?}"
    );
}

#[test]
fn the_rule_above_can_fail() {
    let planted =
        "use crate::{\n    config::{a, b},\n    state::snapshot,\n};\nlet x = crate::proxy::Body;";
    let rooms: Vec<_> = imported_rooms(planted).into_iter().collect();
    assert_eq!(rooms, ["config", "proxy", "state"]);
}

#[test]
fn the_core_is_pure() {
    let forbidden = [
        "tokio",
        "hyper",
        "tower",
        "tracing",
        "arc_swap",
        "parking_lot",
        "fastrand",
        "Instant",
        "SystemTime",
        "std::net::Tcp",
        "std::process",
        "std::thread",
        "std::env",
        "println!",
        "async fn",
        "uuid",
    ];
    let only_in_protocol = ["std::fs", "std::net"];
    for source in sources() {
        let is_protocol = source.room == "protocol";
        if source.is_test || (!is_protocol && source.room != "config") {
            continue;
        }
        for word in forbidden {
            assert!(!source.code.contains(word), "{} names {word}", source.path);
        }
        for word in only_in_protocol {
            assert!(
                !(is_protocol && source.code.contains(word)),
                "{} names {word}",
                source.path
            );
        }
    }
}

#[test]
fn the_request_path_never_sees_the_configuration() {
    for source in sources().iter().filter(|source| source.room == "proxy") {
        assert!(!source.code.contains("config::"), "{}", source.path);
    }
}

#[test]
fn every_file_says_what_it_decides() {
    for source in sources() {
        assert!(
            source.text.starts_with("//! "),
            "{} does not open with //!",
            source.path
        );
    }
}

#[test]
fn files_stay_readable() {
    for source in sources() {
        let lines = source
            .text
            .split("#[cfg(test)]")
            .next()
            .unwrap()
            .lines()
            .count();
        let is_long = !source.is_test && lines > LONGEST;
        assert!(
            !is_long,
            "{} has {lines} lines above its tests",
            source.path
        );
    }
}

#[test]
fn the_feature_gate_stands_in_one_file() {
    for source in sources() {
        let gated = source.text.contains("cfg(feature") || source.text.contains("cfg!(feature");
        assert_eq!(gated, source.path == "src/lib.rs", "{}", source.path);
    }
}

#[test]
fn error_bodies_are_made_in_one_room_and_sent_from_one_file() {
    for source in sources() {
        if source.is_test || source.room == "demo" {
            // The demo's dealer and walk spell answers by hand: that is what they are for.
            continue;
        }
        let makes = source.code.contains("\"error\":") || source.code.contains(r#"\"error\":"#);
        let in_dialect = source.path.starts_with("src/protocol/dialect/");
        assert!(!makes || in_dialect, "{} spells an error body", source.path);
        let renders = source.code.contains("render(refusal");
        let may = source.path == "src/proxy/respond.rs"
            || source.path.starts_with("src/protocol/dialect/");
        assert!(!renders || may, "{} renders a refusal", source.path);
    }
}

#[test]
fn wire_numbers_stand_once_in_the_dialects() {
    let mut found = 0;
    for source in sources() {
        if source.is_test || source.room == "demo" {
            continue;
        }
        let numbers: Vec<&str> = source
            .code
            .match_indices("-32")
            .filter_map(|(at, _)| source.code.get(at..at + 6))
            .filter(|number| number[1..].bytes().all(|byte| byte.is_ascii_digit()))
            .collect();
        if !source.path.starts_with("src/protocol/dialect/") {
            assert!(numbers.is_empty(), "{} names {numbers:?}", source.path);
            continue;
        }
        let distinct: BTreeSet<_> = numbers.iter().collect();
        assert_eq!(
            distinct.len(),
            numbers.len(),
            "{} repeats a number",
            source.path
        );
        found += numbers.len();
    }
    assert!(found >= 20, "the reader found {found} numbers");
}

#[test]
fn no_file_name_says_nothing() {
    let empty = [
        "util", "utils", "helper", "helpers", "common", "misc", "manager",
    ];
    for source in sources() {
        let names = source.path.split(['/', '.']);
        assert!(
            names.clone().all(|name| !empty.contains(&name)),
            "{}",
            source.path
        );
    }
}
