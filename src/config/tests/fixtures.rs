//! Every fixture: `good/` loads without a problem, `bad/` prints exactly its `.problems` file, which
//! `UPDATE_GOLDEN=1` rewrites.

use super::*;

/// How many there are, so that a walker that finds nothing fails.
const GOOD: usize = 18;
const BAD: usize = 76;

fn files(directory: &str) -> Vec<PathBuf> {
    let directory = repository("tests/fixtures/config").join(directory);
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml" || e == "json"))
        .collect();
    files.sort();
    files
}

/// Loads a fixture under its bare name, so that problems do not carry the machine's paths.
fn load_fixture(path: &Path) -> Result<Settings, Problems> {
    let text = fs::read_to_string(path).unwrap();
    let name = Path::new(path.file_name().unwrap());
    parse(&text, Format::of(path), name, &env)
}

#[test]
fn good_files_load() {
    let files = files("good");
    for path in &files {
        if let Err(problems) = load_fixture(path) {
            panic!("{}:\n{problems}", path.display());
        }
    }
    assert_eq!(files.len(), GOOD);
}

#[test]
fn bad_files_give_exactly_their_problems() {
    let files = files("bad");
    let mut differing = Vec::new();
    for path in &files {
        let found = match load_fixture(path) {
            Err(problems) => format!("{problems}\n"),
            Ok(settings) => format!("{}\n", settings.warnings),
        };
        assert!(!found.contains("s3cret"), "{}:\n{found}", path.display());
        let golden = path.with_extension("problems");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&golden, &found).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if found != expected {
            differing.push(format!("{}:\n{found}", path.display()));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert_eq!(files.len(), BAD);
}
