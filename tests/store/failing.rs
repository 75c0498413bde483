//! A store that fails, in every way: no request does, and the log tells who decided instead.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::redis::Redis;
use crate::setting::{
    Mode, PATIENT, Relay, asks, configured, connected, decisions, errors, gateway, is_degraded,
    quota, quota_with, running, source, wait,
};
use crate::support::wait::elapse;
use crate::support::{Client, Gateway, Nobody, Upstream, Watch, wait_until};
use crate::tests;

tests!(
    nothing_waits_for_a_store_that_is_not_there,
    what_holds_without_a_store_is_the_quotas_word,
    killed_and_restarted_under_load,
    a_hung_store_costs_a_few_timeouts_and_then_nothing,
    a_slow_store_is_one_that_fails,
    garbage_and_cut_connections,
    a_script_that_was_flushed_is_sent_again,
    a_replica_is_no_store,
    a_full_store_counts_nothing,
    a_wrong_password_is_told_and_not_shown,
    a_key_that_holds_something_else,
    connections_do_not_pile_up,
);

const TIMEOUT: &str = "timeout = \"50ms\"";

/// With a short time to wait, on a clock that is moved by hand.
fn hurried(upstream: &Upstream, url: &str) -> Gateway {
    let quotas = quota("1000/day", 1000);
    let gateway = Gateway::start_two(&configured(upstream, url, TIMEOUT, &quotas));
    connected(&gateway);
    gateway
}

/// Asks until the store decides again; every call until then is let through.
fn recovers(gateway: &Gateway, client: &mut Client) {
    wait_until("the store decides again", || {
        gateway.clock.advance(Duration::from_secs(1));
        assert_eq!(wait(&asks(client, "one")), None);
        source(gateway) == "store"
    });
    assert!(!is_degraded(gateway));
}

fn nothing_waits_for_a_store_that_is_not_there() {
    let (nobody, upstream) = (Nobody::new(), Upstream::recording());
    let url = format!("redis://{}", nobody.address);
    let gateway = Gateway::start_two(&configured(
        &upstream,
        &url,
        "timeout = \"30s\"",
        &quota("2/day", 2),
    ));
    assert_eq!(gateway.admin_get("/readyz").status, 200);
    assert!(is_degraded(&gateway));
    let mut client = gateway.client();
    for _ in 0..2 {
        assert_eq!(wait(&asks(&mut client, "one")), None);
        assert_eq!(source(&gateway), "fallback");
    }
    let told = wait(&asks(&mut client, "one")).unwrap();
    assert_eq!(told, 12 * 3600 * 1000);
    let line = gateway.last_line();
    assert_eq!(
        (&line["quota"], &line["limit_source"]),
        (&"q".into(), &"fallback".into())
    );
    assert_eq!(errors(&gateway, "unreachable"), 3.0);
    assert_eq!(decisions(&gateway, "admitted", "fallback"), 2.0);
    assert_eq!(decisions(&gateway, "refused", "fallback"), 1.0);
}

fn what_holds_without_a_store_is_the_quotas_word() {
    let (nobody, upstream) = (Nobody::new(), Upstream::recording());
    let url = format!("redis://{}", nobody.address);
    for (word, admitted, told) in [
        // A third of the burst, a third of the rate.
        ("on_store_error = \"local\"", 2, 12 * 3600 * 1000),
        ("", 2, 12 * 3600 * 1000),
        ("on_store_error = \"allow\"", 20, 0),
        ("on_store_error = \"deny\"", 0, 1000),
    ] {
        let quotas = quota_with("6/day", 6, word);
        let config = configured(&upstream, &url, "replicas = 3", &quotas);
        let gateway = Gateway::start(&config);
        let mut client = gateway.client();
        let waits: Vec<_> = (0..20).map(|_| wait(&asks(&mut client, "one"))).collect();
        let passed = waits.iter().filter(|it| it.is_none()).count();
        assert_eq!(passed, admitted, "{word}");
        assert!(
            waits.iter().flatten().all(|it| *it == told),
            "{word} {waits:?}"
        );
    }
}

