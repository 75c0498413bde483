//! Never more than the limit, never told too short a wait, and few questions.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::redis::Redis;
use crate::setting::{
    Mode, PATIENT, Relay, asks, configured, connected, decisions, gateway, of_store, post, quota,
    quota_with, running, source, wait,
};
use crate::support::call::{lead, search};
use crate::support::wait::elapse;
use crate::support::{Gateway, Post, Upstream};
use crate::tests;

tests!(
    who_waits_as_long_as_is_told_is_admitted,
    refusals_that_still_hold_are_not_asked_again,
    a_lease_serves_without_asking_and_lapses,
    many_at_once_ask_once,
    three_gateways_under_three_times_the_demand_never_exceed_the_limit,
    a_call_costs_what_it_costs,
    tenants_and_skills_are_counted_apart,
    a_proven_callers_plan_holds_in_the_store,
    what_is_refused_early_is_charged_in_the_store,
);

fn who_waits_as_long_as_is_told_is_admitted() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    // The second is leased.
    for (rate, burst) in [("20/s", 1), ("200/s", 8)] {
        let gateway = running(&upstream, &redis.url(), PATIENT, &quota(rate, burst));
        let mut client = gateway.client();
        let mut sources = Vec::new();
        for round in 0..15 {
            let refused = (0..10_000).find_map(|_| wait(&asks(&mut client, "one")));
            let mut told = refused.expect("never refused");
            sources.push(source(&gateway).as_str().unwrap().to_owned());
            if round % 2 == 1 {
                // Told again, by whoever knows; but on a busy machine it may be over already.
                match wait(&asks(&mut client, "one")) {
                    Some(again) => told = again,
                    None => continue,
                }
            }
            elapse(Duration::from_millis(told));
            assert_eq!(
                wait(&asks(&mut client, "one")),
                None,
                "{rate} {round} {told}"
            );
        }
        assert!(sources.iter().any(|it| it == "deny_cache"), "{sources:?}");
    }
}

fn refusals_that_still_hold_are_not_asked_again() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let gateways = [(); 2].map(|()| gateway(&upstream, &redis.url(), &quota("2/day", 1)));
    let mut clients = gateways.each_ref().map(|it| it.client());
    assert_eq!(wait(&asks(&mut clients[0], "one")), None);
    let half = 12 * 3600 * 1000;
    for _ in 0..50 {
        // Who took the last knows it from that answer.
        let told = wait(&asks(&mut clients[0], "one")).unwrap();
        assert!((half - 60_000..=half).contains(&told), "{told}");
    }
    assert_eq!(of_store(&gateways[0], "calls_total"), 1.0);
    assert_eq!(decisions(&gateways[0], "refused", "deny_cache"), 50.0);
    for _ in 0..50 {
        assert!(wait(&asks(&mut clients[1], "one")).is_some());
    }
    assert_eq!(of_store(&gateways[1], "calls_total"), 1.0);
    assert_eq!(decisions(&gateways[1], "refused", "deny_cache"), 49.0);
    // It is believed for a second: somebody may have forgiven the caller.
    redis.ask(&["FLUSHALL"]);
    gateways[1].clock.advance(Duration::from_millis(999));
    assert!(wait(&asks(&mut clients[1], "one")).is_some());
    gateways[1].clock.advance(Duration::from_millis(1));
    assert_eq!(wait(&asks(&mut clients[1], "one")), None);
}

