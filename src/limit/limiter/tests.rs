//! What the limiter admits and refuses, against plain governor, a model, and other threads.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::http1::Fields;
use crate::limit::caller::{Caller, Source, identify};
use crate::limit::clock::ManualClock;
use crate::limit::fingerprint::Fingerprint;
use crate::limit::store::same_shard;
use crate::limit::{Allowance, Call, Dimension, Per, Rule};

mod changes;
mod crowds;

const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

fn rate(interval: Duration, burst: u32) -> Allowance {
    Allowance::Rate {
        interval,
        burst: NonZeroU32::new(burst).unwrap(),
    }
}

fn quota(name: &str, per: Dimension, interval: Duration, burst: u32) -> Quota {
    Quota::compile(&Rule::new(name, per, rate(interval, burst)), "lakeside")
}

/// Where a method that is a number costs that much.
fn costly(name: &str, allowance: Allowance) -> Rule {
    let cost = |cost: u32| (cost.to_string().into(), NonZeroU32::new(cost).unwrap());
    Rule {
        cost: (2..=12).chain([1000]).map(cost).collect(),
        ..Rule::new(name, Dimension::Caller, allowance)
    }
}

/// The caller's call of a method.
fn calling<'m>(who: &Subject<'_>, method: &'m str) -> Subject<'m> {
    who.calling(Call {
        method,
        skill: None,
        tenant: None,
    })
}

fn remaining<C: Clock>(limiter: &Limiter<C>, quota: &Quota, who: &Subject<'_>) -> u32 {
    limiter.standing(quota, who).unwrap().remaining()
}

fn bucket(quota: &Quota, who: &Subject<'_>) -> Fingerprint {
    quota.ask(who).unwrap().bucket
}

fn who(key: &str) -> Subject<'static> {
    let sources = [Source::Header(HeaderName::from_static("x-api-key"))];
    let mut headers = HeaderMap::new();
    headers.insert("x-api-key", HeaderValue::from_str(key).unwrap());
    Subject::new(&identify(&sources, &Fields::from(&headers), HOME), HOME)
}

