//! What a caller who would be somebody else, or nobody, can try.

use super::*;
use crate::support::http2::Http2;

#[test]
fn a_key_is_nothing_but_itself() {
    let upstream = Upstream::recording();
    let gateway = start(&upstream, "authenticate = \"required\"");
    let mut client = gateway.client();
    let hash = digest(ACME);
    for fields in [
        // In another header, or in what is merged with the right one elsewhere.
        [("X-Key", ACME)],
        [("X_Api_Key", ACME)],
        [("X-Api-Key-", ACME)],
        [("Api-Key", ACME)],
        [("Cookie", "x-api-key=fc_acme-key")],
        [("Proxy-Authorization", "Bearer fc_acme-key")],
        // Its letters in another case, more of them, fewer, twice.
        [("X-Api-Key", "FC_ACME-KEY")],
        [("X-Api-Key", "fc_acme-key ,")],
        [("X-Api-Key", "fc_acme-ke")],
        [("X-Api-Key", "fc_acme-key,fc_acme-key")],
        [("X-Api-Key", "fc_acme-key fc_acme-key")],
        [("X-Api-Key", "\"fc_acme-key\"")],
        [("X-Api-Key", "Bearer fc_acme-key")],
        [("X-Api-Key", &hash)],
        [("X-Api-Key", "")],
        [("X-Api-Key", "acme")],
        [("X-Api-Key", "fc_acme-k\u{e9}y")],
        // In another scheme.
        [("Authorization", "Basic fc_acme-key")],
        [("Authorization", "fc_acme-key")],
        [("Authorization", "Bearerfc_acme-key")],
        [("Authorization", "Bearer: fc_acme-key")],
        [("Authorization", "Bearer fc_acme-key, Basic eDp5")],
        [("Authorization", "")],
        // By word of the way here.
        [("X-Forwarded-For", "10.0.0.1")],
        [("Forwarded", "for=acme;by=acme")],
        [("X-Forwarded-User", "acme")],
    ] {
        let answer = ask(&mut client, &fields);
        assert_eq!(answer.status, 401, "{fields:?}");
        let caller = &gateway.last_line()["caller"];
        assert_eq!(caller, "address 127.0.0.1", "{fields:?}");
    }
    let query = Post::to("/a2a?x-api-key=fc_acme-key&access_token=fc_acme-key").body(call("1"));
    assert_eq!(gateway.ask(query.bytes()).status, 401);
    assert_eq!(upstream.count(), 0);
    // Spaces and tabs around it do not count.
    for value in ["  fc_acme-key", "fc_acme-key\t "] {
        assert_eq!(ask(&mut client, &[("X-Api-Key", value)]).status, 200);
    }
    let long = "k".repeat(8000);
    is_refused(&ask(&mut client, &[("X-Api-Key", &long)]), 401, Some(PLAIN));
    assert_eq!(gateway.last_line()["why"], "the key is too long");
}

