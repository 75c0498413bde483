//! What peek keeps of a body and what it refuses, on cases and on generated bodies.

use super::*;
use proptest::prelude::*;

const LEAD: &str = r#"{"jsonrpc":"2.0","id":"r1","method":"SendMessage","params":{"tenant":"t","message":{"parts":[{"data":{"type":"lead.submit.request"},"mediaType":"m"},{"data":{"type":"x","type":"y"}}]},"configuration":{"acceptedOutputModes":["a"]}}}"#;

fn flaw(body: &str) -> (Refusal, String) {
    let unreadable = peek(body.as_bytes()).unwrap_err();
    (unreadable.refusal, unreadable.id.as_str().to_owned())
}

#[test]
fn keeps_what_decisions_need_as_it_stood() {
    let envelope = peek(LEAD.as_bytes()).unwrap();
    assert_eq!(envelope.id.as_str(), "\"r1\"");
    assert_eq!(envelope.method, "SendMessage");
    assert_eq!(envelope.tenant.unwrap().as_str(), "\"t\"");
    assert_eq!(envelope.skill().unwrap(), "lead.submit");
    assert_eq!(envelope.media_type.unwrap().as_str(), "\"m\"");
    assert_eq!(envelope.accepted_output_modes.unwrap().as_str(), "[\"a\"]");
    assert!(!envelope.is_safe_to_repeat());
    for (from, to) in [
        ("request\"}", "request\",\"idempotency_key\":\"k\"}"),
        ("lead.submit", "inventory.search"),
        ("SendMessage", "GetTask"),
    ] {
        let safe = LEAD.replacen(from, to, 1);
        assert!(peek(safe.as_bytes()).unwrap().is_safe_to_repeat(), "{safe}");
    }
    for (from, to) in [
        ("request\"}", "request\",\"idempotency_key\":\"\"}"),
        ("request\"}", "request\",\"idempotency_key\":7}"),
        ("lead.submit.request", "lead.submit"),
    ] {
        let unsafe_ = LEAD.replacen(from, to, 1);
        assert!(
            !peek(unsafe_.as_bytes()).unwrap().is_safe_to_repeat(),
            "{unsafe_}"
        );
    }
}

