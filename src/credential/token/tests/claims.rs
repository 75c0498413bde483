//! What a token that is signed well has to say: times, audience, issuer, caller; each once.

use super::*;

#[test]
fn times_are_held_to_the_second_with_leeway() {
    for (changes, expected) in [
        (json!({ "exp": NOW - 29 }), Ok(())),
        (json!({ "exp": NOW - 30 }), Err(Bad::Expired)),
        (json!({ "exp": 0 }), Err(Bad::Expired)),
        (json!({ "exp": -1 }), Err(Bad::Expired)),
        (json!({ "exp": -1e300 }), Err(Bad::Expired)),
        (json!({ "exp": i64::MAX }), Ok(())),
        (json!({ "exp": u64::MAX }), Ok(())),
        (json!({ "exp": 1e300 }), Ok(())),
        (json!({ "exp": NOW as f64 - 29.5 }), Err(Bad::Expired)),
        (json!({ "exp": null }), Err(Bad::Malformed)),
        (
            json!({ "exp": (NOW + 60).to_string() }),
            Err(Bad::Malformed),
        ),
        (json!({ "exp": true }), Err(Bad::Malformed)),
        (json!({ "exp": [NOW + 60] }), Err(Bad::Malformed)),
        (json!({ "nbf": NOW + 30 }), Ok(())),
        (json!({ "nbf": NOW + 31 }), Err(Bad::NotYetValid)),
        (json!({ "nbf": NOW as f64 + 30.5 }), Ok(())),
        (json!({ "nbf": "soon" }), Err(Bad::Malformed)),
        (json!({ "nbf": i64::MAX }), Err(Bad::NotYetValid)),
        (json!({ "nbf": i64::MIN }), Ok(())),
        (json!({ "iat": NOW + 3600 }), Ok(())),
    ] {
        let judged = judged_with(changes.clone()).map(|_| ());
        assert_eq!(judged, expected, "{changes}");
    }
    let verified = judged_with(json!({ "nbf": NOW })).unwrap();
    assert_eq!(
        (verified.not_before, verified.expires),
        (NOW - 30, NOW + 90)
    );
    for (now, is_valid) in [
        (NOW - 31, false),
        (NOW - 30, true),
        (NOW + 89, true),
        (NOW + 90, false),
    ] {
        assert_eq!(verified.is_valid(now), is_valid);
    }
}

#[test]
fn a_token_is_for_us_or_it_is_not() {
    for (audience, expected) in [
        (json!("forecourt"), Ok(())),
        (json!("gateway"), Ok(())),
        (json!(["other", "gateway"]), Ok(())),
        (json!("Forecourt"), Err(Bad::WrongAudience)),
        (json!("forecourt "), Err(Bad::WrongAudience)),
        (json!("other"), Err(Bad::WrongAudience)),
        (json!([]), Err(Bad::WrongAudience)),
        (json!([["forecourt"]]), Err(Bad::WrongAudience)),
        (json!({ "forecourt": true }), Err(Bad::WrongAudience)),
        (json!(7), Err(Bad::WrongAudience)),
        (json!(null), Err(Bad::WrongAudience)),
    ] {
        let judged = judged_with(json!({ "aud": audience })).map(|_| ());
        assert_eq!(judged, expected, "{audience}");
    }
    for issuer in [
        json!("https://idp.example/"),
        json!("x"),
        json!(null),
        json!(["https://idp.example"]),
    ] {
        let judged = judged_with(json!({ "iss": issuer }));
        assert_eq!(judged, Err(Bad::UnknownIssuer), "{issuer}");
    }
}

#[test]
fn the_caller_has_a_name_of_bounded_length() {
    for (name, expected) in [
        (json!("a"), Ok("a")),
        (json!("ä b/c"), Ok("ä b/c")),
        (json!("x".repeat(256)), Ok(&*"x".repeat(256))),
        (json!("x".repeat(257)), Err(Bad::NoCaller)),
        (json!(""), Err(Bad::NoCaller)),
        (json!("a\nb"), Err(Bad::NoCaller)),
        (json!("a\u{85}b"), Err(Bad::NoCaller)),
        (json!("\0"), Err(Bad::NoCaller)),
        (json!(42), Err(Bad::NoCaller)),
        (json!(["alice"]), Err(Bad::NoCaller)),
        (json!(null), Err(Bad::NoCaller)),
    ] {
        let judged = judged_with(json!({ "sub": name })).map(|it| it.caller);
        assert_eq!(judged.as_deref(), expected.as_ref().map(|it| *it), "{name}");
    }
    for (plan, expected) in [
        (json!(null), None),
        (json!("gold"), Some("gold")),
        (json!("x".repeat(65)), Some("")),
        (json!(["gold"]), Some("")),
        (json!(1), Some("")),
    ] {
        let judged = judged_with(json!({ "plan": plan })).unwrap().plan;
        assert_eq!(judged.as_deref(), expected, "{plan}");
    }
}

#[test]
fn a_claim_that_stands_twice_is_no_claim() {
    let key = Key::ed25519();
    let keys = keyset([key.jwk("k")]);
    let header = r#"{"alg":"EdDSA","kid":"k"}"#;
    let claims = claims().to_string();
    let inside = &claims[1..];
    for (payload, is_fine) in [
        (format!("{{{inside}"), true),
        (format!("{{\"x\":1,{inside}"), true),
        (format!("{{\"sub\":\"bob\",{inside}"), false),
        (format!("{{\"exp\":1,{inside}"), false),
        (format!("{{\"x\":1,\"x\":1,{inside}"), false),
        (format!("{{\"s\\u0075b\":\"bob\",{inside}"), false),
        (format!("[{claims}]"), false),
        (format!("{claims} x"), false),
        (String::new(), false),
        ("null".to_owned(), false),
    ] {
        let judged = judged(&key.sign(header, &payload), &keys);
        let expected = if is_fine { Ok(()) } else { Err(Bad::Malformed) };
        assert_eq!(judged.map(|_| ()), expected, "{payload}");
    }
    assert_eq!(
        issuer(key.sign(header, "{\"iss\":\"a\",\"iss\":\"b\"}").as_bytes()),
        Err(Bad::Malformed)
    );
}