#[test]
fn a_second_line_is_refused_whatever_it_says() {
    let upstream = Upstream::recording();
    for demand in ["optional", "required"] {
        let gateway = start(&upstream, &format!("authenticate = \"{demand}\""));
        for [first, second] in [
            [("X-Api-Key", ACME), ("X-Api-Key", ACME)],
            [("X-Api-Key", ACME), ("x-api-key", "fc_other")],
            [("X-Api-Key", ""), ("X-Api-Key", ACME)],
            [
                ("Authorization", "Bearer fc_acme-key"),
                ("Authorization", "Bearer fc_acme-key"),
            ],
            [
                ("Authorization", "Basic eDp5"),
                ("authorization", "Bearer fc_acme-key"),
            ],
            [
                ("Authorization", "Bearer fc_acme-key"),
                ("Authorization", ""),
            ],
        ] {
            let answer = ask(&mut gateway.client(), &[first, second]);
            assert_eq!(answer.status, 400, "{first:?} {second:?}");
            assert!(answer.closes());
        }
        // Two lines of `Authorization` are refused everywhere, before there is an endpoint.
        assert_eq!(examined(&gateway), [0.0, 0.0, 3.0, 0.0]);
        let ended = ["lakeside", ""].map(|at| gateway.ended_at(at, "bad_http"));
        assert_eq!(ended, [3.0, 3.0]);
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn guesses_are_charged_to_their_address() {
    let upstream = Upstream::recording();
    let quotas = "[callers]\nidentify = [\"header:x-api-key\", \"address\"]\n\
                  [quota.address]\nper = \"address\"\nrate = \"10/day\"\n\
                  [quota.caller]\nper = \"caller\"\nrate = \"100/day\"\n";
    let gateway = Gateway::start(&configuration(
        &upstream,
        &format!("{quotas}{}", callers()),
        "authenticate = \"optional\"\nquotas = [\"address\", \"caller\"]",
    ));
    let keys = || gateway.series("forecourt_ratelimit_keys");
    let mut client = gateway.client();
    for guess in 0..10 {
        let key = format!("fc_guess-{guess}");
        // The last of them from elsewhere, if one believes it.
        let fields = [("X-Api-Key", &*key), ("X-Forwarded-For", "192.0.2.1")];
        is_refused(&ask(&mut client, &fields), 401, Some(PLAIN));
    }
    // No guess has made a bucket: there is the address's, as an address and as a caller.
    assert_eq!(keys(), 2.0);
    // Who has guessed is held back, with and without a good key.
    assert!(ask(&mut client, &[]).text().contains("RATE_LIMITED"));
    assert!(
        ask(&mut client, &[("X-Api-Key", ACME)])
            .text()
            .contains("RATE_LIMITED")
    );
    is_refused(
        &ask(&mut client, &[("X-Api-Key", "fc_other")]),
        401,
        Some(PLAIN),
    );
    gateway.clock.advance(Duration::from_secs(24 * 360));
    assert_eq!(ask(&mut client, &[("X-Api-Key", ACME)]).status, 200);
    assert_eq!(upstream.count(), 1);
}

#[test]
fn every_refused_call_costs_one() {
    let upstream = Upstream::recording();
    let quota = "[quota.q]\nper = \"address\"\nrate = \"1/day\"\n";
    for (what, post) in [
        ("no key", Post::to("/a2a").body(call("1"))),
        (
            "bad key",
            Post::to("/a2a").field("X-Api-Key", "k").body(call("1")),
        ),
        (
            "forbidden",
            Post::to("/a2a").field("X-Api-Key", BETA).body(call("1")),
        ),
        ("batch", Post::to("/a2a").field("X-Api-Key", "k").body("[]")),
        (
            "known batch",
            Post::to("/a2a").field("X-Api-Key", ACME).body("[]"),
        ),
        ("not JSON", Post::to("/a2a").body("{")),
        ("large", Post::to("/a2a").body("x".repeat(70_000))),
        (
            "media",
            Post::bare("/a2a")
                .field("Host", "gw")
                .field("Content-Type", "text/plain")
                .body("x"),
        ),
    ] {
        let gateway = Gateway::start(&configuration(
            &upstream,
            &format!("{quota}{}", callers()),
            "authenticate = \"required\"\nquotas = [\"q\"]",
        ));
        drop(gateway.ask(post.bytes()));
        let next = ask(&mut gateway.client(), &[("X-Api-Key", ACME)]);
        assert!(
            next.text().contains("RATE_LIMITED"),
            "{what}: {}",
            next.text()
        );
    }
    assert_eq!(upstream.count(), 0);
}

#[test]
fn over_http2_it_is_the_same() {
    let upstream = Upstream::recording();
    let gateway = start(&upstream, "authenticate = \"required\"");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let http2 = Http2::connect(gateway.address()).await;
        let ask = async |fields: &[(&str, &str)], body: &str| {
            let mut request = Http2::call();
            for (name, value) in fields {
                request = request.header(*name, *value);
            }
            http2.ask(request, body).await
        };
        let body = call("\"req_1\"");
        for fields in [
            &[("x-api-key", ACME)][..],
            &[("x-api-key", " fc_acme-key\t")],
            &[("authorization", "Bearer fc_acme-key")],
            &[("authorization", " BEARER  fc_acme-key ")],
        ] {
            assert_eq!(ask(fields, &body).await.status(), 200, "{fields:?}");
        }
        for (fields, status, challenge) in [
            (&[][..], 401, Some(PLAIN)),
            (&[("x-api-key", "FC_ACME-KEY")], 401, Some(PLAIN)),
            (
                &[("authorization", "Bearer fc_acme-keyy")],
                401,
                Some(INVALID),
            ),
            (&[("x-api-key", BETA)], 403, None),
        ] {
            let answer = ask(fields, &body).await;
            assert_eq!(answer.status(), status, "{fields:?}");
            assert_eq!(answer.json()["id"], "req_1");
            assert_eq!(answer.json()["error"]["code"], -32000);
            assert_eq!(answer.field("www-authenticate"), challenge);
        }
        let twice = [
            ("authorization", "Bearer fc_acme-key"),
            ("authorization", "Bearer x"),
        ];
        assert_eq!(ask(&twice, &body).await.status(), 400);
        // A body that is not read ends its stream alone.
        let large = ask(&[], &"x".repeat(70_000)).await;
        assert_eq!((large.status(), large.json()["id"].is_null()), (401, true));
        assert_eq!(ask(&[("x-api-key", ACME)], &body).await.status(), 200);
    });
    assert_eq!(upstream.count(), 5);
    assert_eq!(examined(&gateway), [5.0, 2.0, 2.0, 1.0]);
}

#[test]
fn no_key_is_ever_shown() {
    let upstream = Upstream::recording();
    let gateway = start(&upstream, "authenticate = \"optional\"");
    let mut client = gateway.client();
    for key in [ACME, BETA, "fc_unknown-key"] {
        ask(&mut client, &[("X-Api-Key", key)]);
        ask(&mut client, &[("Authorization", &bearer(key))]);
    }
    // Neither by what loads nor by what does not.
    gateway.write("[caller.acme]\nkey = \"fc_unknown-key\"\nkey_sha256 = \"fc_acme-key\"\n");
    assert!(gateway.inner.reload().is_err());
    let log: Vec<_> = gateway
        .access_log()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(log.len(), 6);
    for text in [
        gateway.admin_get("/config").text(),
        gateway.admin_get("/status").text(),
        gateway.admin_get("/metrics").text(),
        log.join("\n"),
    ] {
        assert!(!text.is_empty() && !text.contains("fc_"), "{text}");
    }
    let metrics = gateway.admin_get("/metrics").text();
    assert!(!metrics.contains("acme"), "{metrics}");
}
