//! Places among requests at once: as many as there are, given back once, kept nowhere.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::super::store::ROOM_KEPT;
use crate::limit::{
    ASK_AGAIN, Admission, Allowance, Call, Caller, Clock, Decision, Dimension, Limiter,
    ManualClock, Quota, Rule, SHARDS, Shortage, Subject,
};

fn at_once(most: u32) -> Allowance {
    Allowance::Concurrent(NonZeroU32::new(most).unwrap())
}

fn places(name: &str, most: u32) -> Quota {
    Quota::compile(&Rule::new(name, Dimension::Caller, at_once(most)), "e")
}

fn rate(name: &str, secs: u64, burst: u32) -> Quota {
    let allowance = Allowance::Rate {
        interval: Duration::from_secs(secs),
        burst: NonZeroU32::new(burst).unwrap(),
    };
    Quota::compile(&Rule::new(name, Dimension::Caller, allowance), "e")
}

fn who(name: &str) -> Subject<'static> {
    Subject::new(&Caller::proven(name.into(), None), [192, 0, 2, 1].into())
}

fn check<C: Clock>(
    limiter: &Limiter<C>,
    quotas: &[Quota],
    who: &Subject<'_>,
) -> Result<Admission, Shortage> {
    match limiter.check(quotas, who) {
        Decision::Admitted(admission) => Ok(admission),
        Decision::Refused(shortage) => Err(shortage),
    }
}

/// Alone, and beside another quota: there are two ways to decide.
fn ways() -> [Vec<Quota>; 2] {
    [
        vec![places("places", 2)],
        vec![places("places", 2), rate("wide", 1, 1000)],
    ]
}

#[test]
fn so_many_at_once_and_the_next_when_one_has_ended() {
    for quotas in ways() {
        let limiter = Limiter::new(ManualClock::new(), 1000);
        let first = check(&limiter, &quotas, &who("acme")).unwrap();
        assert_eq!(first.tightest.unwrap().remaining(), 1);
        let second = check(&limiter, &quotas, &who("acme")).unwrap();
        assert_eq!(second.tightest.unwrap().remaining(), 0);
        for _ in 0..3 {
            let shortage = check(&limiter, &quotas, &who("acme")).unwrap_err();
            assert_eq!((shortage.quota, shortage.wait), (0, ASK_AGAIN));
            assert_eq!(shortage.retry_after_ms(), 1000);
        }
        // Another caller has places of its own.
        drop(check(&limiter, &quotas, &who("other")).unwrap());
        drop(first);
        let third = check(&limiter, &quotas, &who("acme")).unwrap();
        assert!(check(&limiter, &quotas, &who("acme")).is_err());
        drop((second, third));
        let standing = limiter.standing(&quotas[0], &who("acme")).unwrap();
        assert_eq!(standing.remaining(), 2);
    }
}

#[test]
fn nothing_is_kept_of_requests_that_have_ended() {
    for quotas in ways() {
        let limiter = Limiter::new(ManualClock::new(), 0);
        let held: Vec<_> = (0..60_000)
            .map(|number| check(&limiter, &quotas[..1], &who(&number.to_string())).unwrap())
            .collect();
        // A flood of callers shares none of them: there are as many as requests.
        assert_eq!(
            (limiter.in_use(&[&quotas[0]]), limiter.overflowed()),
            (vec![60_000], 0)
        );
        drop(held);
        assert_eq!(limiter.in_use(&[&quotas[0]]), [0]);
        for shard in 0..SHARDS {
            limiter.sweep(shard);
        }
        // A table is a power of two of slots, and so at most twice what was asked for.
        let room = limiter.store.room_of_places();
        assert!(room <= SHARDS * 2 * ROOM_KEPT, "{room}");
    }
}

