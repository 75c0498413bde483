//! Decides whether an answer is what was written down for it.
//!
//! JSON is compared member by member, in any order; strings, numbers and names are compared as
//! they are spelled, byte for byte, so that `9007199254740993` and `"a\u0062c"` are told apart from
//! what they are equal to. What cannot be known before has a placeholder, and each placeholder has
//! a rule: `{error_id}` a UUID and `{created_at}` a moment in UTC, each the same wherever it stands
//! in one answer; `{retry_after_ms}` 1 to the quota's interval; `{wait}` that time in words and
//! `{retry_after}` in whole seconds, both rounded up; `{seconds}` at the end of a header 1 to the
//! quota's interval; `{request_id}` anything printable.

use std::fmt;

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::wire::Head;

/// The most a caller may be told to wait, in ms: the quota of the demo earns one call in this time.
pub(super) const LONGEST_WAIT_MS: u64 = 3000;

/// What the placeholders of one answer stood for, and what differs.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// What differs, for a reader. Empty: nothing does.
    pub(super) differences: Vec<String>,
    /// What `{error_id}` stood for.
    pub(super) error_id: Option<String>,
    /// What `{retry_after_ms}` stood for.
    pub(super) retry_after_ms: Option<u64>,
    created_at: Option<String>,
    wait: Option<String>,
    retry_after: Option<String>,
}

impl Comparison {
    /// Compares the status and every header but those of framing and time.
    pub(super) fn head(&mut self, status: u16, headers: &[(&str, &str)], head: &Head) {
        if head.status != status {
            self.differ("status", &status, &head.status);
        }
        let mut left: Vec<&(String, String)> = head.headers.iter().collect();
        left.retain(|(name, _)| {
            !["date", "content-length", "transfer-encoding"].contains(&name.as_str())
        });
        for (name, expected) in headers {
            let Some(place) = left.iter().position(|(it, _)| it == name) else {
                self.differ(name, expected, &"no such header");
                continue;
            };
            let (_, value) = left.remove(place);
            match *expected {
                "{request_id}" if value.bytes().all(|byte| byte.is_ascii_graphic()) => {}
                "{retry_after}" => self.retry_after = Some(value.clone()),
                _ if is_within(expected, value) => {}
                _ if value == expected => {}
                _ => self.differ(name, expected, value),
            }
        }
        for (name, value) in left {
            self.differ(name, &"no such header", value);
        }
    }

    /// Compares a JSON text.
    pub(super) fn json(&mut self, expected: &str, answer: &[u8]) {
        let expected: &RawValue = match serde_json::from_str(expected) {
            Ok(expected) => expected,
            Err(error) => return self.differ("expectation", &"JSON", &error),
        };
        match serde_json::from_slice(answer) {
            Ok(answer) => self.value("", expected, answer),
            Err(error) => self.differ("body", &"JSON", &error),
        }
    }

    /// Compares a text line by line: each line expected has to be there, in order.
    pub(super) fn lines(&mut self, expected: &[&str], answer: &[u8]) {
        let answer = String::from_utf8_lossy(answer);
        let mut lines = answer.lines();
        for line in expected {
            if !lines.any(|it| it.contains(line)) {
                self.differ("body", &format!("a line with `{line}`"), &answer);
            }
        }
    }

    /// What remains to be said when everything of one answer was compared.
    pub(super) fn finish(&mut self) {
        let spelled = self.retry_after_ms.map(|ms| match ms {
            1 => "1 millisecond".to_owned(),
            2..1000 => format!("{ms} milliseconds"),
            1000 => "1 second".to_owned(),
            _ => format!("{} seconds", ms.div_ceil(1000)),
        });
        if self.wait != spelled {
            let (expected, got) = (format!("{spelled:?}"), format!("{:?}", self.wait));
            self.differ("the wait in words", &expected, &got);
        }
        let seconds = self.retry_after_ms.map(|ms| ms.div_ceil(1000).to_string());
        if self.retry_after != seconds {
            let (expected, got) = (format!("{seconds:?}"), format!("{:?}", self.retry_after));
            self.differ("retry-after", &expected, &got);
        }
    }

    /// Notes a difference.
    pub(super) fn differ(
        &mut self,
        place: &str,
        expected: &dyn fmt::Display,
        got: &dyn fmt::Display,
    ) {
        self.differences
            .push(format!("{place}: expected {expected}, got {got}"));
    }

