//! Decides what a JSON-RPC body says about itself: door one, [`peek`].
//!
//! Follows JSON-RPC 2.0 sections 4 to 6 and A2A 1.0 section 9. The body is read once, to its end,
//! and no tree is built; the members later decisions need are kept as the raw text they had. The
//! id in particular is never parsed into a number. Must never change a byte: what is forwarded is
//! the body as it came.

use std::borrow::Cow;

use crate::protocol::json::{Malformed, Scan, Scanner};
use crate::protocol::raw::{Kind, Raw};
use crate::protocol::refusal::{Flaw, Refusal};

/// A readable JSON-RPC request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'b> {
    /// The id, exactly as it stood: a string, a number or `null`.
    pub id: Id<'b>,
    /// The method name, decoded.
    pub method: Cow<'b, str>,
    /// `params.tenant`, whatever its type.
    pub tenant: Option<Raw<'b>>,
    /// `params.message.parts[0].data.type`.
    pub data_type: Option<Raw<'b>>,
    /// `params.message.parts[0].mediaType`.
    pub media_type: Option<Raw<'b>>,
    /// `params.configuration.acceptedOutputModes`.
    pub accepted_output_modes: Option<Raw<'b>>,
    /// `params.message.parts[0].data.idempotency_key`.
    pub idempotency_key: Option<Raw<'b>>,
}

impl Envelope<'_> {
    /// The AAP skill the first part asks for: its `data.type` without `.request`.
    #[must_use]
    pub fn skill(&self) -> Option<Cow<'_, str>> {
        match self.data_type?.text()? {
            Cow::Borrowed(text) => text.strip_suffix(".request").map(Cow::Borrowed),
            Cow::Owned(text) => text
                .strip_suffix(".request")
                .map(|skill| Cow::Owned(skill.to_owned())),
        }
    }

    /// Whether sending this call a second time is sure to do no work twice: it only reads, it
    /// cancels, or it carries an `idempotency_key`. What is not known to be safe is not.
    #[must_use]
    pub fn is_safe_to_repeat(&self) -> bool {
        let has_key = self
            .idempotency_key
            .and_then(Raw::text)
            .is_some_and(|key| !key.is_empty());
        has_key
            || REPEATABLE_METHODS.contains(&&*self.method)
            || self
                .skill()
                .is_some_and(|skill| READING_SKILLS.contains(&&*skill))
    }
}

/// Methods of A2A 1.0 that change nothing, or end in the same state however often they come.
const REPEATABLE_METHODS: [&str; 7] = [
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "GetExtendedAgentCard",
];

/// AAP's skills that only read.
const READING_SKILLS: [&str; 4] = [
    "dealer.information",
    "inventory.facets",
    "inventory.search",
    "inventory.vehicle",
];

/// How many bytes of a response are looked at: `jsonrpc` and `id` fit, and what follows is named.
const TELLING: usize = 512;

/// Whether a JSON-RPC response is an error, as far as its first bytes tell.
///
/// Reads members up to `result` or `error`, whichever comes first, and no further: this is for
/// counting, never for a decision. `None`: these bytes do not tell.
#[must_use]
pub fn is_error_response(start: &[u8]) -> Option<bool> {
    let start = start.get(..TELLING).unwrap_or(start);
    let start = match std::str::from_utf8(start) {
        Ok(text) => text,
        // A cut in the middle of a character.
        Err(error) => std::str::from_utf8(start.get(..error.valid_up_to())?).ok()?,
    };
    let mut found = None;
    // Malformed ends the walk: at the member that tells, or where the piece ends.
    let _ = Scanner::new(start).object(|scanner, name| {
        match name {
            "result" => found = Some(false),
            "error" if scanner.peek()? != b'n' => found = Some(true),
            _ => return skip(scanner),
        }
        Err(Malformed)
    });
    found
}

/// A JSON-RPC id as the exact text it had in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id<'b>(Raw<'b>);

impl<'b> Id<'b> {
    /// The id of an answer to a request whose id could not be read.
    pub const NULL: Id<'static> = Id(Raw::NULL);

    /// The id whose JSON text was kept from an earlier [`Id::as_str`].
    #[must_use]
    pub const fn of_text(text: &'b str) -> Self {
        Self(Raw::of_text(text))
    }

    /// The JSON text.
    #[must_use]
    pub const fn as_str(self) -> &'b str {
        self.0.as_str()
    }
}

/// Why a body is not a request, with the id the answer carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable<'b> {
    /// What to answer.
    pub refusal: Refusal,
    /// The id to answer with.
    pub id: Id<'b>,
}

/// Reads a body as one JSON-RPC request.
///
/// # Errors
/// The refusal and id to answer with: -32700 when the text is not JSON, -32600 when it is not one
/// request.
pub fn peek(body: &[u8]) -> Result<Envelope<'_>, Unreadable<'_>> {
    let members = Members::read(body).map_err(|refusal| Unreadable {
        refusal,
        id: Id::NULL,
    })?;
    members.into_envelope()
}

/// What was found on the way through the body.
#[derive(Default)]
struct Members<'b> {
    id: Member<'b>,
    jsonrpc: Member<'b>,
    method: Member<'b>,
    params: Once,
    tenant: Member<'b>,
    message: Once,
    parts: Once,
    data: Once,
    data_type: Member<'b>,
    media_type: Member<'b>,
    idempotency_key: Member<'b>,
    configuration: Once,
    accepted_output_modes: Member<'b>,
    duplicate: bool,
}

/// A member whose value is kept. The flag tells that it came more than once.
#[derive(Default)]
struct Member<'b> {
    value: Option<Raw<'b>>,
    repeated: bool,
}