fn a_lease_serves_without_asking_and_lapses() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let store = format!("{PATIENT}\nreplicas = 3");
    let config = configured(&upstream, &redis.url(), &store, &quota("1000/s", 100));
    let gateway = Gateway::start_two(&config);
    connected(&gateway);
    let mut client = gateway.client();
    // 20 ms of the rate are 20; a sixth of the burst is 16.
    for index in 0..16 {
        assert_eq!(wait(&asks(&mut client, "one")), None);
        let expected = if index == 0 { "store" } else { "lease" };
        assert_eq!(source(&gateway), expected, "{index}");
    }
    assert_eq!(of_store(&gateway, "calls_total"), 1.0);
    assert_eq!(wait(&asks(&mut client, "one")), None);
    assert_eq!(source(&gateway), "store");
    // What is not used within 200 ms is gone.
    gateway.clock.advance(Duration::from_millis(199));
    asks(&mut client, "one");
    assert_eq!(source(&gateway), "lease");
    gateway.clock.advance(Duration::from_millis(1));
    asks(&mut client, "one");
    assert_eq!(source(&gateway), "store");
    assert_eq!(of_store(&gateway, "calls_total"), 3.0);
    // A slow quota leases nothing: it stays exact.
    let config = configured(&upstream, &redis.url(), &store, &quota("49/s", 100));
    gateway.write_whole(&crate::support::gateway::two_workers(&config));
    gateway.inner.reload().unwrap();
    for _ in 0..3 {
        asks(&mut client, "two");
        assert_eq!(source(&gateway), "store");
    }
}

fn many_at_once_ask_once() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let relay = Relay::before(redis.address);
    let gateway = gateway(&upstream, &relay.url(), &quota("30/day", 30));
    relay.set(Mode::Slow);
    let mut clients: Vec<_> = (0..20).map(|_| gateway.client()).collect();
    for client in &mut clients {
        client.send(post("one"));
    }
    for client in &mut clients {
        assert_eq!(wait(&client.answer()), None);
    }
    // One asked, the others waited; then one asked for all of them.
    let calls = of_store(&gateway, "calls_total");
    assert!(calls <= 4.0, "{calls}");
    relay.set(Mode::Pass);
    let mut client = gateway.client();
    let left = (0..100).take_while(|_| wait(&asks(&mut client, "one")).is_none());
    assert_eq!(left.count(), 10);
}

fn three_gateways_under_three_times_the_demand_never_exceed_the_limit() {
    const RATE: u64 = 300;
    const BURST: u32 = 60;
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let store = format!("{PATIENT}\nreplicas = 3");
    let quotas = quota(&format!("{RATE}/s"), BURST);
    let gateways = [(); 3].map(|()| running(&upstream, &redis.url(), &store, &quotas));
    let (admitted, refused, is_over) =
        (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let began = redis.micros();
    thread::scope(|scope| {
        for gateway in &gateways {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut client = gateway.client();
                    while !is_over.load(Ordering::SeqCst) {
                        let counter = match wait(&asks(&mut client, "one")) {
                            None => &admitted,
                            Some(_) => &refused,
                        };
                        counter.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        }
        elapse(Duration::from_millis(1500));
        is_over.store(true, Ordering::SeqCst);
    });
    let took = redis.micros() - began;
    let (admitted, refused) = (admitted.into_inner(), refused.into_inner());
    let most = u64::from(BURST) + RATE * took / 1_000_000;
    assert!(admitted <= most, "{admitted} of {most}");
    assert!(refused > 0);
    // Nothing was decided without the store, and few calls were a question.
    let sum = |of: &dyn Fn(&Gateway) -> f64| gateways.iter().map(of).sum::<f64>();
    assert_eq!(sum(&|it| decisions(it, "admitted", "fallback")), 0.0);
    assert_eq!(sum(&|it| decisions(it, "refused", "fallback")), 0.0);
    let calls = sum(&|it| of_store(it, "calls_total"));
    let all = (admitted + refused) as f64;
    assert!(calls < 0.6 * all, "{calls} calls for {all} requests");
}

fn a_call_costs_what_it_costs() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let quotas = quota_with("25/day", 25, "cost = { \"lead.submit\" = 10 }");
    let gateways = [(); 2].map(|()| gateway(&upstream, &redis.url(), &quotas));
    let mut clients = gateways.each_ref().map(|it| it.client());
    let mut ask = |at: usize, body: String| {
        let post = Post::to("/a2a").field("X-Api-Key", "one").body(body);
        wait(&clients[at].ask(post.bytes()))
    };
    assert_eq!(ask(0, lead("1", None)), None);
    assert_eq!(ask(1, lead("1", None)), None);
    // 5 are left.
    let day = 24 * 3600 * 1000;
    let told = ask(0, lead("1", None)).unwrap();
    assert!((day / 5 - 60_000..=day / 5).contains(&told), "{told}");
    for index in 0..5 {
        assert_eq!(ask(index % 2, search("1")), None, "{index}");
    }
    assert!(ask(0, search("1")).is_some());
    assert!(ask(1, search("1")).is_some());
}

fn tenants_and_skills_are_counted_apart() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let quotas = "[quota.q]\nper = [\"tenant\", \"skill\"]\nrate = \"1/day\"\nburst = 1\n\
                  store = \"central\"\n";
    let gateways = [(); 2].map(|()| gateway(&upstream, &redis.url(), quotas));
    let mut clients = gateways.each_ref().map(|it| it.client());
    let mut ask = |at: usize, body: String, tenant: &str| {
        let body = body.replace(
            "\"params\":{",
            &format!("\"params\":{{\"tenant\":\"{tenant}\","),
        );
        wait(&clients[at].ask(Post::to("/a2a").body(body).bytes())).is_none()
    };
    assert!(ask(0, search("1"), "a"));
    assert!(!ask(1, search("1"), "a"));
    assert!(ask(1, search("1"), "b"));
    assert!(!ask(0, search("1"), "b"));
    assert!(ask(0, lead("1", None), "a"));
    assert!(!ask(1, lead("1", None), "a"));
}

