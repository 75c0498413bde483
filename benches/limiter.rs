//! What one decision of the limiter costs: alone, with several quotas, in the protocol's terms, with a
//! million callers, and under a flood that has filled the table.
//!
//! `cargo bench --bench limiter`. It also prints the memory of the flooded table.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench is a test"
)]

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use forecourt::http1::Fields;
use forecourt::limit::{
    Allowance, Call, Caller, Dimension, Limiter, Owner, Per, Quota, Rule, Source, Subject,
    SystemClock, identify,
};

fn quota(name: &str, per: Dimension, interval: Duration) -> Quota {
    let allowance = Allowance::Rate {
        interval,
        burst: NonZeroU32::new(1000).unwrap(),
    };
    Quota::compile(&Rule::new(name, per, allowance), "lakeside")
}

fn subject(number: u32) -> Subject<'static> {
    let address = IpAddr::V4(Ipv4Addr::from(number));
    let caller = identify(&[Source::Address], &Fields::default(), address);
    Subject::new(&caller, address)
}

/// Resident memory of this process, in MiB.
fn resident() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = pages
        .split(' ')
        .nth(1)
        .and_then(|it| it.parse().ok())
        .unwrap_or(0.0);
    pages * 4096.0 / f64::from(1 << 20)
}

fn decisions(criterion: &mut Criterion) {
    let quick = Duration::from_micros(1);
    let quotas = [
        quota("per-buyer", Dimension::Caller, quick),
        quota("per-address", Dimension::Address, quick),
        quota("all", Dimension::All, quick),
    ];
    let callers: Vec<Subject> = (0..10_000).map(subject).collect();
    let mut group = criterion.benchmark_group("decision");
    for count in [1, 3] {
        let limiter = Limiter::new(SystemClock::new(), 1 << 20);
        let mut next = callers.iter().cycle();
        group.bench_function(format!("{count} quotas, 10,000 callers"), |bencher| {
            bencher.iter(|| limiter.check(black_box(&quotas[..count]), next.next().unwrap()));
        });
    }
    group.finish();
}

fn flooded(criterion: &mut Criterion) {
    let quotas = [quota(
        "per-buyer",
        Dimension::Caller,
        Duration::from_secs(60),
    )];
    let capacity = 1 << 18;
    let limiter = Limiter::new(SystemClock::new(), capacity);
    let known: Vec<Subject> = (0..1000).map(subject).collect();
    let ask = |who: &Subject| limiter.check(black_box(&quotas), who);
    for who in &known {
        black_box(ask(who));
    }

    let mut group = criterion.benchmark_group("known caller");
    let mut next = known.iter().cycle();
    group.bench_function("before the flood", |bencher| {
        bencher.iter(|| ask(next.next().unwrap()));
    });
    let before = resident();
    for number in 0..2_000_000 {
        black_box(ask(&subject(0x0a00_0000 + number)));
    }
    println!(
        "2,000,000 strangers, capacity {capacity}: {} buckets, {:.1} MiB more resident",
        limiter.live(),
        resident() - before
    );
    group.bench_function("after two million strangers", |bencher| {
        bencher.iter(|| ask(next.next().unwrap()));
    });
    let mut strangers = (0x2000_0000..).map(subject);
    group.bench_function(
        "a stranger, the table full (identifying included)",
        |bencher| {
            bencher.iter(|| ask(&strangers.next().unwrap()));
        },
    );
    group.finish();
}

/// What each thing that a quota can do costs, alone.
fn kinds(criterion: &mut Criterion) {
    let quick = Allowance::Rate {
        interval: Duration::from_micros(1),
        burst: NonZeroU32::new(1000).unwrap(),
    };
    let of = |dimensions: &[Dimension]| {
        let per: Per = dimensions.iter().copied().collect();
        Rule::new("q", per, quick)
    };
    let many = NonZeroU32::new(1_000_000).unwrap();
    let rules = [
        ("per caller", of(&[Dimension::Caller])),
        (
            "per caller, a plan",
            Rule {
                plans: vec![None, Some(quick)],
                ..of(&[Dimension::Caller])
            },
        ),
        (
            "per caller and skill, a cost",
            Rule {
                cost: vec![("lead.submit".into(), NonZeroU32::new(2).unwrap())],
                ..of(&[Dimension::Caller, Dimension::Skill])
            },
        ),
        (
            "per caller and tenant",
            of(&[Dimension::Caller, Dimension::Tenant]),
        ),
        (
            "another skill's",
            Rule {
                skills: Some(vec!["inventory.search".into()]),
                ..of(&[Dimension::Caller])
            },
        ),
        (
            "at once, taken and given back",
            Rule::new("q", Dimension::Caller, Allowance::Concurrent(many)),
        ),
    ];
    let call = Call {
        method: "SendMessage",
        skill: Some("lead.submit"),
        tenant: Some("lakeside"),
    };
    let callers: Vec<Caller> = (0..10_000)
        .map(|number: u32| Caller::proven(number.to_string().into(), Some(1)))
        .collect();
    let home = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let subjects: Vec<_> = callers
        .iter()
        .map(|caller| Subject::new(caller, home).calling(call))
        .collect();
    let mut group = criterion.benchmark_group("kind");
    for (what, rule) in rules {
        let limiter = Limiter::new(SystemClock::new(), 1 << 20);
        let quotas = [Quota::compile(&rule, "lakeside")];
        let mut next = subjects.iter().cycle();
        group.bench_function(what, |bencher| {
            bencher.iter(|| drop(limiter.check(black_box(&quotas), next.next().unwrap())));
        });
    }
    let limiter = Limiter::new(SystemClock::new(), 1 << 20);
    let quota = Quota::compile(&of(&[Dimension::Caller]), "lakeside");
    let mut next = callers.iter().cycle();
    group.bench_function("noting a refused caller, 10,000 of them", |bencher| {
        bencher.iter(|| limiter.note_refused(next.next().unwrap(), &quota));
    });
    group.bench_function("noting one caller", |bencher| {
        bencher.iter(|| limiter.note_admitted(black_box(&callers[0])));
    });
    group.finish();
}

/// A million callers who each owe something.
fn million(criterion: &mut Criterion) {
    let quotas = [quota(
        "per-buyer",
        Dimension::Caller,
        Duration::from_secs(60),
    )];
    let subjects: Vec<Subject> = (0..1_000_000).map(subject).collect();
    // Room beyond a million: they are not spread over the shards to the last one.
    let limiter = Limiter::new(SystemClock::new(), 1 << 21);
    let before = resident();
    for who in &subjects {
        drop(limiter.check(&quotas, who));
    }
    let used = resident() - before;
    println!(
        "{} callers: {used:.1} MiB more resident, {:.0} bytes each; {} in overflow",
        limiter.live(),
        used * f64::from(1 << 20) / 1e6,
        limiter.overflowed()
    );
    let mut group = criterion.benchmark_group("a million callers");
    let mut next = subjects.iter().cycle();
    group.bench_function("one quota", |bencher| {
        bencher.iter(|| limiter.check(black_box(&quotas), next.next().unwrap()));
    });
    // What an operator asks for looks through all of them.
    group.sample_size(10);
    group.bench_function("one caller's buckets", |bencher| {
        let owner = Owner::named("address 0.0.0.7");
        bencher.iter(|| limiter.entries(black_box(&owner), &[&quotas[0]], None));
    });
    group.finish();
}

criterion_group!(benches, decisions, kinds, million, flooded);
criterion_main!(benches);
