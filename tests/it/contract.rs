//! The fixtures through the pure doors: `peek`, `judge`, `render`. What fails here is a rule.

use forecourt::protocol::headers::{A2A_EXTENSIONS, A2A_VERSION};
use forecourt::protocol::{
    Absence, Contract, Dialect, Id, Refusal, Stamp, Supplied, Verdict, Violations, judge, method,
    peek, releases, render,
};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::support::fixture;

/// What the vectors call `draft/2.0`.
fn draft() -> Contract {
    Contract {
        name: "draft/2.0".into(),
        a2a_version: "1.0".parse().unwrap(),
        extension: "https://dealer.example/ext/aap/v2.0".parse().unwrap(),
        absent: Absence::Refuse,
        require_extension: true,
        dialect: Dialect::Tagged,
        violations: Violations::Every,
    }
}

fn contract(name: &str) -> Contract {
    match name {
        "draft/2.0" => draft(),
        name => releases::find(name).unwrap().contract(None).unwrap(),
    }
}

/// The headers of a case, its characters as latin-1 bytes, trimmed as HTTP/1.1 parsers do.
fn headers(case: &Value) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in case["headers"].as_array().unwrap() {
        let latin1: Vec<u8> = line[1]
            .as_str()
            .unwrap()
            .chars()
            .map(|character| u8::try_from(u32::from(character)).unwrap())
            .collect();
        headers.append(
            line[0].as_str().unwrap().parse::<HeaderName>().unwrap(),
            HeaderValue::from_bytes(latin1.trim_ascii()).unwrap(),
        );
    }
    headers
}

fn values(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    headers
        .get_all(name)
        .iter()
        .map(|value| {
            value
                .as_bytes()
                .iter()
                .map(|byte| char::from(*byte))
                .collect()
        })
        .collect()
}

/// The answer to a refusal, which names what the case says.
#[track_caller]
fn assert_refused(expect: &Value, refusal: &Refusal, contract: &Contract) {
    let stamp = Stamp {
        error_id: "e",
        created_at: "t",
    };
    let answer = render(refusal, contract, Id::NULL, stamp);
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer["error"]["code"], expect["code"]);
    let metadata = &answer["error"]["data"][0]["metadata"];
    for name in ["requestedVersion", "extensionUri"] {
        if !expect[name].is_null() {
            assert_eq!(metadata[name], expect[name], "{name}");
        }
    }
}

#[test]
fn header_vectors() {
    for case in fixture::cases("vectors/headers.json", 37) {
        let name = &case["name"];
        println!("{name}");
        let contract = contract(case["contract"].as_str().unwrap());
        let mut headers = headers(&case);
        let verdict = judge(&contract, Supplied::new(&headers));
        let expect = &case["expect"];
        match verdict {
            Verdict::Refuse(refusal) => {
                assert!(expect["forward"].is_null(), "{name} was refused");
                assert_refused(&expect["refuse"], &refusal, &contract);
            }
            Verdict::Admit(activation) => {
                let forward = &expect["forward"];
                assert!(!forward.is_null(), "{name} was admitted");
                assert_eq!(forward["activated"], activation.is_activated(), "{name}");
                activation.apply(&mut headers);
                assert_eq!(
                    values(&headers, A2A_VERSION),
                    [forward["A2A-Version"].as_str().unwrap()],
                    "{name}"
                );
                let extensions = forward["A2A-Extensions"].as_array().unwrap();
                assert_eq!(
                    serde_json::to_value(values(&headers, A2A_EXTENSIONS)).unwrap(),
                    Value::from(extensions.clone()),
                    "{name}"
                );
                // What was normalized is admitted again and stays as it is.
                let before = headers.clone();
                let Verdict::Admit(again) = judge(&contract, Supplied::new(&headers)) else {
                    panic!("{name} is not admitted twice");
                };
                again.apply(&mut headers);
                assert_eq!(before, headers, "{name}");
            }
        }
    }
}

#[test]
fn envelope_vectors() {
    let contract = contract("aap/3.0");
    for case in fixture::cases("vectors/envelopes.json", 25) {
        println!("{}", case["name"]);
        let body = case["body"].as_str().unwrap().as_bytes();
        let mut headers = HeaderMap::new();
        if let Some(version) = case["version"].as_str() {
            headers.insert(A2A_VERSION, HeaderValue::from_str(version).unwrap());
        }
        let (refusal, id) = match peek(body) {
            Err(unreadable) => (unreadable.refusal, unreadable.id),
            Ok(envelope) => {
                let refusal = match judge(&contract, Supplied::new(&headers)) {
                    Verdict::Refuse(refusal) => refusal,
                    Verdict::Admit(activation) => {
                        let pinned = &activation.contract().a2a_version;
                        method::judge(&envelope.method, pinned, None).unwrap_err()
                    }
                };
                (refusal, envelope.id)
            }
        };
        assert_eq!(
            id.as_str(),
            case["id"].as_str().unwrap(),
            "{}",
            case["name"]
        );
        assert_refused(&case, &refusal, &contract);
    }
}