fn limiter(capacity: usize) -> (Limiter<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (Limiter::new(clock.clone(), capacity), clock)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// How many calls in a row are admitted, and the refusal that ended them.
fn spend<C: Clock>(limiter: &Limiter<C>, quotas: &[Quota], who: &Subject<'_>) -> (u32, Shortage) {
    let mut admitted = 0;
    loop {
        match limiter.check(quotas, who) {
            Decision::Admitted(_) => admitted += 1,
            Decision::Refused(shortage) => return (admitted, shortage),
        }
    }
}

fn admitted(decision: Decision) -> bool {
    match decision {
        Decision::Admitted(_) => true,
        Decision::Refused(_) => false,
    }
}

#[test]
fn a_burst_then_the_rate_to_the_nanosecond() {
    let (limiter, clock) = limiter(1000);
    let quotas = [quota("q", Dimension::Caller, secs(30), 2)];
    let (count, shortage) = spend(&limiter, &quotas, &who("k"));
    assert_eq!((count, shortage.wait), (2, secs(30)));
    assert_eq!(shortage.retry_after_ms(), 30_000);
    assert_eq!(shortage.retry_after_secs(), 30);
    clock.advance(secs(30) - Duration::from_nanos(1));
    let (count, shortage) = spend(&limiter, &quotas, &who("k"));
    assert_eq!((count, shortage.wait), (0, Duration::from_nanos(1)));
    assert_eq!(shortage.retry_after_ms(), 1);
    assert_eq!(shortage.retry_after_secs(), 1);
    clock.advance(Duration::from_nanos(1));
    assert_eq!(spend(&limiter, &quotas, &who("k")).0, 1);
    assert_eq!(spend(&limiter, &quotas, &who("other")).0, 2);
}

#[test]
fn no_quota_admits() {
    let (limiter, _) = limiter(1000);
    let Decision::Admitted(admission) = limiter.check(&[], &who("k")) else {
        panic!("refused");
    };
    assert!(admission.tightest.is_none() && admission.seats.is_none());
}

proptest! {
    /// Whatever came before, a caller who waits exactly the advertised ms is admitted.
    #[test]
    fn waiting_the_advertised_milliseconds_is_enough(
        rates in prop::collection::vec((1..3_000_000_000_u64, 1..6_u32), 1..4),
        calls in prop::collection::vec((0..2_000_000_000_u64, 1..8_u32), 1..40),
    ) {
        let (limiter, clock) = limiter(1000);
        let quotas: Vec<Quota> = rates.iter().enumerate().map(|(index, (interval, burst))| {
            let allowance = rate(Duration::from_nanos(*interval), *burst);
            Quota::compile(&costly(&index.to_string(), allowance), "lakeside")
        }).collect();
        for (wait, cost) in calls {
            clock.advance(Duration::from_nanos(wait));
            let (who, cost) = (who("k"), cost.to_string());
            let who = calling(&who, &cost);
            if let Decision::Refused(shortage) = limiter.check(&quotas, &who) {
                let ms = shortage.retry_after_ms();
                prop_assert!(ms >= 1);
                prop_assert!(shortage.retry_after_secs() * 1000 >= ms);
                clock.advance(Duration::from_millis(ms));
                prop_assert!(admitted(limiter.check(&quotas, &who)));
            }
        }
    }

    /// Several quotas together are what the same quotas say one by one, where all agree; and a
    /// refusal changes none of them. (Without room, two strangers' buckets may be placed otherwise
    /// together than one by one, so that only the second half can be said.)
    #[test]
    fn several_quotas_admit_together_or_not_at_all(
        rates in prop::collection::vec((1..1000_u64, 1..6_u32, any::<bool>()), 2..5),
        calls in prop::collection::vec((0..500_u64, 1..4_u32, 0..3_usize), 1..80),
        capacity in prop_oneof![Just(0_usize), Just(1000)],
    ) {
        let (together, clock) = limiter(capacity);
        let quotas: Vec<Quota> = rates.iter().enumerate().map(|(index, (interval, burst, all))| {
            let per = if *all { Dimension::All } else { Dimension::Caller };
            let allowance = rate(Duration::from_nanos(*interval), *burst);
            let rule = Rule { per: per.into(), ..costly(&index.to_string(), allowance) };
            Quota::compile(&rule, "lakeside")
        }).collect();
        for (wait, cost, key) in calls {
            clock.advance(Duration::from_nanos(wait));
            let method = cost.to_string();
            let who = calling(&who(["a", "b", "c"][key]), &method);
            let standings = || -> Vec<Standing> {
                quotas.iter().map(|quota| together.standing(quota, &who).unwrap()).collect()
            };
            let before = standings();
            let affordable = before.iter().all(|standing| {
                standing.remaining() >= cost.min(standing.most())
            });
            let decision = together.check(&quotas, &who);
            let after = standings();
            match decision {
                Decision::Admitted(admission) if capacity > 0 => {
                    let tightest = admission.tightest;
                    prop_assert!(affordable);
                    let least = after.iter().map(|standing| standing.remaining()).min();
                    prop_assert_eq!(tightest.map(|standing| standing.remaining()), least);
                    for (before, after) in before.iter().zip(&after) {
                        let charged = before.remaining() - after.remaining();
                        prop_assert_eq!(charged, cost.min(before.most()));
                    }
                }
                Decision::Admitted(_) => {}
                Decision::Refused(_) => {
                    prop_assert!(!affordable || capacity == 0);
                    prop_assert_eq!(before, after);
                }
            }
        }
    }
}

#[test]
fn a_refusal_by_one_charges_none_and_names_the_longest() {
    let (limiter, clock) = limiter(1000);
    let wide = quota("wide", Dimension::Caller, secs(1), 10);
    let slow = quota("slow", Dimension::Caller, secs(60), 1);
    let quick = quota("quick", Dimension::Caller, secs(5), 1);
    let quotas = [wide, slow, quick];
    let (count, shortage) = spend(&limiter, &quotas, &who("k"));
    assert_eq!((count, shortage.quota, shortage.wait), (1, 1, secs(60)));
    for _ in 0..100 {
        assert!(!admitted(limiter.check(&quotas, &who("k"))));
    }
    assert_eq!(remaining(&limiter, &quotas[0], &who("k")), 9);
    clock.advance(secs(60));
    assert!(admitted(limiter.check(&quotas, &who("k"))));
}

#[test]
fn two_quotas_in_one_shard_lock_it_once() {
    let (limiter, _) = limiter(1000);
    let first = quota("0", Dimension::Caller, secs(60), 3);
    let second = (1..)
        .map(|name| quota(&name.to_string(), Dimension::Caller, secs(60), 2))
        .find(|other| same_shard(bucket(other, &who("k")), bucket(&first, &who("k"))))
        .unwrap();
    let quotas = [first, second];
    assert_eq!(spend(&limiter, &quotas, &who("k")).0, 2);
    assert_eq!(remaining(&limiter, &quotas[0], &who("k")), 1);
    assert_eq!((limiter.live(), limiter.overflowed()), (2, 0));

    // With room for one bucket per shard, the second quota's stranger has to share.
    let (limiter, _) = self::limiter(0);
    assert!(admitted(limiter.check(&quotas, &who("k"))));
    assert_eq!((limiter.live(), limiter.overflowed()), (2, 1));
}

#[test]
fn a_quota_named_twice_is_charged_once() {
    let (limiter, _) = limiter(1000);
    let twice = || quota("q", Dimension::Caller, secs(60), 3);
    assert_eq!(spend(&limiter, &[twice(), twice()], &who("k")).0, 3);
}

#[test]
fn shared_counts_across_endpoints() {
    let (limiter, _) = limiter(1000);
    let at = |endpoint: &str, shared| {
        let name = if shared { "s" } else { "q" };
        let rule = Rule {
            shared,
            ..Rule::new(name, Dimension::Caller, rate(secs(60), 3))
        };
        [Quota::compile(&rule, endpoint)]
    };
    assert_eq!(spend(&limiter, &at("one", false), &who("k")).0, 3);
    assert_eq!(spend(&limiter, &at("two", false), &who("k")).0, 3);
    assert_eq!(spend(&limiter, &at("one", true), &who("k")).0, 3);
    assert_eq!(spend(&limiter, &at("two", true), &who("k")).0, 0);
    assert_eq!(spend(&limiter, &at("two", true), &who("l")).0, 3);
}

#[test]
fn threads_on_one_bucket_admit_exactly_rate_times_time_and_burst() {
    let (limiter, clock) = limiter(1000);
    let limiter = Arc::new(limiter);
    let count = Arc::new(AtomicU32::new(0));
    let calls = 20_000_u32;
    let bucket = || {
        [quota(
            "q",
            Dimension::Caller,
            Duration::from_micros(100),
            50,
        )]
    };
    // The bucket earns from its first call on, so that one comes at zero.
    assert!(admitted(limiter.check(&bucket(), &who("k"))));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (limiter, clock, count) = (limiter.clone(), clock.clone(), count.clone());
            std::thread::spawn(move || {
                let quotas = [quota(
                    "q",
                    Dimension::Caller,
                    Duration::from_micros(100),
                    50,
                )];
                for _ in 0..calls {
                    clock.advance(Duration::from_nanos(1000));
                    let decision = limiter.check(&quotas, &who("k"));
                    count.fetch_add(u32::from(admitted(decision)), Ordering::Relaxed);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    // 40 ms at one per 100 us, and the burst.
    let exact = 50 + 2 * calls / 100;
    assert_eq!(1 + count.load(Ordering::Relaxed), exact);
}

/// With room for all buckets and with hardly any: neither order of quotas may deadlock or split.
#[test]
fn threads_that_name_quotas_in_opposite_order_agree() {
    for (capacity, calls) in [(10_000, 3000_u32), (0, 3000)] {
        let (limiter, _) = limiter(capacity);
        let limiter = Arc::new(limiter);
        let count = Arc::new(AtomicU32::new(0));
        let names = ["a", "b", "c", "d", "e"];
        let threads: Vec<_> = [false, true]
            .into_iter()
            .map(|reverse| {
                let (limiter, count) = (limiter.clone(), count.clone());
                std::thread::spawn(move || {
                    let mut quotas = names.map(|name| quota(name, Dimension::Caller, secs(60), 9));
                    let all = [quota("all", Dimension::All, secs(60), calls)];
                    if reverse {
                        quotas.reverse();
                    }
                    let quotas: Vec<_> = quotas.into_iter().chain(all).collect();
                    for call in 0..calls {
                        let who = who(&(call % 100).to_string());
                        let decision = limiter.check(&quotas, &who);
                        count.fetch_add(u32::from(admitted(decision)), Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let count = count.load(Ordering::Relaxed);
        let all = quota("all", Dimension::All, secs(60), calls);
        let left = remaining(&limiter, &all, &who("any"));
        assert_eq!(left, calls - count);
        if capacity > 0 {
            assert_eq!(count, 900);
        } else {
            assert!(limiter.overflowed() > 0 && count < 900, "{count}");
        }
    }
}
