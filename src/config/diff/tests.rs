//! Every kind of table is compared, and no secret shown.

use std::path::Path;

use super::*;
use crate::config::{Format, parse, schema};

/// One of each kind of table, with secrets.
const WHOLE: &str = r#"
[runtime]
workers = 2
[listener.a]
address = "127.0.0.1:1"
tls = { certificate = "c.pem", key = "k.pem", certificates = [{ certificate = "d.pem", key = "l.pem" }] }
[admin]
address = "127.0.0.1:2"
[limits]
body = "1MiB"
[log]
level = "info"
[shutdown]
timeout = "25s"
[reload]
keep = 10
[callers]
identify = ["address"]
[caller.a]
key_sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
plan = "a"
[issuer.a]
issuer = "i"
audience = "a"
jwks = "keys.json"
[quota.a]
per = "caller"
rate = "60/min"
store = "a"
[store.a]
url = "redis://s"
password = "s3cret-1"
[plan.a.quotas]
a = { rate = "120/min" }
[upstream.a]
url = "http://u"
headers = { authorization = "s3cret-1", x-plain = "s3cret" }
[contract.a]
extension = "https://a.example/v1"
[endpoint.a]
path = "/a"
contract = "a"
upstream = "a"
authenticate = "optional"
quotas = ["a"]
"#;

/// For each kind of table: what is written instead of what, and how that reads.
const CHANGES: [(&str, &str, &str, &str); 16] = [
    (
        "runtime",
        "workers = 2",
        "workers = 3",
        "runtime ~ workers: 2 -> 3",
    ),
    (
        "listener",
        "certificate = \"d.pem\"",
        "certificate = \"e.pem\"",
        "listener.a ~ tls.certificates[0].certificate: \"d.pem\" -> \"e.pem\"",
    ),
    (
        "admin",
        "127.0.0.1:2",
        "127.0.0.1:3",
        "admin ~ address: \"127.0.0.1:2\" -> \"127.0.0.1:3\"",
    ),
    (
        "limits",
        "1MiB",
        "2MiB",
        "limits ~ body: \"1MiB\" -> \"2MiB\"",
    ),
    (
        "log",
        "\"info\"",
        "\"warn\"",
        "log ~ level: \"info\" -> \"warn\"",
    ),
    (
        "shutdown",
        "\"25s\"",
        "\"26s\"",
        "shutdown ~ timeout: \"25s\" -> \"26s\"",
    ),
    (
        "reload",
        "keep = 10",
        "keep = 11",
        "reload ~ keep: 10 -> 11",
    ),
    (
        "callers",
        "[\"address\"]",
        "[\"header:x-k\", \"address\"]",
        "callers ~ identify: [\"address\"] -> [\"header:x-k\",\"address\"]",
    ),
    (
        "caller",
        "plan = \"a\"\n",
        "",
        "caller.a ~ plan: \"a\" -> nothing",
    ),
    (
        "issuer",
        "audience = \"a\"",
        "audience = \"b\"",
        "issuer.a ~ audience: [\"a\"] -> [\"b\"]",
    ),
    (
        "quota",
        "\"60/min\"",
        "\"90/min\"",
        "quota.a ~ rate: \"1/s\" -> \"90/min\"; burst: 60 -> 90",
    ),
    (
        "store",
        "s3cret-1\"\n[plan",
        "s3cret-2\"\n[plan",
        "store.a ~ password: \"***\" -> \"***\" (secret)",
    ),
    (
        "plan",
        "\"120/min\"",
        "\"180/min\"",
        "plan.a ~ quotas.a.rate: \"2/s\" -> \"3/s\"; quotas.a.burst: 120 -> 180",
    ),
    (
        "upstream",
        "authorization = \"s3cret-1\"",
        "authorization = \"s3cret-2\"",
        "upstream.a ~ headers.authorization: \"***\" -> \"***\" (secret)",
    ),
    (
        "contract",
        "https://a.example/v1",
        "https://a.example/v2",
        "endpoint.a ~ extension: \"https://a.example/v1\" -> \"https://a.example/v2\" | \
         contract.a ~ extension: \"https://a.example/v1\" -> \"https://a.example/v2\"",
    ),
    (
        "endpoint",
        "path = \"/a\"",
        "path = \"/b\"",
        "endpoint.a ~ path: \"/a\" -> \"/b\"",
    ),
];

fn settings(text: &str) -> Settings {
    parse(text, Format::Toml, Path::new("f"), &|_| None).unwrap_or_else(|it| panic!("{it}"))
}

