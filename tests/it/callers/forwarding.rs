//! What the dealer gets of a credential.

use super::*;

#[test]
fn what_was_verified_stays_here_where_the_operator_says_so() {
    let upstream = Upstream::recording();
    let gateway = start(
        &upstream,
        "authenticate = \"optional\"\nforward_credential = false",
    );
    let mut client = gateway.client();
    let acme = bearer(ACME);
    for (fields, arrives) in [
        (&[("X-Api-Key", ACME)][..], &[][..]),
        (&[("AUTHORIZATION", &*acme)], &[]),
        (&[("X-Api-Key", ACME), ("Authorization", &*acme)], &[]),
        // Nothing was verified in it.
        (
            &[("x-API-key", ACME), ("Authorization", "Basic eDp5")],
            &[("authorization", "Basic eDp5")],
        ),
        (
            &[("Authorization", "Basic eDp5")],
            &[("authorization", "Basic eDp5")],
        ),
        (&[("X-Other", ACME)], &[("x-other", ACME)]),
        // What CGI-style servers merge with it never travels.
        (&[("X_Api_Key", ACME), ("x-api_key", "b")], &[]),
    ] {
        assert_eq!(ask(&mut client, fields).status, 200, "{fields:?}");
        let head = upstream.take().head;
        for name in [
            "authorization",
            "x-api-key",
            "x_api_key",
            "x-api_key",
            "x-other",
        ] {
            let wanted = arrives.iter().find(|(it, _)| *it == name);
            let wanted = wanted.map(|(_, value)| (*value).to_owned());
            assert_eq!(head.one(name), wanted, "{fields:?} {name}");
        }
        assert_eq!(head.one("content-type").unwrap(), "application/json");
    }
}

#[test]
fn it_passes_unless_said_otherwise_and_its_look_alikes_do_not() {
    let upstream = Upstream::recording();
    let gateway = start(&upstream, "authenticate = \"required\"");
    let fields = [
        ("X-Api-Key", ACME),
        ("Authorization", &*bearer(ACME)),
        ("x_api_key", "b"),
    ];
    assert_eq!(ask(&mut gateway.client(), &fields).status, 200);
    let head = upstream.take().head;
    assert_eq!(head.one("x-api-key").unwrap(), ACME);
    assert_eq!(head.one("authorization").unwrap(), bearer(ACME));
    assert!(!head.has("x_api_key"));
    // Nor beside a request that nobody asks who sent.
    let mut get = Post::method("GET", "/a2a/.well-known/agent-card.json").field("Host", "gw");
    for (name, value) in fields {
        get = get.field(name, value);
    }
    assert_eq!(gateway.ask(get.bytes()).status, 200);
    let head = upstream.take().head;
    assert!(head.has("x-api-key") && head.has("authorization") && !head.has("x_api_key"));
    // Where nobody looks at credentials, nothing is taken away.
    let gateway = Gateway::start(&configuration(&upstream, "", ""));
    assert_eq!(ask(&mut gateway.client(), &fields).status, 200);
    assert_eq!(upstream.take().head.one("x_api_key").unwrap(), "b");
}

#[test]
fn the_upstreams_own_headers_are_sent() {
    let upstream = Upstream::recording();
    let configuration = format!(
        "{}{}",
        callers(),
        dealer_with(
            &upstream,
            "headers = { authorization = \"Bearer ${DEALER_TOKEN}\", x-api-key = \"dealers\" }",
            "authenticate = \"required\"\nforward_credential = false",
        )
    );
    let configuration = configuration.replace("endpoints = [\"other\"]\n", "");
    let gateway = Gateway::start(&configuration);
    let fields = [("X-Api-Key", ACME), ("Authorization", &*bearer(ACME_NEXT))];
    assert_eq!(ask(&mut gateway.client(), &fields).status, 200);
    let head = upstream.take().head;
    assert_eq!(head.one("authorization").unwrap(), "Bearer dealer-secret");
    assert_eq!(head.one("x-api-key").unwrap(), "dealers");
}

#[test]
fn what_has_no_policy_loses_what_is_known_as_a_credential_too() {
    let upstream = Upstream::recording();
    let gateway = start(
        &upstream,
        "authenticate = \"required\"\nforward_credential = false",
    );
    let card = |fields: &[(&str, &str)]| {
        let mut get = Post::method("GET", "/a2a/.well-known/agent-card.json").field("Host", "gw");
        for (name, value) in fields {
            get = get.field(name, value);
        }
        assert_eq!(gateway.ask(get.bytes()).status, 200);
        upstream.take().head
    };
    assert!(!card(&[("X-Api-Key", ACME)]).has("x-api-key"));
    assert!(!card(&[("Authorization", &bearer(BETA))]).has("authorization"));
    assert!(card(&[("X-Api-Key", "fc_other")]).has("x-api-key"));
    assert_eq!(examined(&gateway), [0.0; 4]);
}
