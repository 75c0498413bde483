//! What is asked at once, and what is let through without a store.

use std::time::Duration;

use super::*;
use crate::limit::Dimension;

fn count(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

#[test]
fn a_lease_is_20_ms_of_the_rate_and_never_more_than_half_of_the_burst_for_all() {
    for (micros, burst, replicas, expected) in [
        // 1000/s
        (1000, 100, 1, 20),
        (1000, 100, 3, 16),
        (1000, 10, 3, 1),
        (1000, 1, 1, 1),
        // 50/s, and a little less
        (20_000, 1000, 1, 1),
        (10_000, 1000, 1, 2),
        (1_000_000, 1000, 1, 1),
        // 1,000,000/s
        (1, 1_000_000, 4, 20_000),
        (1, 1000, 4, 125),
    ] {
        let pace = Pace::new(Duration::from_micros(micros), count(burst));
        let lease = lease(&pace, count(replicas));
        assert_eq!(lease, expected, "{micros} {burst} {replicas}");
        assert!(lease == 1 || lease * replicas <= burst / 2);
    }
}

#[test]
fn a_part_of_a_limit_is_its_rate_and_burst_by_replica() {
    let rate = |millis, burst| Allowance::Rate {
        interval: Duration::from_millis(millis),
        burst: count(burst),
    };
    let mut rule = Rule::new("q", Dimension::Caller, rate(100, 10));
    rule.plans = vec![None, Some(rate(10, 2))];
    rule.is_local = false;
    let part = part(&rule, count(3));
    assert!(part.is_local);
    assert_eq!(part.allowance, rate(300, 3));
    assert_eq!(part.plans, [None, Some(rate(30, 1))]);
}

#[test]
fn everyone_has_a_label_of_their_own() {
    let labels: Vec<_> = By::ALL.map(By::label).into();
    assert_eq!(
        labels,
        ["local", "store", "lease", "deny_cache", "fallback"]
    );
}