fn killed_and_restarted_under_load() {
    let (mut redis, upstream) = (Redis::start(), Upstream::recording());
    let store = "timeout = \"1s\"\nreplicas = 2";
    let quotas = quota("1000000/day", 1_000_000);
    let gateways = [(); 2].map(|()| running(&upstream, &redis.url(), store, &quotas));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for gateway in &gateways {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut client = gateway.client();
                    while !is_over.load(Ordering::SeqCst) {
                        assert_eq!(wait(&asks(&mut client, "one")), None);
                    }
                });
            }
        }
        let by = |source: &str| {
            gateways
                .each_ref()
                .map(|it| decisions(it, "admitted", source))
        };
        let more = |source: &str| {
            let before = by(source);
            wait_until(source, || {
                by(source)
                    .iter()
                    .zip(&before)
                    .all(|(now, before)| *now > before + 20.0)
            });
        };
        for signal in ["KILL", "STOP"] {
            more("store");
            if signal == "KILL" {
                redis.kill();
            } else {
                redis.signal("STOP");
            }
            more("fallback");
            if signal == "KILL" {
                redis.restart();
            } else {
                redis.signal("CONT");
            }
            for gateway in &gateways {
                connected(gateway);
            }
            more("store");
        }
        is_over.store(true, Ordering::SeqCst);
    });
    for gateway in &gateways {
        assert_eq!(gateway.ended("ok"), gateway.ended("ok").max(100.0));
        for outcome in ["upstream_failed", "internal", "rate_limited", "overloaded"] {
            let series = format!(
                "forecourt_http_requests_total{{endpoint=\"lakeside\",outcome=\"{outcome}\"}}"
            );
            let count = gateway.metrics().get(&series).copied();
            assert_eq!(count.unwrap_or(0.0), 0.0, "{outcome}");
        }
    }
}

fn a_hung_store_costs_a_few_timeouts_and_then_nothing() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let gateway = hurried(&upstream, &redis.url());
    let mut client = gateway.client();
    assert_eq!(wait(&asks(&mut client, "one")), None);
    redis.signal("STOP");
    for _ in 0..5 {
        assert_eq!(wait(&asks(&mut client, "one")), None);
        assert_eq!(source(&gateway), "fallback");
    }
    assert_eq!(errors(&gateway, "timeout"), 5.0);
    assert!(is_degraded(&gateway));
    // From now on nobody waits: 100 would take 5 s.
    let watch = Watch::start();
    for _ in 0..100 {
        assert_eq!(wait(&asks(&mut client, "one")), None);
    }
    assert!(
        watch.elapsed() < Duration::from_secs(3),
        "{:?}",
        watch.elapsed()
    );
    assert_eq!(errors(&gateway, "timeout"), 5.0);
    let skipped = errors(&gateway, "circuit_open") + errors(&gateway, "unreachable");
    assert_eq!(skipped, 100.0);
    redis.signal("CONT");
    recovers(&gateway, &mut client);
}

fn a_slow_store_is_one_that_fails() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let relay = Relay::before(redis.address);
    let quotas = quota("1000/day", 1000);
    let config = configured(&upstream, &relay.url(), "timeout = \"30ms\"", &quotas);
    let gateway = Gateway::start_two(&config);
    connected(&gateway);
    let mut client = gateway.client();
    relay.set(Mode::Slow);
    for _ in 0..10 {
        assert_eq!(wait(&asks(&mut client, "one")), None);
        assert_eq!(source(&gateway), "fallback");
    }
    assert_eq!(errors(&gateway, "timeout"), 5.0);
    // It connects, since connecting may take longer; the one call that tries it finds it slow.
    wait_until("it is tried, and fails", || {
        gateway.clock.advance(Duration::from_secs(1));
        assert_eq!(wait(&asks(&mut client, "one")), None);
        errors(&gateway, "timeout") > 5.0
    });
    assert_eq!(errors(&gateway, "timeout"), 6.0);
    relay.set(Mode::Pass);
    recovers(&gateway, &mut client);
}

fn garbage_and_cut_connections() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let relay = Relay::before(redis.address);
    let gateway = gateway(&upstream, &relay.url(), &quota("1000/day", 1000));
    let mut client = gateway.client();
    for (mode, kind) in [(Mode::Garbage, "protocol"), (Mode::Cut, "closed")] {
        recovers(&gateway, &mut client);
        relay.set(mode);
        let before = errors(&gateway, kind);
        for _ in 0..10 {
            assert_eq!(wait(&asks(&mut client, "one")), None, "{mode:?}");
            assert_eq!(source(&gateway), "fallback", "{mode:?}");
        }
        assert!(
            errors(&gateway, kind) > before,
            "{mode:?}: {:#?}",
            gateway.metrics()
        );
        relay.set(Mode::Pass);
    }
    recovers(&gateway, &mut client);
}

