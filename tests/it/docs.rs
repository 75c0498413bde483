//! The pages say what the code does: labels, configuration blocks, links.

use std::fs;
use std::path::{Path, PathBuf};

use forecourt::config::{self, Format};
use forecourt::protocol::Outcome;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<_> = ["", "docs", "deploy"]
        .iter()
        .flat_map(|directory| fs::read_dir(root().join(directory)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .collect();
    pages.sort();
    assert!(pages.len() >= 8, "the walker found {pages:?}");
    pages
}

#[test]
fn the_errors_page_lists_exactly_the_outcomes() {
    let page = page("docs/errors.md");
    let table = page.split("## Outcomes").nth(1).unwrap();
    let mut listed: Vec<_> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let mut labels: Vec<_> = Outcome::ALL.iter().map(|outcome| outcome.label()).collect();
    listed.sort_unstable();
    labels.sort_unstable();
    assert_eq!(listed, labels);
}

#[test]
fn every_link_into_the_project_leads_somewhere() {
    let mut links = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap();
            if target.contains("://") || target.starts_with('#') {
                continue;
            }
            let file = target.split('#').next().unwrap();
            let led_to = page.parent().unwrap_or(Path::new("")).join(file);
            assert!(led_to.exists(), "{}: {target}", page.display());
            links += 1;
        }
    }
    assert!(links >= 5, "the reader found {links} links");
}

#[test]
fn the_readme_s_configuration_loads() {
    let readme = page("README.md");
    let blocks: Vec<_> = readme
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let parsed = config::parse(block, Format::Toml, Path::new("README.md"), &|_| None);
        let settings = parsed.unwrap_or_else(|problems| panic!("{problems}\n{block}"));
        assert!(settings.not_yet().is_empty(), "{block}");
    }
}

#[test]
fn the_project_speaks_of_itself_alone() {
    // Names of places and tools that belong to no reader of these pages.
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for word in ["/work/", "/root/", "/tmp/", "TODO", "FIXME"] {
            assert!(!text.contains(word), "{} says {word}", page.display());
        }
    }
}
