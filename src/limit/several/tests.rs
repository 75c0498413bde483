//! Whoever waits as long as is told is admitted, whatever quotas, costs, plans and calls there are.

use std::num::NonZeroU32;

use proptest::prelude::*;

use super::*;
use crate::limit::{Allowance, Call, Caller, Dimension, ManualClock, Per, Rule};

const METHODS: [&str; 3] = ["SendMessage", "SendStreamingMessage", "GetTask"];
const SKILLS: [&str; 3] = ["lead.submit", "inventory.search", "made.up"];
const TENANTS: [&str; 3] = ["", "east", "west"];
const DIMENSIONS: [Dimension; 5] = [
    Dimension::Caller,
    Dimension::Address,
    Dimension::Tenant,
    Dimension::Skill,
    Dimension::Endpoint,
];

fn allowance() -> impl Strategy<Value = Allowance> {
    let interval = prop_oneof![1..50_u64, 1..3_000_000_000_u64];
    (interval, 1..9_u32).prop_map(|(interval, burst)| Allowance::Rate {
        interval: Duration::from_nanos(interval),
        burst: NonZeroU32::new(burst).unwrap(),
    })
}

fn words(of: &'static [&'static str]) -> impl Strategy<Value = Option<Vec<Box<str>>>> {
    prop::option::of(prop::sample::subsequence(of, 1..=of.len()))
        .prop_map(|words| Some(words?.into_iter().map(Into::into).collect()))
}

fn rule() -> impl Strategy<Value = Rule> {
    let cost = prop::sample::select(vec!["lead.submit", "made.up", "GetTask", "SendMessage"]);
    let cost = prop::collection::btree_map(cost, 1..12_u32, 0..4);
    let per = prop::sample::subsequence(&DIMENSIONS[..], 0..=DIMENSIONS.len());
    (
        allowance(),
        prop::collection::vec(prop::option::of(allowance()), 0..3),
        per,
        any::<bool>(),
        words(&SKILLS),
        words(&METHODS),
        cost,
    )
        .prop_map(|(allowance, plans, per, shared, skills, methods, cost)| {
            let per: Per = match per.as_slice() {
                [] => Dimension::All.into(),
                per => per.iter().copied().collect(),
            };
            let cost = cost.into_iter();
            Rule {
                plans,
                shared,
                skills,
                methods,
                cost: cost
                    .map(|(word, cost)| (word.into(), NonZeroU32::new(cost).unwrap()))
                    .collect(),
                ..Rule::new("q", per, allowance)
            }
        })
}

/// A call: the ns before it, who, with which plan, from where, what.
type Came = (u64, usize, Option<usize>, u8, (usize, usize, usize));

fn came() -> impl Strategy<Value = Came> {
    let wait = prop_oneof![Just(0), 0..100_u64, 0..2_000_000_000_u64];
    let plan = prop::option::of(0..3_usize);
    (
        wait,
        0..2_usize,
        plan,
        0..2_u8,
        (0..3_usize, 0..4_usize, 0..3_usize),
    )
}

proptest! {
    #[test]
    fn waiting_as_long_as_is_told_is_enough(
        rules in prop::collection::vec(rule(), 1..4),
        calls in prop::collection::vec(came(), 1..60),
        capacity in prop_oneof![4 => Just(100_000_usize), 1 => Just(0)],
    ) {
        let clock = ManualClock::new();
        let limiter = Limiter::new(clock.clone(), capacity);
        let quotas: Vec<_> = (0..).zip(rules).map(|(index, rule)| {
            let name = format!("q{index}").into();
            Quota::compile(&Rule { name, ..rule }, "e")
        }).collect();
        for (wait, name, plan, address, (method, skill, tenant)) in calls {
            clock.advance(Duration::from_nanos(wait));
            let caller = Caller::proven(["acme", "other"][name].into(), plan);
            let who = Subject::new(&caller, [192, 0, 2, address].into());
            let who = who.calling(Call {
                method: METHODS[method],
                skill: SKILLS.get(skill).copied(),
                tenant: Some(TENANTS[tenant]),
            });
            let standings = || -> Vec<_> {
                quotas.iter().map(|quota| limiter.standing(quota, &who)).collect()
            };
            let before = standings();
            for (quota, standing) in quotas.iter().zip(&before) {
                prop_assert_eq!(quota.looks_at(&who), standing.is_some());
            }
            match limiter.check(&quotas, &who) {
                Decision::Admitted(_) => {}
                Decision::Refused(shortage) => {
                    prop_assert_eq!(standings(), before);
                    prop_assert!(quotas[shortage.quota].looks_at(&who));
                    prop_assert_eq!(shortage.cost, quotas[shortage.quota].cost(&who));
                    let (start, wait) = (clock.now(), shortage.wait);
                    if capacity > 0 {
                        // One ns less, and it is still refused. (A stranger may find room.)
                        clock.set(start.after(wait - Duration::from_nanos(1)));
                        prop_assert!(matches!(limiter.check(&quotas, &who), Decision::Refused(_)));
                    }
                    clock.set(start.after(Duration::from_millis(shortage.retry_after_ms())));
                    let again = limiter.check(&quotas, &who);
                    prop_assert!(matches!(again, Decision::Admitted(_)), "{again:?}");
                }
            }
        }
    }
}