fn told(found: &[Difference]) -> String {
    let tables = found.iter().map(|table| {
        let sign = match table.change {
            Change::Added => "+",
            Change::Removed => "-",
            Change::Changed => "~",
        };
        let keys = table.keys.iter().map(|key| {
            let value = |shown: &Option<Shown>| {
                shown
                    .as_ref()
                    .map_or("nothing".to_owned(), ToString::to_string)
            };
            let secret = if key.secret { " (secret)" } else { "" };
            let (before, after) = (value(&key.before), value(&key.after));
            format!("{}: {before} -> {after}{secret}", key.key)
        });
        let keys: Vec<_> = keys.collect();
        format!("{} {sign} {}", table.path(), keys.join("; "))
    });
    tables.collect::<Vec<_>>().join(" | ")
}

#[test]
fn every_kind_of_table_is_compared_key_by_key() {
    let before = settings(WHOLE);
    assert_eq!(differences(&before, &settings(WHOLE)), []);
    for (kind, from, to, wanted) in CHANGES {
        assert_eq!(WHOLE.matches(from).count(), 1, "{kind}: {from}");
        let after = settings(&WHOLE.replace(from, to));
        assert!(!before.serves_like(&after), "{kind}");
        assert_eq!(told(&differences(&before, &after)), wanted);
    }
}

/// Whoever adds a kind of table adds it above.
#[test]
fn no_kind_of_table_is_left_out() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    let mut kinds: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    kinds.retain(|kind| *kind != "include");
    let mut compared: Vec<_> = CHANGES.iter().map(|(kind, ..)| *kind).collect();
    compared.sort_unstable();
    assert_eq!(kinds, compared);
    // Those with names are told apart by them.
    for (kind, table) in schema["properties"].as_object().unwrap() {
        let is_named = table["additionalProperties"].is_object();
        assert_eq!(NAMED.contains(&kind.as_str()), is_named, "{kind}");
    }
}

#[test]
fn tables_come_and_go_with_all_they_have() {
    let named = |kind: &str| {
        let (from, table) = WHOLE.split_once(&format!("[{kind}.a]")).unwrap();
        let end = table.find("\n[").unwrap_or(table.len());
        (
            from.to_owned(),
            table[..end].to_owned(),
            table[end..].to_owned(),
        )
    };
    let before = settings(WHOLE);
    // Nothing else names these.
    for kind in ["caller", "issuer"] {
        let (from, table, rest) = named(kind);
        let without = settings(&format!("{from}{rest}"));
        let gone = differences(&before, &without);
        let came = differences(&without, &before);
        assert_eq!((gone.len(), came.len()), (1, 1), "{kind}");
        assert_eq!(
            (gone[0].change, came[0].change),
            (Change::Removed, Change::Added)
        );
        assert_eq!(gone[0].path(), format!("{kind}.a"));
        assert!(
            gone[0]
                .keys
                .iter()
                .all(|key| key.after.is_none() && key.before.is_some())
        );
        assert!(
            came[0]
                .keys
                .iter()
                .all(|key| key.before.is_none() && key.after.is_some())
        );
        assert!(table.lines().filter(|it| it.contains('=')).count() <= gone[0].keys.len());
    }
    // The rest beside one of the same kind.
    for kind in ["listener", "quota", "store", "upstream", "endpoint"] {
        let (_, table, _) = named(kind);
        let another = table
            .replace("127.0.0.1:1", "127.0.0.1:9")
            .replace("\"/a\"", "\"/z\"");
        let after = settings(&format!("{WHOLE}[{kind}.\"b.c\"]{another}\n"));
        let came = differences(&before, &after);
        assert_eq!(came.len(), 1, "{kind}: {}", told(&came));
        assert_eq!(came[0].path(), format!("{kind}.\"b.c\""));
        assert_eq!(came[0].change, Change::Added);
        assert_eq!(differences(&after, &before)[0].change, Change::Removed);
    }
}

#[test]
fn the_order_of_tables_is_no_difference() {
    let text = format!("{WHOLE}[endpoint.b]\npath = \"/b\"\nupstream = \"a\"\n");
    let (head, tail) = text.split_once("[endpoint.a]").unwrap();
    let (a, b) = tail.split_once("[endpoint.b]").unwrap();
    let turned = format!("{head}[endpoint.b]{b}[endpoint.a]{a}");
    let (one, other) = (settings(&text), settings(&turned));
    assert!(!one.serves_like(&other));
    assert_eq!(differences(&one, &other), []);
}

#[test]
fn no_secret_is_shown() {
    let before = settings(WHOLE);
    let after = settings(
        &WHOLE
            .replace("s3cret-1", "s3cret-2")
            .replace(", x-plain = \"s3cret\"", ""),
    );
    let found = differences(&before, &after);
    let shown = format!(
        "{found:?} {} {}",
        told(&found),
        serde_json::to_string(&found).unwrap()
    );
    assert!(!shown.contains("s3cret"), "{shown}");
    let secrets: Vec<_> = found
        .iter()
        .flat_map(|it| &it.keys)
        .filter(|it| it.secret)
        .collect();
    assert_eq!(secrets.len(), 3, "{}", told(&found));
}
