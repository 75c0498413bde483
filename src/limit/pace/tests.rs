//! One bucket, against plain governor and a model; and what it says of itself.

use super::*;
use governor::clock::FakeRelativeClock;
use proptest::prelude::*;

fn pace(interval: u64, burst: u32) -> Pace {
    Pace::new(Duration::from_nanos(interval), cost(burst))
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
fn drive(pace: &Pace, epoch: u64, steps: &[(u64, u32)]) -> Vec<Result<u64, u64>> {
    let (mut now, mut tat) = (epoch, 0_u64);
    steps
        .iter()
        .map(|(wait, n)| {
            now += wait;
            let next = pace.decide(tat.saturating_sub(now), cost(*n));
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
        let pace = pace(interval, burst);
        let clock = FakeRelativeClock::default();
        let plain = RateLimiter::hashmap_with_clock(
            governor_quota(interval, cost(burst)),
            clock.clone(),
        );
        for ((wait, n), ours) in steps.iter().zip(drive(&pace, epoch, &steps)) {
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
        let pace = pace(interval, burst);
        let full = interval * u64::from(burst);
        let mut credit = full;
        for ((wait, n), ours) in steps.iter().zip(drive(&pace, 7, &steps)) {
            credit = (credit + wait).min(full);
            let price = u64::from(*n.min(&burst)) * interval;
            if price <= credit {
                credit -= price;
                prop_assert_eq!(ours, Ok(full - credit));
                let standing = pace.standing(full - credit);
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
        let pace = pace(interval, burst);
        let standing = pace.standing(debt);
        let next = nanos(standing.until_next());
        if debt == 0 {
            prop_assert_eq!(next, 0);
            prop_assert_eq!(standing.remaining(), burst);
        } else {
            let later = |wait: u64| pace.standing(debt.saturating_sub(wait)).remaining();
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
        let pace = pace(interval, burst);
        let whole = pace.burst();
        let debt = pace.decide(0, whole).unwrap();
        assert!(debt <= LONGEST_REFILL);
        assert!(pace.decide(debt, NonZeroU32::MIN).is_err());
        assert!(pace.decide(u64::MAX - LONGEST_REFILL, whole).is_err());
        assert_eq!(pace.standing(debt).remaining(), 0);
    }
}

#[test]
fn a_cost_above_the_burst_is_the_whole_burst() {
    let pace = pace(10, 3);
    assert_eq!(pace.decide(0, cost(1000)), Ok(30));
    assert_eq!(pace.decide(1, cost(1000)), Err(1));
}