#[test]
fn responses_tell_in_their_first_bytes_whether_they_are_errors() {
    for (start, told) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":{"a"#, Some(false)),
        (r#"{"error":{"code":-32000"#, Some(true)),
        (r#"{"id":"error","jsonrpc":"2.0","error":{}}"#, Some(true)),
        (r#"{"error":null,"result":{}}"#, Some(false)),
        (r#"{"id":{"error":1},"result":1}"#, Some(false)),
        (r#"{"jsonrpc":"2.0","id":"é"#, None),
        ("<html>", None),
        ("", None),
    ] {
        assert_eq!(is_error_response(start.as_bytes()), told, "{start}");
    }
}

#[test]
fn ids_keep_their_bytes_wherever_they_stand() {
    for id in [
        "42",
        "0",
        "-1",
        "\"\"",
        "\"0\"",
        "null",
        "1.5",
        "1.0",
        "1e2",
        "9007199254740993",
        "18446744073709551616",
        r#""\u0041\/\ud83d\ude97""#,
        "\"\\ud800\"",
    ] {
        let long = "x".repeat(900_000);
        for body in [
            format!(r#"{{"id":{id},"jsonrpc":"2.0","method":"m"}}"#),
            format!(
                r#"{{"params":{{"id":7,"a":"{long}"}},"method":"m","jsonrpc":"2.0","i\u0064":{id} }}"#
            ),
        ] {
            let envelope = peek(body.as_bytes()).unwrap();
            assert_eq!(envelope.id.as_str(), id);
        }
    }
}

#[test]
fn duplicates_on_any_path_to_a_decision_are_refused() {
    for (body, flaw_, id) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","id":1}"#,
            Flaw::DuplicateId,
            "null",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"\u0069d":1,"method":"m"}"#,
            Flaw::DuplicateId,
            "null",
        ),
        (
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}"#,
            Flaw::DuplicateMember,
            "1",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","method":"m"}"#,
            Flaw::DuplicateMember,
            "1",
        ),
        (
            r#"{"jsonrpc":"2.0","params":1,"params":{},"method":"m","id":1}"#,
            Flaw::DuplicateMember,
            "1",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"tenant":1,"tenan\u0074":1}}"#,
            Flaw::DuplicateMember,
            "1",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"message":1,"message":{}}}"#,
            Flaw::DuplicateMember,
            "1",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"message":{"parts":[],"parts":[]}}}"#,
            Flaw::DuplicateMember,
            "1",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"message":{"parts":[{"data":{},"data":{}}]}}}"#,
            Flaw::DuplicateMember,
            "1",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"message":{"parts":[{"data":{"type":"a","type":"a"}}]}}}"#,
            Flaw::DuplicateMember,
            "1",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"message":{"parts":[{"data":{"idempotency_key":"a","idempotency_key":"a"}}]}}}"#,
            Flaw::DuplicateMember,
            "1",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"message":{"parts":[{"mediaType":"a","mediaType":"a"}]}}}"#,
            Flaw::DuplicateMember,
            "1",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"configuration":{},"configuration":{}}}"#,
            Flaw::DuplicateMember,
            "1",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"configuration":{"acceptedOutputModes":[],"acceptedOutputModes":[]}}}"#,
            Flaw::DuplicateMember,
            "1",
        ),
    ] {
        assert_eq!(
            flaw(body),
            (Refusal::InvalidRequest(flaw_), id.to_owned()),
            "{body}"
        );
    }
    // Elsewhere a duplicate decides nothing and is the upstream's business.
    let elsewhere =
        r#"{"jsonrpc":"2.0","id":1,"method":"m","x":1,"x":2,"params":{"metadata":{"a":1,"a":2}}}"#;
    assert!(peek(elsewhere.as_bytes()).is_ok());
}

#[test]
fn what_is_no_request_says_why() {
    for (body, flaw_, id) in [
        ("[]", Flaw::Batch, "null"),
        (
            r#" [{"jsonrpc":"2.0","id":1,"method":"m"}]"#,
            Flaw::Batch,
            "null",
        ),
        ("\"hello\"", Flaw::NotAnObject, "null"),
        ("7", Flaw::NotAnObject, "null"),
        ("null", Flaw::NotAnObject, "null"),
        ("{}", Flaw::NoId, "null"),
        (r#"{"jsonrpc":"2.0","method":"m"}"#, Flaw::NoId, "null"),
        (
            r#"{"jsonrpc":"2.0","method":"m","id":true}"#,
            Flaw::IdType,
            "null",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"m","id":{}}"#,
            Flaw::IdType,
            "null",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"m","id":[1]}"#,
            Flaw::IdType,
            "null",
        ),
        (
            r#"{"jsonrpc":"1.0","method":"m","id":"v"}"#,
            Flaw::JsonRpcVersion,
            "\"v\"",
        ),
        (
            r#"{"jsonrpc":2.0,"method":"m","id":"v"}"#,
            Flaw::JsonRpcVersion,
            "\"v\"",
        ),
        (r#"{"method":"m","id":"v"}"#, Flaw::JsonRpcVersion, "\"v\""),
        (
            r#"{"jsonrpc":"2.0","method":7,"id":"v"}"#,
            Flaw::Method,
            "\"v\"",
        ),
        (r#"{"jsonrpc":"2.0","id":"v"}"#, Flaw::Method, "\"v\""),
    ] {
        assert_eq!(
            flaw(body),
            (Refusal::InvalidRequest(flaw_), id.to_owned()),
            "{body}"
        );
    }
}

#[test]
fn what_is_not_json_is_a_parse_error_even_beside_other_flaws() {
    for body in [
        &b""[..],
        b" ",
        b"{\"jsonrpc\":\"2.0\",\"id\":\"r1\",",
        b"[1",
        b"{\"id\":1,\"id\":2",
        b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"x\":\"\xff\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"} x",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"x\":\"\n\"}",
    ] {
        let unreadable = peek(body).unwrap_err();
        assert_eq!(unreadable.refusal, Refusal::ParseError);
        assert_eq!(unreadable.id, Id::NULL);
    }
    let deep = |depth: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{}1{}}}"#,
            "[".repeat(depth - 1),
            "]".repeat(depth - 1)
        )
    };
    assert!(peek(deep(128).as_bytes()).is_ok());
    assert_eq!(
        peek(deep(129).as_bytes()).unwrap_err().refusal,
        Refusal::ParseError
    );
}