    fn value(&mut self, place: &str, expected: &RawValue, answer: &RawValue) {
        if let Some(expected) = members(expected) {
            match members(answer) {
                Some(answer) => self.members(place, &expected, &answer),
                None => self.differ(place, &"an object", &answer),
            }
        } else if let Some(expected) = items(expected) {
            match items(answer) {
                Some(answer) if answer.len() == expected.len() => {
                    for (index, (expected, answer)) in expected.iter().zip(answer).enumerate() {
                        self.value(&format!("{place}[{index}]"), expected, answer);
                    }
                }
                _ => {
                    let expected = format!("{} items", expected.len());
                    self.differ(place, &expected, &answer);
                }
            }
        } else {
            self.scalar(place, expected.get(), answer.get());
        }
    }

    fn members(&mut self, place: &str, expected: &Members<'_>, answer: &Members<'_>) {
        let mut left: Vec<&(String, &RawValue)> = answer.0.iter().collect();
        for (name, expected) in &expected.0 {
            let place = format!("{place}.{name}");
            match left.iter().position(|(it, _)| it == name) {
                Some(found) => {
                    let (_, answer) = left.remove(found);
                    self.value(&place, expected, answer);
                }
                None => self.differ(&place, expected, &"nothing"),
            }
        }
        // A member that stands twice is left over as well.
        for (name, value) in left {
            self.differ(&format!("{place}.{name}"), &"nothing", value);
        }
    }

    fn scalar(&mut self, place: &str, expected: &str, answer: &str) {
        let inner = answer
            .strip_prefix('"')
            .and_then(|it| it.strip_suffix('"'))
            .unwrap_or_default();
        let fits = match expected {
            r#""{error_id}""# => is_uuid(inner) && same(&mut self.error_id, inner),
            r#""{created_at}""# => {
                let is_moment = inner.ends_with('Z') && inner.parse::<Timestamp>().is_ok();
                is_moment && same(&mut self.created_at, inner)
            }
            r#""{retry_after_ms}""# => {
                self.retry_after_ms = answer.parse().ok();
                self.retry_after_ms
                    .is_some_and(|ms| (1..=LONGEST_WAIT_MS).contains(&ms))
            }
            _ => match expected.split_once("{wait}") {
                Some((before, after)) => answer
                    .strip_prefix(before)
                    .and_then(|rest| rest.strip_suffix(after))
                    .is_some_and(|wait| same(&mut self.wait, wait)),
                None => expected == answer,
            },
        };
        if !fits {
            self.differ(place, &expected, &answer);
        }
    }
}

/// Whether a placeholder stands for the same thing as before, if there was a before.
fn same(known: &mut Option<String>, found: &str) -> bool {
    known.get_or_insert_with(|| found.to_owned()) == found
}

/// Whether a header is as expected up to a final `{seconds}`, and ends in no longer a wait than
/// there can be.
fn is_within(expected: &str, value: &str) -> bool {
    expected
        .strip_suffix("{seconds}")
        .and_then(|start| value.strip_prefix(start)?.parse::<u64>().ok())
        .is_some_and(|seconds| (1..=LONGEST_WAIT_MS / 1000).contains(&seconds))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

fn members(value: &RawValue) -> Option<Members<'_>> {
    serde_json::from_str(value.get()).ok()
}

