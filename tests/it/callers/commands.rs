//! `forecourt key`.

use super::*;
use crate::support::process::feed;

#[test]
fn a_new_key_is_told_once_and_its_table_loads() {
    let ended = run(&["key", "new", "acme"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let key = ended.stdout.strip_suffix('\n').unwrap();
    assert!(key.starts_with("fc_") && key.len() == 46, "{key}");
    assert!(!ended.stderr.contains(key));
    assert_ne!(run(&["key", "new", "acme"]).stdout, ended.stdout);

    // What is printed is what the gateway takes.
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&configuration(
        &upstream,
        &ended.stderr,
        "authenticate = \"required\"",
    ));
    let mut client = gateway.client();
    assert_eq!(ask(&mut client, &[("X-Api-Key", key)]).status, 200);
    assert_eq!(gateway.last_line()["caller"], "acme");

    let hashed = feed(&["key", "hash"], format!("{key}\n").as_bytes());
    assert_eq!((hashed.code, &*hashed.stderr), (Some(0), ""));
    assert!(ended.stderr.contains(hashed.stdout.trim()));
}

#[test]
fn names_and_keys_that_cannot_be_are_refused() {
    for name in ["", "a b", "a/b", "é", &"a".repeat(65)] {
        let ended = run(&["key", "new", name]);
        assert_eq!(ended.code, Some(2), "{name}");
        assert_eq!(ended.stdout, "", "{name}");
    }
    let dotted = run(&["key", "new", "a.b"]);
    assert!(
        dotted.stderr.contains("[caller.\"a.b\"]"),
        "{}",
        dotted.stderr
    );
    for key in [
        &b""[..],
        b"\n",
        b"a b\n",
        b" k\n",
        b"k\n\n",
        b"\xff\n",
        &[b'k'; 5000],
    ] {
        let ended = feed(&["key", "hash"], key);
        assert_eq!(ended.code, Some(1), "{key:?}");
        assert_eq!(ended.stdout, "", "{key:?}");
    }
    // The end of a line is not the key's, in either spelling.
    let digest = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\n";
    for key in ["foo", "foo\n", "foo\r\n"] {
        let ended = feed(&["key", "hash"], key.as_bytes());
        assert_eq!((ended.code, &*ended.stdout), (Some(0), digest));
        assert!(ended.stderr.contains("guessed"), "{}", ended.stderr);
    }
}
