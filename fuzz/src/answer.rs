//! Holds an answer to what is written about refusals: numbers and shapes by dialect, the id byte
//! for byte, ErrorInfo first and only with strings, clean words.

use forecourt::protocol::refusal::{Flaw, Refusal};
use forecourt::protocol::{Contract, Dialect, Id, Stamp, Violations, render};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

const STAMP: Stamp<'static> = Stamp {
    error_id: "0195e0a0-0000-7000-8000-000000000001",
    created_at: "2026-05-01T12:00:00Z",
};

const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
const STRUCT: &str = "type.googleapis.com/google.protobuf.Struct";
const AAP_ERROR: &str = "https://autoagentprotocol.org/extensions/aap/error";

/// No message is longer than this beside the version or URI of the contract, in characters.
const LONGEST_MESSAGE: usize = 600;

/// What `error.data` is.
enum Data {
    Nothing,
    /// One BadRequest.
    Fields,
    /// One ErrorInfo of A2A with this reason.
    A2a(&'static str),
    /// AAP's typed error with this code, and whether it may be tried again.
    Aap(&'static str, bool),
}

/// The numbers, bare, tagged and wrapped, and the data of a refusal.
fn expected(refusal: &Refusal) -> ([i32; 3], Data) {
    match refusal {
        Refusal::ParseError => ([-32700; 3], Data::Nothing),
        Refusal::InvalidRequest(
            Flaw::Batch
            | Flaw::NotAnObject
            | Flaw::NoId
            | Flaw::IdType
            | Flaw::DuplicateId
            | Flaw::DuplicateMember
            | Flaw::JsonRpcVersion
            | Flaw::Method,
        )
        | Refusal::BodyTimeout
        | Refusal::BodyTooLarge { .. } => ([-32600; 3], Data::Nothing),
        Refusal::ContentTypeNotSupported(_) => {
            ([-32005; 3], Data::A2a("CONTENT_TYPE_NOT_SUPPORTED"))
        }
        Refusal::TenantRejected => ([-32602; 3], Data::Fields),
        Refusal::PushNotificationNotSupported { .. } => {
            ([-32003; 3], Data::A2a("PUSH_NOTIFICATION_NOT_SUPPORTED"))
        }
        Refusal::UnsupportedOperation { .. } => ([-32004; 3], Data::A2a("UNSUPPORTED_OPERATION")),
        Refusal::MethodNotFound { .. } => ([-32601; 3], Data::Nothing),
        Refusal::ExtensionSupportRequired { .. } => {
            ([-32008; 3], Data::A2a("EXTENSION_SUPPORT_REQUIRED"))
        }
        Refusal::VersionNotSupported { .. } => ([-32009; 3], Data::A2a("VERSION_NOT_SUPPORTED")),
        Refusal::RateLimited { .. } => ([-32002, -32000, -32000], Data::Aap("RATE_LIMITED", true)),
        Refusal::PayloadInvalid { .. } => {
            ([-32602; 3], Data::Aap("SCHEMA_VALIDATION_FAILED", false))
        }
        Refusal::UnsupportedSkill { .. } => (
            [-32601, -32004, -32602],
            Data::Aap("UNSUPPORTED_SKILL", false),
        ),
        Refusal::Failed { retryable, .. } => ([-32603; 3], Data::Aap("INTERNAL_ERROR", *retryable)),
        Refusal::Unauthenticated(_) | Refusal::PermissionDenied => ([-32000; 3], Data::Nothing),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Response<'a> {
    jsonrpc: &'a str,
    #[serde(borrow)]
    id: &'a RawValue,
    error: Error,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Error {
    code: i32,
    message: String,
    data: Option<Value>,
}

/// The answer in the contract's dialect.
pub(super) fn holds(refusal: &Refusal, contract: &Contract, id: Id<'_>) {
    let ([bare, tagged, wrapped], data) = expected(refusal);
    let code = match contract.dialect {
        Dialect::Bare => bare,
        Dialect::Tagged => tagged,
        Dialect::Wrapped => wrapped,
    };
    let answer = render(refusal, contract, id, STAMP);
    let opening = format!(r#"{{"jsonrpc":"2.0","id":{},"error":"#, id.as_str());
    let text = std::str::from_utf8(&answer.body).expect("an answer is UTF-8");
    assert!(text.starts_with(&opening), "the id changed: {text}");
    let response: Response<'_> = serde_json::from_str(text).expect("an answer is JSON");
    assert_eq!((response.jsonrpc, response.id.get()), ("2.0", id.as_str()));
    assert_eq!((response.error.code, answer.code), (code, code));
    assert_eq!(answer.is_stamped, matches!(data, Data::Aap(..)));
    message(refusal, &response.error.message, contract);
    shape(refusal, &response.error, contract, &data);
}

/// A message is clean and short, and repeats what a caller needs to recover.
fn message(refusal: &Refusal, message: &str, contract: &Contract) {
    assert_eq!(message, refusal.message());
    assert!(!message.chars().any(char::is_control), "{message:?}");
    let own = contract.extension.as_str().len() + 5 * contract.a2a_version.as_str().len();
    if let Refusal::ExtensionSupportRequired { uri } = refusal {
        assert!(message.contains(uri.as_str()) && message.contains("A2A-Extensions"));
    }
    if let Refusal::VersionNotSupported { requested, served } = refusal {
        assert!(message.contains(requested.as_deref().unwrap_or_default()));
        let mut served = served.iter();
        assert!(served.all(|version| message.contains(version.as_str())));
        assert!(message.contains("A2A-Version"));
        return; // As long as the versions of all contracts.
    }
    assert!(
        message.chars().count() <= LONGEST_MESSAGE + own,
        "{message}"
    );
    if let Some(ms) = refusal.retry_after_ms() {
        let words = message
            .split("Retry after ")
            .nth(1)
            .expect("the wait in words");
        let (count, unit) = words.split_once(' ').expect("a number and its unit");
        let count: u128 = count.parse().expect("a number");
        let told = count * if unit.starts_with("milli") { 1 } else { 1000 };
        let seconds = refusal.retry_after_seconds().expect("Retry-After");
        assert!(
            told >= ms.into() && told < u128::from(ms) + 1000,
            "{message}"
        );
        assert!(u128::from(seconds) * 1000 >= told);
    }
}

fn shape(refusal: &Refusal, error: &Error, contract: &Contract, expected: &Data) {
    if let Some(Value::Array(entries)) = &error.data {
        leads_with_error_info(entries, matches!(expected, Data::Fields));
    }
    match (expected, &error.data) {
        (Data::Nothing, None) => {}
        (Data::Fields, Some(Value::Array(entries))) => {
            assert_eq!(entries.len(), 1);
            assert_eq!(entries[0]["fieldViolations"][0]["field"], "tenant");
        }
        (Data::A2a(reason), Some(Value::Array(entries))) => {
            assert_eq!(entries.len(), 1);
            assert_eq!(entries[0]["reason"], *reason);
            assert_eq!(entries[0]["domain"], "a2a-protocol.org");
        }
        (Data::Aap(code, retryable), Some(data)) => {
            let payload = aap(data, contract.dialect);
            assert_eq!(payload["type"], "aap.error");
            assert_eq!(payload["code"], *code);
            assert_eq!(payload["retryable"], *retryable);
            assert_eq!(payload["message"], error.message.as_str());
            assert_eq!(payload["error_id"], STAMP.error_id);
            assert_eq!(payload["created_at"], STAMP.created_at);
            details(refusal, payload, data, contract.violations);
        }
        (_, data) => panic!("{refusal:?} has the data {data:?}"),
    }
}

/// Every entry says what it is; ErrorInfo comes first and its metadata is strings alone.
fn leads_with_error_info(entries: &[Value], is_bad_request: bool) {
    assert!(entries.iter().all(|entry| entry["@type"].is_string()));
    let lead = if is_bad_request {
        BAD_REQUEST
    } else {
        ERROR_INFO
    };
    assert_eq!(entries[0]["@type"], lead);
    for entry in entries.iter().filter(|entry| entry["@type"] == ERROR_INFO) {
        let metadata = entry["metadata"].as_object().expect("metadata");
        assert!(metadata.values().all(Value::is_string), "{metadata:?}");
    }
}

/// AAP's object, wherever its dialect puts it, equal to what the ErrorInfo says.
fn aap(data: &Value, dialect: Dialect) -> &Map<String, Value> {
    let payload = match (dialect, data) {
        (Dialect::Bare, data) => data,
        (Dialect::Tagged, Value::Array(entries)) => {
            let last = entries.last().expect("a payload");
            assert_eq!(last["@type"], AAP_ERROR);
            last
        }
        (Dialect::Wrapped, Value::Array(entries)) => {
            let last = entries.last().expect("a payload");
            assert_eq!(last["@type"], STRUCT);
            &last["value"]
        }
        (Dialect::Tagged | Dialect::Wrapped, other) => panic!("no list: {other}"),
    };
    let payload = payload.as_object().expect("an object");
    if let Value::Array(entries) = data {
        let info = &entries[0];
        assert_eq!(info["domain"], "autoagentprotocol.org");
        assert_eq!(info["reason"], payload["code"]);
        for name in ["code", "error_id", "created_at"] {
            assert_eq!(info["metadata"][name], payload[name]);
        }
        assert_eq!(
            info["metadata"]["retryable"],
            payload["retryable"].to_string()
        );
    }
    payload
}

/// What the details tell a program, exactly.
fn details(refusal: &Refusal, payload: &Map<String, Value>, data: &Value, violations: Violations) {
    let details = payload.get("details").unwrap_or(&Value::Null);
    match refusal.retry_after_ms() {
        Some(ms) => assert_eq!(details["retry_after_ms"], ms),
        None => assert!(details["retry_after_ms"].is_null()),
    }
    if let Refusal::UnsupportedSkill { skill } = refusal {
        assert_eq!(details["skill"], &**skill);
    }
    let Refusal::PayloadInvalid { problems } = refusal else {
        return;
    };
    match violations {
        Violations::First => assert_eq!(details["instancePath"], &*problems[0].location),
        Violations::Every => {
            let errors = details["errors"].as_array().expect("errors");
            assert_eq!(errors.len(), problems.len());
            for (error, problem) in errors.iter().zip(problems) {
                assert_eq!(error["instanceLocation"], &*problem.location);
                assert_eq!(error["error"], &*problem.error);
            }
        }
    }
    if let Value::Array(entries) = data {
        assert_eq!(entries[1]["@type"], BAD_REQUEST);
        let fields = entries[1]["fieldViolations"].as_array().expect("fields");
        assert_eq!(fields.len(), problems.len());
    }
}