fn items(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// The members of an object as they stand, also those that stand twice.
pub(super) struct Members<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(expected: &str, answer: &str) -> Vec<String> {
        let mut comparison = Comparison::default();
        comparison.json(expected, answer.as_bytes());
        comparison.differences
    }

    #[test]
    fn order_and_space_do_not_matter_and_spelling_does() {
        for (expected, answer, fits) in [
            (
                r#"{"a":1,"b":[true,null]}"#,
                "{ \"b\": [true, null], \"a\": 1 }",
                true,
            ),
            (
                r#"{"id":9007199254740993}"#,
                r#"{"id":9007199254740992}"#,
                false,
            ),
            (r#"{"id":"a\u0062c"}"#, r#"{"id":"a\u0062c"}"#, true),
            (r#"{"id":"a\u0062c"}"#, r#"{"id":"abc"}"#, false),
            (r#"{"id":1}"#, r#"{"id":1.0}"#, false),
            (r#"{"id":1}"#, r#"{"id":"1"}"#, false),
            (r#"{"id":1}"#, r#"{"id":1,"id":1}"#, false),
            (r#"{"id":1}"#, r#"{"id":1,"more":1}"#, false),
            (r#"{"id":1,"more":1}"#, r#"{"id":1}"#, false),
            (r#"{"id":null}"#, "{}", false),
            ("[1,2]", "[2,1]", false),
            ("[1]", "[1,1]", false),
            ("{}", "[]", false),
            ("[]", "null", false),
            ("{}", "{", false),
        ] {
            let differences = differences(expected, answer);
            assert_eq!(differences.is_empty(), fits, "{expected} {answer}");
        }
    }

    #[test]
    fn placeholders_keep_their_rules() {
        let id = r#"{"a":"{error_id}","b":"{error_id}"}"#;
        let one = "0195e0a0-0000-7000-8000-000000000001";
        let other = "0195e0a0-0000-7000-8000-000000000002";
        let both = |a: &str, b: &str| format!(r#"{{"a":"{a}","b":"{b}"}}"#);
        assert!(differences(id, &both(one, one)).is_empty());
        assert!(!differences(id, &both(one, other)).is_empty());
        assert!(!differences(id, &both("x", "x")).is_empty());
        for (moment, fits) in [
            (r#""2026-05-01T12:00:00.250Z""#, true),
            (r#""2026-05-01T12:00:00+00:00""#, false),
            (r#""yesterdayZ""#, false),
            ("1", false),
        ] {
            let differences = differences(r#""{created_at}""#, moment);
            assert_eq!(differences.is_empty(), fits, "{moment}");
        }
        for (ms, fits) in [("1", true), ("3000", true), ("0", false), ("3001", false)] {
            let differences = differences(r#""{retry_after_ms}""#, ms);
            assert_eq!(differences.is_empty(), fits, "{ms}");
        }
    }

    #[test]
    fn the_wait_is_the_same_in_three_spellings() {
        let compare = |words: &str, seconds: &str| {
            let mut comparison = Comparison::default();
            let head = Head {
                line: "HTTP/1.1 200 OK".into(),
                status: 200,
                headers: vec![("retry-after".into(), seconds.into())],
            };
            comparison.head(200, &[("retry-after", "{retry_after}")], &head);
            let answer = format!(r#"{{"message":"Retry after {words}.","ms":2001}}"#);
            let expected = r#"{"message":"Retry after {wait}.","ms":"{retry_after_ms}"}"#;
            comparison.json(expected, answer.as_bytes());
            comparison.finish();
            comparison.differences.len()
        };
        assert_eq!(compare("3 seconds", "3"), 0);
        assert_eq!(compare("2 seconds", "3"), 1);
        assert_eq!(compare("2 seconds", "2"), 2);
    }

    #[test]
    fn seconds_are_bounded() {
        let expected = r#""q";r=1;t={seconds}"#;
        assert!(is_within(expected, r#""q";r=1;t=3"#));
        for wrong in [
            r#""q";r=0;t=3"#,
            r#""q";r=1;t=0"#,
            r#""q";r=1;t=4"#,
            r#""q";r=1"#,
        ] {
            assert!(!is_within(expected, wrong), "{wrong}");
        }
    }

    #[test]
    fn every_header_counts() {
        let head = Head {
            line: "HTTP/1.1 200 OK".into(),
            status: 200,
            headers: vec![
                ("content-type".into(), "application/json".into()),
                ("content-length".into(), "2".into()),
                ("x-request-id".into(), "abc".into()),
            ],
        };
        let differences = |status, headers: &[(&str, &str)]| {
            let mut comparison = Comparison::default();
            comparison.head(status, headers, &head);
            comparison.differences.len()
        };
        let type_ = ("content-type", "application/json");
        let request_id = ("x-request-id", "{request_id}");
        assert_eq!(differences(200, &[type_, request_id]), 0);
        assert_eq!(differences(502, &[type_, request_id]), 1);
        assert_eq!(differences(200, &[type_]), 1);
        assert_eq!(
            differences(200, &[("content-type", "text/plain"), request_id]),
            1
        );
        assert_eq!(
            differences(200, &[type_, request_id, ("retry-after", "1")]),
            1
        );
    }

    #[test]
    fn lines_stand_in_order() {
        let differences = |expected: &[&str]| {
            let mut comparison = Comparison::default();
            comparison.lines(expected, b"one\ntwo\nthree\n");
            comparison.differences.len()
        };
        assert_eq!(differences(&["one", "thr"]), 0);
        assert_eq!(differences(&["two", "one"]), 1);
    }
}