/// Refused by one quota, a call takes no place under another, and costs nothing where it has none.
#[test]
fn a_place_and_a_charge_go_together_or_not_at_all() {
    let clock = ManualClock::new();
    let limiter = Limiter::new(clock.clone(), 1000);
    let quotas = [places("places", 1), rate("slow", 60, 2)];
    let standings = || {
        quotas
            .each_ref()
            .map(|quota| limiter.standing(quota, &who("acme")).unwrap().remaining())
    };
    let first = check(&limiter, &quotas, &who("acme")).unwrap();
    assert_eq!(standings(), [0, 1]);
    let shortage = check(&limiter, &quotas, &who("acme")).unwrap_err();
    assert_eq!((shortage.quota, standings()), (0, [0, 1]));
    drop(first);
    drop(check(&limiter, &quotas, &who("acme")).unwrap());
    assert_eq!(standings(), [1, 0]);
    let shortage = check(&limiter, &quotas, &who("acme")).unwrap_err();
    let longest = (1, Duration::from_secs(60));
    assert_eq!((shortage.quota, shortage.wait), longest);
    assert_eq!(standings(), [1, 0]);
    // A minute is longer than a second, whoever is first in the list.
    clock.advance(Duration::from_secs(60));
    let held = check(&limiter, &quotas, &who("acme")).unwrap();
    let shortage = check(&limiter, &quotas, &who("acme")).unwrap_err();
    assert_eq!((shortage.quota, shortage.wait), longest);
    // A charge is for a call that is over.
    limiter.charge(&quotas, &who("acme"));
    assert_eq!(standings()[0], 0);
    drop(held);
    assert_eq!(standings()[0], 1);
}

#[test]
fn a_reload_and_a_plan_find_the_places_that_are_taken() {
    let limiter = Limiter::new(ManualClock::new(), 1000);
    let compiled = |most, gold| {
        let rule = Rule {
            plans: vec![Some(at_once(gold))],
            ..Rule::new("places", Dimension::Caller, at_once(most))
        };
        [Quota::compile(&rule, "e")]
    };
    let gold = Subject::new(
        &Caller::proven("acme".into(), Some(0)),
        [192, 0, 2, 1].into(),
    );
    let (before, after) = (compiled(1, 3), compiled(2, 4));
    let held: Vec<_> = (0..3)
        .map(|_| check(&limiter, &before, &gold).unwrap())
        .collect();
    assert!(check(&limiter, &before, &gold).is_err());
    assert!(check(&limiter, &after, &who("acme")).is_err());
    let one = check(&limiter, &after, &gold).unwrap();
    drop(held);
    assert!(check(&limiter, &before, &who("acme")).is_err());
    drop(one);
    assert!(check(&limiter, &before, &who("acme")).is_ok());
}

#[test]
fn calls_that_are_not_looked_at_take_no_place() {
    let limiter = Limiter::new(ManualClock::new(), 1000);
    let rule = Rule {
        methods: Some(vec!["SendStreamingMessage".into()]),
        ..Rule::new("places", Dimension::Caller, at_once(1))
    };
    let quotas = [Quota::compile(&rule, "e")];
    let calling = |method| {
        who("acme").calling(Call {
            method,
            skill: None,
            tenant: None,
        })
    };
    let stream = check(&limiter, &quotas, &calling("SendStreamingMessage")).unwrap();
    let other = check(&limiter, &quotas, &calling("GetTask")).unwrap();
    assert!(other.seats.is_none() && other.tightest.is_none());
    assert!(check(&limiter, &quotas, &calling("SendStreamingMessage")).is_err());
    drop(stream);
    assert!(check(&limiter, &quotas, &calling("SendStreamingMessage")).is_ok());
}

#[test]
fn never_more_at_once_on_several_threads() {
    for quotas in ways() {
        let limiter = Arc::new(Limiter::new(ManualClock::new(), 1000));
        let quotas = Arc::new(quotas);
        let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (limiter, quotas) = (limiter.clone(), quotas.clone());
                let (now, most) = (now.clone(), most.clone());
                std::thread::spawn(move || {
                    for _ in 0..5000 {
                        if let Ok(admission) = check(&limiter, &quotas[..1], &who("acme")) {
                            let there = now.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(there, Ordering::SeqCst);
                            now.fetch_sub(1, Ordering::SeqCst);
                            drop(admission);
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert!((1..=2).contains(&most.load(Ordering::SeqCst)));
        assert_eq!(limiter.in_use(&[&quotas[0]]), [0]);
    }
}

#[test]
fn a_request_that_panics_gives_its_place_back() {
    let limiter = Arc::new(Limiter::new(ManualClock::new(), 1000));
    let quotas = [places("places", 1)];
    let other = limiter.clone();
    std::thread::spawn(move || {
        let _held = check(&other, &[places("places", 1)], &who("acme")).unwrap();
        panic!("on purpose");
    })
    .join()
    .unwrap_err();
    assert!(check(&limiter, &quotas, &who("acme")).is_ok());
}
