//! The limiter under a flood of strange keys: bounded memory, nobody's debt wiped, known callers
//! served exactly as if there were no flood.

use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use forecourt::http1::Fields;
use forecourt::limit::{
    Allowance, Clock, Decision, Dimension, Limiter, ManualClock, Quota, Rule, Source, Subject,
    identify,
};

use crate::support::call::call;
use crate::support::gateway::dealer_with;
use crate::support::{Gateway, Post, Upstream};

const STRANGERS: u32 = 2_000_000;
/// Addresses that no stranger has.
const OTHERS: u32 = 0xc000_0200;
const CAPACITY: usize = 65_536;

fn quota() -> Quota {
    let allowance = Allowance::Rate {
        interval: Duration::from_secs(60),
        burst: NonZeroU32::new(100).unwrap(),
    };
    let rule = Rule::new("per-buyer", Dimension::Caller, allowance);
    Quota::compile(&rule, "lakeside")
}

fn subject(number: u32) -> Subject<'static> {
    let address = IpAddr::V4(Ipv4Addr::from(number));
    let caller = identify(&[Source::Address], &Fields::default(), address);
    Subject::new(&caller, address)
}

fn is_admitted<C: Clock>(limiter: &Limiter<C>, quotas: &[Quota], who: &Subject<'_>) -> bool {
    matches!(limiter.check(quotas, who), Decision::Admitted(_))
}

#[test]
fn two_million_strange_keys() {
    let clock = ManualClock::new();
    let limiter = Limiter::new(clock.clone(), CAPACITY);
    let quotas = [quota()];
    // A known caller has spent half of what it may when the flood begins.
    let known = subject(OTHERS);
    for _ in 0..50 {
        assert!(is_admitted(&limiter, &quotas, &known));
    }
    let mut most = 0;
    let mut admitted_of_known = 0;
    for number in 0..STRANGERS {
        limiter.check(&quotas, &subject(number));
        if number % 20_000 == 0 {
            most = most.max(limiter.live());
            admitted_of_known += u32::from(is_admitted(&limiter, &quotas, &known));
        }
    }
    // Its debt was kept through all of it: 50 of 100 asks found the other half, no more, no fewer.
    assert_eq!(admitted_of_known, 50);
    assert!(!is_admitted(&limiter, &quotas, &known));
    // The table never grew beyond its configured size, but for the one shared overflow bucket.
    assert!(most <= CAPACITY + 1, "{most} buckets");
    assert!(
        most > CAPACITY * 9 / 10,
        "the flood never filled the table: {most}"
    );
    // Strangers beyond it were decided on together: all but the overflow's burst were refused.
    let beyond = u64::from(STRANGERS) - limiter.live() as u64;
    assert!(
        limiter.overflowed() >= beyond,
        "{} of {beyond}",
        limiter.overflowed()
    );
    let one_more = subject(OTHERS + 1);
    assert!(!is_admitted(&limiter, &quotas, &one_more));

    // When what they owe has passed, the memory is given back and strangers are strangers again.
    clock.advance(Duration::from_secs(60));
    for shard in 0..forecourt::limit::SHARDS {
        limiter.sweep(shard);
    }
    // Only who owes more than a minute's worth is left: the known caller and the overflow bucket.
    assert_eq!(limiter.live(), 2);
    assert!(is_admitted(&limiter, &quotas, &subject(OTHERS + 2)));
    // The known caller earned exactly one call in that minute.
    assert!(is_admitted(&limiter, &quotas, &known));
    assert!(!is_admitted(&limiter, &quotas, &known));
}

#[test]
fn a_full_table_shows_on_the_metrics() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start(&format!(
        "[limits]\nlimiter_keys = 64\n[callers]\nidentify = [\"header:x-api-key\", \"address\"]\n\
         [quota.q]\nper = \"caller\"\nrate = \"1/min\"\nburst = 2\n{}",
        dealer_with(&upstream, "", "quotas = [\"q\"]")
    ));
    let ask = |key: &str| {
        let post = Post::to("/a2a").field("X-Api-Key", key).body(call("1"));
        gateway.ask(post.bytes()).text().contains("RATE_LIMITED")
    };
    assert!(!ask("known"));
    assert_eq!(gateway.series("forecourt_ratelimit_overflow_total"), 0.0);
    let refused = (0..300).filter(|number| ask(&number.to_string())).count();
    let keys = gateway.series("forecourt_ratelimit_keys");
    let overflowed = gateway.series("forecourt_ratelimit_overflow_total");
    // 64 buckets of strangers and the one they share; beyond them two calls fit into that one.
    assert!((60.0..=65.0).contains(&keys), "{keys} keys");
    assert!(overflowed >= 300.0 - 64.0, "{overflowed}");
    assert_eq!(refused as f64, overflowed - 2.0);
    // The known caller has its own second call, and no third.
    assert!(!ask("known"));
    assert!(ask("known"));
}

#[test]
fn a_caller_of_the_configuration_has_its_bucket_though_strangers_filled_the_table() {
    let upstream = Upstream::recording();
    let digest = forecourt::credential::fresh::digest("fc_acme-key");
    let gateway = Gateway::start(&format!(
        "[limits]\nlimiter_keys = 64\n[caller.acme]\nkey_sha256 = \"{digest}\"\n\
         [callers]\nidentify = [\"header:x-buyer\", \"address\"]\n\
         [quota.q]\nper = \"caller\"\nrate = \"1/day\"\nburst = 2\n{}",
        dealer_with(
            &upstream,
            "",
            "authenticate = \"optional\"\nquotas = [\"q\"]"
        )
    ));
    let ask = |name: &str, value: &str| {
        let post = Post::to("/a2a").field(name, value).body(call("1"));
        gateway.ask(post.bytes()).text().contains("RATE_LIMITED")
    };
    for number in 0..300 {
        ask("X-Buyer", &number.to_string());
    }
    // One of them may find room where few others fell; which, is another in each process.
    let refused = (300..340).filter(|number| ask("X-Buyer", &number.to_string()));
    assert!(refused.count() > 30, "what strangers share is used up");
    let known = [(); 3].map(|()| ask("X-Api-Key", "fc_acme-key"));
    assert_eq!(known, [false, false, true]);
}
