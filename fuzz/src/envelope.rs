//! Holds `peek` to a slow reading of the same rules with serde_json: the same refusal, the same
//! flaw, the same bytes of the body.
//!
//! The model keeps the members of every object in order and sees duplicates. It finds the depth by
//! counting brackets.

use std::fmt;

use forecourt::protocol::envelope::is_error_response;
use forecourt::protocol::raw::Raw;
use forecourt::protocol::refusal::{Flaw, Refusal};
use forecourt::protocol::{Id, peek};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The deepest nesting accepted; the top level is 1.
const DEEPEST: u32 = 128;

/// How many bytes of a response are looked at.
const TELLING: usize = 512;

/// Any body, as a request and as a response.
pub fn envelope(data: &[u8]) {
    request(data);
    response(data);
}

fn request(body: &[u8]) {
    match (peek(body), Request::read(body)) {
        (Ok(envelope), Ok(request)) => {
            is_the_same("id", Some(envelope.id.as_str()), Some(request.id));
            assert_eq!(envelope.method, request.method);
            for (member, found, expected) in [
                ("tenant", envelope.tenant, request.tenant),
                ("data.type", envelope.data_type, request.data_type),
                ("mediaType", envelope.media_type, request.media_type),
                ("modes", envelope.accepted_output_modes, request.modes),
                ("key", envelope.idempotency_key, request.key),
            ] {
                is_the_same(member, found.map(Raw::as_str), expected);
            }
            let skill = envelope.skill().map(|skill| format!("{skill}.request"));
            let wanted = request.data_type.and_then(string);
            assert_eq!(skill, wanted.filter(|text| text.ends_with(".request")));
            let _ = envelope.is_safe_to_repeat();
        }
        (Err(unreadable), Err((refusal, id))) => {
            assert_eq!(unreadable.refusal, refusal);
            match id {
                None => assert_eq!(unreadable.id, Id::NULL),
                Some(id) => is_the_same("id", Some(unreadable.id.as_str()), Some(id)),
            }
        }
        (peeked, read) => panic!("peeked {peeked:?}, but the slow reading is {read:?}"),
    }
}

/// The very same bytes of the body, not merely equal ones.
fn is_the_same(member: &str, found: Option<&str>, expected: Option<&str>) {
    let same = match (found, expected) {
        (Some(found), Some(expected)) => std::ptr::eq(found, expected),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    assert!(same, "{member}: {found:?}, not {expected:?}");
}

/// A response that is cut never tells the contrary of what the whole tells.
fn response(start: &[u8]) {
    let told = is_error_response(start);
    for cut in [
        start.len() / 3,
        start.len() / 2,
        start.len().saturating_sub(1),
    ] {
        let early = is_error_response(&start[..cut]);
        assert!(early.is_none() || early == told, "{early:?}, then {told:?}");
    }
    let seen = &start[..start.len().min(TELLING)];
    assert_eq!(is_error_response(seen), told);
    if let Some(Ok(members)) = readable(seen).map(object) {
        let expected = members
            .iter()
            .find_map(|(name, value)| match name.as_deref() {
                Some("result") => Some(false),
                Some("error") if *value != "null" => Some(true),
                _ => None,
            });
        assert_eq!(told, expected);
    }
}

/// A request, read slowly.
#[derive(Debug)]
struct Request<'b> {
    id: &'b str,
    method: String,
    tenant: Option<&'b str>,
    data_type: Option<&'b str>,
    media_type: Option<&'b str>,
    modes: Option<&'b str>,
    key: Option<&'b str>,
}

