//! The exact bytes of refusals, and what holds for all of them.

use super::*;
use crate::protocol::contract::Absence;
use crate::protocol::envelope::{Id, peek};
use crate::protocol::refusal::{Failure, Flaw, Lack, Media, Violation};
use proptest::prelude::*;
use serde_json::Value;

const STAMP: Stamp<'static> = Stamp {
    error_id: "0195e0a0-0000-7000-8000-000000000001",
    created_at: "2026-05-01T12:00:00Z",
};

fn contract(dialect: Dialect, violations: Violations) -> Contract {
    Contract {
        name: "test".into(),
        a2a_version: "1.0".parse().unwrap(),
        extension: "https://ext.example/v1".parse().unwrap(),
        absent: Absence::Infer,
        require_extension: true,
        dialect,
        violations,
    }
}

fn text(refusal: &Refusal, dialect: Dialect) -> String {
    let answer = render(
        refusal,
        &contract(dialect, Violations::Every),
        Id::NULL,
        STAMP,
    );
    String::from_utf8(answer.body).unwrap()
}

/// One of each reason, and the variants that differ in spelling.
fn every_refusal() -> Vec<Refusal> {
    let problems: Box<[Violation]> = [
        Violation {
            location: "/customer/email".into(),
            keyword: "format".into(),
            error: "is not an email address".into(),
            received: Some("\"x\"".into()),
        },
        Violation {
            location: "".into(),
            keyword: "required".into(),
            error: "consent is missing".into(),
            received: None,
        },
    ]
    .into();
    let mut all = vec![
        Refusal::ParseError,
        Refusal::InvalidRequest(Flaw::Batch),
        Refusal::BodyTimeout,
        Refusal::BodyTooLarge { limit: 1_048_576 },
        Refusal::ContentTypeNotSupported(Media::ContentType),
        Refusal::TenantRejected,
        Refusal::PushNotificationNotSupported {
            method: "CreateTaskPushNotificationConfig".into(),
        },
        Refusal::UnsupportedOperation {
            method: "SendStreamingMessage".into(),
        },
        Refusal::MethodNotFound {
            method: "message/send".into(),
            older: Some("0.3"),
        },
        Refusal::ExtensionSupportRequired {
            uri: "https://ext.example/v1".parse().unwrap(),
        },
        Refusal::VersionNotSupported {
            requested: Some("0.3".into()),
            served: ["1.0".parse().unwrap()].into(),
        },
        Refusal::VersionNotSupported {
            requested: None,
            served: ["1.0".parse().unwrap()].into(),
        },
        Refusal::RateLimited {
            retry_after_ms: 29_500,
        },
        Refusal::PayloadInvalid { problems },
        Refusal::UnsupportedSkill {
            skill: "boat.search".into(),
        },
        Refusal::Unauthenticated(Lack::Absent),
        Refusal::Unauthenticated(Lack::Bad),
        Refusal::Unauthenticated(Lack::BadBearer),
        Refusal::PermissionDenied,
    ];
    for failure in Failure::ALL {
        all.push(Refusal::Failed {
            failure,
            retryable: false,
            retry_after_ms: Some(1000),
        });
    }
    all
}

#[test]
fn rate_limited_in_each_dialect() {
    let refusal = Refusal::RateLimited {
        retry_after_ms: 29_500,
    };
    let payload = r#""type":"aap.error","error_id":"0195e0a0-0000-7000-8000-000000000001","code":"RATE_LIMITED","message":"Rate limit exceeded. Retry after 30 seconds.","retryable":true,"details":{"retry_after_ms":29500},"created_at":"2026-05-01T12:00:00Z""#;
    let info = r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMITED","domain":"autoagentprotocol.org","metadata":{"code":"RATE_LIMITED","error_id":"0195e0a0-0000-7000-8000-000000000001","retryable":"true","created_at":"2026-05-01T12:00:00Z"}}"#;
    let expect = |code: i32, data: String| {
        format!(
            r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"Rate limit exceeded. Retry after 30 seconds.","data":{data}}}}}"#
        )
    };
    assert_eq!(
        text(&refusal, Dialect::Bare),
        expect(-32002, format!("{{{payload}}}"))
    );
    assert_eq!(
        text(&refusal, Dialect::Tagged),
        expect(
            -32000,
            format!(
                r#"[{info},{{"@type":"https://autoagentprotocol.org/extensions/aap/error",{payload}}}]"#
            )
        )
    );
    assert_eq!(
        text(&refusal, Dialect::Wrapped),
        expect(
            -32000,
            format!(
                r#"[{info},{{"@type":"type.googleapis.com/google.protobuf.Struct","value":{{{payload}}}}}]"#
            )
        )
    );
}

#[test]
fn a2a_errors_are_the_same_in_every_dialect() {
    let version = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32009,"message":"A2A version 0.3 is not supported at this endpoint, which serves 1.0. Name that version in one A2A-Version header.","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"VERSION_NOT_SUPPORTED","domain":"a2a-protocol.org","metadata":{"requestedVersion":"0.3","supportedVersions":"1.0","requiredHeader":"A2A-Version"}}]}}"#;
    let extension = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32008,"message":"This endpoint requires an extension that the request did not activate. List exactly this URI in the A2A-Extensions header: https://ext.example/v1","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"EXTENSION_SUPPORT_REQUIRED","domain":"a2a-protocol.org","metadata":{"extensionUri":"https://ext.example/v1","requiredHeader":"A2A-Extensions"}}]}}"#;
    for dialect in Dialect::ALL {
        assert_eq!(
            text(
                &Refusal::VersionNotSupported {
                    requested: Some("0.3".into()),
                    served: ["1.0".parse().unwrap()].into()
                },
                dialect
            ),
            version
        );
        assert_eq!(
            text(
                &Refusal::ExtensionSupportRequired {
                    uri: "https://ext.example/v1".parse().unwrap()
                },
                dialect
            ),
            extension
        );
        assert_eq!(
            text(&Refusal::TenantRejected, dialect),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"params.tenant is not the tenant declared for this endpoint.","data":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"tenant","description":"not the tenant declared for this endpoint"}]}]}}"#
        );
    }
}

