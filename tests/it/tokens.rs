//! Callers who show a signed token: whom it proves, and that nothing else proves anybody.

mod keys;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::call::{Post, call};
use crate::support::gateway::{NOW_MS, dealer_with};
use crate::support::token::{Key, RSA, encoded, set, symmetric};
use crate::support::{Answer, Gateway, Upstream, wait_until};

/// The time of day of a gateway under test, s.
const NOW: i64 = NOW_MS / 1000;

/// The usual dealer, who wants callers proven by an issuer with keys here.
fn configuration(upstream: &Upstream, jwks: &str, of_issuer: &str) -> String {
    let dealer = dealer_with(upstream, "", "authenticate = \"required\"");
    format!("{dealer}{}", issuer(jwks, of_issuer))
}

fn issuer(jwks: &str, more: &str) -> String {
    format!(
        "[issuer.idp]\nissuer = \"https://idp.example\"\naudience = \"forecourt\"\n\
         algorithms = [\"RS256\", \"PS256\", \"ES256\", \"ES384\", \"EdDSA\"]\n\
         jwks = \"{jwks}\"\n{more}\n"
    )
}

/// A gateway whose issuer has these keys in a file.
fn with_file(upstream: &Upstream, keys: &str, of_issuer: &str) -> Gateway {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("keys.json");
    fs::write(&file, keys).unwrap();
    let path = file.to_str().unwrap().to_owned();
    let gateway = Gateway::start(&configuration(upstream, &path, of_issuer));
    // It was read; what is written there later has its own tests.
    drop(directory);
    gateway
}

fn claims(caller: &str) -> Value {
    json!({ "iss": "https://idp.example", "aud": "forecourt", "sub": caller, "exp": NOW + 600 })
}

fn but(name: &str, value: impl Into<Value>) -> Value {
    let mut claims = claims("alice");
    claims[name] = value.into();
    claims
}

fn ask(gateway: &Gateway, token: &str) -> Answer {
    ask_with(gateway, &[("Authorization", &format!("Bearer {token}"))])
}

fn ask_with(gateway: &Gateway, fields: &[(&str, &str)]) -> Answer {
    let post = fields.iter().fold(Post::to("/a2a"), |post, (name, value)| {
        post.field(name, value)
    });
    gateway.ask(post.body(call("\"req_001\"")).bytes())
}

fn judged(gateway: &Gateway, issuer: &str, result: &str) -> f64 {
    gateway.series(&format!(
        "forecourt_tokens_total{{issuer=\"{issuer}\",result=\"{result}\"}}"
    ))
}

fn caller(gateway: &Gateway) -> String {
    gateway.last_line()["caller"].as_str().unwrap().to_owned()
}

/// A file of keys, and the place that goes with it.
fn published(keys: &str) -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("keys.json");
    fs::write(&file, keys).unwrap();
    (place, file)
}

#[test]
fn a_token_proves_its_caller_and_is_verified_once() {
    let upstream = Upstream::recording();
    let keys = [Key::p256(), Key::p384(), Key::ed25519()];
    let all = || keys.iter().chain([&*RSA]).enumerate();
    let jwks = set(all().map(|(at, key)| key.jwk(&at.to_string())));
    let gateway = with_file(&upstream, &jwks, "");
    for (at, key) in all() {
        let token = key.token(&at.to_string(), &claims(&format!("buyer {at}")));
        for scheme in ["Bearer", "bearer", "BEARER "] {
            let answer = ask_with(&gateway, &[("Authorization", &format!("{scheme} {token}"))]);
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(caller(&gateway), format!("idp/buyer {at}"));
            let arrival = upstream.take();
            let sent = arrival.head.one("authorization").unwrap();
            assert!(sent.ends_with(&token), "{sent}");
        }
    }
    assert_eq!(judged(&gateway, "idp", "ok"), 4.0);
    assert_eq!(judged(&gateway, "idp", "cached"), 8.0);
    assert_eq!(gateway.series("forecourt_jwks_keys{issuer=\"idp\"}"), 4.0);
    let status = gateway.admin_get("/status").json();
    assert_eq!(status["issuers"][0]["name"], "idp");
    assert_eq!(status["issuers"][0]["keys"], 4);
    assert_eq!(status["issuers"][0]["error"], Value::Null);
    let shown = gateway.admin_get("/config").json();
    let shown = &shown["configuration"]["issuer"]["idp"];
    assert_eq!(shown["issuer"], "https://idp.example");
    assert_eq!(shown["caller_claim"], "sub");
}

