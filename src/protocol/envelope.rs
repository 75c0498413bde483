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

/// AAP's skills.
pub const SKILLS: [&str; 5] = [
    "dealer.information",
    "inventory.facets",
    "inventory.search",
    "inventory.vehicle",
    "lead.submit",
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
    let start = match simdutf8::compat::from_utf8(start) {
        Ok(text) => text,
        // A cut in the middle of a character.
        Err(error) => std::str::from_utf8(start.get(..error.valid_up_to())?).ok()?,
    };
    let mut found = None;
    // Malformed ends the walk: at the member that tells, or where the piece ends.
    let _ = Scanner::new(start).object(|scanner, name| {
        match name {
            b"result" => found = Some(false),
            b"error" if scanner.peek()? != b'n' => found = Some(true),
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
        let text = simdutf8::basic::from_utf8(body).map_err(|_| Refusal::ParseError)?;
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
            b"id" => self.id.take(scanner),
            b"jsonrpc" => self.jsonrpc.take(scanner),
            b"method" => self.method.take(scanner),
            b"params" => {
                self.duplicate |= self.params.again();
                self.params(scanner)
            }
            _ => skip(scanner),
        })
    }

    fn params(&mut self, scanner: &mut Scanner<'b>) -> Scan<()> {
        object_or_skip(scanner, |scanner, name| match name {
            b"tenant" => self.tenant.take(scanner),
            b"message" => {
                self.duplicate |= self.message.again();
                self.message(scanner)
            }
            b"configuration" => {
                self.duplicate |= self.configuration.again();
                self.configuration(scanner)
            }
            _ => skip(scanner),
        })
    }

    fn configuration(&mut self, scanner: &mut Scanner<'b>) -> Scan<()> {
        object_or_skip(scanner, |scanner, name| match name {
            b"acceptedOutputModes" => self.accepted_output_modes.take(scanner),
            _ => skip(scanner),
        })
    }

    fn message(&mut self, scanner: &mut Scanner<'b>) -> Scan<()> {
        object_or_skip(scanner, |scanner, name| {
            if name != b"parts" {
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
            b"mediaType" => self.media_type.take(scanner),
            b"data" => {
                self.duplicate |= self.data.again();
                self.data(scanner)
            }
            _ => skip(scanner),
        })
    }

    fn data(&mut self, scanner: &mut Scanner<'b>) -> Scan<()> {
        object_or_skip(scanner, |scanner, name| match name {
            b"type" => self.data_type.take(scanner),
            b"idempotency_key" => self.idempotency_key.take(scanner),
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
    each: impl FnMut(&mut Scanner<'b>, &[u8]) -> Scan<()>,
) -> Scan<()> {
    if scanner.peek()? == b'{' {
        scanner.object(each)
    } else {
        skip(scanner)
    }
}

fn skip(scanner: &mut Scanner<'_>) -> Scan<()> {
    scanner.pass()
}

const fn refused(flaw: Flaw, id: Id<'_>) -> Unreadable<'_> {
    Unreadable {
        refusal: Refusal::InvalidRequest(flaw),
        id,
    }
}

#[cfg(test)]
mod tests;
