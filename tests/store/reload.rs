//! What a reload does to stores: nothing, to one that did not change.

use crate::redis::Redis;
use crate::setting::{PATIENT, asks, configured, connected, quota, source, wait};
use crate::support::gateway::dealer_with;
use crate::support::{Gateway, Upstream, wait_until};
use crate::tests;

tests!(
    an_unchanged_store_keeps_its_connection_and_its_leases,
    a_changed_store_is_connected_to_anew,
    a_store_comes_and_goes,
);

fn reload(gateway: &Gateway, configuration: &str) {
    gateway.write(configuration);
    gateway.inner.reload().unwrap();
}

fn an_unchanged_store_keeps_its_connection_and_its_leases() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let config = configured(&upstream, &redis.url(), PATIENT, &quota("1000/s", 100));
    let gateway = Gateway::start(&config);
    connected(&gateway);
    let mut client = gateway.client();
    assert_eq!(wait(&asks(&mut client, "one")), None);
    assert_eq!(source(&gateway), "store");
    let clients = || redis.ask(&["CLIENT", "LIST"]);
    let id = |list: &str| {
        let ours = list.lines().find(|line| line.contains("cmd=evalsha"));
        ours.map(|line| line.split(' ').next().unwrap().to_owned())
    };
    let before = id(&clients()).expect("no connection of ours");
    for index in 0..20 {
        // Something else changes, the quota's burst among it.
        let other = config.replace("burst = 100", &format!("burst = {}", 101 + index));
        reload(&gateway, &format!("{other}methods = [\"SendMessage\"]\n"));
        if index < 15 {
            assert_eq!(wait(&asks(&mut client, "one")), None);
            assert_eq!(source(&gateway), "lease", "{index}");
        }
    }
    let list = clients();
    assert!(
        list.contains(&format!("{before} ")),
        "{before} is not in {list}"
    );
}

fn a_changed_store_is_connected_to_anew() {
    let (one, other, upstream) = (Redis::start(), Redis::start(), Upstream::recording());
    let config = |redis: &Redis| configured(&upstream, &redis.url(), PATIENT, &quota("2/day", 2));
    let gateway = Gateway::start(&config(&one));
    connected(&gateway);
    let mut client = gateway.client();
    for _ in 0..2 {
        assert_eq!(wait(&asks(&mut client, "one")), None);
    }
    assert!(wait(&asks(&mut client, "one")).is_some());
    reload(&gateway, &config(&other));
    connected(&gateway);
    // Another store, another count.
    assert_eq!(wait(&asks(&mut client, "one")), None);
    assert_eq!(source(&gateway), "store");
    wait_until("the old connection closes", || {
        one.info("connected_clients") == 1
    });
    reload(&gateway, &config(&one));
    connected(&gateway);
    assert!(wait(&asks(&mut client, "one")).is_some());
}

fn a_store_comes_and_goes() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let local = quota("2/day", 2).replace("store = \"central\"", "");
    let without = format!(
        "[callers]\nidentify = [\"header:x-api-key\", \"address\"]\n{local}{}",
        dealer_with(&upstream, "", "quotas = [\"q\"]")
    );
    let with = configured(&upstream, &redis.url(), PATIENT, &quota("2/day", 2));
    let gateway = Gateway::start(&without);
    let mut client = gateway.client();
    assert_eq!(wait(&asks(&mut client, "one")), None);
    assert!(gateway.last_line()["limit_source"].is_null());
    for _ in 0..3 {
        reload(&gateway, &with);
        connected(&gateway);
        redis.ask(&["FLUSHALL"]);
        assert_eq!(wait(&asks(&mut client, "one")), None);
        assert_eq!(source(&gateway), "store");
        reload(&gateway, &without);
        wait_until("the connection closes", || {
            redis.info("connected_clients") == 1
        });
        let metrics = gateway.admin_get("/metrics").text();
        assert!(!metrics.contains("central"), "{metrics}");
        gateway
            .clock
            .advance(std::time::Duration::from_secs(24 * 3600));
    }
}
