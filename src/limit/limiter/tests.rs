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

#[test]
fn a_flood_is_bounded_and_leaves_debts_alone() {
    let (limiter, clock) = limiter(10_000);
    let quotas = [quota("q", Dimension::Caller, secs(3600), 5)];
    let all = [quota("all", Dimension::All, secs(3600), 300_000)];
    assert_eq!(spend(&limiter, &quotas, &who("victim")).0, 5);

    let mut strangers = 0;
    for key in 0..200_000_u32 {
        let decision = limiter.check(&quotas, &who(&key.to_string()));
        strangers += u32::from(admitted(decision));
        assert!(admitted(limiter.check(&all, &who("any"))));
    }
    assert!(limiter.live() <= 10_000 + 2, "{}", limiter.live());
    // Those who have a bucket of their own, and five more from the one the others share.
    assert_eq!(strangers as usize, limiter.live() - 3 + 5);
    assert_eq!(limiter.overflowed(), 200_000 - u64::from(strangers) + 5);
    assert_eq!(spend(&limiter, &quotas, &who("victim")).0, 0);
    let stranger = who("stranger");
    assert_eq!(spend(&limiter, &quotas, &stranger).0, 0);
    assert_eq!(remaining(&limiter, &quotas[0], &stranger), 0);
    assert_eq!(remaining(&limiter, &all[0], &who("any")), 100_000);

    // Once the debts are paid, a stranger finds room again, without any background sweep.
    clock.advance(secs(5 * 3600));
    assert_eq!(spend(&limiter, &quotas, &stranger).0, 5);
}

#[test]
fn a_full_shard_is_not_searched_on_every_call() {
    let (limiter, clock) = limiter(0);
    let quotas = [quota("q", Dimension::Caller, Duration::from_millis(10), 1)];
    let mut keys = (0_u32..).map(|key| who(&key.to_string()));
    let first = keys.next().unwrap();
    let other = keys
        .find(|key| same_shard(bucket(&quotas[0], key), bucket(&quotas[0], &first)))
        .unwrap();
    assert!(admitted(limiter.check(&quotas, &first)));
    assert!(admitted(limiter.check(&quotas, &other)));
    assert_eq!(limiter.overflowed(), 1);
    clock.advance(Duration::from_millis(99));
    assert!(admitted(limiter.check(&quotas, &other)));
    assert_eq!(limiter.overflowed(), 2);
    clock.advance(Duration::from_millis(1));
    assert!(admitted(limiter.check(&quotas, &other)));
    assert_eq!(limiter.overflowed(), 2);
}

#[test]
fn sweeping_forgets_what_is_paid_and_returns_memory() {
    let (limiter, clock) = limiter(100_000);
    let short = [quota("short", Dimension::Caller, secs(1), 5)];
    let long = [quota("long", Dimension::Caller, secs(3600), 5)];
    for key in 0..50_000_u32 {
        limiter.check(&short, &who(&key.to_string()));
    }
    assert!(admitted(limiter.check(&long, &who("k"))));
    let room = |limiter: &Limiter<ManualClock>| -> usize {
        (0..50_000_u32)
            .map(|key| bucket(&short[0], &who(&key.to_string())))
            .enumerate()
            .filter(|(index, _)| index % 1000 == 0)
            .map(|(_, bucket)| limiter.store.lock(bucket).room())
            .sum()
    };
    let before = room(&limiter);
    assert_eq!(limiter.live(), 50_001);
    clock.advance(secs(1));
    for shard in 0..SHARDS {
        limiter.sweep(shard);
    }
    assert_eq!(limiter.live(), 1);
    assert!(room(&limiter) < before / 4);
    assert_eq!(remaining(&limiter, &long[0], &who("k")), 4);
}

#[test]
fn a_changed_rate_keeps_the_debt() {
    let (limiter, _) = limiter(1000);
    let with = |name: &str, burst| [quota(name, Dimension::Caller, secs(60), burst)];
    assert_eq!(spend(&limiter, &with("q", 10), &who("k")).0, 10);
    assert_eq!(spend(&limiter, &with("q", 10), &who("k")).0, 0);
    assert_eq!(spend(&limiter, &with("q", 20), &who("k")).0, 10);
    let (count, shortage) = spend(&limiter, &with("q", 2), &who("k"));
    assert_eq!((count, shortage.wait), (0, secs(19 * 60)));
    let standing = limiter.standing(&with("q", 2)[0], &who("k")).unwrap();
    assert_eq!(
        (standing.remaining(), standing.until_next()),
        (0, secs(19 * 60))
    );
    assert_eq!(spend(&limiter, &with("renamed", 10), &who("k")).0, 10);
}

