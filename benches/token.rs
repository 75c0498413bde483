//! What a signed token costs: verified, known again, and refused at each place where it can be.
//!
//! `cargo bench --bench token`.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench is a test"
)]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use forecourt::credential::token::{Algorithm, Cache, Keyset, Print, Rules, issuer, verify};
use serde_json::json;

#[path = "../tests/it/support/token.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the integration tests use the rest"
)]
mod signing;

use signing::{Key, RSA, set};

const NOW: i64 = 1_796_057_603;

fn rules() -> Rules {
    Rules {
        issuer: "https://idp.example".into(),
        audience: ["forecourt".into()].into(),
        algorithms: Algorithm::ALL.into(),
        leeway: 30,
        caller_claim: "sub".into(),
        plan_claim: None,
    }
}

fn tokens(c: &mut Criterion) {
    let claims = json!({
        "iss": "https://idp.example", "aud": ["forecourt", "other"], "sub": "alice",
        "iat": NOW - 60, "nbf": NOW - 60, "exp": NOW + 600, "jti": "0192f5c1-7e6a-7c31-9d2e-5f7a1b2c3d4e",
        "scope": "lead.submit inventory.search inventory.facets",
    });
    let (p256, p384, ed25519) = (Key::p256(), Key::p384(), Key::ed25519());
    let kinds = [
        ("RS256 2048", &*RSA),
        ("ES256", &p256),
        ("ES384", &p384),
        ("EdDSA", &ed25519),
    ];
    let rules = rules();
    for (name, key) in kinds {
        let keyset = Keyset::parse(set([key.jwk("k")]).as_bytes()).unwrap();
        let token = key.token("k", &claims);
        c.bench_function(&format!("token/verified/{name}"), |b| {
            b.iter(|| verify(black_box(token.as_bytes()), &keyset, &rules, NOW).unwrap());
        });
        let forged = format!("{}.{}", token.rsplit_once('.').unwrap().0, {
            let other = key.token("k", &json!({}));
            other.rsplit_once('.').unwrap().1.to_owned()
        });
        c.bench_function(&format!("token/bad signature/{name}"), |b| {
            b.iter(|| verify(black_box(forged.as_bytes()), &keyset, &rules, NOW).unwrap_err());
        });
    }

    // As a worker meets them: the issuer is found by what the token says.
    let keys = (0..32).map(|_| p256.jwk("other"));
    let keyset = Keyset::parse(set(keys).as_bytes()).unwrap();
    let token = p256.token("unknown", &claims);
    c.bench_function("token/unknown key of 32", |b| {
        b.iter(|| {
            issuer(black_box(token.as_bytes())).unwrap();
            verify(token.as_bytes(), &keyset, &rules, NOW).unwrap_err()
        });
    });
    c.bench_function("token/no token", |b| {
        let text = "e".repeat(token.len());
        b.iter(|| issuer(black_box(text.as_bytes())).unwrap_err());
    });

    let mut cache = Cache::new(4096);
    for number in 0..4096_u32 {
        cache.keep(Print::of(&number.to_le_bytes()), number);
    }
    cache.keep(Print::of(token.as_bytes()), 0);
    c.bench_function("token/known again", |b| {
        b.iter(|| {
            let print = Print::of(black_box(token.as_bytes()));
            cache.find(&print, |_| true).copied().unwrap()
        });
    });
    c.bench_function("token/not known", |b| {
        let text = "e".repeat(token.len());
        b.iter(|| {
            let print = Print::of(black_box(text.as_bytes()));
            assert!(cache.find(&print, |_| true).is_none());
        });
    });
}

criterion_group!(benches, tokens);
criterion_main!(benches);
