//! Requests that are no plain call: with signed tokens, for agent cards, and mangled ones, whose answers
//! are the wire's as well.

use std::fs;

use forecourt::http1::{Limits, read_request};
use serde_json::json;

use crate::explain::{ask, masked, told, wire};
use crate::support::call::call;
use crate::support::gateway::{NOW_MS, dealer_with};
use crate::support::token::{Key, set};
use crate::support::{Gateway, Post, Upstream, wait_until};

#[test]
fn a_token_is_judged_and_its_issuer_is_not_asked() {
    let issuer = Upstream::recording();
    let upstream = Upstream::recording();
    let (key, other) = (Key::p256(), Key::p256());
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("keys.json");
    fs::write(&file, set([key.jwk("k")])).unwrap();
    let table = |name: &str, jwks: &str| {
        format!(
            "[issuer.{name}]\nissuer = \"https://{name}.example\"\naudience = \"forecourt\"\n\
             algorithms = [\"ES256\"]\njwks = \"{jwks}\"\n"
        )
    };
    let gateway = Gateway::start(&format!(
        "{}{}{}",
        table("idp", file.to_str().unwrap()),
        table("far", &format!("http://{}/keys", issuer.address)),
        dealer_with(&upstream, "", "authenticate = \"required\""),
    ));
    wait_until("the keys were asked for once", || issuer.count() == 1);
    let token = |key: &Key, kid: &str, name: &str| {
        let claims = json!({
            "iss": format!("https://{name}.example"), "aud": "forecourt", "sub": "alice",
            "exp": NOW_MS / 1000 + 600,
        });
        let line = format!("Authorization: Bearer {}", key.token(kid, &claims));
        Post::to("/a2a").line(line).body(call("1")).bytes()
    };
    let explained = ask(&gateway, &token(&key, "k", "idp"));
    assert_eq!(explained["verdict"], "forward", "{explained}");
    assert_eq!(explained["caller"]["name"], "idp/alice");
    assert_eq!(explained["caller"]["by"], "header:authorization");
    assert_eq!(explained["caller"]["rules"][0]["key"], "issuer.idp");
    // On the wire, this one would have its keys fetched anew.
    for request in [token(&other, "k", "idp"), token(&other, "unknown", "far")] {
        let explained = ask(&gateway, &request);
        assert_eq!(explained["outcome"], "unauthenticated", "{explained}");
        assert_eq!(issuer.count(), 1);
        let credential = explained["steps"].as_array().unwrap();
        let credential = credential
            .iter()
            .find(|it| it["verdict"] == "refuse")
            .unwrap();
        assert_eq!(credential["step"], "credential");
        let answer = wire(gateway.address(), &request);
        assert_eq!(masked(&told(&explained).unwrap()), masked(&answer));
        assert!(!explained.to_string().contains("eyJ"), "{explained}");
    }
    for result in ["ok", "cached"] {
        let series = format!("forecourt_tokens_total{{issuer=\"idp\",result=\"{result}\"}}");
        assert_eq!(gateway.series(&series), 0.0);
    }
}

