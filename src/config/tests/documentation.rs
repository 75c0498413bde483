//! Examples and documentation: everything loads, and every key is spoken of.

use super::*;
use crate::config::report::Report;

const EXAMPLES: usize = 5;
const BLOCKS: usize = 16;

#[test]
fn examples_load_without_a_word() {
    let mut count = 0;
    for entry in fs::read_dir(repository("config")).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("forecourt.schema.json") {
            continue;
        }
        count += 1;
        let tokens = |name: &str| name.ends_with("_TOKEN").then(|| "token".to_owned());
        let settings = load(&path, &tokens).unwrap_or_else(|problems| panic!("{problems}"));
        assert!(settings.warnings.is_empty(), "{}", settings.warnings);
    }
    assert_eq!(count, EXAMPLES);
}

/// Every key the reader asks for, by section.
fn keys() -> Vec<(&'static str, &'static str)> {
    let text =
        fs::read_to_string(repository("tests/fixtures/config/good/design-both.toml")).unwrap();
    let text = format!(
        "{text}\n[quota.spare]\nper = \"all\"\nrate = \"1/s\"\n[plan.spare.quotas.spare]\nburst = 2\n\
         [caller.spare]\nkey_sha256 = \"{0:064}\"\n\
         [issuer.spare]\nissuer = \"i\"\naudience = \"a\"\njwks = \"k\"\n\
         [store.spare]\nurl = \"redis://a\"\n[reload.rollback_on_errors]\n[listener.spare]\n\
         address = \"127.0.0.1:0\"\nproxy_protocol = {{ trusted = [\"10.0.0.0/8\"] }}\n\
         tls = {{ certificate = \"a\", key = \"b\", certificates = [{{ certificate = \"c\", key = \"d\" }}] }}\n",
        0
    );
    let report = Report::new(&text, Path::new("f"));
    settings(
        &Sources::of(&text, Format::Toml, Path::new("f")),
        &env,
        &report,
    )
    .unwrap();
    let known = report.known();
    known
        .into_iter()
        .flat_map(|(section, keys)| keys.into_iter().map(move |key| (section, key)))
        .collect()
}

#[test]
fn the_full_example_names_every_key() {
    let text = fs::read_to_string(repository("config/forecourt.toml")).unwrap();
    let keys = keys();
    assert_eq!(keys.len(), 135);
    for (section, key) in keys {
        let is_named = match section {
            "the file" if key == "include" => text.contains("\n# include = [\""),
            "the file" => text.contains(&format!("\n[{key}")),
            // A table of its own: too long for a line.
            "[listener.NAME]" if key == "tls" => text.contains(".tls]"),
            "`rollback_on_errors`" => text.contains(&format!("{key} = ")),
            "`proxy_protocol`" => text.contains(&format!("{key} = [")),
            _ => text.lines().any(|line| {
                let line = line.trim_start_matches(['#', ' ']);
                line.split('=')
                    .next()
                    .is_some_and(|name| name.trim() == key)
            }),
        };
        assert!(is_named, "{section} {key}");
    }
}

fn page() -> String {
    fs::read_to_string(repository("docs/configuration.md")).unwrap()
}

#[test]
fn the_page_names_every_key() {
    let page = page();
    for (section, key) in keys() {
        let wanted = match section {
            "the file" if key != "include" => format!("[{key}"),
            _ => format!("| `{key}` |"),
        };
        assert!(page.contains(&wanted), "{section} {key}");
    }
}

/// The fenced blocks of a language.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fence = format!("```{language}\n");
    page.split(&fence)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

#[test]
fn every_block_of_the_page_loads() {
    let page = page();
    let blocks_found = blocks(&page, "toml");
    let least = fs::read_to_string(repository("config/minimal.toml")).unwrap();
    for block in &blocks_found {
        // A block without a listener is a fragment: the rest is the least there can be.
        let text = if block.contains("[listener.") {
            (*block).to_owned()
        } else {
            format!("{block}\n{least}")
        };
        if let Err(problems) = toml(&text) {
            panic!("{block}\n{problems}");
        }
    }
    assert_eq!(blocks_found.len(), BLOCKS);
    for block in blocks(&page, "json") {
        let found = parse(block, Format::Json, Path::new("forecourt.json"), &env);
        assert!(found.is_ok(), "{}", found.unwrap_err());
    }
}

#[test]
fn the_output_on_the_page_is_real() {
    let page = page();
    let wrong = blocks(&page, "toml,wrong");
    let shown = blocks(&page, "text,problems");
    assert_eq!((wrong.len(), shown.len()), (1, 1));
    let found = toml(wrong[0]).unwrap_err().to_string();
    assert_eq!(found, shown[0].trim_end(), "{found}");
}