fn a_proven_callers_plan_holds_in_the_store() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    // The digest of `gold-key`.
    let caller = "[caller.acme]\nplan = \"gold\"\nkey_sha256 = \"6163937e6547cc2853a333d323496f4d5608b3958a3bd3939752708bc9cb0feb\"\n\
                  [plan.gold.quotas]\nq = { rate = \"7/day\", burst = 7 }\n";
    let gateways = [(); 2].map(|()| {
        let config = configured(&upstream, &redis.url(), PATIENT, &quota("2/day", 2));
        let config = format!("{caller}{config}authenticate = \"optional\"\n");
        let gateway = Gateway::start(&config);
        connected(&gateway);
        gateway
    });
    let mut clients = gateways.each_ref().map(|it| it.client());
    let plain = Post::to("/a2a").body(search("1")).bytes();
    for (passes, bytes) in [(7, post("gold-key")), (2, plain)] {
        for index in 0..passes {
            assert_eq!(wait(&clients[index % 2].ask(&bytes)), None, "{index}");
        }
        for client in &mut clients {
            assert!(wait(&client.ask(&bytes)).is_some());
        }
    }
    assert_eq!(redis.keys().len(), 2);
}

fn what_is_refused_early_is_charged_in_the_store() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let digest = forecourt::credential::fresh::digest("fc_acme-key");
    let quota = "[quota.q]\nper = \"address\"\nrate = \"4/day\"\nburst = 4\nstore = \"central\"\n";
    let whole = configured(&upstream, &redis.url(), PATIENT, quota)
        .replace("quotas = [", "authenticate = \"required\"\nquotas = [");
    let gateways = [(); 2].map(|()| {
        let caller = format!("[caller.acme]\nkey_sha256 = \"{digest}\"\n{whole}");
        let gateway = Gateway::start_two(&caller);
        connected(&gateway);
        gateway
    });
    let [mut one, mut two] = gateways.each_ref().map(Gateway::client);
    // Guessed keys, and a body that nobody can read.
    assert_eq!(asks(&mut one, "guess-1").status, 401);
    assert_eq!(asks(&mut two, "guess-2").status, 401);
    let broken = Post::to("/a2a").field("X-Api-Key", "fc_acme-key").body("{");
    assert_eq!(one.ask(broken.bytes()).code(), -32700);
    // The fourth is left, for whoever comes first, and none of this was a decision of a quota.
    assert_eq!(decisions(&gateways[0], "admitted", "store"), 0.0);
    assert_eq!(wait(&asks(&mut two, "fc_acme-key")), None);
    assert!(wait(&asks(&mut one, "fc_acme-key")).is_some());
}
