//! Decides the words of a refusal: the text of `error.message`.
//!
//! A message repeats what a caller needs to recover, because some SDKs keep nothing else of an
//! error. What it shows of a caller's own text is cleaned and shortened. Must never say how
//! something failed inside.

use std::fmt::Write as _;

use crate::protocol::Version;
use crate::protocol::headers::{EXTENSIONS_NAME, VERSION_NAME};
use crate::protocol::refusal::{Failure, Flaw, Lack, Media, Refusal};

impl Refusal {
    /// The text of `error.message`.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::ParseError => "The request body is not valid JSON.".into(),
            Self::InvalidRequest(flaw) => flaw.message().into(),
            Self::BodyTimeout => "The request body did not arrive in time.".into(),
            Self::BodyTooLarge { limit } => {
                format!("The request body is larger than the limit of {limit} bytes.")
            }
            Self::ContentTypeNotSupported(media) => media.message().into(),
            Self::TenantRejected => {
                "params.tenant is not the tenant declared for this endpoint.".into()
            }
            Self::PushNotificationNotSupported { method } => format!(
                "Push notifications are not supported at this endpoint ({}).",
                printable(method)
            ),
            Self::UnsupportedOperation { method } => format!(
                "The operation {} is not supported at this endpoint.",
                printable(method)
            ),
            Self::MethodNotFound {
                method,
                older: Some(version),
            } => format!(
                "The method {} is of A2A {version}, which this endpoint does not serve; use the \
                 method names of A2A 1.0.",
                printable(method)
            ),
            Self::MethodNotFound {
                method,
                older: None,
            } => format!("The method {} is not known here.", printable(method)),
            Self::ExtensionSupportRequired { uri } => format!(
                "This endpoint requires an extension that the request did not activate. List \
                 exactly this URI in the {EXTENSIONS_NAME} header: {uri}"
            ),
            Self::VersionNotSupported { requested, served } => {
                let served = join(served);
                match requested {
                    Some(requested) => format!(
                        "A2A version {requested} is not supported at this endpoint, which serves \
                         {served}. Name that version in one {VERSION_NAME} header."
                    ),
                    None => format!(
                        "This endpoint needs one {VERSION_NAME} header and the request has none; \
                         it serves {served}."
                    ),
                }
            }
            Self::RateLimited { retry_after_ms } => {
                format!(
                    "Rate limit exceeded. Retry after {}.",
                    words(*retry_after_ms)
                )
            }
            Self::PayloadInvalid { problems } => match &**problems {
                [] => "The payload does not match its schema.".into(),
                [only] => format!(
                    "The payload does not match its schema: {} {}",
                    place(&only.location),
                    clean(&only.error, TOLD)
                ),
                [first, rest @ ..] => format!(
                    "The payload does not match its schema: {} {} (and {} more)",
                    place(&first.location),
                    clean(&first.error, TOLD),
                    rest.len()
                ),
            },
            Self::UnsupportedSkill { skill } => {
                format!("The skill {} is not offered here.", printable(skill))
            }
            Self::Failed {
                failure,
                retry_after_ms,
                ..
            } => {
                let mut text = failure.message().to_owned();
                if let Some(ms) = retry_after_ms {
                    // Writing to a String cannot fail.
                    let _ = write!(text, " Retry after {}.", words(*ms));
                }
                text
            }
            Self::Unauthenticated(lack) => lack.message().into(),
            Self::PermissionDenied => "This credential is not allowed at this endpoint.".into(),
        }
    }
}

impl Flaw {
    const fn message(self) -> &'static str {
        match self {
            Self::Batch => "Batches are not part of A2A; send one request object.",
            Self::NotAnObject => "The request body is not a JSON-RPC request object.",
            Self::NoId => "The request has no id; A2A has no notifications.",
            Self::IdType => "The id must be a string, a number or null.",
            Self::DuplicateId => "The request has two ids.",
            Self::DuplicateMember => "A member of the request stands twice.",
            Self::JsonRpcVersion => "The member jsonrpc must be \"2.0\".",
            Self::Method => "The member method must be a string.",
        }
    }
}

impl Media {
    const fn message(self) -> &'static str {
        match self {
            Self::ContentType => "The Content-Type must be application/json in UTF-8.",
            Self::ContentEncoding => "The body must not be compressed: no Content-Encoding.",
            Self::Part => "The media type of the first part is not supported here.",
            Self::OutputModes => "None of the accepted output modes can be produced here.",
        }
    }
}