#[test]
fn who_is_not_believed_is_told_so_and_the_dealer_hears_nothing() {
    let upstream = Upstream::recording();
    let (key, other) = (Key::p256(), Key::p256());
    let jwks = set([key.jwk("k"), RSA.jwk("rsa")]);
    let gateway = with_file(&upstream, &jwks, "");
    let good = key.token("k", &claims("alice"));
    let parts: Vec<_> = good.split('.').collect();
    let confused = |secret: &[u8]| {
        let header = json!({ "alg": "HS256", "kid": "rsa" }).to_string();
        symmetric(secret, &header, &claims("alice").to_string())
    };
    let header = |header: Value| key.sign(&header.to_string(), &claims("alice").to_string());
    let mut cases = vec![
        (key.token("k", &but("exp", NOW - 31)), "expired"),
        (key.token("k", &but("nbf", NOW + 31)), "not_yet_valid"),
        (key.token("k", &but("aud", "another")), "wrong_audience"),
        (key.token("k", &but("sub", "")), "no_caller"),
        (key.token("k", &but("exp", Value::Null)), "malformed"),
        (key.token("unknown", &claims("alice")), "unknown_key"),
        (other.token("k", &claims("alice")), "bad_signature"),
        (format!("{}.{}.AAAA", parts[0], parts[1]), "bad_signature"),
        (
            format!(
                "{}.{}.{}",
                parts[0],
                encoded(but("sub", "root").to_string()),
                parts[2]
            ),
            "bad_signature",
        ),
        // The key of one kind for the algorithm of another.
        (header(json!({ "alg": "ES256", "kid": "rsa" })), "algorithm"),
        (header(json!({ "alg": "RS256", "kid": "k" })), "algorithm"),
        (header(json!({ "alg": "RS512", "kid": "rsa" })), "algorithm"),
        (header(json!({ "alg": "none", "kid": "k" })), "algorithm"),
        (
            header(json!({ "alg": "ES256", "kid": "k", "crit": ["x"] })),
            "malformed",
        ),
        (
            other.sign(
                &json!({ "alg": "ES256", "kid": "k", "jwk": other.jwk("k") }).to_string(),
                &claims("alice").to_string(),
            ),
            "bad_signature",
        ),
    ];
    cases.extend(
        RSA.as_secrets()
            .iter()
            .map(|it| (confused(it), "algorithm")),
    );
    let mut expected = std::collections::BTreeMap::new();
    for (token, result) in &cases {
        let answer = ask(&gateway, token);
        assert_eq!(answer.status, 401, "{result}: {}", answer.text());
        assert_eq!(answer.id(), "\"req_001\"");
        let challenge = answer.head.one("www-authenticate").unwrap();
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        // Nobody is told which of it was wrong, and no token is logged.
        let line = gateway.last_line();
        assert_eq!(line["outcome"], "unauthenticated");
        assert!(
            line["caller"].as_str().unwrap().starts_with("address "),
            "{line}"
        );
        assert!(!line.to_string().contains(token.as_str()), "{line}");
        *expected.entry(*result).or_insert(0.0) += 1.0;
    }
    for (result, count) in expected {
        assert_eq!(judged(&gateway, "idp", result), count, "{result}");
    }
    for (claims, result) in [
        (but("iss", "https://other.example"), "unknown_issuer"),
        (but("iss", Value::Null), "malformed"),
    ] {
        assert_eq!(ask(&gateway, &key.token("k", &claims)).status, 401);
        assert_eq!(judged(&gateway, "", result), 1.0);
    }
    assert_eq!(ask(&gateway, &format!("{good} {good}")).status, 401);
    let huge = key.token("k", &but("more", "x".repeat(9000)));
    assert_eq!(ask(&gateway, &huge).status, 401);
    assert_eq!(ask_with(&gateway, &[]).status, 401);
    assert_eq!(upstream.count(), 0);
    assert_eq!(ask(&gateway, &good).status, 200);
}