impl<'b> Member<'b> {
    fn take(&mut self, scanner: &mut Scanner<'b>) -> Scan<()> {
        self.repeated |= self.value.is_some();
        self.value = Some(scanner.value()?);
        Ok(())
    }
}

/// An object on the path to a member that is kept.
#[derive(Default)]
struct Once {
    seen: bool,
}

impl Once {
    /// Marks one more occurrence; true when it is not the first.
    fn again(&mut self) -> bool {
        std::mem::replace(&mut self.seen, true)
    }
}

impl<'b> Members<'b> {
    fn read(body: &'b [u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(body).map_err(|_| Refusal::ParseError)?;
        let mut scanner = Scanner::new(text);
        let mut members = Self::default();
        let first = scanner.peek().map_err(|_| Refusal::ParseError)?;
        let scanned = match first {
            b'{' => members.top(&mut scanner),
            _ => skip(&mut scanner),
        };
        scanned
            .and_then(|()| scanner.end())
            .map_err(|_| Refusal::ParseError)?;
        match first {
            b'{' => Ok(members),
            b'[' => Err(Refusal::InvalidRequest(Flaw::Batch)),
            _ => Err(Refusal::InvalidRequest(Flaw::NotAnObject)),
        }
    }

    fn top(&mut self, scanner: &mut Scanner<'b>) -> Scan<()> {
        scanner.object(|scanner, name| match name {
            "id" => self.id.take(scanner),
            "jsonrpc" => self.jsonrpc.take(scanner),
            "method" => self.method.take(scanner),
            "params" => {
                self.duplicate |= self.params.again();
                self.params(scanner)
            }
            _ => skip(scanner),
        })
    }

    fn params(&mut self, scanner: &mut Scanner<'b>) -> Scan<()> {
        object_or_skip(scanner, |scanner, name| match name {
            "tenant" => self.tenant.take(scanner),
            "message" => {
                self.duplicate |= self.message.again();
                self.message(scanner)
            }
            "configuration" => {
                self.duplicate |= self.configuration.again();
                self.configuration(scanner)
            }
            _ => skip(scanner),
        })
    }

    fn configuration(&mut self, scanner: &mut Scanner<'b>) -> Scan<()> {
        object_or_skip(scanner, |scanner, name| match name {
            "acceptedOutputModes" => self.accepted_output_modes.take(scanner),
            _ => skip(scanner),
        })
    }

    fn message(&mut self, scanner: &mut Scanner<'b>) -> Scan<()> {
        object_or_skip(scanner, |scanner, name| {
            if name != "parts" {
                return skip(scanner);
            }
            self.duplicate |= self.parts.again();
            if scanner.peek()? != b'[' {
                return skip(scanner);
            }
            scanner.array(|scanner, index| match index {
                0 => self.part(scanner),
                _ => skip(scanner),
            })
        })
    }

    fn part(&mut self, scanner: &mut Scanner<'b>) -> Scan<()> {
        object_or_skip(scanner, |scanner, name| match name {
            "mediaType" => self.media_type.take(scanner),
            "data" => {
                self.duplicate |= self.data.again();
                self.data(scanner)
            }
            _ => skip(scanner),
        })
    }

    fn data(&mut self, scanner: &mut Scanner<'b>) -> Scan<()> {
        object_or_skip(scanner, |scanner, name| match name {
            "type" => self.data_type.take(scanner),
            "idempotency_key" => self.idempotency_key.take(scanner),
            _ => skip(scanner),
        })
    }

    fn into_envelope(self) -> Result<Envelope<'b>, Unreadable<'b>> {
        let id = match self.id.value {
            None => return Err(refused(Flaw::NoId, Id::NULL)),
            Some(_) if self.id.repeated => return Err(refused(Flaw::DuplicateId, Id::NULL)),
            Some(raw) => match raw.kind() {
                Kind::String | Kind::Number | Kind::Null => Id(raw),
                Kind::Boolean | Kind::Object | Kind::Array => {
                    return Err(refused(Flaw::IdType, Id::NULL));
                }
            },
        };
        let kept = [
            &self.jsonrpc,
            &self.method,
            &self.tenant,
            &self.data_type,
            &self.media_type,
            &self.idempotency_key,
            &self.accepted_output_modes,
        ];
        if self.duplicate || kept.iter().any(|member| member.repeated) {
            return Err(refused(Flaw::DuplicateMember, id));
        }
        if !self.jsonrpc.value.is_some_and(|version| version.is("2.0")) {
            return Err(refused(Flaw::JsonRpcVersion, id));
        }
        let Some(method) = self.method.value.and_then(Raw::text) else {
            return Err(refused(Flaw::Method, id));
        };
        Ok(Envelope {
            id,
            method,
            tenant: self.tenant.value,
            data_type: self.data_type.value,
            media_type: self.media_type.value,
            accepted_output_modes: self.accepted_output_modes.value,
            idempotency_key: self.idempotency_key.value,
        })
    }
}

fn object_or_skip<'b>(
    scanner: &mut Scanner<'b>,
    each: impl FnMut(&mut Scanner<'b>, &str) -> Scan<()>,
) -> Scan<()> {
    if scanner.peek()? == b'{' {
        scanner.object(each)
    } else {
        skip(scanner)
    }
}

fn skip(scanner: &mut Scanner<'_>) -> Scan<()> {
    scanner.value().map(|_| ())
}

const fn refused(flaw: Flaw, id: Id<'_>) -> Unreadable<'_> {
    Unreadable {
        refusal: Refusal::InvalidRequest(flaw),
        id,
    }
}

#[cfg(test)]
mod tests {
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
        let elsewhere = r#"{"jsonrpc":"2.0","id":1,"method":"m","x":1,"x":2,"params":{"metadata":{"a":1,"a":2}}}"#;
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
}