#[test]
fn costs_above_one_and_above_the_burst() {
    let (limiter, clock) = limiter(1000);
    let quotas = [Quota::compile(&costly("q", rate(secs(1), 10)), "lakeside")];
    let check = |cost: &str| limiter.check(&quotas, &calling(&who("k"), cost));
    let Decision::Admitted(admission) = check("7") else {
        panic!("refused");
    };
    let standing = admission.tightest.unwrap();
    assert_eq!(standing.remaining(), 3);
    assert_eq!(standing.until_next(), secs(1));
    assert_eq!(standing.until_full(), secs(7));
    assert!(!admitted(check("4")));
    assert!(admitted(check("3")));
    let Decision::Refused(shortage) = check("1000") else {
        panic!("admitted");
    };
    assert_eq!(shortage.wait, secs(10));
    clock.advance(secs(10));
    assert!(admitted(check("1000")));
}

#[test]
fn a_charge_takes_what_it_can_from_each() {
    let (limiter, _) = limiter(1000);
    let quotas = [
        quota("small", Dimension::Caller, secs(60), 1),
        quota("large", Dimension::Caller, secs(60), 10),
    ];
    for _ in 0..4 {
        limiter.charge(&quotas, &who("k"));
    }
    assert_eq!(remaining(&limiter, &quotas[0], &who("k")), 0);
    assert_eq!(remaining(&limiter, &quotas[1], &who("k")), 6);
}

#[test]
fn a_clock_that_jumps_back_refills_nothing_and_breaks_nothing() {
    let (limiter, clock) = limiter(0);
    clock.set(Moment::from_nanos(1 << 40));
    let quotas = [quota("q", Dimension::Caller, secs(1), 5)];
    assert_eq!(spend(&limiter, &quotas, &who("k")).0, 5);
    clock.set(Moment::default());
    assert_eq!(spend(&limiter, &quotas, &who("k")).0, 0);
    assert_eq!(remaining(&limiter, &quotas[0], &who("k")), 0);
    limiter.sweep(usize::MAX);
    clock.set(Moment::from_nanos((1 << 40) + 1_000_000_000));
    assert_eq!(spend(&limiter, &quotas, &who("k")).0, 1);
    clock.set(Moment::from_nanos(u64::MAX));
    assert_eq!(remaining(&limiter, &quotas[0], &who("k")), 5);
}

#[test]
fn a_refund_gives_back_what_was_charged_and_never_more() {
    let (limiter, clock) = limiter(1000);
    let quotas = [
        Quota::compile(&costly("dear", rate(secs(1), 10)), "lakeside"),
        quota("slow", Dimension::Caller, secs(60), 3),
    ];
    let (acme, other) = (who("acme"), who("other"));
    let call = calling(&acme, "5");
    let left = || {
        quotas
            .each_ref()
            .map(|quota| remaining(&limiter, quota, &acme))
    };
    let admit = || match limiter.check(&quotas, &call) {
        Decision::Admitted(admission) => admission,
        Decision::Refused(shortage) => panic!("{shortage:?}"),
    };
    let admission = admit();
    assert_eq!(left(), [5, 2]);
    limiter.refund(&quotas, &call, &admission);
    assert_eq!(left(), [10, 3]);
    // Nothing is made of a bucket that is full, or of somebody else's.
    limiter.refund(&quotas, &call, &admission);
    assert_eq!(left(), [10, 3]);
    limiter.refund(&quotas, &calling(&other, "5"), &admission);
    assert_eq!(left(), [10, 3]);

    // What time has given back in the meantime is not given again.
    let admission = admit();
    clock.advance(secs(5));
    drop(admit());
    assert_eq!(left(), [5, 1]);
    limiter.refund(&quotas, &call, &admission);
    assert_eq!(left(), [5, 2]);
    clock.advance(secs(5));
    assert_eq!(left(), [10, 2]);
}