#[test]
fn a_token_that_was_believed_is_believed_only_as_long_as_it_holds() {
    let upstream = Upstream::recording();
    let key = Key::ed25519();
    let (_place, file) = published(&set([key.jwk("k")]));
    let jwks = file.to_str().unwrap();
    let gateway = Gateway::start(&configuration(&upstream, jwks, "leeway = \"0s\""));
    let token = key.token("k", &claims("alice"));
    let short = key.token("k", &but("exp", NOW + 5));
    let known = |token: &str| {
        assert_eq!(ask(&gateway, token).status, 200);
        let before = judged(&gateway, "idp", "cached");
        assert_eq!(ask(&gateway, token).status, 200);
        assert_eq!(judged(&gateway, "idp", "cached"), before + 1.0);
    };
    // Until its time is over, to the second.
    known(&short);
    gateway.wall.set(NOW_MS / 1000 * 1000 + 4999);
    known(&short);
    gateway.wall.set(NOW_MS / 1000 * 1000 + 5000);
    assert_eq!(ask(&gateway, &short).status, 401);
    assert_eq!(judged(&gateway, "idp", "expired"), 1.0);

    // Until the rules change.
    known(&token);
    gateway.write(&configuration(
        &upstream,
        jwks,
        "leeway = \"1s\"\ncaller_claim = \"iss\"",
    ));
    gateway.inner.reload().unwrap();
    assert_eq!(ask(&gateway, &token).status, 200);
    assert_eq!(caller(&gateway), "idp/https://idp.example");
    gateway.write(&configuration(&upstream, jwks, "leeway = \"0s\""));
    gateway.inner.reload().unwrap();

    // Until its key is gone.
    known(&token);
    fs::write(&file, set([Key::ed25519().jwk("k")])).unwrap();
    gateway.inner.reload().unwrap();
    assert_eq!(ask(&gateway, &token).status, 401);
    assert_eq!(judged(&gateway, "idp", "bad_signature"), 1.0);
}

#[test]
fn tokens_that_are_made_up_push_out_none_that_are_good() {
    let upstream = Upstream::recording();
    let (key, own) = (Key::ed25519(), Key::ed25519());
    let gateway = with_file(&upstream, &set([key.jwk("k")]), "");
    let good = key.token("k", &claims("alice"));
    assert_eq!(ask(&gateway, &good).status, 200);
    let mut client = gateway.client();
    for number in 0..5000 {
        // Not one is verified twice alike.
        let token = match number % 2 {
            0 => own.token("k", &claims(&number.to_string())),
            _ => own.token(&number.to_string(), &claims("alice")),
        };
        let post = Post::to("/a2a").field("Authorization", &format!("Bearer {token}"));
        assert_eq!(client.ask(post.body(call("1")).bytes()).status, 401);
    }
    assert_eq!(ask(&gateway, &good).status, 200);
    assert_eq!(judged(&gateway, "idp", "ok"), 1.0);
    assert_eq!(judged(&gateway, "idp", "cached"), 1.0);
}

#[test]
fn a_bucket_belongs_to_the_caller_whatever_the_token() {
    let upstream = Upstream::recording();
    let key = Key::ed25519();
    let (_place, file) = published(&set([key.jwk("k")]));
    let endpoint = "authenticate = \"required\"\nquotas = [\"each\"]";
    let gateway = Gateway::start(&format!(
        "{}{}[quota.each]\nper = \"caller\"\nrate = \"1/day\"\n",
        dealer_with(&upstream, "", endpoint),
        issuer(file.to_str().unwrap(), "")
    ));
    let token = |caller: &str, more: i64| {
        let mut claims = claims(caller);
        claims["iat"] = more.into();
        key.token("k", &claims)
    };
    assert_eq!(
        ask(&gateway, &token("alice", 1)).json()["error"],
        Value::Null
    );
    for again in [1, 2, 3] {
        let answer = ask(&gateway, &token("alice", again));
        assert_ne!(answer.json()["error"], Value::Null, "{}", answer.text());
    }
    assert_eq!(ask(&gateway, &token("bob", 1)).json()["error"], Value::Null);
    assert_eq!(gateway.ended("rate_limited"), 3.0);
}

