//! What lines tell, and what is made of it.

use super::seen::Judged;
use super::*;
use crate::protocol::Outcome;
use serde_json::{Value, json};

fn v3() -> Contract {
    contract("aap/3.0").unwrap()
}

/// A line with these fields beside those that are always there.
fn line(more: Value) -> Vec<u8> {
    let mut line = json!({
        "ts": "2026-11-30T16:53:23.042Z", "request_id": "r", "endpoint": "e", "caller": "acme",
        "rpc_method": "SendMessage", "outcome": "ok", "config_hash": "1f40fc92", "generation": 1,
    });
    for (name, value) in more.as_object().unwrap() {
        line[name] = value.clone();
    }
    line.to_string().into_bytes()
}

fn judged(more: Value) -> Option<Judged> {
    Seen::read(&line(more)).unwrap().judge(&v3())
}

fn breaks(outcome: Outcome, said: &str) -> Option<Judged> {
    Some(Judged::Breaks(outcome, said.to_owned()))
}

#[test]
fn each_call_is_judged_as_the_gateway_would() {
    use Outcome::{ExtensionRequired, MethodNotFound, VersionNotSupported};
    for (more, expected) in [
        // What is absent is inferred.
        (json!({}), Some(Judged::Ready)),
        (json!({ "a2a_version": "1.0" }), Some(Judged::Ready)),
        (
            json!({ "a2a_version": "1.0", "a2a_extensions": ["aap/1.2", "aap/3.0"] }),
            Some(Judged::Ready),
        ),
        (
            json!({ "a2a_version": "0.3" }),
            breaks(VersionNotSupported, "A2A-Version 0.3"),
        ),
        (
            json!({ "a2a_version": "empty" }),
            breaks(VersionNotSupported, "A2A-Version empty"),
        ),
        (
            json!({ "a2a_version": "several" }),
            breaks(VersionNotSupported, "A2A-Version several"),
        ),
        (
            json!({ "a2a_version": "invalid" }),
            breaks(VersionNotSupported, "A2A-Version invalid"),
        ),
        (
            json!({ "a2a_extensions": [] }),
            breaks(ExtensionRequired, "A2A-Extensions lists nothing"),
        ),
        (
            json!({ "a2a_extensions": ["aap/1.3"], "other_extensions": 2 }),
            breaks(ExtensionRequired, "A2A-Extensions lists aap/1.3, 2 others"),
        ),
        (
            json!({ "a2a_extensions": ["pinned"] }),
            breaks(ExtensionRequired, "A2A-Extensions lists pinned"),
        ),
        (
            json!({ "rpc_method": "message/send" }),
            breaks(MethodNotFound, "message/send"),
        ),
        (
            json!({ "rpc_method": "SendStreamingMessage" }),
            Some(Judged::Ready),
        ),
        // No call.
        (json!({ "rpc_method": null }), None),
        // Lines of before these fields.
        (json!({ "config_hash": null }), Some(Judged::Unknown)),
        (
            json!({ "config_hash": null, "normalized": ["a2a-version"] }),
            Some(Judged::Unknown),
        ),
        (
            json!({ "config_hash": null, "normalized": ["a2a-version", "a2a-extensions"] }),
            Some(Judged::Ready),
        ),
        (
            json!({ "config_hash": null, "rpc_method": "tasks/get" }),
            breaks(MethodNotFound, "tasks/get"),
        ),
    ] {
        assert_eq!(judged(more.clone()), expected, "{more}");
    }
}

#[test]
fn a_contract_that_infers_nothing_or_requires_nothing_is_judged_as_such() {
    let seen = Seen::read(&line(json!({ "a2a_extensions": ["aap/3.0"] }))).unwrap();
    let older = contract("aap/1.3").unwrap();
    assert_eq!(seen.judge(&older), Some(Judged::Ready));
    for wrong in ["aap/2.0", "aap/9.9", "3.0", ""] {
        assert!(contract(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_none_of_ours_is_told_from_what_is() {
    for foreign in [
        &b"not json"[..],
        b"{}",
        b"[]",
        b"{\"ts\":\"2026-11-30T16:53:23.042Z\"}",
        b"{\"ts\":\"yesterday\",\"outcome\":\"ok\"}",
        b"{\"ts\":\"2026-11-30T16:53:23.042Z\",\"outcome\":7}",
        b"{\"ts\":\"2026-11-30T16:53:23.042Z\",\"outcome\":\"ok\",\"caller\":[]}",
        b"{\"ts\":\"2026-11-30T16:53:23.042Z\",\"outcome\":\"ok\",\"sampled\":-1}",
        b"192.0.2.7 - - [30/Nov/2026:16:53:23 +0000] \"POST /a2a HTTP/1.1\" 200 1 \"-\" \"-\" \"r\" ok",
        b"\xff\xfe",
        b"{\"ts\":\"2026-11-30T16:53:23.042Z\",\"outcome\":\"ok\"",
    ] {
        assert!(Seen::read(foreign).is_none(), "{}", String::from_utf8_lossy(foreign));
    }
    let least = b"{\"ts\":\"2026-11-30T16:53:23.042Z\",\"outcome\":\"ok\",\"more\":{\"a\":[1]}}";
    assert!(Seen::read(least).is_some());
}

#[test]
fn lines_that_were_sampled_stand_for_the_others() {
    let mut tally = Tally::default();
    for more in [
        json!({ "sampled": 10 }),
        json!({ "sampled": 30 }),
        json!({ "outcome": "version_not_supported", "a2a_version": "0.3" }),
    ] {
        let seen = Seen::read(&line(more)).unwrap();
        let judged = seen.judge(&v3());
        tally.add(&seen, judged);
    }
    let report = tally.report("aap/3.0", None, None);
    assert!(report.is_estimate);
    assert_eq!(
        (report.sum.ready.whole(), report.sum.breaks.whole()),
        (13, 1)
    );
    assert_eq!(report.is_ready(), Some(false));
}

#[test]
fn nothing_in_a_log_reaches_a_terminal_that_is_not_plain() {
    let mut tally = Tally::default();
    let nasty = "\u{1b}[31mred\u{202e}<b>\n";
    let seen = Seen::read(&line(json!({
        "caller": nasty, "request_id": nasty, "rpc_method": "message/send",
    })));
    let seen = seen.unwrap();
    let judged = seen.judge(&v3());
    tally.add(&seen, judged);
    let text = show::text(&tally.report("aap/3.0", None, None));
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n');
    assert!(text.bytes().all(plain), "{text}");
    assert_eq!(text.lines().count(), 4, "{text}");
}