#[test]
fn what_is_passed_on_without_policy_is_told_so() {
    let upstream = Upstream::recording();
    let gateway = Gateway::before(&upstream);
    let card = "/.well-known/agent-card.json";
    for (method, path, target) in [
        ("GET", format!("/a2a{card}"), format!("/a2a{card}")),
        ("HEAD", card.to_owned(), card.to_owned()),
        ("OPTIONS", "/a2a".to_owned(), "/a2a".to_owned()),
    ] {
        let request = Post::method(method, &path).field("Host", "x").bytes();
        let explained = ask(&gateway, &request);
        assert_eq!(explained["verdict"], "forward", "{explained}");
        let forward = &explained["forward"];
        assert_eq!(forward["method"], method);
        let url = format!("http://{}{target}", upstream.address);
        assert_eq!(forward["url"], url);
        let headers = forward["headers"].as_array().unwrap();
        assert!(headers.iter().all(|it| it["name"] != "a2a-version"));
        for step in explained["steps"].as_array().unwrap() {
            let for_all = ["head", "http", "route", "http_method", "load", "upstream"];
            let is_for_all = for_all.iter().any(|it| step["step"] == *it);
            assert_eq!(step["verdict"] == "pass", is_for_all, "{step}");
            assert_eq!(step["verdict"] == "not reached", !is_for_all, "{step}");
        }
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn several_contracts_and_the_one_that_is_selected() {
    let (upstream, other) = (Upstream::recording(), Upstream::recording());
    let gateway = Gateway::start(&format!(
        "{}[upstream.other]\nurl = \"http://{}/v12\"\n\
         [endpoint.both]\npath = \"/both\"\nupstream = \"lakeside\"\n\
         contracts = [\"aap/3.0\", \"aap/1.2\"]\nupstreams = {{ \"aap/1.2\" = \"other\" }}\n",
        dealer_with(&upstream, "", ""),
        other.address,
    ));
    let v12 = "https://autoagentprotocol.org/extensions/aap/v1.2";
    let post = Post::to("/both")
        .field("A2A-Version", "1.0")
        .body(call("1"));
    let explained = ask(&gateway, &post.clone().field("A2A-Extensions", v12).bytes());
    assert_eq!(explained["route"]["endpoint"]["contract"], "aap/1.2");
    assert_eq!(explained["forward"]["upstream"], "other");
    let rule = &explained["forward"]["rules"][0];
    assert_eq!(rule["key"], "endpoint.both.upstreams.\"aap/1.2\"");
    assert!(rule["line"].is_u64(), "{rule}");
    let refused = ask(&gateway, &post.bytes());
    assert_eq!(refused["outcome"], "extension_required");
    let answer = wire(gateway.address(), &post.bytes());
    assert_eq!(masked(&told(&refused).unwrap()), masked(&answer));
}

/// Whether a gateway would answer this at all: a head that is not complete is waited for.
fn is_answered(bytes: &[u8]) -> bool {
    let limits = Limits {
        bytes: 32 << 10,
        lines: 100,
    };
    !matches!(read_request(&mut bytes.into(), limits), Ok(None))
}

#[test]
fn mangled_requests_are_answered_as_was_told() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&format!(
        "[limits]\nbody_timeout = \"20ms\"\n[quota.q]\nper = \"address\"\nrate = \"1000/s\"\n{}",
        dealer_with(&upstream, "", "quotas = [\"q\"]")
    ));
    let whole = [
        Post::to("/a2a")
            .field("A2A-Version", "1.0")
            .field("X-Request-Id", "mine")
            .body(call("\"id-1\""))
            .bytes(),
        Post::to("/a2a")
            .without_length()
            .field("Transfer-Encoding", "chunked")
            .body(format!(
                "{:x}\r\n{}\r\n0\r\n\r\n",
                call("1").len(),
                call("1")
            ))
            .bytes(),
    ];
    let mut random = fastrand::Rng::with_seed(19);
    let (mut refused, mut sent) = (0, 0);
    for _ in 0..400 {
        let mut bytes = random.choice(&whole).unwrap().clone();
        for _ in 0..random.usize(1..3) {
            let at = random.usize(0..bytes.len());
            match random.u8(0..4) {
                0 => bytes[at] = random.u8(..),
                1 => bytes.insert(at, *random.choice(b" \r\n:\"{}\0a0").unwrap()),
                2 => drop(bytes.remove(at)),
                _ => {
                    let until = random.usize(at..bytes.len()).min(at + 20);
                    let piece = bytes[at..until].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        if !is_answered(&bytes) {
            continue;
        }
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        let explained = ask(&gateway, &bytes);
        let answer = wire(gateway.address(), &bytes);
        match told(&explained) {
            Some(told) => {
                assert_eq!(masked(&told), masked(&answer), "{shown}");
                refused += 1;
            }
            None => {
                assert!(answer.starts_with("HTTP/1.1 200"), "{shown}\n{answer}");
                sent += 1;
            }
        }
    }
    assert!(refused > 100 && sent > 5, "{refused} {sent}");
}