#[test]
fn a_token_names_the_plan_that_its_caller_has() {
    let upstream = Upstream::recording();
    let key = Key::ed25519();
    let (_place, file) = published(&set([key.jwk("k")]));
    let endpoint = "authenticate = \"required\"\nquotas = [\"each\"]";
    let quotas = "[quota.each]\nper = \"caller\"\nrate = \"1/day\"\n\
                  [plan.silver.quotas]\neach = { rate = \"2/day\" }\n\
                  [plan.gold.quotas]\neach = { rate = \"3/day\" }\n";
    let with = |of_issuer: &str| {
        let issuer = issuer(file.to_str().unwrap(), of_issuer);
        let dealer = dealer_with(&upstream, "", endpoint);
        Gateway::start(&format!("{dealer}{issuer}{quotas}"))
    };
    // How many calls of a new caller are admitted.
    let admitted = |gateway: &Gateway, claims: Value| {
        let token = key.token("k", &claims);
        let calls = (0..5).filter(|_| ask(gateway, &token).json()["error"].is_null());
        calls.count()
    };
    let of = |caller: &str, plan: Value| {
        let mut claims = claims(caller);
        claims["plan"] = plan;
        claims
    };
    let gateway = with("plan_claim = \"plan\"\nplan = \"silver\"");
    assert_eq!(admitted(&gateway, of("gold", json!("gold"))), 3);
    assert_eq!(admitted(&gateway, of("silver", json!("silver"))), 2);
    assert_eq!(admitted(&gateway, claims("none")), 2);
    assert_eq!(admitted(&gateway, of("unknown", json!("platinum"))), 2);
    let gateway = with("plan_claim = \"plan\"");
    assert_eq!(admitted(&gateway, claims("none")), 1);
    // What a token says of a plan counts only where the operator asks for it.
    let gateway = with("");
    assert_eq!(admitted(&gateway, of("bold", json!("gold"))), 1);
}

#[test]
fn an_issuers_callers_call_where_they_may_and_nowhere_else() {
    let upstream = Upstream::recording();
    let key = Key::ed25519();
    let (_place, file) = published(&set([key.jwk("k")]));
    let gateway = Gateway::start(&format!(
        "{}[endpoint.other]\npath = \"/other\"\nupstream = \"lakeside\"\n\
         authenticate = \"required\"\n[plan.gold]\n{}",
        dealer_with(&upstream, "", "authenticate = \"required\""),
        issuer(
            file.to_str().unwrap(),
            "endpoints = [\"other\"]\nplan_claim = \"plan\"\nplan = \"gold\""
        )
    ));
    let at = |path: &str, token: &str| {
        let post = Post::to(path).field("Authorization", &format!("Bearer {token}"));
        gateway.ask(post.body(call("\"req_001\"")).bytes())
    };
    let token = key.token("k", &claims("alice"));
    let refused = at("/a2a", &token);
    assert_eq!(
        (refused.status, refused.id()),
        (403, "\"req_001\"".to_owned())
    );
    assert_eq!(caller(&gateway), "idp/alice");
    assert_eq!(gateway.ended("permission_denied"), 1.0);
    assert_eq!(at("/other", &token).status, 200);
    // A plan that there is not is counted, once for each token that is verified.
    let unknown = "forecourt_token_unknown_plans_total{issuer=\"idp\"}";
    assert_eq!(
        at("/other", &key.token("k", &but("plan", "gold"))).status,
        200
    );
    assert_eq!(gateway.series(unknown), 0.0);
    for plan in [json!("silver"), json!(["gold"])] {
        assert_eq!(
            at("/other", &key.token("k", &but("plan", plan))).status,
            200
        );
    }
    assert_eq!(gateway.series(unknown), 2.0);
}

#[test]
fn tokens_and_keys_stand_side_by_side_and_must_agree() {
    let upstream = Upstream::recording();
    let key = Key::ed25519();
    let (_place, file) = published(&set([key.jwk("k")]));
    // The digest of `k-1`.
    let digest = {
        use sha2::{Digest, Sha256};
        Sha256::digest(b"k-1")
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let gateway = Gateway::start(&format!(
        "{}[caller.acme]\nkey_sha256 = \"{digest}\"\n",
        configuration(&upstream, file.to_str().unwrap(), "")
    ));
    let token = format!("Bearer {}", key.token("k", &claims("alice")));
    assert_eq!(
        ask_with(&gateway, &[("Authorization", "Bearer k-1")]).status,
        200
    );
    assert_eq!(caller(&gateway), "acme");
    assert_eq!(ask_with(&gateway, &[("Authorization", &token)]).status, 200);
    let both = [("Authorization", &*token), ("x-api-key", "k-1")];
    assert_eq!(ask_with(&gateway, &both).status, 401);
    let twice = [("Authorization", &*token), ("Authorization", &*token)];
    assert_eq!(ask_with(&gateway, &twice).status, 400);
    assert_eq!(
        ask_with(&gateway, &[("Authorization", "Bearer a.b.c")]).status,
        401
    );
    wait_until("both were passed on", || upstream.count() == 2);
}