proptest! {
    /// However calls are charged and refunded, no more is ever admitted than the quota says.
    #[test]
    fn refunds_admit_nothing_beyond_the_rate(
        interval in 1..50_u64, burst in 1..6_u32,
        steps in prop::collection::vec((0..60_u64, 0..4_u8), 1..120),
    ) {
        let (limiter, clock) = limiter(1000);
        let quotas = [quota("q", Dimension::Caller, Duration::from_nanos(interval), burst)];
        // Calls that somebody else has yet to decide on.
        let mut open = std::collections::VecDeque::new();
        let mut kept = Vec::new();
        for (wait, what) in steps {
            clock.advance(Duration::from_nanos(wait));
            if what == 0 {
                if let Some((_, admission)) = open.pop_front() {
                    limiter.refund(&quotas, &who("k"), &admission);
                }
            } else if let Decision::Admitted(admission) = limiter.check(&quotas, &who("k")) {
                open.push_back((clock.now().as_nanos(), admission));
                if what == 1 {
                    kept.extend(open.pop_front().map(|(at, _)| at));
                }
            }
        }
        kept.extend(open.into_iter().map(|(at, _)| at));
        kept.sort_unstable();
        // In no stretch of time were more calls kept than a full bucket and what it earned.
        for (first, start) in kept.iter().enumerate() {
            for (last, end) in kept.iter().enumerate().skip(first) {
                let most = u64::from(burst) + (end - start) / interval;
                prop_assert!((last - first + 1) as u64 <= most);
            }
        }
    }
}

#[test]
fn what_strangers_share_is_not_refunded() {
    let (limiter, _) = limiter(0);
    let quotas = [quota("q", Dimension::Caller, secs(60), 2)];
    for number in 0..1000 {
        limiter.check(&quotas, &who(&number.to_string()));
    }
    let overflow = limiter.overflow(&quotas[0]);
    assert_eq!(overflow, Some(secs(120)));
    for number in 0..1000 {
        limiter.refund(&quotas, &who(&format!("{number}")), &Admission::default());
    }
    assert_eq!(limiter.overflow(&quotas[0]), overflow);
}

/// A plan that is changed, taken or given finds what was used, as time.
#[test]
fn another_plan_keeps_what_was_used() {
    let (limiter, clock) = limiter(1000);
    let compiled = |gold: Option<Allowance>| {
        let rule = Rule {
            plans: vec![gold],
            ..Rule::new("q", Dimension::Caller, rate(secs(1), 60))
        };
        [Quota::compile(&rule, "lakeside")]
    };
    let before = compiled(Some(rate(Duration::from_millis(100), 100)));
    let after = compiled(Some(rate(Duration::from_millis(200), 100)));
    let gone = compiled(None);
    let acme = |plan| Subject::new(&Caller::proven("acme".into(), plan), HOME);
    assert_eq!(spend(&limiter, &before, &acme(Some(0))).0, 100);
    // Ten seconds of a plan that earns ten a second: ten calls of one that earns one.
    assert_eq!(remaining(&limiter, &before[0], &acme(None)), 50);
    assert_eq!(remaining(&limiter, &after[0], &acme(Some(0))), 50);
    assert_eq!(remaining(&limiter, &gone[0], &acme(Some(0))), 50);
    assert_eq!(spend(&limiter, &gone, &acme(Some(0))).0, 50);
    // A minute of debt has to come down to ten seconds first.
    let (count, shortage) = spend(&limiter, &before, &acme(Some(0)));
    assert_eq!((count, shortage.wait), (0, Duration::from_millis(50_100)));
    clock.advance(shortage.wait);
    assert_eq!(spend(&limiter, &before, &acme(Some(0))).0, 1);
    assert_eq!(limiter.live(), 1);
}

