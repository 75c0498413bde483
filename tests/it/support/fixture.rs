//! Fixture files. Whoever walks over them says how many there must be.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// The cases of a vector file, which must be this many.
#[track_caller]
pub fn cases(name: &str, count: usize) -> Vec<Value> {
    let text = fs::read_to_string(path(name)).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let cases = file["cases"].as_array().unwrap().clone();
    assert_eq!(cases.len(), count, "cases in {name}");
    cases
}

/// Every file of a directory by name, in order, which must be this many.
#[track_caller]
pub fn files(directory: &str, count: usize) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(path(directory))
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    assert_eq!(files.len(), count, "files in {directory}");
    files
}