fn a_script_that_was_flushed_is_sent_again() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let gateway = gateway(&upstream, &redis.url(), &quota("3/day", 3));
    let mut client = gateway.client();
    for _ in 0..3 {
        assert_eq!(redis.ask(&["SCRIPT", "FLUSH"]), "+OK");
        assert_eq!(wait(&asks(&mut client, "one")), None);
        assert_eq!(source(&gateway), "store");
    }
    assert!(wait(&asks(&mut client, "one")).is_some());
}

fn a_replica_is_no_store() {
    let (redis, nobody, upstream) = (Redis::start(), Nobody::new(), Upstream::recording());
    let gateway = gateway(&upstream, &redis.url(), &quota("1000/day", 1000));
    let mut client = gateway.client();
    assert_eq!(wait(&asks(&mut client, "one")), None);
    let port = nobody.address.port().to_string();
    assert_eq!(redis.ask(&["REPLICAOF", "127.0.0.1", &port]), "+OK");
    wait_until("it is told", || {
        assert_eq!(wait(&asks(&mut client, "one")), None);
        assert_eq!(source(&gateway), "fallback");
        errors(&gateway, "readonly") > 0.0
    });
    assert_eq!(redis.ask(&["REPLICAOF", "NO", "ONE"]), "+OK");
    recovers(&gateway, &mut client);
}

fn a_full_store_counts_nothing() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let gateway = gateway(&upstream, &redis.url(), &quota("1000/day", 1000));
    let mut client = gateway.client();
    assert_eq!(redis.ask(&["CONFIG", "SET", "maxmemory", "1"]), "+OK");
    for _ in 0..3 {
        assert_eq!(wait(&asks(&mut client, "one")), None);
        assert_eq!(source(&gateway), "fallback");
    }
    assert_eq!(errors(&gateway, "oom"), 3.0);
    assert_eq!(redis.ask(&["CONFIG", "SET", "maxmemory", "0"]), "+OK");
    recovers(&gateway, &mut client);
}

fn a_wrong_password_is_told_and_not_shown() {
    let redis = Redis::start_with(&["--requirepass", "right-one"]);
    let upstream = Upstream::recording();
    let store = "password = \"wrong-one\"";
    let gateway = Gateway::start(&configured(
        &upstream,
        &redis.url(),
        store,
        &quota("1/day", 1),
    ));
    let mut client = gateway.client();
    assert_eq!(wait(&asks(&mut client, "one")), None);
    assert_eq!(source(&gateway), "fallback");
    assert!(is_degraded(&gateway));
    for page in ["/config", "/status", "/metrics"] {
        assert!(
            !gateway.admin_get(page).text().contains("wrong-one"),
            "{page}"
        );
    }
    let shown = gateway.admin_get("/config").json();
    assert!(
        shown.to_string().contains("\"password\":\"***\""),
        "{shown}"
    );
}

fn a_key_that_holds_something_else() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let gateway = gateway(&upstream, &redis.url(), &quota("1000/day", 1000));
    let mut client = gateway.client();
    assert_eq!(wait(&asks(&mut client, "one")), None);
    let key = redis.keys().pop().unwrap();
    for (command, kind) in [("SET", "other"), ("LPUSH", "other")] {
        redis.ask(&["DEL", &key]);
        redis.ask(&[command, &key, "x"]);
        let before = errors(&gateway, kind);
        assert_eq!(wait(&asks(&mut client, "one")), None);
        assert_eq!(source(&gateway), "fallback", "{command}");
        assert_eq!(errors(&gateway, kind), before + 1.0);
    }
    redis.ask(&["DEL", &key]);
    assert_eq!(wait(&asks(&mut client, "one")), None);
    assert_eq!(source(&gateway), "store");
}

fn connections_do_not_pile_up() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let gateway = running(&upstream, &redis.url(), PATIENT, &quota("1000/day", 1000));
    let mut client = gateway.client();
    for _ in 0..6 {
        assert_eq!(wait(&asks(&mut client, "one")), None);
        redis.ask(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        asks(&mut client, "one");
        connected(&gateway);
        elapse(Duration::from_millis(5));
    }
    // Our own question is one of them.
    wait_until("one connection is left", || {
        redis.info("connected_clients") <= 2
    });
    drop(gateway);
    wait_until("none is left", || redis.info("connected_clients") == 1);
}