#[test]
fn numbers_by_dialect() {
    // bare, tagged, wrapped; in the order of `every_refusal`.
    let same = |code| [code; 3];
    let mut expected = vec![
        same(-32700),
        same(-32600),
        same(-32600),
        same(-32600),
        same(-32005),
        same(-32602),
        same(-32003),
        same(-32004),
        same(-32601),
        same(-32008),
        same(-32009),
        same(-32009),
        [-32002, -32000, -32000],
        same(-32602),
        [-32601, -32004, -32602],
        same(-32000),
        same(-32000),
        same(-32000),
        same(-32000),
    ];
    expected.extend([same(-32603); 7]);
    let all = every_refusal();
    assert_eq!(all.len(), expected.len());
    for (refusal, codes) in all.iter().zip(expected) {
        for (dialect, code) in Dialect::ALL.into_iter().zip(codes) {
            let answer = render(
                refusal,
                &contract(dialect, Violations::Every),
                Id::NULL,
                STAMP,
            );
            assert_eq!(answer.code, code, "{refusal:?} {dialect:?}");
        }
    }
}

#[test]
fn validation_lists_every_problem_or_in_old_contracts_the_first() {
    let refusal = every_refusal()
        .into_iter()
        .find(|it| matches!(it, Refusal::PayloadInvalid { .. }))
        .unwrap();
    let value: Value = serde_json::from_str(&text(&refusal, Dialect::Wrapped)).unwrap();
    let data = &value["error"]["data"];
    assert_eq!(data[1]["fieldViolations"][0]["field"], "/customer/email");
    assert_eq!(
        data[1]["fieldViolations"][0]["description"],
        "format: is not an email address"
    );
    assert_eq!(
        data[1]["fieldViolations"][1]["description"],
        "required: consent is missing"
    );
    let listed = &data[2]["value"]["details"]["errors"];
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(
        listed[0],
        serde_json::json!({"instanceLocation":"/customer/email","keyword":"format","error":"is not an email address"})
    );

    let old = contract(Dialect::Bare, Violations::First);
    let answer = render(&refusal, &old, Id::NULL, STAMP);
    let value: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        value["error"]["data"]["details"],
        serde_json::json!({"instancePath":"/customer/email","received":"x"})
    );
}

#[test]
fn what_holds_for_every_refusal_in_every_dialect() {
    for refusal in every_refusal() {
        for dialect in Dialect::ALL {
            let answer = render(
                &refusal,
                &contract(dialect, Violations::Every),
                Id::NULL,
                STAMP,
            );
            let value: Value = serde_json::from_slice(&answer.body).unwrap();
            let top: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
            assert_eq!(top, ["error", "id", "jsonrpc"]);
            let error = &value["error"];
            let data = &error["data"];
            if refusal.message().contains("A2A-") {
                assert!(error["message"].as_str().unwrap().contains("header"));
            }
            let is_aap = answer.is_stamped;
            if let Some(entries) = data.as_array() {
                assert!(entries.iter().all(|entry| entry["@type"].is_string()));
                if refusal != Refusal::TenantRejected {
                    assert_eq!(
                        entries[0]["@type"],
                        "type.googleapis.com/google.rpc.ErrorInfo"
                    );
                    let metadata = entries[0]["metadata"].as_object().unwrap();
                    assert!(metadata.values().all(Value::is_string));
                    let domain = if is_aap {
                        "autoagentprotocol.org"
                    } else {
                        "a2a-protocol.org"
                    };
                    assert_eq!(entries[0]["domain"], domain);
                }
                if is_aap {
                    let last = entries.last().unwrap();
                    let payload = last.get("value").unwrap_or(last);
                    let metadata = &entries[0]["metadata"];
                    assert_eq!(metadata["code"], payload["code"]);
                    assert_eq!(metadata["error_id"], payload["error_id"]);
                    assert_eq!(metadata["created_at"], payload["created_at"]);
                    assert_eq!(metadata["retryable"], payload["retryable"].to_string());
                }
            } else if is_aap {
                assert_eq!(dialect, Dialect::Bare);
                assert_eq!(data["type"], "aap.error");
            }
        }
    }
}

proptest! {
    /// Every id comes back byte for byte.
    #[test]
    fn ids_come_back_byte_identical(id in r#""([a-zA-Z0-9 é🚗]|\\u00[4-6][0-9a-f]|\\\\|\\")*"|-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,3})?|null"#) {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        let envelope = peek(body.as_bytes()).unwrap();
        for refusal in [Refusal::ParseError, Refusal::RateLimited { retry_after_ms: 1 }] {
            let answer = render(&refusal, &contract(Dialect::Wrapped, Violations::Every), envelope.id, STAMP);
            let text = String::from_utf8(answer.body).unwrap();
            let prefix = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#);
            prop_assert!(text.starts_with(&prefix), "{}", text);
        }
    }
}
