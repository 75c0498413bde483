//! What becomes of a debt: a changed rate or plan, a clock that jumps, costs, charges and refunds.

use super::*;

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
