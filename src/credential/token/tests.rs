//! Tokens of every kind that must not be believed, beside those that must.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

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

/// A change of a token that somebody could make who has no key.
#[derive(Clone, Debug)]
enum Mangled {
    Bit(usize, u8),
    Byte(usize, u8),
    Cut(usize),
    Doubled(usize),
    Header(String),
    Claims(String),
    Signature(Vec<u8>),
}

fn mangled() -> impl Strategy<Value = Mangled> {
    let at = 0..2000_usize;
    prop_oneof![
        (at.clone(), 0..7_u8).prop_map(|(at, bit)| Mangled::Bit(at, bit)),
        (at.clone(), any::<u8>()).prop_map(|(at, byte)| Mangled::Byte(at, byte)),
        at.clone().prop_map(Mangled::Cut),
        at.prop_map(Mangled::Doubled),
        ".{0,60}".prop_map(Mangled::Header),
        prop_oneof![Just("none"), Just("HS256"), Just("ES384"), Just("RS256")]
            .prop_map(|alg| Mangled::Header(format!("{{\"alg\":\"{alg}\",\"kid\":\"k\"}}"))),
        ".{0,60}".prop_map(Mangled::Claims),
        Just(Mangled::Claims(but(json!({ "sub": "root" })).to_string())),
        prop::collection::vec(any::<u8>(), 0..100).prop_map(Mangled::Signature),
    ]
}

impl Mangled {
    fn apply(&self, token: &str) -> Vec<u8> {
        let parts: Vec<_> = token.split('.').collect();
        let mut bytes = token.as_bytes().to_vec();
        match self {
            Self::Bit(at, bit) => {
                let at = at % bytes.len();
                bytes[at] ^= 1 << bit;
            }
            Self::Byte(at, byte) => {
                let at = at % bytes.len();
                bytes[at] = *byte;
            }
            Self::Cut(at) => bytes.truncate(at % bytes.len()),
            Self::Doubled(at) => {
                let at = at % bytes.len();
                bytes.insert(at, bytes[at]);
            }
            Self::Header(text) => {
                return format!("{}.{}.{}", encoded(text), parts[1], parts[2]).into();
            }
            Self::Claims(text) => {
                return format!("{}.{}.{}", parts[0], encoded(text), parts[2]).into();
            }
            Self::Signature(with) => {
                return format!("{}.{}.{}", parts[0], parts[1], encoded(with)).into();
            }
        }
        bytes
    }
}

proptest! {
    /// Whatever is done to a token, it is believed only as it was.
    #[test]
    fn a_mangled_token_is_never_believed(mangled in mangled(), kind in 0..4_usize) {
        static KEYS: std::sync::LazyLock<(Vec<Key>, Keyset, Vec<String>)> =
            std::sync::LazyLock::new(|| {
                let keys = vec![Key::p256(), Key::p384(), Key::ed25519()];
                let set = keyset(keys.iter().chain([&*RSA]).map(|key| key.jwk("k")));
                let all = keys.iter().chain([&*RSA]);
                let tokens = all.map(|key| key.token("k", &claims())).collect();
                (keys, set, tokens)
            });
        let (_, keys, tokens) = &*KEYS;
        let token = &tokens[kind];
        let changed = mangled.apply(token);
        let judged = verify(&changed, keys, &rules(), NOW);
        prop_assert_eq!(judged.is_ok(), changed == token.as_bytes());
    }

    /// Any bytes whatever are refused and nothing else.
    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let keys = Keyset::parse(set([RSA.jwk("k")]).as_bytes()).unwrap();
        prop_assert_eq!(verify(&bytes, &keys, &rules(), NOW), Err(Bad::Malformed));
        let _ = issuer(&bytes);
        let _ = Keyset::parse(&bytes);
    }

    /// Signed or not, no claims make it panic.
    #[test]
    fn any_signed_claims_are_judged(payload in ".{0,80}", claim in any::<f64>()) {
        let key = Key::ed25519();
        let keys = keyset([key.jwk("k")]);
        let header = r#"{"alg":"EdDSA","kid":"k"}"#;
        prop_assert!(judged(&key.sign(header, &payload), &keys).is_err());
        let _ = judged(&key.token("k", &but(json!({ "exp": claim, "nbf": claim }))), &keys);
    }
}