impl Lack {
    const fn message(self) -> &'static str {
        match self {
            Self::Absent => "This endpoint requires a credential, and the request has none.",
            Self::Bad | Self::BadBearer => "The request's credential is not valid here.",
        }
    }
}

impl Failure {
    const fn message(self) -> &'static str {
        match self {
            Self::Unreachable => "The dealer agent could not be reached.",
            Self::Reset => "The dealer agent closed the connection before it answered.",
            Self::Timeout => "The dealer agent did not answer in time.",
            Self::Invalid => "The dealer agent's answer could not be understood.",
            Self::Overloaded => "The gateway is overloaded.",
            Self::Draining => "The gateway is shutting down.",
            Self::Internal => "The gateway failed.",
        }
    }
}

/// What a supplied header value may look like in an answer: bytes outside 0x21 to 0x7E become
/// `?`, at most 32 characters.
#[must_use]
pub fn sanitize<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Box<str> {
    let mut text = String::new();
    for (index, line) in lines.into_iter().enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        text.extend(line.iter().take(SHOWN).map(|byte| match byte {
            0x21..=0x7e => char::from(*byte),
            _ => '?',
        }));
        if text.len() >= SHOWN {
            break;
        }
    }
    text.truncate(SHOWN);
    text.into()
}

/// How many characters of a caller's text an answer repeats.
const SHOWN: usize = 32;

/// How many characters of a validator's sentence, which may quote the payload, an answer repeats.
const TOLD: usize = 8 * SHOWN;

/// A caller's name for something, quoted for a message.
fn printable(text: &str) -> String {
    format!("'{}'", clean(text, 2 * SHOWN))
}

/// Without control characters, and at most so many characters long.
fn clean(text: &str, most: usize) -> String {
    let mut shown: String = text
        .chars()
        .take(most)
        .map(|char| if char.is_control() { '?' } else { char })
        .collect();
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}

pub(in crate::protocol) fn join(versions: &[Version]) -> String {
    let mut text = String::new();
    for version in versions {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(version.as_str());
    }
    text
}

/// A wait in words, never shorter than the wait.
fn words(ms: u64) -> String {
    match ms {
        1 => "1 millisecond".into(),
        0..=999 => format!("{ms} milliseconds"),
        1000 => "1 second".into(),
        _ => format!("{} seconds", ms.div_ceil(1000)),
    }
}

/// Where a problem is; a pointer holds names of the caller's.
fn place(pointer: &str) -> String {
    if pointer.is_empty() {
        return "/".into();
    }
    clean(pointer, 2 * SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::refusal::Violation;

    #[test]
    fn header_values_are_shown_sanitized_and_short() {
        assert_eq!(&*sanitize([&b"1.0\xa0\r\n x"[..]]), "1.0????x");
        assert_eq!(&*sanitize([&b"1.0"[..], b"0.3"]), "1.0, 0.3");
        assert_eq!(sanitize([&[b'9'; 500][..]]).len(), 32);
        assert_eq!(sanitize([&b"1.0"[..]; 40]).len(), 32);
    }

    #[test]
    fn waits_are_rounded_up() {
        let limited = |ms| Refusal::RateLimited { retry_after_ms: ms };
        assert_eq!(limited(1).retry_after_seconds(), Some(1));
        assert_eq!(limited(1000).retry_after_seconds(), Some(1));
        assert_eq!(limited(1001).retry_after_seconds(), Some(2));
        assert!(limited(29_001).message().contains("30 seconds"));
        assert!(limited(200).message().contains("200 milliseconds"));
    }

    #[test]
    fn names_of_callers_are_shortened_and_cleaned() {
        let refusal = Refusal::MethodNotFound {
            method: format!("a\n{}", "é".repeat(500)).into(),
            older: None,
        };
        assert!(refusal.message().contains("'a?é"));
        assert!(refusal.message().chars().count() < 120);
    }

    #[test]
    fn problems_of_a_payload_are_shortened_and_cleaned() {
        let problem = |location: &str, error: &str| Violation {
            location: location.into(),
            keyword: "type".into(),
            error: error.into(),
            received: None,
        };
        let long = "é\u{1b}".repeat(500);
        let problems = [
            problem(&long, "'\u{7f}' is not a string"),
            problem("", &long),
        ];
        for problems in [&problems[..], &problems[..1], &problems[1..]] {
            let refusal = Refusal::PayloadInvalid {
                problems: problems.into(),
            };
            let message = refusal.message();
            assert!(!message.chars().any(char::is_control), "{message:?}");
            assert!(message.chars().count() < 400, "{message}");
            assert!(message.contains("é?é"), "{message}");
        }
    }
}