/// A name with any of its letters as an escape.
fn spelled(name: &str, forms: &[bool]) -> String {
    name.bytes()
        .zip(forms.iter().cycle())
        .map(|(byte, escaped)| match escaped {
            true => format!("\\u{byte:04x}"),
            false => char::from(byte).to_string(),
        })
        .collect()
}

proptest! {
    /// The order of the members, their spelling and what stands between them decide nothing.
    #[test]
    fn a_request_reads_the_same_however_it_is_written(
        order in Just(vec![0usize, 1, 2, 3, 4]).prop_shuffle(),
        forms in prop::collection::vec(any::<bool>(), 1..8),
        blank in "[ \t\r\n]{0,9}",
        id in r#"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,20})?|"[a-z \\\\/é]{0,9}""#,
    ) {
        let id = if id.matches('\\').count() % 2 == 0 { id } else { "1".into() };
        let id = if serde_json::from_str::<serde::de::IgnoredAny>(&id).is_ok() { id } else { "1".into() };
        let members = [
            ("jsonrpc", "\"2.0\""),
            ("id", &*id),
            ("method", "\"GetTask\""),
            ("params", r#"{"tenant":"t"}"#),
            ("other", r#"{"id":7,"jsonrpc":1}"#),
        ];
        let text: Vec<_> = order
            .iter()
            .map(|at| members[*at])
            .map(|(name, value)| format!("{blank}\"{}\"{blank}:{blank}{value}{blank}", spelled(name, &forms)))
            .collect();
        let body = format!("{blank}{{{}}}{blank}", text.join(","));
        let envelope = peek(body.as_bytes());
        prop_assert!(envelope.is_ok(), "{}", body);
        let envelope = envelope.unwrap();
        prop_assert_eq!(envelope.id.as_str(), &id);
        prop_assert_eq!(&*envelope.method, "GetTask");
        prop_assert_eq!(envelope.tenant.map(Raw::as_str), Some("\"t\""));
        // The same with any of its members a second time, under any spelling.
        for (name, value) in &members[..4] {
            let again = format!("{{\"{}\":{value},{}}}", spelled(name, &forms), text.join(","));
            let refusal = peek(again.as_bytes()).unwrap_err().refusal;
            let flaw = if *name == "id" { Flaw::DuplicateId } else { Flaw::DuplicateMember };
            prop_assert_eq!(refusal, Refusal::InvalidRequest(flaw));
        }
    }

    /// A request that is cut anywhere is no JSON.
    #[test]
    fn no_part_of_a_request_is_a_request(cut in 0..LEAD.len()) {
        let unreadable = peek(&LEAD.as_bytes()[..cut]).unwrap_err();
        prop_assert_eq!(unreadable.refusal, Refusal::ParseError);
        prop_assert_eq!(unreadable.id, Id::NULL);
    }

    /// What a response's first bytes tell, more of them never contradict.
    #[test]
    fn a_response_never_changes_its_mind(
        text in r#"\{("(id|error|result|x)":(null|1|"a"|\{"error":1\}),?){0,4}\}?"#, cut in 0usize..80,
    ) {
        let whole = is_error_response(text.as_bytes());
        let early = is_error_response(&text.as_bytes()[..cut.min(text.len())]);
        prop_assert!(early.is_none() || early == whole, "{:?} then {:?}", early, whole);
    }
}
