//! A table that is full: what is bounded, what strangers share, and who keeps a bucket of their own.

use super::*;

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
