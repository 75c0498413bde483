//! `forecourt readiness`: what a log says of who would break is what the gateway does.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::call::call;
use crate::support::gateway::dealer_with;
use crate::support::process::{Ended, feed, run};
use crate::support::{Gateway, Post, U, Upstream};

const V12: &str = "https://autoagentprotocol.org/extensions/aap/v1.2";

/// Callers by name, and what each supplies: version, extensions, method.
const CALLERS: [(&str, Option<&str>, Option<&str>, &str); 9] = [
    ("bare", None, None, "SendMessage"),
    ("both", Some("1.0"), Some(U), "SendMessage"),
    ("patch", Some("1.0.1"), None, "SendStreamingMessage"),
    ("older", Some("0.3"), None, "SendMessage"),
    ("empty", Some(""), None, "SendMessage"),
    ("v12", Some("1.0"), Some(V12), "SendMessage"),
    ("nothing", None, Some(""), "SendMessage"),
    ("method", None, None, "message/send"),
    ("own", None, None, "vendor/extra"),
];

fn tables() -> String {
    let caller = |name: &str| {
        let digest = forecourt::credential::fresh::digest(name);
        format!("[caller.{name}]\nkey_sha256 = \"{digest}\"\n")
    };
    CALLERS.iter().map(|(name, ..)| caller(name)).collect()
}

fn request(
    (name, version, extensions, method): (&str, Option<&str>, Option<&str>, &str),
) -> Vec<u8> {
    let mut request = Post::to("/a2a").field("X-Api-Key", name);
    for (field, value) in [("A2A-Version", version), ("A2A-Extensions", extensions)] {
        if let Some(value) = value {
            request = request.field(field, value);
        }
    }
    request
        .body(call("1").replace("SendMessage", method))
        .bytes()
}

/// What each caller's one call ended in at an endpoint with this contract; and its log.
fn called(contract: &str) -> (Vec<(String, String)>, Gateway, PathBuf) {
    let upstream = Upstream::recording();
    // In report mode, so that the older contract lets through what it can.
    let lines = format!("contract = \"{contract}\"\nauthenticate = \"required\"");
    let gateway = Gateway::start(&format!(
        "{}{}",
        tables(),
        dealer_with(&upstream, "", &lines)
    ));
    for caller in CALLERS {
        gateway.ask(request(caller));
    }
    let ended = gateway.access_log().into_iter().map(|line| {
        let text = |field: &str| line[field].as_str().unwrap().to_owned();
        (text("caller"), text("outcome"))
    });
    let ended = ended.collect();
    let path = gateway.directory.path().join("access.log");
    (ended, gateway, path)
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr))
}

#[test]
fn what_a_log_says_is_what_the_gateway_does() {
    let (_, _gateway, log) = called("aap/1.3");
    let log = log.to_str().unwrap();
    let ended = run(&["readiness", "--to", "aap/3.0", "--format", "json", log]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let report = json(&ended);
    let mut told: Vec<_> = report["callers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let why = one["why"].as_array().unwrap();
            let outcome = why
                .first()
                .map_or("ok", |why| why["outcome"].as_str().unwrap());
            assert_eq!(one["calls"], 1);
            assert_eq!(one["breaks"], u64::from(!why.is_empty()));
            (
                one["caller"].as_str().unwrap().to_owned(),
                outcome.to_owned(),
            )
        })
        .collect();
    let (mut done, _gateway, _) = called("aap/3.0");
    told.sort();
    done.sort();
    assert_eq!(told, done);
    assert_eq!(
        (&report["calls"], &report["ready"], &report["breaks"]),
        (&9.into(), &4.into(), &5.into())
    );
    assert_eq!(report["lines"]["calls"], 9);
    assert_eq!(report["ready_percent"], 44.444);

    // For people.
    let ended = run(&["readiness", "--to", "aap/3.0", log]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let first = ended.stdout.lines().next().unwrap();
    assert_eq!(
        first,
        "aap/3.0: 44.444 % of 9 calls are ready; 5 of 9 callers would break"
    );
    let older = ended.stdout.lines().find(|line| line.starts_with("older"));
    assert!(
        older
            .unwrap()
            .contains("1 version_not_supported (A2A-Version 0.3; last 20"),
        "{}",
        ended.stdout
    );
    assert!(!ended.stdout.contains("\nbare"), "{}", ended.stdout);
    assert!(!ended.stdout.contains('\u{1b}'));
}

#[test]
fn files_and_pipes_good_and_bad() {
    let (_, gateway, log) = called("aap/3.0");
    let text = fs::read_to_string(&log).unwrap();
    let good: String = text
        .lines()
        .filter(|line| line.contains("\"ok\""))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(good.lines().count(), 4);
    let ended = feed(&["readiness", "--to", "aap/3.0", "-"], good.as_bytes());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("100 % of 4 calls are ready"),
        "{}",
        ended.stdout
    );

    // Lines of others, a torn one, and one that never ends.
    let torn = good.get(..100).unwrap();
    let endless = "x".repeat(1 << 20);
    let mixed = format!("hello\n\n{torn}\n{good}{{\"msg\":\"other\"}}\n{endless}");
    let ended = feed(
        &["readiness", "--to", "aap/3.0", "--format", "json", "-"],
        mixed.as_bytes(),
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report = json(&ended);
    assert_eq!(
        (&report["lines"]["foreign"], &report["lines"]["calls"]),
        (&4.into(), &4.into())
    );

    // Several files; one endpoint; from a time on.
    let log = log.to_str().unwrap();
    let asked = |more: &[&str]| {
        let mut arguments = vec!["readiness", "--to", "aap/3.0", "--format", "json"];
        arguments.extend(more);
        arguments.extend([log, log]);
        run(&arguments)
    };
    assert_eq!(json(&asked(&[]))["calls"], 18);
    assert_eq!(json(&asked(&["--endpoint", "lakeside"]))["calls"], 18);
    for (more, code) in [
        (["--endpoint", "nowhere"], Some(2)),
        (["--since", "2026-12-01T00:00:00Z"], Some(2)),
        (["--since", "2026-11-30T16:53:23Z"], Some(1)),
        (["--since", "yesterday"], Some(2)),
    ] {
        assert_eq!(asked(&more).code, code, "{more:?}");
    }
    let of_nobody = json(&asked(&["--endpoint", "nowhere"]));
    assert_eq!(
        (&of_nobody["ready_percent"], &of_nobody["lines"]["unasked"]),
        (&Value::Null, &18.into())
    );

    // What cannot be answered.
    let packed = gateway.directory.path().join("packed");
    fs::write(&packed, b"\x1f\x8b\x08rest").unwrap();
    for (arguments, told) in [
        (&["--to", "aap/9.9", log][..], "known: aap/0.1"),
        (&["--to", "aap/2.0", log], "no extension URI"),
        (&["--to", "aap/3.0", "no-such-file"], "no-such-file"),
        (&["--to", "aap/3.0", packed.to_str().unwrap()], "zcat"),
        (&["--to", "aap/3.0"], "FILE"),
        (&[log], "--to"),
    ] {
        let mut all = vec!["readiness"];
        all.extend(arguments);
        let ended = run(&all);
        assert_eq!(ended.code, Some(2), "{arguments:?}");
        assert!(
            ended.stderr.contains(told),
            "{arguments:?}: {}",
            ended.stderr
        );
    }
    assert_eq!(
        feed(&["readiness", "--to", "aap/3.0", "-"], b"").code,
        Some(2)
    );
}
