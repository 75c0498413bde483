//! Who is let in: by token, by address, and never by a browser's page.

use super::*;

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn digest(token: &str) -> KeySha256 {
    KeySha256(*Digest::of(token.as_bytes()).bytes())
}

fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in all {
        let name = HeaderName::from_static(name);
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

/// Why an operator is refused.
fn asked(
    tokens: &[KeySha256],
    is_local: bool,
    sent: &[(&'static str, &str)],
) -> Option<AdminRefusal> {
    let guard = Guard {
        tokens,
        is_local,
        attempts: &Attempts::default(),
    };
    guard.operator(&headers(sent), HERE).err().map(|it| it.why)
}

#[test]
fn no_page_can_drive_the_admin_socket() {
    let browser = Some(AdminRefusal::Browser);
    for (host, origin, expected) in [
        ("127.0.0.1:9901", None, None),
        ("[::1]:9901", None, None),
        ("localhost:9901", None, None),
        ("10.0.0.7", None, None),
        ("evil.example:9901", None, browser),
        ("127.0.0.1.evil.example", None, browser),
        ("", None, browser),
        ("127.0.0.1:9901", Some("http://127.0.0.1:9901"), browser),
        ("127.0.0.1:9901", Some("null"), browser),
    ] {
        let mut sent = vec![("host", host)];
        sent.extend(origin.map(|it| ("origin", it)));
        assert_eq!(asked(&[], true, &sent), expected, "{host} {origin:?}");
    }
    assert_eq!(asked(&[], true, &[]), browser);
    let two = [("host", "127.0.0.1"), ("host", "localhost")];
    assert_eq!(asked(&[], true, &two), browser);
}

#[test]
fn an_image_in_a_strangers_page_sees_nothing() {
    for (site, expected) in [
        ("same-origin", None),
        ("none", None),
        ("same-site", Some(AdminRefusal::Browser)),
        ("cross-site", Some(AdminRefusal::Browser)),
        ("anything", Some(AdminRefusal::Browser)),
    ] {
        let sent = [("host", "127.0.0.1:9901"), ("sec-fetch-site", site)];
        assert_eq!(asked(&[], true, &sent), expected, "{site}");
    }
}

#[test]
fn where_others_reach_it_nobody_is_let_in_without_a_token() {
    let unprotected = Some(AdminRefusal::Unprotected);
    assert_eq!(asked(&[], false, &[("host", "10.0.0.7:9901")]), unprotected);
    let with = [("host", "10.0.0.7"), ("authorization", "Bearer x")];
    assert_eq!(asked(&[], false, &with), unprotected);
}

#[test]
fn each_token_lets_in_and_nothing_else_does() {
    let tokens = [digest("old-token"), digest("new-token")];
    for is_local in [true, false] {
        for (value, expected) in [
            ("Bearer old-token", None),
            ("bearer new-token", None),
            ("BEARER  new-token ", None),
            ("Bearer new-toke", Some(AdminRefusal::Wrong)),
            ("Bearer new-token2", Some(AdminRefusal::Wrong)),
            ("Bearer old-token new-token", Some(AdminRefusal::Wrong)),
            ("Bearer ", Some(AdminRefusal::Absent)),
            ("Bearer", Some(AdminRefusal::Absent)),
            ("Basic new-token", Some(AdminRefusal::Absent)),
            ("new-token", Some(AdminRefusal::Absent)),
            ("", Some(AdminRefusal::Absent)),
        ] {
            // By any name, from any page: none has a token that was not given it.
            let sent = [
                ("host", "admin.example"),
                ("origin", "https://admin.example"),
                ("authorization", value),
            ];
            assert_eq!(asked(&tokens, is_local, &sent), expected, "{value}");
        }
        let by_address = [("host", "127.0.0.1")];
        assert_eq!(
            asked(&tokens, is_local, &by_address),
            Some(AdminRefusal::Absent)
        );
        let twice = [
            ("authorization", "Bearer old-token"),
            ("authorization", "Bearer old-token"),
        ];
        assert_eq!(asked(&tokens, is_local, &twice), Some(AdminRefusal::Absent));
    }
    // The digest is no token.
    let value = format!("Bearer {}", tokens[0]);
    let sent = [("authorization", value.as_str())];
    assert_eq!(asked(&tokens, true, &sent), Some(AdminRefusal::Wrong));
    let endless = format!("Bearer {}", "k".repeat(LONGEST + 1));
    let tokens = [digest(&"k".repeat(LONGEST + 1))];
    let sent = [("authorization", endless.as_str())];
    assert_eq!(asked(&tokens, true, &sent), Some(AdminRefusal::Wrong));
}

#[test]
fn who_tries_many_is_not_looked_at_and_nobody_else_suffers() {
    let tokens = [digest("right")];
    let attempts = Attempts::default();
    let guard = Guard {
        tokens: &tokens,
        is_local: false,
        attempts: &attempts,
    };
    let elsewhere: IpAddr = "192.0.2.7".parse().unwrap();
    let (wrong, right) = (
        headers(&[("authorization", "Bearer wrong")]),
        headers(&[("authorization", "Bearer right")]),
    );
    for _ in 0..10 {
        let refused = guard.operator(&wrong, elsewhere).unwrap_err();
        assert_eq!(refused.why, AdminRefusal::Wrong);
    }
    for sent in [&wrong, &right] {
        let refused = guard.operator(sent, elsewhere).unwrap_err();
        assert_eq!(refused.why, AdminRefusal::TooMany);
        let answer = refused.answer();
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        let wait = answer.headers()[RETRY_AFTER].to_str().unwrap();
        assert!((1..=61).contains(&wait.parse::<u64>().unwrap()), "{wait}");
    }
    assert_eq!(guard.operator(&right, HERE), Ok(()));
    // Nothing was tried: nothing is counted.
    let nothing = headers(&[]);
    for _ in 0..20 {
        let refused = guard.operator(&nothing, HERE).unwrap_err();
        assert_eq!(refused.why, AdminRefusal::Absent);
    }
    assert_eq!(guard.operator(&right, HERE), Ok(()));
}

#[test]
fn the_page_is_shown_where_something_can_be_seen_with_it() {
    let (attempts, tokens) = (Attempts::default(), [digest("right")]);
    let page = |tokens, is_local, sent: &[(&'static str, &str)]| {
        let guard = Guard {
            tokens,
            is_local,
            attempts: &attempts,
        };
        guard.page(&headers(sent)).err().map(|it| it.why)
    };
    let (address, name) = ([("host", "127.0.0.1:9901")], [("host", "gw.example")]);
    assert_eq!(page(&[], true, &address), None);
    // A link in another site's page.
    let link = [("host", "127.0.0.1:9901"), ("sec-fetch-site", "cross-site")];
    assert_eq!(page(&[], true, &link), None);
    assert_eq!(page(&[], true, &name), Some(AdminRefusal::Browser));
    assert_eq!(page(&[], false, &address), Some(AdminRefusal::Unprotected));
    assert_eq!(page(&tokens, true, &name), None);
    assert_eq!(page(&tokens, false, &name), None);
}
