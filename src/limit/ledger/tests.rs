//! What operators are told of callers, and that forgiving reaches all of one and nothing of another.

use std::num::NonZeroU32;

use super::*;
use crate::http1::Fields;
use crate::limit::{
    Allowance, Call, Decision, Dimension, ManualClock, Per, Rule, Source, Subject, identify,
};
use http::{HeaderMap, HeaderName, HeaderValue};

fn rate(secs: u64, burst: u32) -> Allowance {
    Allowance::Rate {
        interval: Duration::from_secs(secs),
        burst: NonZeroU32::new(burst).unwrap(),
    }
}

fn quota(name: &str, per: &[Dimension], allowance: Allowance) -> Quota {
    let rule = Rule::new(name, per.iter().copied().collect::<Per>(), allowance);
    Quota::compile(&rule, "lakeside")
}

/// Callers of each kind: by a header, by their address, by nothing, proven.
fn callers() -> [Caller; 4] {
    let header = Source::Header(HeaderName::from_static("x-api-key"));
    let mut fields = HeaderMap::new();
    fields.insert("x-api-key", HeaderValue::from_static("secret"));
    let fields = Fields::from(&fields);
    let address = "2001:db8:1:2:3::4".parse().unwrap();
    [
        identify(&[header], &fields, address),
        identify(&[Source::Address], &fields, address),
        identify(&[], &fields, address),
        Caller::proven("acme".into(), Some(0)),
    ]
}

fn at(caller: &Caller, address: [u8; 4]) -> Subject<'static> {
    Subject::new(caller, address.into())
}

fn spent<C: Clock>(limiter: &Limiter<C>, quota: &Quota, who: &Subject<'_>) -> u32 {
    let standing = limiter.standing(quota, who).unwrap();
    standing.most() - standing.remaining()
}

#[test]
fn a_caller_is_found_by_the_name_in_the_log_and_forgiven_alone() {
    use Dimension::{Address, Caller, Skill, Tenant};
    let callers = callers();
    for caller in &callers {
        let limiter = Limiter::new(ManualClock::new(), 1000);
        let quotas = [
            quota("mine", &[Caller], rate(60, 10)),
            quota("tenants", &[Caller, Tenant, Skill], rate(60, 10)),
            quota("places", &[Caller, Address], rate(60, 10)),
            quota("all", &[Dimension::All], rate(60, 1000)),
        ];
        let calls = ["east", "west", "north"].map(|tenant| Call {
            method: "SendMessage",
            skill: Some("lead.submit"),
            tenant: Some(tenant),
        });
        let everybody: Vec<_> = callers
            .iter()
            .flat_map(|caller| [at(caller, [192, 0, 2, 1]), at(caller, [192, 0, 2, 2])])
            .flat_map(|who| calls.map(|call| who.calling(call)))
            .collect();
        for who in &everybody {
            assert!(matches!(limiter.check(&quotas, who), Decision::Admitted(_)));
        }
        let all: Vec<&Quota> = quotas.iter().collect();
        let owner = Owner::named(&caller.to_string());
        // Of its own, of three tenants, of two addresses.
        let found: Vec<usize> = limiter
            .entries(&owner, &all, None)
            .iter()
            .map(|entry| entry.quota)
            .collect();
        let count = |quota| found.iter().filter(|it| **it == quota).count();
        assert_eq!([0, 1, 2, 3].map(count), [1, 3, 2, 0], "{caller}");
        assert_eq!(limiter.in_use(&all), [4, 12, 8, 1]);

        assert_eq!(
            limiter.forgive(&owner),
            Forgiven {
                buckets: 6,
                still_open: 0
            }
        );
        assert!(limiter.entries(&owner, &all, None).is_empty());
        for who in &everybody {
            let is_forgiven = who.caller() == caller.fingerprint();
            for quota in &quotas[..3] {
                assert_eq!(spent(&limiter, quota, who) == 0, is_forgiven, "{caller}");
            }
        }
        assert_eq!(spent(&limiter, &quotas[3], &everybody[0]), 24);
    }
}

#[test]
fn names_that_are_nobodys_find_nothing() {
    let limiter = Limiter::new(ManualClock::new(), 1000);
    let quotas = [quota("mine", &[Dimension::Caller], rate(60, 10))];
    for caller in callers() {
        limiter.check(&quotas, &at(&caller, [192, 0, 2, 1]));
    }
    let all: Vec<&Quota> = quotas.iter().collect();
    for name in [
        "",
        "acm",
        "ACME",
        "address",
        "address 192.0.2.9",
        "address 2001:db8:1:3::/64",
        "x-api-key",
        "x-api-key#",
        "x-api-key#0000000",
        "x-api-key#zzzzzzzz",
        "secret",
    ] {
        let owner = Owner::named(name);
        assert!(limiter.entries(&owner, &all, None).is_empty(), "{name}");
        assert_eq!(limiter.forgive(&owner).buckets, 0, "{name}");
    }
    assert_eq!(limiter.live(), 4);
}

