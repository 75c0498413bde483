//! An admitted request is judged, and its endpoint found, without one heap allocation. A program of
//! its own: the counter takes the place of its allocator.

#![allow(clippy::unwrap_used, reason = "a test")]

use allocation_counter::measure;
use forecourt::config::Host;
use forecourt::protocol::{Contract, Supplied, Verdict, judge, releases};
use forecourt::state::routes::Routes;
use http::{HeaderMap, HeaderValue};

fn contract() -> Contract {
    let release = releases::find(releases::DEFAULT).unwrap();
    release.contract(None).unwrap()
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let lines = lines.iter().map(|(name, value)| {
        let name = http::HeaderName::from_static(name);
        (name, HeaderValue::from_str(value).unwrap())
    });
    lines
        .collect::<Vec<_>>()
        .into_iter()
        .fold(HeaderMap::new(), |mut headers, (name, value)| {
            headers.append(name, value);
            headers
        })
}

/// How often judging allocates, and whether it admits.
fn judged(contract: &Contract, headers: &HeaderMap) -> (u64, bool) {
    let mut admits = false;
    let counted = measure(|| {
        let verdict = judge(contract, Supplied::new(headers));
        admits = matches!(verdict, Verdict::Admit(_));
    });
    (counted.count_total, admits)
}

#[test]
fn judging_an_admitted_request_allocates_nothing() {
    let contract = contract();
    let pinned = contract.extension.as_str();
    let list = format!("https://example.com/other/v1 ,\t{pinned}, https://example.com/third/v2");
    for (what, lines) in [
        ("both absent", vec![("x-api-key", "k")]),
        (
            "both supplied",
            vec![("a2a-version", "1.0"), ("a2a-extensions", pinned)],
        ),
        ("a version with spaces", vec![("a2a-version", " 1.0 ")]),
        ("a list", vec![("a2a-extensions", list.as_str())]),
        (
            "several lines",
            vec![
                ("a2a-extensions", "https://example.com/other/v1"),
                ("a2a-extensions", pinned),
            ],
        ),
    ] {
        let headers = headers(&lines);
        assert_eq!(judged(&contract, &headers), (0, true), "{what}");
    }
}

#[test]
fn finding_an_endpoint_allocates_nothing() {
    let mut routes = Routes::default();
    routes.add(&Host::Exact("lakeside.example.com".into()), "/a2a", 1);
    routes.add(&Host::OneLabel("example.com".into()), "/a2a", 2);
    routes.add(&Host::Any, "/a2a", 3);
    for (host, endpoint) in [
        ("lakeside.example.com", 1),
        ("hilltop.example.com", 2),
        ("elsewhere.example.org", 3),
    ] {
        let mut found = None;
        let counted = measure(|| found = routes.find(Some(host), "/a2a/x").map(|it| *it.endpoint));
        assert_eq!((counted.count_total, found), (0, Some(endpoint)), "{host}");
    }
}

/// The counter counts: a refusal names what it refuses, so it allocates.
#[test]
fn a_refusal_shows_that_the_counter_counts() {
    let contract = contract();
    let refused = headers(&[("a2a-version", "0.9-unheard-of")]);
    let (count, admits) = judged(&contract, &refused);
    assert!(!admits);
    assert!(count > 0, "nothing was counted");
}
