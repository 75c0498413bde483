//! Tokens that somebody changed, and bytes that never were one: none is believed, nothing panics.

use super::*;

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
