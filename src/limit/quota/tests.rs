//! How a rule becomes the buckets of an endpoint, and which calls it looks at.

use super::*;
use crate::http1::Fields;
use crate::limit::caller::identify;
use crate::limit::{Call, Caller, LONGEST_TENANT};
use std::time::Duration;

fn rate(interval: u64, burst: u32) -> Allowance {
    Allowance::Rate {
        interval: Duration::from_nanos(interval),
        burst: NonZeroU32::new(burst).unwrap(),
    }
}

fn rule(per: &[Dimension]) -> Rule {
    Rule::new("q", per.iter().copied().collect::<Per>(), rate(1, 100))
}

fn bucket(quota: &Quota, who: &Subject<'_>) -> Option<Fingerprint> {
    Some(quota.ask(who)?.bucket)
}

fn call<'c>(method: &'c str, skill: Option<&'c str>, tenant: Option<&'c str>) -> Call<'c> {
    Call {
        method,
        skill,
        tenant,
    }
}

fn acme(plan: Option<usize>) -> Subject<'static> {
    Subject::new(&Caller::proven("acme".into(), plan), [192, 0, 2, 1].into())
}

#[test]
fn buckets_are_told_apart_by_what_the_quota_counts() {
    use Dimension::{Address, All, Caller, Endpoint, Skill, Tenant};
    struct Of(
        &'static str,
        &'static str,
        [u8; 4],
        &'static str,
        &'static str,
    );
    let bucket = |per: &[Dimension], shared, Of(endpoint, key, address, tenant, skill): Of| {
        let rule = Rule {
            shared,
            ..rule(per)
        };
        let sources = [crate::limit::Source::Header(http::HeaderName::from_static(
            "k",
        ))];
        let mut headers = http::HeaderMap::new();
        headers.insert("k", key.parse().unwrap());
        let address = address.into();
        let caller = identify(&sources, &Fields::from(&headers), address);
        let who = Subject::new(&caller, address);
        let who = who.calling(call("SendMessage", Some(skill), Some(tenant)));
        self::bucket(&Quota::compile(&rule, endpoint), &who).unwrap()
    };
    let home = [192, 0, 2, 1];
    let (lead, search) = ("lead.submit", "inventory.search");
    // Columns: does another endpoint, caller, address, tenant, skill get another bucket?
    for (per, shared, apart) in [
        (vec![Caller], false, [true, true, false, false, false]),
        (vec![Caller], true, [false, true, false, false, false]),
        (vec![Endpoint], false, [true, false, false, false, false]),
        (vec![All], false, [false; 5]),
        (vec![Address], false, [true, false, true, false, false]),
        (vec![Address], true, [false, false, true, false, false]),
        (vec![Tenant], false, [true, false, false, true, false]),
        (vec![Tenant], true, [false, false, false, true, false]),
        (vec![Skill], false, [true, false, false, false, true]),
        (vec![Skill], true, [false, false, false, false, true]),
        (vec![Caller, Skill], true, [false, true, false, false, true]),
        (
            vec![Caller, Address],
            false,
            [true, true, true, false, false],
        ),
        (
            vec![Caller, Address],
            true,
            [false, true, true, false, false],
        ),
        (
            vec![Caller, Endpoint],
            false,
            [true, true, false, false, false],
        ),
        (
            vec![Caller, Address, Tenant, Skill],
            true,
            [false, true, true, true, true],
        ),
        (vec![Caller, Address, Tenant, Skill], false, [true; 5]),
        (vec![Caller, All], true, [false, true, false, false, false]),
    ] {
        let one = bucket(&per, shared, Of("e", "a", home, "east", lead));
        assert_eq!(one, bucket(&per, shared, Of("e", "a", home, "east", lead)));
        let others = [
            Of("f", "a", home, "east", lead),
            Of("e", "b", home, "east", lead),
            Of("e", "a", [192, 0, 2, 2], "east", lead),
            Of("e", "a", home, "west", lead),
            Of("e", "a", home, "east", search),
        ];
        let found = others.map(|other| bucket(&per, shared, other) != one);
        assert_eq!(found, apart, "{per:?} shared {shared}");
    }
}

#[test]
fn the_bucket_belongs_to_the_name_not_to_the_rate_or_the_plan() {
    let named = |name: &str, allowance, plan| {
        let rule = Rule {
            plans: vec![None, Some(rate(9, 9))],
            ..Rule::new(name, Dimension::Caller, allowance)
        };
        bucket(&Quota::compile(&rule, "e"), &acme(plan))
    };
    let one = named("a", rate(1, 5), None);
    assert_eq!(one, named("a", rate(2, 5), None));
    for plan in [0, 1, 7] {
        assert_eq!(one, named("a", rate(1, 5), Some(plan)));
    }
    assert_ne!(one, named("b", rate(1, 5), None));
}

