//! How a rule becomes the buckets of an endpoint, and what a bucket says of itself.

use super::*;
use crate::http1::Fields;
use governor::clock::FakeRelativeClock;
use proptest::prelude::*;

use crate::limit::caller::identify;

fn rule(interval: u64, burst: u32) -> Rule {
    Rule {
        name: "q".into(),
        per: Dimension::All.into(),
        interval: Duration::from_nanos(interval),
        burst: NonZeroU32::new(burst).unwrap(),
        shared: false,
    }
}

fn cost(cost: u32) -> NonZeroU32 {
    NonZeroU32::new(cost).unwrap()
}

/// Steps of (ns to wait before, cost).
fn steps() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let wait = prop_oneof![Just(0), 0..5_u64, 0..100_000_u64];
    prop::collection::vec((wait, 1..12_u32), 1..200)
}

/// Drives one bucket through the steps, its TAT kept absolute as the limiter keeps it.
fn drive(quota: &Quota, epoch: u64, steps: &[(u64, u32)]) -> Vec<Result<u64, u64>> {
    let (mut now, mut tat) = (epoch, 0_u64);
    steps
        .iter()
        .map(|(wait, n)| {
            now += wait;
            let next = quota.decide(tat.saturating_sub(now), cost(*n));
            if let Ok(debt) = next {
                tat = now + debt;
            }
            next
        })
        .collect()
}

proptest! {
    /// The shifted decision is governor's own, whatever the epoch, to the ns.
    #[test]
    fn equals_a_plain_keyed_governor(
        interval in 1..50_000_u64, burst in 1..10_u32, epoch in 0..1_u64 << 60, steps in steps(),
    ) {
        let quota = Quota::compile(&rule(interval, burst), "e");
        let clock = FakeRelativeClock::default();
        let plain = RateLimiter::hashmap_with_clock(
            governor_quota(interval, cost(burst)),
            clock.clone(),
        );
        for ((wait, n), ours) in steps.iter().zip(drive(&quota, epoch, &steps)) {
            clock.advance(Duration::from_nanos(*wait));
            let theirs = plain.check_key_n(&"key", cost(*n).min(cost(burst))).unwrap();
            match theirs {
                Ok(()) => prop_assert!(ours.is_ok()),
                Err(until) => prop_assert_eq!(
                    ours,
                    Err(nanos(until.wait_time_from(clock.now())))
                ),
            }
        }
    }

    /// A bucket of `burst` tokens that earns one per interval, counted in ns of credit.
    #[test]
    fn equals_a_token_bucket(
        interval in 1..50_000_u64, burst in 1..10_u32, steps in steps(),
    ) {
        let quota = Quota::compile(&rule(interval, burst), "e");
        let full = interval * u64::from(burst);
        let mut credit = full;
        for ((wait, n), ours) in steps.iter().zip(drive(&quota, 7, &steps)) {
            credit = (credit + wait).min(full);
            let price = u64::from(*n.min(&burst)) * interval;
            if price <= credit {
                credit -= price;
                prop_assert_eq!(ours, Ok(full - credit));
                let standing = quota.standing(full - credit);
                prop_assert_eq!(u64::from(standing.remaining()), credit / interval);
            } else {
                prop_assert_eq!(ours, Err(price - credit));
            }
        }
    }

    /// One more call is affordable exactly when `until_next` has passed, and not a ns before.
    #[test]
    fn the_next_token_comes_when_it_was_said_to(
        interval in 1..50_000_u64, burst in 1..10_u32, debt in 0..2_000_000_u64,
    ) {
        let quota = Quota::compile(&rule(interval, burst), "e");
        let standing = quota.standing(debt);
        let next = nanos(standing.until_next());
        if debt == 0 {
            prop_assert_eq!(next, 0);
            prop_assert_eq!(standing.remaining(), burst);
        } else {
            let later = |wait: u64| quota.standing(debt.saturating_sub(wait)).remaining();
            prop_assert_eq!(later(next), standing.remaining() + 1);
            prop_assert_eq!(later(next - 1), standing.remaining());
        }
    }
}

#[test]
fn absurd_rules_are_held_to_what_can_be_counted() {
    for (interval, burst) in [
        (0, 1),
        (u64::MAX, u32::MAX),
        (LONGEST_REFILL, 2),
        (1 << 40, u32::MAX),
    ] {
        let quota = Quota::compile(&rule(interval, burst), "e");
        let whole = quota.burst();
        let debt = quota.decide(0, whole).unwrap();
        assert!(debt <= LONGEST_REFILL);
        assert!(quota.decide(debt, NonZeroU32::MIN).is_err());
        assert!(quota.decide(u64::MAX - LONGEST_REFILL, whole).is_err());
        assert_eq!(quota.standing(debt).remaining(), 0);
    }
}

#[test]
fn a_cost_above_the_burst_is_the_whole_burst() {
    let quota = Quota::compile(&rule(10, 3), "e");
    assert_eq!(quota.decide(0, cost(1000)), Ok(30));
    assert_eq!(quota.decide(1, cost(1000)), Err(1));
}

#[test]
fn buckets_are_told_apart_by_what_the_quota_counts() {
    let bucket = |per: &[Dimension], shared, endpoint: &str, key: &str, address: &str| {
        let rule = Rule {
            per: per.iter().copied().collect(),
            shared,
            ..rule(1, 1)
        };
        let sources = [crate::limit::Source::Header(http::HeaderName::from_static(
            "k",
        ))];
        let mut headers = http::HeaderMap::new();
        headers.insert("k", key.parse().unwrap());
        let address = address.parse().unwrap();
        let caller = identify(&sources, &Fields::from(&headers), address);
        Quota::compile(&rule, endpoint).bucket(&Subject::new(&caller, address))
    };
    // Columns: does another endpoint, another caller, another address get another bucket?
    use Dimension::{Address, All, Caller, Endpoint};
    for (per, shared, by_endpoint, by_caller, by_address) in [
        (vec![Caller], false, true, true, false),
        (vec![Caller], true, false, true, false),
        (vec![Endpoint], false, true, false, false),
        (vec![All], false, false, false, false),
        (vec![Address], false, true, false, true),
        (vec![Address], true, false, false, true),
        (vec![Caller, Address], false, true, true, true),
        (vec![Caller, Address], true, false, true, true),
        (vec![Caller, Endpoint], false, true, true, false),
        (vec![Caller, All], true, false, true, false),
    ] {
        let one = bucket(&per, shared, "e", "a", "192.0.2.1");
        assert_eq!(one, bucket(&per, shared, "e", "a", "192.0.2.1"), "{per:?}");
        let others = [
            (by_endpoint, bucket(&per, shared, "f", "a", "192.0.2.1")),
            (by_caller, bucket(&per, shared, "e", "b", "192.0.2.1")),
            (by_address, bucket(&per, shared, "e", "a", "192.0.2.2")),
        ];
        for (column, (apart, other)) in others.into_iter().enumerate() {
            assert_eq!(
                apart,
                one != other,
                "{per:?} shared {shared} column {column}"
            );
        }
    }
}

#[test]
fn the_bucket_belongs_to_the_name_not_to_the_rate() {
    let address = [192, 0, 2, 1].into();
    let who = Subject::new(&identify(&[], &Fields::default(), address), address);
    let named = |name: &str, interval| {
        let rule = Rule {
            name: name.into(),
            ..rule(interval, 5)
        };
        Quota::compile(&rule, "e").bucket(&who)
    };
    assert_eq!(named("a", 1), named("a", 2));
    assert_ne!(named("a", 1), named("b", 1));
}
