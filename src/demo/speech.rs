//! How the demo's dealer spells what it says: A2A 1.0 over JSON-RPC, in two AAP contracts.
//!
//! Written apart from the gateway's dialects on purpose: a dealer is somebody else. The number of
//! an unknown vehicle is this dealer's own choice; the gateway passes it on as it is.

use http::header::{HOST, HeaderMap};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::lot::{Answer, Trouble};

/// One of the contracts the dealer serves.
#[derive(Debug)]
pub(super) struct Contract {
    path: &'static str,
    /// The URI that has to be listed.
    pub(super) extension: &'static str,
    is_wrapped: bool,
    vehicle_not_found: i32,
    unsupported_skill: i32,
}

const CONTRACTS: [Contract; 2] = [
    Contract {
        path: "/3.0",
        extension: "https://autoagentprotocol.org/extensions/aap/v3.0",
        is_wrapped: true,
        vehicle_not_found: -32000,
        unsupported_skill: -32602,
    },
    Contract {
        path: "/1.2",
        extension: "https://autoagentprotocol.org/extensions/aap/v1.2",
        is_wrapped: false,
        vehicle_not_found: -32001,
        unsupported_skill: -32601,
    },
];

impl Contract {
    /// The contract served at a path.
    pub(super) fn at(path: &str) -> Option<&'static Self> {
        CONTRACTS.iter().find(|contract| contract.path == path)
    }
}

/// Why the dealer refuses.
#[derive(Debug)]
pub(super) enum Refusal {
    /// No explicit A2A 1.0.
    Version,
    /// No explicit extension.
    Extension,
    /// A method that is not served.
    UnknownMethod,
    /// The skill was not carried out.
    Trouble(Trouble),
}

/// A call that was read.
#[derive(Debug, Deserialize)]
pub(super) struct Call<'b> {
    #[serde(borrow)]
    id: &'b RawValue,
    /// The method.
    pub(super) method: String,
    #[serde(default)]
    params: Value,
}

#[derive(Serialize)]
struct Success<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: R,
}

#[derive(Serialize)]
struct Failure<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    error: ErrorObject,
}

#[derive(Serialize)]
struct ErrorObject {
    code: i32,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    message_id: String,
    role: &'static str,
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    data: &'a RawValue,
    media_type: &'static str,
}

/// A2A 1.0's StreamResponse.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Event<'a> {
    #[serde(rename_all = "camelCase")]
    Task {
        id: &'a str,
        context_id: &'a str,
        status: Status,
    },
    #[serde(rename_all = "camelCase")]
    StatusUpdate {
        task_id: &'a str,
        context_id: &'a str,
        status: Status,
    },
    #[serde(rename_all = "camelCase")]
    ArtifactUpdate {
        task_id: &'a str,
        context_id: &'a str,
        artifact: Artifact<'a>,
        last_chunk: bool,
    },
}

#[derive(Serialize)]
struct Status {
    state: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact<'a> {
    artifact_id: &'static str,
    parts: [Part<'a>; 1],
}

impl<'b> Call<'b> {
    /// Reads a call.
    ///
    /// # Errors
    /// The answer to what is none.
    pub(super) fn read(body: &'b [u8]) -> Result<Self, String> {
        serde_json::from_slice(body).map_err(|_| {
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Not a call."}}"#.into()
        })
    }

    /// The data of the message's first part; null where there is none.
    pub(super) fn data(&self) -> &Value {
        let data = self.params.pointer("/message/parts/0/data");
        data.unwrap_or(&Value::Null)
    }

    fn message_id(&self) -> &str {
        let id = self.params.pointer("/message/messageId");
        id.and_then(Value::as_str).unwrap_or_default()
    }

    /// A message that answers.
    pub(super) fn answered(&self, answer: &Answer) -> String {
        #[derive(Serialize)]
        struct Told<'a> {
            message: Message<'a>,
        }
        self.result(Told {
            message: Message {
                message_id: format!("answer-to-{}", self.message_id()),
                role: "ROLE_AGENT",
                parts: [part(answer)],
            },
        })
    }

    /// The same as a task that is worked on.
    pub(super) fn events(&self, answer: &Answer) -> Vec<String> {
        let task_id = &*format!("task-{}", self.message_id());
        let context_id = &*format!("context-{}", self.message_id());
        let status = |state| Event::StatusUpdate {
            task_id,
            context_id,
            status: Status { state },
        };
        let events = [
            Event::Task {
                id: task_id,
                context_id,
                status: Status {
                    state: "TASK_STATE_SUBMITTED",
                },
            },
            status("TASK_STATE_WORKING"),
            Event::ArtifactUpdate {
                task_id,
                context_id,
                artifact: Artifact {
                    artifact_id: "answer",
                    parts: [part(answer)],
                },
                last_chunk: true,
            },
            status("TASK_STATE_COMPLETED"),
        ];
        events.into_iter().map(|event| self.result(event)).collect()
    }

