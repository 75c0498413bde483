//! Tokens of every kind that must not be believed, beside those that must.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

mod claims;
mod mangled;
#[path = "../../../tests/it/support/token.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the integration tests use the rest"
)]
mod signing;

use signing::{Key, RSA, encoded, set, symmetric};

/// 2026-11-30T16:53:23Z.
const NOW: i64 = 1_796_057_603;

fn rules() -> Rules {
    Rules {
        issuer: "https://idp.example".into(),
        audience: ["forecourt".into(), "gateway".into()].into(),
        algorithms: Algorithm::ALL.into(),
        leeway: 30,
        caller_claim: "sub".into(),
        plan_claim: Some("plan".into()),
    }
}

fn claims() -> Value {
    json!({ "iss": "https://idp.example", "aud": "forecourt", "sub": "alice", "exp": NOW + 60 })
}

/// The usual claims with others in their place; null takes one away.
fn but(changes: Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        let claims = claims.as_object_mut().unwrap();
        if value.is_null() {
            claims.remove(name);
        } else {
            claims.insert(name.clone(), value.clone());
        }
    }
    claims
}

fn keyset(keys: impl IntoIterator<Item = Value>) -> Keyset {
    Keyset::parse(set(keys).as_bytes()).unwrap()
}

fn judged(token: &str, keyset: &Keyset) -> Result<Verified, Bad> {
    verify(token.as_bytes(), keyset, &rules(), NOW)
}

fn with(mut jwk: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        jwk[name] = value.clone();
    }
    jwk
}

/// What a claim makes of an otherwise good token.
fn judged_with(changes: Value) -> Result<Verified, Bad> {
    let key = Key::ed25519();
    judged(&key.token("k", &but(changes)), &keyset([key.jwk("k")]))
}

#[test]
fn each_algorithm_verifies_with_a_key_of_its_kind() {
    let (p256, p384, ed) = (Key::p256(), Key::p384(), Key::ed25519());
    let keys = keyset([
        RSA.jwk("rsa"),
        p256.jwk("p256"),
        p384.jwk("p384"),
        ed.jwk("ed"),
    ]);
    assert_eq!(keys.len(), 4);
    let mut seen = Vec::new();
    for (key, kid, algorithm) in [
        (&*RSA, "rsa", "RS256"),
        (&*RSA, "rsa", "RS384"),
        (&*RSA, "rsa", "RS512"),
        (&*RSA, "rsa", "PS256"),
        (&*RSA, "rsa", "PS384"),
        (&*RSA, "rsa", "PS512"),
        (&p256, "p256", "ES256"),
        (&p384, "p384", "ES384"),
        (&ed, "ed", "EdDSA"),
    ] {
        let header = json!({ "alg": algorithm, "kid": kid });
        let token = key.sign(&header.to_string(), &claims().to_string());
        let verified = judged(&token, &keys).unwrap();
        assert_eq!(&*verified.caller, "alice", "{algorithm}");
        assert_eq!(verified.expires, NOW + 90);
        // The same bytes under any other algorithm are nobody's.
        for other in Algorithm::ALL.map(Algorithm::name) {
            let header = json!({ "alg": other, "kid": kid }).to_string();
            let (_, rest) = token.split_once('.').unwrap();
            let forged = judged(&format!("{}.{rest}", encoded(header)), &keys);
            match forged {
                Ok(_) => assert_eq!(other, algorithm),
                Err(why) => assert!(
                    matches!(why, Bad::BadSignature | Bad::Algorithm),
                    "{other}: {why:?}"
                ),
            }
        }
        // Nor is it anybody's where it is not listed.
        let mut rules = rules();
        rules.algorithms = Algorithm::ALL
            .into_iter()
            .filter(|it| it.name() != algorithm)
            .collect();
        let unlisted = verify(token.as_bytes(), &keys, &rules, NOW);
        assert_eq!(unlisted, Err(Bad::Algorithm));
        seen.push(Algorithm::named(algorithm).unwrap());
    }
    assert_eq!(seen, Algorithm::ALL);
}