#[test]
fn an_address_has_what_is_counted_by_address() {
    let limiter = Limiter::new(ManualClock::new(), 1000);
    let quotas = [quota("each", &[Dimension::Address], rate(60, 2))];
    let [keyed, ..] = callers();
    let who = at(&keyed, [192, 0, 2, 1]);
    limiter.check(&quotas, &who);
    let all: Vec<&Quota> = quotas.iter().collect();
    assert!(
        limiter
            .entries(&Owner::named(&keyed.to_string()), &all, None)
            .is_empty()
    );
    let owner = Owner::named("address 192.0.2.1");
    let [entry] = &limiter.entries(&owner, &all, None)[..] else {
        panic!("one bucket");
    };
    assert_eq!((entry.standing.remaining(), entry.standing.most()), (1, 2));
    assert_eq!(limiter.forgive(&owner).buckets, 1);
    assert_eq!(spent(&limiter, &quotas[0], &who), 0);
}

#[test]
fn skills_and_plans_and_requests_at_once_are_told() {
    let at_once = Allowance::Concurrent(NonZeroU32::new(3).unwrap());
    let rules = [
        Rule {
            plans: vec![Some(rate(6, 100))],
            ..Rule::new(
                "skills",
                [Dimension::Caller, Dimension::Skill]
                    .into_iter()
                    .collect::<Per>(),
                rate(60, 10),
            )
        },
        Rule::new("streams", Dimension::Caller, at_once),
    ];
    let quotas = rules.map(|rule| Quota::compile(&rule, "lakeside"));
    let limiter = Limiter::new(ManualClock::new(), 1000);
    let [_, _, _, acme] = callers();
    let who = at(&acme, [192, 0, 2, 1]);
    let held = ["lead.submit", "made.up", "made.up.too"].map(|skill| {
        let call = Call {
            method: "SendMessage",
            skill: Some(skill),
            tenant: None,
        };
        limiter.check(&quotas, &who.calling(call))
    });
    let all: Vec<&Quota> = quotas.iter().collect();
    let owner = Owner::named("acme");
    let told = |plan| -> Vec<_> {
        let entries = limiter.entries(&owner, &all, plan).into_iter();
        entries
            .map(|entry| {
                (
                    entry.skill,
                    entry.standing.remaining(),
                    entry.standing.most(),
                )
            })
            .collect()
    };
    assert_eq!(
        told(Some(0)),
        [
            (None, 0, 3),
            (Some("other"), 98, 100),
            (Some("lead.submit"), 99, 100)
        ]
    );
    // Twelve seconds of a plan are a twelfth of a minute that has no plan.
    assert_eq!(told(None)[1].1, 9);
    let forgiven = limiter.forgive(&owner);
    assert_eq!((forgiven.buckets, forgiven.still_open), (2, 3));
    assert_eq!(told(None), [(None, 0, 3)]);
    drop(held);
    assert!(told(None).is_empty());
}

#[test]
fn what_strangers_share_is_told_by_quota() {
    let clock = ManualClock::new();
    let limiter = Limiter::new(clock.clone(), 0);
    let quotas = [
        quota("crowded", &[Dimension::Caller], rate(60, 2)),
        quota("empty", &[Dimension::Caller], rate(60, 2)),
    ];
    for number in 0..1000 {
        let caller = Caller::proven(number.to_string().into(), None);
        limiter.check(&quotas[..1], &at(&caller, [192, 0, 2, 1]));
    }
    let told = || quotas.each_ref().map(|quota| limiter.overflow(quota));
    assert_eq!(told(), [Some(Duration::from_secs(120)), None]);
    clock.advance(Duration::from_secs(120));
    assert_eq!(told(), [None, None]);
}

#[test]
fn every_refusal_is_noted_under_the_callers_name() {
    let limiter = Limiter::new(ManualClock::new(), 1000);
    let quota = quota("mine", &[Dimension::Caller], rate(60, 1));
    let [keyed, ..] = callers();
    limiter.note_refused(&keyed, &quota);
    limiter.note_admitted(&keyed);
    let [notable] = &limiter.notables()[..] else {
        panic!("one caller");
    };
    assert_eq!(notable.caller, keyed);
    assert_eq!((notable.calls, notable.refused), (16, 1));
    assert_eq!(notable.quota.as_deref(), Some("mine"));
}

#[test]
fn the_tightest_bucket_of_each_is_found_in_one_walk() {
    let callers = callers();
    let limiter = Limiter::new(ManualClock::new(), 1000);
    let quotas = [
        quota("wide", &[Dimension::Caller], rate(60, 10)),
        quota("narrow", &[Dimension::Caller], rate(60, 4)),
        quota("unseen", &[Dimension::Caller], rate(60, 1)),
    ];
    let place = [1, 2, 3, 4];
    let [first, second, third, fourth] = &callers;
    for _ in 0..2 {
        limiter.charge(&quotas[..2], &at(first, place));
    }
    limiter.charge(&quotas[..1], &at(second, place));
    limiter.charge(&quotas[2..], &at(fourth, place));
    let seen: Vec<_> = quotas[..2].iter().collect();
    let asked = [third, second, first, fourth];
    let found = limiter.tightest(&asked, &seen);
    let found: Vec<_> = found
        .into_iter()
        .map(|it| it.map(|(at, standing)| (at, standing.remaining(), standing.most())))
        .collect();
    assert_eq!(found, [None, Some((0, 9, 10)), Some((1, 2, 4)), None]);
    assert!(limiter.tightest(&[], &seen).is_empty());
}
