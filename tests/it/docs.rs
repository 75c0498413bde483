//! The pages say what the code does: labels, metrics, fields, configuration blocks, links.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forecourt::config::{self, Format};
use forecourt::observe::{Line, NAMES, Rfc3339, Timestamp};
use forecourt::protocol::{Noted, Outcome, Step};

use crate::support::gateway::dealer_with;
use crate::support::tls::Authority;
use crate::support::token::{Key, set};
use crate::support::{Gateway, Upstream};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<_> = ["", "docs", "docs/adr", "deploy"]
        .iter()
        .flat_map(|directory| fs::read_dir(root().join(directory)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .collect();
    pages.sort();
    assert!(pages.len() >= 21, "the walker found {pages:?}");
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
fn every_page_is_reached_from_the_readme() {
    let mut reached = BTreeSet::from([root().join("README.md")]);
    let mut open: Vec<_> = reached.iter().cloned().collect();
    while let Some(page) = open.pop() {
        let text = fs::read_to_string(&page).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split([')', '#']).next().unwrap();
            let led_to = page.parent().unwrap().join(target);
            let Ok(led_to) = led_to.canonicalize() else {
                continue;
            };
            if led_to.extension().is_some_and(|it| it == "md") && reached.insert(led_to.clone()) {
                open.push(led_to);
            }
        }
    }
    for page in pages() {
        let page = page.canonicalize().unwrap();
        assert!(reached.contains(&page), "{}", page.display());
    }
}

#[test]
fn every_configuration_on_a_page_loads() {
    let least = page("config/minimal.toml");
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for rest in text.split("```toml\n").skip(1) {
            let block = rest.split("```").next().unwrap();
            // A block without a listener is a fragment: the rest is the least there can be.
            let whole = if block.contains("[listener.") {
                block.to_owned()
            } else {
                format!("{block}\n{least}")
            };
            let env = |name: &str| name.ends_with("_TOKEN").then(|| "token".to_owned());
            let parsed = config::parse(&whole, Format::Toml, &page, &env);
            parsed.unwrap_or_else(|problems| panic!("{problems}\n{block}"));
            count += 1;
        }
    }
    assert!(count >= 8, "the reader found {count} blocks");
}

/// The cells of a table's rows, the table being the one under this heading row.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, after) = page.split_once(heading).unwrap();
    after
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells = line.trim_matches('|').split(" | ");
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect()
}

