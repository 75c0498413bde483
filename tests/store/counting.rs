//! One count: whichever gateway is asked, whichever caller asks.

use std::time::Duration;

use crate::redis::Redis;
use crate::setting::{asks, decisions, gateway, of_store, quota, quota_with, source, wait};
use crate::support::{Post, Upstream};
use crate::tests;

tests!(
    three_gateways_are_one,
    keys_are_the_same_everywhere_and_tell_nothing,
    a_key_is_gone_when_its_bucket_is_full,
    who_is_refused_by_the_store_is_not_charged_here,
    who_is_refused_here_is_not_charged_in_the_store,
    several_quotas_of_a_store_admit_together,
    unreadable_calls_cost_here_too,
    answers_tell_how_the_caller_stands,
    report_counts_and_never_refuses,
);

fn three_gateways_are_one() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let gateways = [(); 3].map(|()| gateway(&upstream, &redis.url(), &quota("5/day", 5)));
    let mut clients = gateways.each_ref().map(|it| it.client());
    for index in 0..5 {
        let answer = asks(&mut clients[index % 3], "one");
        assert_eq!(wait(&answer), None, "{index}");
        assert_eq!(source(&gateways[index % 3]), "store");
    }
    let day = 24 * 3600 * 1000 / 5;
    for (client, gateway) in clients.iter_mut().zip(&gateways) {
        let told = wait(&asks(client, "one")).unwrap();
        assert!((day - 60_000..=day).contains(&told), "{told}");
        let line = gateway.last_line();
        assert_eq!(line["outcome"], "rate_limited");
        assert_eq!(line["quota"], "q");
        // Each has asked about this bucket before.
        assert_eq!(wait(&asks(client, "two")), None);
        assert_eq!(source(gateway), "store");
    }
    assert_eq!(upstream.count(), 8);
    let admitted: f64 = gateways
        .iter()
        .map(|it| decisions(it, "admitted", "store"))
        .sum();
    assert_eq!(admitted, 8.0);
}

fn keys_are_the_same_everywhere_and_tell_nothing() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let quotas =
        "[quota.q]\nper = [\"caller\", \"address\"]\nrate = \"9/day\"\nstore = \"central\"\n";
    for _ in 0..2 {
        let gateway = gateway(&upstream, &redis.url(), quotas);
        let mut client = gateway.client();
        asks(&mut client, "secret-of-a-buyer");
        client.ask(Post::to("/a2a").body("{}").bytes());
    }
    let keys = redis.keys();
    assert_eq!(keys.len(), 2, "{keys:?}");
    for key in &keys {
        let digits = key
            .strip_prefix("fc1:{")
            .and_then(|it| it.strip_suffix('}'));
        let digits = digits.unwrap_or_else(|| panic!("{key}"));
        assert_eq!(digits.len(), 32);
        assert!(
            digits.bytes().all(|it| b"0123456789abcdef".contains(&it)),
            "{key}"
        );
        let value = redis.ask(&["GET", key]);
        let (seconds, nanos) = value.split_once('.').unwrap();
        assert_eq!((seconds.len(), nanos.len()), (10, 9), "{value}");
    }
}

fn a_key_is_gone_when_its_bucket_is_full() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let gateway = gateway(&upstream, &redis.url(), &quota("10/s", 10));
    let mut client = gateway.client();
    assert_eq!(wait(&asks(&mut client, "one")), None);
    assert_eq!(wait(&asks(&mut client, "one")), None);
    for key in redis.keys() {
        let left: i64 = redis.ask(&["PTTL", &key])[1..].parse().unwrap();
        assert!(left <= 201, "{left}");
    }
    crate::support::wait_until("the key expires", || redis.ask(&["DBSIZE"]) == ":0");
}

fn who_is_refused_by_the_store_is_not_charged_here() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let quotas = format!(
        "[quota.here]\nper = \"all\"\nrate = \"3/day\"\nburst = 3\n{}",
        quota("1/day", 1)
    );
    let gateway = gateway(&upstream, &redis.url(), &quotas);
    let mut client = gateway.client();
    assert_eq!(wait(&asks(&mut client, "one")), None);
    for _ in 0..5 {
        assert!(wait(&asks(&mut client, "one")).is_some());
        assert_eq!(gateway.last_line()["quota"], "q");
    }
    assert_eq!(source(&gateway), "deny_cache");
    assert_eq!(wait(&asks(&mut client, "two")), None);
    assert_eq!(wait(&asks(&mut client, "three")), None);
    assert!(wait(&asks(&mut client, "four")).is_some());
    let line = gateway.last_line();
    assert_eq!(
        (&line["quota"], &line["limit_source"]),
        (&"here".into(), &"local".into())
    );
}

