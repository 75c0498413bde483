//! Decides the bytes of a refusal: door three, [`render`]. The only place that builds a JSON-RPC
//! error body.
//!
//! JSON-RPC's and A2A's own numbers are the same in every contract and stand here; AAP's numbers
//! and the shape of `error.data` belong to the dialect and stand in its file. Follows JSON-RPC 2.0
//! section 5.1, A2A 1.0 section 5.4, and AAP's "Errors" and "A2A JSON-RPC binding" pages. Must
//! never read a clock or draw an identifier: both come in the stamp.

mod bare;
mod detail;
mod tagged;
mod wrapped;

use serde::Serialize;

use crate::protocol::contract::{Contract, Dialect, Violations};
use crate::protocol::envelope::Id;
use crate::protocol::headers::{EXTENSIONS_NAME, VERSION_NAME};
use crate::protocol::refusal::Refusal;
use crate::protocol::wording;
use detail::{AapError, BadRequest, Details, Entry, ErrorInfo, FieldViolation, Metadata};

/// JSON-RPC 2.0 section 5.1.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
/// JSON-RPC 2.0's first server error: a credential is no A2A matter.
const SERVER_ERROR: i32 = -32000;
/// A2A 1.0 section 5.4.
const PUSH_NOTIFICATION_NOT_SUPPORTED: i32 = -32003;
const UNSUPPORTED_OPERATION: i32 = -32004;
const CONTENT_TYPE_NOT_SUPPORTED: i32 = -32005;
const EXTENSION_SUPPORT_REQUIRED: i32 = -32008;
const VERSION_NOT_SUPPORTED: i32 = -32009;

/// What makes one answer different from the next: drawn by the caller of [`render`].
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'s> {
    /// A new UUID for each answer.
    pub error_id: &'s str,
    /// RFC 3339 in UTC, ending in `Z`.
    pub created_at: &'s str,
}

/// A rendered refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The JSON text of the whole response object.
    pub body: Vec<u8>,
    /// The JSON-RPC error number.
    pub code: i32,
    /// Whether the body carries the stamp's `error_id`: only AAP's typed errors do.
    pub is_stamped: bool,
}

/// What a refusal is in a contract's dialect, whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorText {
    /// The JSON text of the error object.
    json: Vec<u8>,
    code: i32,
    /// Whether it carries the stamp: then it is good for one answer only.
    pub is_stamped: bool,
}

impl ErrorText {
    /// Spells a refusal in the contract's dialect.
    #[must_use]
    pub fn of(refusal: &Refusal, contract: &Contract, stamp: Stamp<'_>) -> Self {
        let message = refusal.message();
        let spelled = spell(refusal, contract, &message, stamp);
        let error = ErrorObject {
            code: spelled.code,
            message: &message,
            data: spelled.data,
        };
        let mut json = Vec::with_capacity(512);
        // Plain structs of strings and numbers written to memory cannot fail to serialize.
        let _ = serde_json::to_writer(&mut json, &error);
        Self {
            json,
            code: spelled.code,
            is_stamped: spelled.is_stamped,
        }
    }

    /// The answer to the caller's id.
    #[must_use]
    pub fn answer(&self, id: Id<'_>) -> Answer {
        const START: &[u8] = br#"{"jsonrpc":"2.0","id":"#;
        const MIDDLE: &[u8] = br#","error":"#;
        let id = id.as_str().as_bytes();
        let length = START.len() + id.len() + MIDDLE.len() + self.json.len() + 1;
        let mut body = Vec::with_capacity(length);
        body.extend_from_slice(START);
        body.extend_from_slice(id);
        body.extend_from_slice(MIDDLE);
        body.extend_from_slice(&self.json);
        body.push(b'}');
        Answer {
            body,
            code: self.code,
            is_stamped: self.is_stamped,
        }
    }
}

/// Spells a refusal for the caller's id in the contract's dialect.
#[must_use]
pub fn render(refusal: &Refusal, contract: &Contract, id: Id<'_>, stamp: Stamp<'_>) -> Answer {
    ErrorText::of(refusal, contract, stamp).answer(id)
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Data<'a>>,
}

/// `error.data`.
#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    /// The `aap.error` object itself.
    Object(AapError<'a>),
    /// A list of typed entries, ErrorInfo first where there is one.
    Entries(Vec<Entry<'a>>),
}

struct Spelled<'a> {
    code: i32,
    data: Option<Data<'a>>,
    is_stamped: bool,
}

/// AAP's own error codes that the gateway answers with.
#[derive(Clone, Copy, Debug)]
enum AapCode {
    RateLimited,
    SchemaValidationFailed,
    UnsupportedSkill,
    InternalError,
}

