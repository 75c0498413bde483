//! An admitted request is judged, its endpoint found, its caller recognised, and one quota asked,
//! without one heap allocation. A program of its own: the counter takes the place of its allocator.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use allocation_counter::measure;
use forecourt::config::{self, Host};
use forecourt::credential::{Callers, Shows, Verdict as Found, Who, fresh};
use forecourt::http1::Fields;
use forecourt::limit::{
    self, Allowance, Call, Decision, Dimension, Limiter, ManualClock, Per, Quota, Rule, Subject,
};
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

#[test]
fn recognising_a_caller_allocates_nothing() {
    let known = config::Caller {
        name: "acme".into(),
        key_sha256: vec![fresh::digest("fc_key")],
        certificates: Vec::new(),
        plan: None,
        endpoints: None,
    };
    let callers = Callers::compile(&[known], http::HeaderName::from_static("x-api-key"));
    let buckets = [limit::Caller::proven("acme".into(), None)];
    for (line, shows) in [
        (("x-api-key", "fc_key"), Shows::Nobody),
        (("authorization", "Bearer fc_key"), Shows::Nobody),
        (("x-other", "fc_key"), Shows::Caller(0)),
    ] {
        let fields = Fields::from(&headers(&[line]));
        let mut name_length = 0;
        let counted = measure(|| {
            if let Found::Proven(proof) = callers.examine(&fields, shows, |_| None)
                && let Who::Caller(place) = proof.who
                && let Some(caller) = buckets.get(place).cloned()
            {
                name_length = caller.name().len();
            }
        });
        assert_eq!((counted.count_total, name_length), (0, 4), "{line:?}");
    }
}

#[test]
fn asking_one_quota_allocates_nothing() {
    let one = std::num::NonZeroU32::MIN;
    let rate = Allowance::Rate {
        interval: std::time::Duration::from_secs(1),
        burst: one.saturating_add(1),
    };
    let mine = Rule::new("mine", Dimension::Caller, rate);
    let per: Per = Dimension::ALL.into_iter().collect();
    let terms = Rule {
        plans: vec![Some(rate)],
        skills: Some(vec!["lead.submit".into()]),
        methods: Some(vec!["SendMessage".into()]),
        cost: vec![("lead.submit".into(), one)],
        ..Rule::new("terms", per, rate)
    };
    let places = Rule::new("places", Dimension::Caller, Allowance::Concurrent(one));
    for (rule, most) in [(mine, 2), (terms, 2), (places, 1)] {
        let quotas = [Quota::compile(&rule, "lakeside")];
        let limiter = Limiter::new(ManualClock::new(), 1000);
        let caller = limit::Caller::proven("acme".into(), Some(0));
        let call = Call {
            method: "SendMessage",
            skill: Some("lead.submit"),
            tenant: Some("east"),
        };
        let who = Subject::new(&caller, [192, 0, 2, 1].into());
        let who = who.calling(call);
        // The first call of a caller makes room for it.
        drop(limiter.check(&quotas, &who));
        limiter.note_admitted(&caller);
        limiter.note_refused(&caller, &quotas[0]);
        let mut held = Vec::with_capacity(8);
        let counted = measure(|| {
            for _ in 0..4 {
                if let Decision::Admitted(admission) = limiter.check(&quotas, &who) {
                    held.push(admission);
                    limiter.note_admitted(&caller);
                } else {
                    limiter.note_refused(&caller, &quotas[0]);
                }
            }
        });
        let is_rate = most > 1;
        let expected = most - usize::from(is_rate);
        assert_eq!((counted.count_total, held.len()), (0, expected), "{rule:?}");
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