#[test]
fn no_symmetric_algorithm_and_no_algorithm_is_ever_taken() {
    let keys = keyset([RSA.jwk("rsa")]);
    let mut tried = 0;
    for secret in RSA.as_secrets() {
        for algorithm in ["HS256", "HS384", "HS512", "hs256"] {
            let header = json!({ "alg": algorithm, "kid": "rsa" }).to_string();
            let token = symmetric(&secret, &header, &claims().to_string());
            assert_eq!(judged(&token, &keys), Err(Bad::Algorithm), "{algorithm}");
            tried += 1;
        }
    }
    assert_eq!(tried, 12);
    for algorithm in [
        "none", "None", "NONE", "", "rs256", "ES512", "ES256K", "RS256 ",
    ] {
        let header = json!({ "alg": algorithm, "kid": "rsa" }).to_string();
        let token = RSA.sign(&header, &claims().to_string());
        assert_eq!(judged(&token, &keys), Err(Bad::Algorithm), "{algorithm}");
        let (message, _) = token.rsplit_once('.').unwrap();
        let unsigned = judged(&format!("{message}."), &keys);
        assert_eq!(unsigned, Err(Bad::Malformed), "{algorithm}");
    }
    // A secret that an issuer publishes by mistake is not taken either.
    let secret = json!({ "kty": "oct", "kid": "s", "k": encoded("secret"), "alg": "HS256" });
    let keys = keyset([secret.clone(), RSA.jwk("rsa")]);
    assert_eq!((keys.len(), keys.left_out()), (1, 1));
    let header = json!({ "alg": "HS256", "kid": "s" }).to_string();
    let token = symmetric(b"secret", &header, &claims().to_string());
    assert_eq!(judged(&token, &keys), Err(Bad::Algorithm));
    let alone = Keyset::parse(set([secret]).as_bytes()).unwrap_err();
    assert!(alone.to_string().contains("symmetric"), "{alone}");
}

#[test]
fn a_key_is_used_for_what_it_says_it_is_for() {
    let key = Key::p256();
    let token = key.token("k", &claims());
    for (changes, expected) in [
        (json!({}), Ok(())),
        (json!({ "use": "sig", "alg": "ES256" }), Ok(())),
        (json!({ "key_ops": ["verify"] }), Ok(())),
        (json!({ "use": "enc" }), Err(Bad::UnknownKey)),
        (json!({ "key_ops": ["deriveKey"] }), Err(Bad::UnknownKey)),
        (json!({ "alg": "ES384" }), Err(Bad::UnknownKey)),
        (json!({ "alg": "ECDH-ES" }), Err(Bad::UnknownKey)),
        (json!({ "kty": "OKP" }), Err(Bad::UnknownKey)),
        (json!({ "crv": "P-384" }), Err(Bad::UnknownKey)),
        (json!({ "y": encoded([7; 31]) }), Err(Bad::UnknownKey)),
    ] {
        // A set without any key is none: another stands beside it.
        let keys = keyset([with(key.jwk("k"), changes.clone()), RSA.jwk("other")]);
        let judged = judged(&token, &keys).map(|_| ());
        assert_eq!(judged, expected, "{changes}");
    }
    // One algorithm of those that a kind could do.
    let keys = keyset([with(RSA.jwk("k"), json!({ "alg": "PS256" }))]);
    let judged = judged(&RSA.token("k", &claims()), &keys);
    assert_eq!(judged, Err(Bad::Algorithm));
}

#[test]
fn a_kid_chooses_and_is_not_needed_where_it_is_left_out() {
    let (mine, other) = (Key::p256(), Key::p256());
    let keys = keyset([other.jwk("other"), mine.jwk("mine")]);
    let by = |kid: Option<&str>| {
        let header = json!({ "alg": "ES256", "kid": kid }).to_string();
        judged(&mine.sign(&header, &claims().to_string()), &keys).map(|_| ())
    };
    assert_eq!(by(Some("mine")), Ok(()));
    assert_eq!(by(Some("other")), Err(Bad::BadSignature));
    assert_eq!(by(Some("MINE")), Err(Bad::UnknownKey));
    assert_eq!(by(Some("")), Err(Bad::UnknownKey));
    assert_eq!(by(None), Ok(()));
    // The same name twice, on either place and of another kind.
    for twice in [
        keyset([other.jwk("k"), mine.jwk("k")]),
        keyset([mine.jwk("k"), other.jwk("k")]),
        keyset([RSA.jwk("k"), mine.jwk("k")]),
    ] {
        assert!(judged(&mine.token("k", &claims()), &twice).is_ok());
    }
    // Another kind under the name is not looked for anew.
    let keys = keyset([RSA.jwk("k")]);
    let judged_by = judged(&mine.token("k", &claims()), &keys);
    assert_eq!(judged_by, Err(Bad::Algorithm));
    // No more than a few are tried.
    let mut many: Vec<_> = (0..TRIED).map(|_| Key::p256().jwk("k")).collect();
    many.push(mine.jwk("k"));
    let judged_by = judged(&mine.token("k", &claims()), &keyset(many));
    assert_eq!(judged_by, Err(Bad::BadSignature));
}