impl<'b> Request<'b> {
    fn read(body: &'b [u8]) -> Result<Self, (Refusal, Option<&'b str>)> {
        let flawed = |flaw, id| (Refusal::InvalidRequest(flaw), id);
        let text = readable(body).ok_or((Refusal::ParseError, None))?;
        let Ok(top) = object(text) else {
            let is_batch = text.trim_start().starts_with('[');
            let flaw = if is_batch {
                Flaw::Batch
            } else {
                Flaw::NotAnObject
            };
            return Err(flawed(flaw, None));
        };
        let id = match *all(&top, "id") {
            [] => return Err(flawed(Flaw::NoId, None)),
            [id] => id,
            _ => return Err(flawed(Flaw::DuplicateId, None)),
        };
        if id.starts_with(['{', '[', 't', 'f']) {
            return Err(flawed(Flaw::IdType, None));
        }
        let flawed = |flaw| flawed(flaw, Some(id));
        let twice = || flawed(Flaw::DuplicateMember);
        let jsonrpc = once(&top, "jsonrpc").ok_or_else(twice)?;
        let method = once(&top, "method").ok_or_else(twice)?;
        let params = below(once(&top, "params").ok_or_else(twice)?);
        let tenant = once(&params, "tenant").ok_or_else(twice)?;
        let configuration = below(once(&params, "configuration").ok_or_else(twice)?);
        let modes = once(&configuration, "acceptedOutputModes").ok_or_else(twice)?;
        let message = below(once(&params, "message").ok_or_else(twice)?);
        let part = below(first(once(&message, "parts").ok_or_else(twice)?));
        let media_type = once(&part, "mediaType").ok_or_else(twice)?;
        let data = below(once(&part, "data").ok_or_else(twice)?);
        let data_type = once(&data, "type").ok_or_else(twice)?;
        let key = once(&data, "idempotency_key").ok_or_else(twice)?;
        if jsonrpc.and_then(string).as_deref() != Some("2.0") {
            return Err(flawed(Flaw::JsonRpcVersion));
        }
        let method = method.and_then(string);
        Ok(Self {
            id,
            method: method.ok_or_else(|| flawed(Flaw::Method))?,
            tenant,
            data_type,
            media_type,
            modes,
            key,
        })
    }
}

/// The text, where it is JSON in UTF-8 and not nested too deep.
fn readable(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?;
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    (depth(text) <= DEEPEST).then_some(text)
}

fn depth(text: &str) -> u32 {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0, 0, false, false);
    for char in text.chars() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => in_string = !in_string,
            '{' | '[' if !in_string => depth += 1,
            '}' | ']' if !in_string => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Names, decoded where they decode to text, and values as they stand.
type Members<'b> = Vec<(Option<String>, &'b str)>;

/// Every value under a name.
fn all<'b>(members: &Members<'b>, name: &str) -> Vec<&'b str> {
    members
        .iter()
        .filter(|(found, _)| found.as_deref() == Some(name))
        .map(|(_, value)| *value)
        .collect()
}

/// The value under a name, if any; `None` where there are several.
fn once<'b>(members: &Members<'b>, name: &str) -> Option<Option<&'b str>> {
    match *all(members, name) {
        [] => Some(None),
        [value] => Some(Some(value)),
        _ => None,
    }
}

/// The members of what is an object; none of anything else.
fn below(value: Option<&str>) -> Members<'_> {
    value
        .and_then(|value| object(value).ok())
        .unwrap_or_default()
}

/// The first element of what is a list with one.
fn first(value: Option<&str>) -> Option<&str> {
    let elements: Vec<&RawValue> = serde_json::from_str(value?).ok()?;
    elements.first().map(|element| element.get())
}

fn string(value: &str) -> Option<String> {
    serde_json::from_str(value).ok()
}

fn object(text: &str) -> serde_json::Result<Members<'_>> {
    serde_json::from_str::<Object<'_>>(text).map(|object| object.0)
}

struct Object<'b>(Members<'b>);

impl<'b> Deserialize<'b> for Object<'b> {
    fn deserialize<D: Deserializer<'b>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'b> Visitor<'b> for InOrder {
            type Value = Object<'b>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'b>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Members::new();
                while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    members.push((string(name.get()), value.get()));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