    /// A refusal, as the contract spells it.
    pub(super) fn refused(&self, contract: &Contract, refusal: &Refusal) -> String {
        text(&Failure {
            jsonrpc: "2.0",
            id: self.id,
            error: error(contract, refusal),
        })
    }

    fn result(&self, result: impl Serialize) -> String {
        text(&Success {
            jsonrpc: "2.0",
            id: self.id,
            result,
        })
    }
}

fn part(answer: &Answer) -> Part<'_> {
    Part {
        data: &answer.data,
        media_type: answer.media_type,
    }
}

fn text(value: &impl Serialize) -> String {
    // Plain structs of strings, numbers and JSON cannot fail to serialize.
    serde_json::to_string(value).unwrap_or_default()
}

fn error(contract: &Contract, refusal: &Refusal) -> ErrorObject {
    match refusal {
        Refusal::Version => ErrorObject {
            code: -32009,
            message: "A2A-Version must be 1.0.".into(),
            data: Some(a2a("VERSION_NOT_SUPPORTED")),
        },
        Refusal::Extension => ErrorObject {
            code: -32008,
            message: format!("A2A-Extensions must list {}.", contract.extension),
            data: Some(a2a("EXTENSION_SUPPORT_REQUIRED")),
        },
        Refusal::UnknownMethod => ErrorObject {
            code: -32601,
            message: "This dealer has no such method.".into(),
            data: None,
        },
        Refusal::Trouble(Trouble::VehicleNotFound(vin)) => aap(
            contract,
            contract.vehicle_not_found,
            "VEHICLE_NOT_FOUND",
            "No vehicle here has this VIN.",
            json!({ "vin": vin }),
        ),
        Refusal::Trouble(Trouble::UnsupportedSkill(skill)) => aap(
            contract,
            contract.unsupported_skill,
            "UNSUPPORTED_SKILL",
            "This dealer has no such skill.",
            json!({ "skill": skill }),
        ),
        Refusal::Trouble(Trouble::Invalid(why)) => {
            let details = json!({
                "errors": [{ "instanceLocation": "", "keyword": "schema", "error": why }],
            });
            let code = "SCHEMA_VALIDATION_FAILED";
            aap(contract, -32602, code, "The payload is not valid.", details)
        }
    }
}

fn a2a(reason: &str) -> Value {
    json!([{
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "a2a-protocol.org",
        "metadata": {},
    }])
}

fn aap(contract: &Contract, number: i32, code: &str, message: &str, details: Value) -> ErrorObject {
    let error_id = uuid(fastrand::u128(..));
    let created_at = Timestamp::now().to_string();
    let payload = json!({
        "type": "aap.error",
        "error_id": error_id,
        "code": code,
        "message": message,
        "retryable": false,
        "details": details,
        "created_at": created_at,
    });
    let data = if contract.is_wrapped {
        json!([
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": code,
                "domain": "autoagentprotocol.org",
                "metadata": {
                    "code": code,
                    "error_id": error_id,
                    "retryable": "false",
                    "created_at": created_at,
                },
            },
            { "@type": "type.googleapis.com/google.protobuf.Struct", "value": payload },
        ])
    } else {
        payload
    };
    ErrorObject {
        code: number,
        message: message.into(),
        data: Some(data),
    }
}

fn uuid(random: u128) -> String {
    uuid::Builder::from_random_bytes(random.to_be_bytes())
        .into_uuid()
        .hyphenated()
        .to_string()
}

/// The dealer's agent card (A2A 1.0 section 8), with the URL it was asked at.
pub(super) fn card(headers: &HeaderMap) -> String {
    let hosts = headers.get_all(HOST).iter();
    let host = hosts.filter_map(|host| host.to_str().ok()).next();
    let host = host.unwrap_or("127.0.0.1");
    let skill = |id: &str, name: &str, description: &str| json!({ "id": id, "name": name, "description": description, "tags": ["automotive"] });
    let interfaces: Vec<Value> = CONTRACTS
        .iter()
        .map(|contract| {
            json!({
                "url": format!("http://{host}{}", contract.path),
                "protocolBinding": "JSONRPC",
                "protocolVersion": "1.0",
            })
        })
        .collect();
    let extensions: Vec<Value> = CONTRACTS
        .iter()
        .map(|contract| json!({ "uri": contract.extension, "required": true }))
        .collect();
    json!({
        "name": "Lakeside Motors",
        "description": "The embedded dealer agent of forecourt demo.",
        "supportedInterfaces": interfaces,
        "version": env!("CARGO_PKG_VERSION"),
        "capabilities": { "streaming": true, "extensions": extensions },
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": [
            skill("dealer.information", "Dealer information", "Who the dealer is."),
            skill("inventory.facets", "Inventory facets", "What can be searched for."),
            skill("inventory.search", "Inventory search", "What stands on the lot."),
            skill("inventory.vehicle", "Vehicle detail", "One vehicle by its VIN."),
            skill("lead.submit", "Submit lead", "An enquiry with consent."),
        ],
    })
    .to_string()
}