#[test]
fn a_key_that_a_token_brings_is_not_looked_at() {
    let (issuers, own) = (Key::p256(), Key::p256());
    let keys = keyset([issuers.jwk("k")]);
    for (name, value) in [
        ("jwk", own.jwk("k")),
        ("jku", json!("https://attacker.example/keys.json")),
        ("x5u", json!("https://attacker.example/chain.pem")),
        ("x5c", json!(["MIIB"])),
        ("x5t", json!("AAAA")),
    ] {
        for kid in ["k", "own"] {
            let header = json!({ "alg": "ES256", "kid": kid, name: value }).to_string();
            let forged = judged(&own.sign(&header, &claims().to_string()), &keys);
            assert!(
                matches!(forged, Err(Bad::BadSignature | Bad::UnknownKey)),
                "{name}: {forged:?}"
            );
            let honest = judged(&issuers.sign(&header, &claims().to_string()), &keys);
            assert_eq!(
                honest.is_ok(),
                kid == "k",
                "{name}: it is not minded either"
            );
        }
    }
}

#[test]
fn what_a_header_asks_for_and_nobody_understands_is_refused() {
    let key = Key::ed25519();
    let keys = keyset([key.jwk("k")]);
    for (header, expected) in [
        (r#"{"alg":"EdDSA","kid":"k"}"#, Ok(())),
        (r#"{"alg":"EdDSA","kid":"k","typ":"jwt"}"#, Ok(())),
        (r#"{"alg":"EdDSA","kid":"k","typ":"at+JWT"}"#, Ok(())),
        (
            r#"{"alg":"EdDSA","kid":"k","typ":"application/at+jwt"}"#,
            Ok(()),
        ),
        (
            r#"{"alg":"EdDSA","kid":"k","cty":"x","nonce":"y","more":{}}"#,
            Ok(()),
        ),
        (
            r#"{"alg":"EdDSA","kid":"k","typ":"logout+jwt"}"#,
            Err(Bad::Malformed),
        ),
        (
            r#"{"alg":"EdDSA","kid":"k","typ":"dpop+jwt"}"#,
            Err(Bad::Malformed),
        ),
        (
            r#"{"alg":"EdDSA","kid":"k","crit":["exp"],"exp":1}"#,
            Err(Bad::Malformed),
        ),
        (
            r#"{"alg":"EdDSA","kid":"k","crit":[]}"#,
            Err(Bad::Malformed),
        ),
        (
            r#"{"alg":"EdDSA","kid":"k","b64":false,"crit":["b64"]}"#,
            Err(Bad::Malformed),
        ),
        (
            r#"{"alg":"EdDSA","alg":"none","kid":"k"}"#,
            Err(Bad::Malformed),
        ),
        (
            r#"{"alg":"EdDSA","kid":"k","kid":"k"}"#,
            Err(Bad::Malformed),
        ),
        (r#"{"kid":"k"}"#, Err(Bad::Malformed)),
        (r#"{"alg":["EdDSA"],"kid":"k"}"#, Err(Bad::Malformed)),
        (r#"{"alg":"EdDSA","kid":7}"#, Err(Bad::Malformed)),
        ("[]", Err(Bad::Malformed)),
        ("", Err(Bad::Malformed)),
    ] {
        let token = key.sign(header, &claims().to_string());
        assert_eq!(judged(&token, &keys).map(|_| ()), expected, "{header}");
    }
}

#[test]
fn only_three_parts_of_base64url_are_a_token() {
    let key = Key::ed25519();
    let keys = keyset([key.jwk("k")]);
    let good = key.token("k", &claims());
    assert!(has_shape(good.as_bytes()) && judged(&good, &keys).is_ok());
    assert_eq!(
        issuer(good.as_bytes()).as_deref(),
        Ok("https://idp.example")
    );
    for text in [
        "", ".", "..", "a.b", "a.b.c.d", "a..c", ".b.c", "a.b.", "a.b.c=", "a b.c.d", "a.b.ä",
        "a+.b.c", "a/.b.c",
    ] {
        assert!(!has_shape(text.as_bytes()), "{text}");
        assert_eq!(judged(text, &keys), Err(Bad::Malformed), "{text}");
    }
    let long = key.token("k", &but(json!({ "more": "x".repeat(LONGEST) })));
    assert_eq!(judged(&long, &keys), Err(Bad::Malformed));
    let fits = key.token("k", &but(json!({ "more": "x".repeat(LONGEST / 2) })));
    assert!(judged(&fits, &keys).is_ok());
}

#[test]
fn a_set_is_read_or_said_to_be_none_without_being_shown() {
    for (text, why) in [
        ("", "is no JSON (line 1, column 0)"),
        ("{\"keys\":", "is no JSON (line 1, column 8)"),
        (
            "-----BEGIN PRIVATE KEY-----\ns3cret",
            "is no JSON (line 1, column 2)",
        ),
        (
            "[]",
            "is no JSON Web Key Set: an object with a list `keys` (line 1)",
        ),
        (
            "\"s3cret\"",
            "is no JSON Web Key Set: an object with a list `keys` (line 1)",
        ),
        (
            "{\"keys\":\"s3cret\"}",
            "is no JSON Web Key Set: an object with a list `keys` (line 1)",
        ),
        (
            "{}",
            "is no JSON Web Key Set: an object with a list `keys` (line 1)",
        ),
        ("{\"keys\":[]}", "holds no key"),
        (
            "{\"keys\":[7,{}]}",
            "holds no key that can verify a token: number 1 is no JSON Web Key",
        ),
    ] {
        let found = Keyset::parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(found, why);
    }
    let jwk = Key::ed25519().jwk("k");
    let many = |count| Keyset::parse(set(std::iter::repeat_n(jwk.clone(), count)).as_bytes());
    assert_eq!(many(256).unwrap().len(), 256);
    assert_eq!(
        many(257).unwrap_err().to_string(),
        "holds more than 256 keys"
    );
    let padded = format!("{}{}", set([jwk]), " ".repeat(1 << 20));
    let huge = Keyset::parse(padded.as_bytes()).unwrap_err();
    assert_eq!(huge.to_string(), "is larger than 1 MiB");
    // Whatever exponent or modulus makes a signature of anything is no key.
    for changes in [
        json!({ "e": "AQ" }),
        json!({ "e": "AAAB" }),
        json!({ "e": "Ag" }),
        json!({ "e": "" }),
        json!({ "n": encoded([0xff; 255]) }),
        json!({ "n": encoded([&[0; 8][..], &[0xff; 250]].concat()) }),
        json!({ "n": encoded([0xff; 1025]) }),
        json!({ "n": "" }),
    ] {
        let keys = Keyset::parse(set([with(RSA.jwk("k"), changes.clone())]).as_bytes());
        assert!(keys.is_err(), "{changes}");
    }
    let (one, same, other) = (
        keyset([RSA.jwk("a")]),
        keyset([RSA.jwk("a")]),
        keyset([RSA.jwk("b")]),
    );
    assert!(one.is_same(&same) && !one.is_same(&other));
    assert_ne!(one.serial(), same.serial());
    assert!(Keyset::none().is_empty());
}

#[test]
fn labels_are_apart() {
    let labels: std::collections::BTreeSet<_> = Bad::ALL.map(Bad::label).into();
    assert_eq!(labels.len(), Bad::ALL.len());
    for (at, bad) in Bad::ALL.into_iter().enumerate() {
        assert_eq!(bad as usize, at);
    }
}