#[test]
fn the_metrics_table_is_the_list_of_metrics() {
    let upstream = Upstream::recording();
    let quota = "[store.s]\nurl = \"redis://127.0.0.1:1\"\n\
                 [quota.q]\nper = \"all\"\nrate = \"1/s\"\n\
                 [quota.r]\nper = \"all\"\nrate = \"1/s\"\nstore = \"s\"\n";
    let caller = format!("[caller.acme]\nkey_sha256 = \"{:064}\"\n", 0);
    let certificates = tempfile::tempdir().unwrap();
    let keys = certificates.path().join("keys.json");
    fs::write(&keys, set([Key::ed25519().jwk("k")])).unwrap();
    let issuer = format!(
        "[issuer.idp]\nissuer = \"i\"\naudience = \"a\"\njwks = \"{}\"\n",
        keys.display()
    );
    let issued = Authority::new("roots").issue(&["gw.example"]);
    issued.write(certificates.path(), "gw");
    let at = certificates.path().join("gw").display().to_string();
    let secure = format!(
        "[listener.secure]\naddress = \"127.0.0.1:0\"\n\
         tls = {{ certificate = \"{at}.pem\", key = \"{at}.key\" }}\n"
    );
    let gateway = Gateway::start(&format!(
        "{}{quota}{caller}{issuer}{secure}",
        dealer_with(
            &upstream,
            "",
            "quotas = [\"q\", \"r\"]\nauthenticate = \"optional\""
        )
    ));
    let series: Vec<_> = gateway.metrics().into_keys().collect();
    let rows = rows(&page("docs/operations.md"), "| metric | labels | tells |");
    let listed: Vec<_> = rows
        .iter()
        .map(|row| (row[0].trim_matches('`'), row[2].as_str()))
        .collect();
    assert_eq!(listed, NAMES);
    for row in rows {
        let name = row[0].trim_matches('`');
        let labels: Vec<_> = row[1]
            .split(", ")
            .map(|label| label.trim_matches('`'))
            .collect();
        let one = series.iter().find(|it| {
            let of = it.split('{').next().unwrap();
            of == name || of.strip_suffix("_count") == Some(name)
        });
        let one = one.unwrap_or_else(|| panic!("no series of {name}"));
        let inside = one.split_once('{').map_or("", |(_, rest)| rest);
        let mut found: Vec<_> = inside
            .split(',')
            .map(|label| label.split('=').next().unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(found, labels, "{name}");
    }
}

#[test]
fn the_access_log_table_is_the_fields_of_a_line() {
    // Every field by name, so that a new one has to be put here.
    let line = Line {
        ts: Timestamp::UNIX_EPOCH,
        request_id: Some(b"r"),
        trace_id: Some("0af7"),
        span_id: Some("b7ad"),
        client_ip: Some("192.0.2.7"),
        peer_ip: Some("10.0.0.1"),
        listener: Some("public"),
        tls_version: Some("TLSv1.3"),
        sni: Some("gw.example"),
        protocol: Some("HTTP/1.1"),
        method: Some("POST"),
        host: Some(b"h"),
        path: Some("/"),
        endpoint: Some("e"),
        contract: Some("c"),
        caller: Some("nobody"),
        rpc_method: Some(b"m"),
        rpc_id: Some(b"1"),
        skill: Some(b"s"),
        supplied: Noted::read(Some("1.0"), Some(["aap/3.0"].into_iter()), 1),
        normalized: &["a2a-version"],
        status: Some(200),
        rpc_code: Some(1),
        outcome: Outcome::Ok,
        error_id: Some("i"),
        quota: Some("q"),
        cost: Some(10),
        limit_source: Some("local"),
        limit_remaining: Some(1),
        retry_after_ms: Some(1),
        reported: Step::ALL.into_iter().collect(),
        stripped_query: true,
        why: Some("w"),
        upstream: Some("u"),
        attempts: Some(2),
        bytes_in: 1,
        bytes_out: 1,
        duration: Duration::ZERO,
        upstream_duration: Some(Duration::ZERO),
        overhead: Some(Duration::ZERO),
        user_agent: Some(b"a"),
        generation: 1,
        config_hash: *b"1f40fc92",
        sampled: Some(100_000),
    };
    let mut written = Vec::new();
    line.append(&mut written, &mut Rfc3339::default());
    let written = String::from_utf8(written).unwrap();
    let rows = rows(&page("docs/operations.md"), "| field | there | says |");
    let mut rest = written.as_str();
    for row in &rows {
        let field = row[0].trim_matches('`');
        let (_, after) = rest
            .split_once(&format!("\"{field}\":"))
            .unwrap_or_else(|| panic!("{field} is not next in {written}"));
        rest = after;
    }
    let value: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(value.as_object().unwrap().len(), rows.len());
    // What is always there.
    let mut least = Vec::new();
    Line::new(Timestamp::UNIX_EPOCH, Outcome::Ok).append(&mut least, &mut Rfc3339::default());
    let least: serde_json::Value = serde_json::from_slice(&least).unwrap();
    let always = rows.iter().filter(|row| row[1] == "always");
    let always: BTreeSet<_> = always.map(|row| row[0].trim_matches('`')).collect();
    let least: BTreeSet<_> = least
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(always, least);
}

#[test]
fn the_lexicon_is_in_order_and_names_files_that_exist() {
    let rows = rows(&page("docs/lexicon.md"), "| word | means | stands in |");
    let words: Vec<_> = rows.iter().map(|row| &row[0]).collect();
    assert!(words.is_sorted(), "{words:?}");
    assert!(words.len() >= 25);
    for row in &rows {
        let Some(place) = row.get(2).map(|it| it.trim_matches('`')) else {
            continue;
        };
        let place = place.strip_prefix("src/").unwrap_or(place);
        assert!(root().join("src").join(place).exists(), "{place}");
    }
}

#[test]
fn the_project_speaks_of_itself_alone() {
    // Names of places and tools that belong to no reader of these pages.
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for word in ["/home/", "/root/", "/tmp/", "TODO", "FIXME"] {
            assert!(!text.contains(word), "{} says {word}", page.display());
        }
    }
}