fn who_is_refused_here_is_not_charged_in_the_store() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let quotas = format!(
        "[quota.here]\nper = \"caller\"\nrate = \"1/day\"\nburst = 1\n{}",
        "[quota.q]\nper = \"all\"\nrate = \"2/day\"\nburst = 2\nstore = \"central\"\n"
    );
    let gateway = gateway(&upstream, &redis.url(), &quotas);
    let mut client = gateway.client();
    assert_eq!(wait(&asks(&mut client, "one")), None);
    let calls = of_store(&gateway, "calls_total");
    for _ in 0..5 {
        assert!(wait(&asks(&mut client, "one")).is_some());
    }
    assert_eq!(of_store(&gateway, "calls_total"), calls);
    assert_eq!(wait(&asks(&mut client, "two")), None);
    assert!(wait(&asks(&mut client, "three")).is_some());
}

fn several_quotas_of_a_store_admit_together() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let quotas = "[quota.wide]\nper = \"all\"\nrate = \"3/day\"\nshared = true\nstore = \"central\"\n\
                  [quota.q]\nper = \"caller\"\nrate = \"1/h\"\nstore = \"central\"\n";
    let gateways = [(); 2].map(|()| gateway(&upstream, &redis.url(), quotas));
    let mut clients = gateways.each_ref().map(|it| it.client());
    let mut ask = |at: usize, key: &str| wait(&asks(&mut clients[at], key));
    assert_eq!(ask(0, "a"), None);
    for index in 0..6 {
        let told = ask(index % 2, "a").unwrap();
        assert!((3_540_000..=3_600_000).contains(&told), "{told}");
    }
    assert_eq!(gateways[0].last_line()["quota"], "q");
    // Refused by the narrow one: the wide one was not charged.
    assert_eq!(ask(1, "b"), None);
    assert_eq!(ask(0, "c"), None);
    // The one that holds longest is told.
    let third = 24 * 3600 * 1000 / 3;
    let told = ask(0, "a").unwrap();
    assert!((third - 60_000..=third).contains(&told), "{told}");
    assert_eq!(gateways[0].last_line()["quota"], "wide");
    // One call to the store for both.
    let calls: f64 = gateways.iter().map(|it| of_store(it, "calls_total")).sum();
    assert!(calls <= 7.0, "{calls}");
}

fn unreadable_calls_cost_here_too() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let gateway = gateway(&upstream, &redis.url(), &quota("2/day", 2));
    let mut client = gateway.client();
    let unreadable = Post::to("/a2a").field("X-Api-Key", "one").body("{").bytes();
    assert_eq!(client.ask(&unreadable).code(), -32700);
    assert_eq!(client.ask(&unreadable).code(), -32700);
    assert!(wait(&asks(&mut client, "one")).is_some());
    assert_eq!(wait(&asks(&mut client, "two")), None);
}

fn answers_tell_how_the_caller_stands() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let quotas = format!(
        "[quota.here]\nper = \"caller\"\nrate = \"9/min\"\n{}",
        quota("2/min", 2)
    );
    let gateway = gateway(&upstream, &redis.url(), &quotas);
    let mut client = gateway.client();
    for (left, here) in [("1", "8"), ("0", "7")] {
        let answer = asks(&mut client, "one");
        assert_eq!(
            answer.head.all("ratelimit-policy"),
            ["\"here\";q=9;w=60, \"q\";q=2;w=60"]
        );
        let state = answer.head.all("ratelimit").join("");
        assert!(state.contains(&format!("\"q\";r={left};t=")), "{state}");
        assert!(state.contains(&format!("\"here\";r={here};t=")), "{state}");
    }
    let answer = asks(&mut client, "one");
    let told = wait(&answer).unwrap().div_ceil(1000);
    let state = answer.head.all("ratelimit").join("");
    assert!(
        state.contains(&format!("\"q\";r=0;t={told}")),
        "{state} {told}"
    );
    // Refused, and given back.
    assert!(state.contains("\"here\";r=7"), "{state}");
}

fn report_counts_and_never_refuses() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let config = crate::setting::configured(
        &upstream,
        &redis.url(),
        crate::setting::PATIENT,
        &quota_with("1/day", 1, ""),
    );
    let gateway = crate::support::Gateway::start(&format!("{config}report = [\"quota\"]\n"));
    crate::setting::connected(&gateway);
    let mut client = gateway.client();
    for _ in 0..3 {
        assert_eq!(wait(&asks(&mut client, "one")), None);
    }
    assert_eq!(
        gateway.last_line()["reported"],
        serde_json::json!(["quota"])
    );
    assert_eq!(upstream.count(), 3);
    gateway.clock.advance(Duration::from_secs(1));
    let refused = ["store", "deny_cache"].map(|it| decisions(&gateway, "refused", it));
    assert_eq!(refused.iter().sum::<f64>(), 2.0);
}