#[test]
fn a_plan_changes_how_much() {
    let rule = Rule {
        plans: vec![None, Some(rate(9, 9))],
        ..Rule::new("q", Dimension::Caller, rate(1, 5))
    };
    let quota = Quota::compile(&rule, "e");
    let policy = |plan| quota.policy(&acme(plan)).to_owned();
    assert_eq!(policy(None), r#""q";q=5;w=1"#);
    assert_eq!(policy(Some(0)), policy(None));
    assert_eq!(policy(Some(1)), r#""q";q=9;w=1"#);
    assert_eq!(policy(Some(2)), policy(None));
    assert!(!quota.is_same_for_all());
}

/// Whatever a caller makes up, it falls into the bucket of no skill at all.
#[test]
fn skills_that_are_not_known_share_one_bucket() {
    let rule = Rule {
        skills: None,
        cost: vec![("house.inspect".into(), NonZeroU32::new(2).unwrap())],
        ..rule(&[Dimension::Skill])
    };
    let quota = Quota::compile(&rule, "e");
    let of = |skill| {
        let who = acme(None);
        bucket(&quota, &who.calling(call("SendMessage", skill, None))).unwrap()
    };
    let mut seen = vec![of(None)];
    for known in SKILLS.into_iter().chain(["house.inspect"]) {
        assert!(!seen.contains(&of(Some(known))), "{known}");
        seen.push(of(Some(known)));
    }
    for made_up in [
        "",
        "lead.submi",
        "lead.submit ",
        "Lead.submit",
        "house.other",
    ] {
        assert_eq!(of(Some(made_up)), of(None), "{made_up}");
    }
    // A call that could not be read asks for none.
    assert_eq!(bucket(&quota, &acme(None)), Some(of(None)));
    assert!(!quota.ask(&acme(None)).unwrap().floods);
}

#[test]
fn what_is_no_tenant_shares_one_bucket() {
    let quota = Quota::compile(&rule(&[Dimension::Tenant]), "e");
    let of = |tenant| {
        let who = acme(None);
        bucket(&quota, &who.calling(call("SendMessage", None, tenant))).unwrap()
    };
    let long = "x".repeat(LONGEST_TENANT + 1);
    for none in [Some(""), Some(&*long)] {
        assert_eq!(of(none), of(None));
    }
    let longest = of(Some(&long[1..]));
    assert_ne!(longest, of(None));
    assert_ne!(of(Some("east")), of(Some("east ")));
    assert_eq!(bucket(&quota, &acme(None)), Some(of(None)));
    assert!(
        quota.ask(&acme(None)).unwrap().floods,
        "as many as callers make up"
    );
}

#[test]
fn a_quota_looks_at_the_calls_it_names_and_no_other() {
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).into()).collect());
    let quota = |skills, methods| {
        let rule = Rule {
            skills,
            methods,
            ..rule(&[Dimension::Caller])
        };
        Quota::compile(&rule, "e")
    };
    let every = quota(None, None);
    let leads = quota(words(&["lead.submit", "house.x"]), None);
    let streams = quota(None, words(&["SendStreamingMessage"]));
    let both = quota(words(&["lead.submit"]), words(&["SendStreamingMessage"]));
    let quotas = [every, leads, streams, both];
    let looks = |who: &Subject<'_>| quotas.each_ref().map(|quota| quota.looks_at(who));
    let calling = |method, skill| acme(None).calling(call(method, skill, None));
    let (lead, stream) = (Some("lead.submit"), "SendStreamingMessage");
    assert_eq!(
        looks(&calling("SendMessage", lead)),
        [true, true, false, false]
    );
    assert_eq!(looks(&calling(stream, lead)), [true; 4]);
    assert_eq!(looks(&calling(stream, None)), [true, false, true, false]);
    assert_eq!(
        looks(&calling("GetTask", Some("house.x"))),
        [true, true, false, false]
    );
    assert_eq!(
        looks(&calling("GetTask", Some("lead.submi"))),
        [true, false, false, false]
    );
    // A call that was not read.
    assert_eq!(looks(&acme(None)), [true, false, false, false]);
    let inside = quotas.each_ref().map(Quota::looks_inside);
    assert_eq!(inside, [false, true, true, true]);
}

#[test]
fn the_larger_cost_counts() {
    let cost = |word: &str, cost| (word.into(), NonZeroU32::new(cost).unwrap());
    let rule = Rule {
        cost: vec![
            cost("lead.submit", 10),
            cost("SendMessage", 3),
            cost("GetTask", 2),
        ],
        ..rule(&[Dimension::Caller])
    };
    let quota = Quota::compile(&rule, "e");
    assert!(quota.looks_inside());
    for (method, skill, expected) in [
        ("SendMessage", None, 3),
        ("SendMessage", Some("lead.submit"), 10),
        ("GetTask", Some("lead.submit"), 10),
        ("GetTask", None, 2),
        ("ListTasks", Some("inventory.search"), 1),
    ] {
        let who = acme(None);
        let found = quota.cost(&who.calling(call(method, skill, None))).get();
        assert_eq!(found, expected, "{method} {skill:?}");
    }
    assert_eq!(quota.cost(&acme(None)).get(), 1);
}