#[test]
fn a_call_that_was_not_read_is_charged_to_what_looks_at_every_call() {
    let (limiter, _) = limiter(1000);
    let only = |name: &str| Rule {
        skills: Some(vec!["lead.submit".into()]),
        ..Rule::new(name, Dimension::Caller, rate(secs(60), 9))
    };
    let quotas = [
        quota("every", Dimension::Caller, secs(60), 9),
        Quota::compile(&only("leads"), "lakeside"),
        Quota::compile(
            &Rule::new("tenants", Dimension::Tenant, rate(secs(60), 9)),
            "lakeside",
        ),
        Quota::compile(&costly("dear", rate(secs(60), 9)), "lakeside"),
    ];
    limiter.charge(&quotas, &who("k"));
    let lead = who("k");
    let lead = lead.calling(Call {
        method: "12",
        skill: Some("lead.submit"),
        tenant: None,
    });
    let left = quotas
        .each_ref()
        .map(|quota| remaining(&limiter, quota, &lead));
    assert_eq!(left, [8, 9, 8, 8]);
}

/// What is kept elsewhere is not decided here, and says nothing here.
#[test]
fn quotas_that_are_kept_elsewhere_are_passed_over() {
    let (limiter, _) = limiter(1000);
    let elsewhere = |name: &str, allowance| {
        let rule = Rule {
            is_local: false,
            ..Rule::new(name, Dimension::Caller, allowance)
        };
        Quota::compile(&rule, "lakeside")
    };
    let one = NonZeroU32::MIN;
    let quotas = [
        elsewhere("rate", rate(secs(60), 1)),
        quota("here", Dimension::Caller, secs(60), 3),
        elsewhere("places", Allowance::Concurrent(one)),
    ];
    let local = quotas.each_ref().map(Quota::is_local);
    assert_eq!(local, [false, true, false]);
    let (count, shortage) = spend(&limiter, &quotas, &who("k"));
    assert_eq!((count, shortage.quota), (3, 1));
    limiter.charge(&quotas, &who("l"));
    assert_eq!(
        (limiter.live(), remaining(&limiter, &quotas[1], &who("l"))),
        (2, 2)
    );
    assert!(limiter.standing(&quotas[0], &who("k")).is_none());
    for _ in 0..3 {
        assert!(admitted(limiter.check(&quotas[..1], &who("k"))));
    }
    assert_eq!(limiter.live(), 2);
}

/// A table in which every shard is full of strangers who owe.
fn crowded() -> Limiter<ManualClock> {
    let (limiter, _) = limiter(0);
    let flood = [quota("flood", Dimension::Caller, secs(3600), 1)];
    for key in 0..10_000_u32 {
        limiter.check(&flood, &who(&key.to_string()));
    }
    assert_eq!(limiter.live(), SHARDS + 1);
    limiter
}

#[test]
fn whom_the_configuration_names_is_no_stranger_in_a_full_table() {
    use Dimension::{Address, Caller as ByCaller, Skill, Tenant};
    let subject = |caller: Caller| Subject::new(&caller, HOME);
    let acme = subject(Caller::configured("acme".into(), None));
    let token = subject(Caller::proven("idp/buyer".into(), None));
    let wide = || quota("wide", Dimension::All, secs(60), 1000);
    for (per, is_bounded) in [
        (&[ByCaller][..], true),
        (&[ByCaller, Skill], true),
        (&[ByCaller, Address], false),
        (&[ByCaller, Tenant], false),
    ] {
        let compiled = || {
            let per = per.iter().copied().collect::<Per>();
            Quota::compile(&Rule::new("q", per, rate(secs(60), 5)), "lakeside")
        };
        // Alone, and beside another quota: there are two ways to decide.
        for quotas in [vec![compiled()], vec![compiled(), wide()]] {
            let limiter = crowded();
            let before = limiter.overflowed();
            // Two calls of a stranger, and what is left is everybody's who has no bucket.
            for _ in 0..2 {
                assert!(admitted(limiter.check(&quotas, &who("stranger"))));
            }
            assert_eq!(limiter.overflowed(), before + 2);
            let (own, shared) = if is_bounded { (5, 3) } else { (3, 0) };
            for (who, left) in [(&acme, own), (&token, shared), (&who("stranger"), 0)] {
                assert_eq!(remaining(&limiter, &quotas[0], who), left, "{per:?}");
                assert_eq!(spend(&limiter, &quotas, who).0, left, "{per:?}");
            }
            assert_eq!(spend(&limiter, &quotas, &acme).0, 0);
        }
    }
}