impl AapCode {
    const fn name(self) -> &'static str {
        match self {
            Self::RateLimited => "RATE_LIMITED",
            Self::SchemaValidationFailed => "SCHEMA_VALIDATION_FAILED",
            Self::UnsupportedSkill => "UNSUPPORTED_SKILL",
            Self::InternalError => "INTERNAL_ERROR",
        }
    }
}

fn spell<'a>(
    refusal: &'a Refusal,
    contract: &'a Contract,
    message: &'a str,
    stamp: Stamp<'a>,
) -> Spelled<'a> {
    let aap = |code, retryable, details| {
        typed(
            contract,
            AapError::new(code, message, retryable, details, stamp),
            code,
        )
    };
    match refusal {
        Refusal::ParseError => plain(PARSE_ERROR),
        Refusal::InvalidRequest(_) | Refusal::BodyTimeout | Refusal::BodyTooLarge { .. } => {
            plain(INVALID_REQUEST)
        }
        Refusal::ContentTypeNotSupported(_) => a2a(
            CONTENT_TYPE_NOT_SUPPORTED,
            "CONTENT_TYPE_NOT_SUPPORTED",
            Metadata::default(),
        ),
        Refusal::TenantRejected => Spelled {
            code: INVALID_PARAMS,
            data: Some(Data::Entries(vec![Entry::BadRequest(BadRequest {
                field_violations: vec![FieldViolation {
                    field: "tenant",
                    description: "not the tenant declared for this endpoint".into(),
                }],
            })])),
            is_stamped: false,
        },
        Refusal::PushNotificationNotSupported { .. } => a2a(
            PUSH_NOTIFICATION_NOT_SUPPORTED,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Metadata::default(),
        ),
        Refusal::UnsupportedOperation { .. } => a2a(
            UNSUPPORTED_OPERATION,
            "UNSUPPORTED_OPERATION",
            Metadata::default(),
        ),
        Refusal::MethodNotFound { .. } => plain(METHOD_NOT_FOUND),
        Refusal::ExtensionSupportRequired { uri } => {
            let mut metadata = Metadata::default();
            metadata.put("extensionUri", uri.as_str());
            metadata.put("requiredHeader", EXTENSIONS_NAME);
            a2a(
                EXTENSION_SUPPORT_REQUIRED,
                "EXTENSION_SUPPORT_REQUIRED",
                metadata,
            )
        }
        Refusal::VersionNotSupported { requested, served } => {
            let mut metadata = Metadata::default();
            if let Some(requested) = requested {
                metadata.put("requestedVersion", &**requested);
            }
            metadata.put("supportedVersions", wording::join(served));
            metadata.put("requiredHeader", VERSION_NAME);
            a2a(VERSION_NOT_SUPPORTED, "VERSION_NOT_SUPPORTED", metadata)
        }
        Refusal::RateLimited { retry_after_ms } => aap(
            AapCode::RateLimited,
            true,
            Some(Details::retry_after(*retry_after_ms)),
        ),
        Refusal::PayloadInvalid { problems } => aap(
            AapCode::SchemaValidationFailed,
            false,
            Some(match contract.violations {
                Violations::Every => Details::every(problems),
                Violations::First => Details::first(problems),
            }),
        ),
        Refusal::UnsupportedSkill { skill } => aap(
            AapCode::UnsupportedSkill,
            false,
            Some(Details::skill(skill)),
        ),
        Refusal::Failed {
            retryable,
            retry_after_ms,
            ..
        } => aap(
            AapCode::InternalError,
            *retryable,
            retry_after_ms.map(Details::retry_after),
        ),
        Refusal::Unauthenticated(_) | Refusal::PermissionDenied => plain(SERVER_ERROR),
    }
}

/// A number and a message, no data.
const fn plain<'a>(code: i32) -> Spelled<'a> {
    Spelled {
        code,
        data: None,
        is_stamped: false,
    }
}

/// An A2A error: one ErrorInfo, in every dialect; never a typed `aap.error`.
fn a2a<'a>(code: i32, reason: &'static str, metadata: Metadata<'a>) -> Spelled<'a> {
    Spelled {
        code,
        data: Some(Data::Entries(vec![Entry::ErrorInfo(ErrorInfo {
            reason,
            domain: "a2a-protocol.org",
            metadata,
        })])),
        is_stamped: false,
    }
}

/// An AAP error in the contract's dialect.
fn typed<'a>(contract: &Contract, error: AapError<'a>, code: AapCode) -> Spelled<'a> {
    let (code, data) = match contract.dialect {
        Dialect::Bare => (bare::number(code), bare::data(error)),
        Dialect::Tagged => (tagged::number(code), tagged::data(error)),
        Dialect::Wrapped => (wrapped::number(code), wrapped::data(error)),
    };
    Spelled {
        code,
        data: Some(data),
        is_stamped: true,
    }
}

#[cfg(test)]
mod tests;
