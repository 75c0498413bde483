//! A request is explained with what the store says of its caller, and the store is changed by nothing.

use std::time::Duration;

use serde_json::Value;

use crate::redis::Redis;
use crate::setting::{
    Mode, Relay, asks, configured, connected, gateway, of_store, post, quota, wait,
};
use crate::support::{Gateway, Post, Upstream};
use crate::tests;

tests!(
    what_another_gateway_charged_is_told,
    a_store_that_hangs_is_told_and_waited_for_only_so_long,
);

#[track_caller]
fn explain(gateway: &Gateway, key: &str) -> Value {
    let request = post(key);
    let asking = Post::method("POST", "/explain")
        .field("Host", "127.0.0.1")
        .field("Content-Length", &request.len().to_string())
        .body(request);
    let answer = gateway.admin().ask(asking.bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn what_another_gateway_charged_is_told() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let gateways = [(); 2].map(|()| gateway(&upstream, &redis.url(), &quota("2/day", 2)));
    let [one, other] = &gateways;
    let mut client = one.client();
    assert_eq!(wait(&asks(&mut client, "buyer")), None);
    for _ in 0..3 {
        // This gateway never saw the caller.
        let explained = explain(other, "buyer");
        assert_eq!(explained["verdict"], "forward", "{explained}");
        let quota = &explained["quotas"][0];
        assert_eq!(quota["kept_in"], "central");
        assert_eq!(quota["store_error"], Value::Null);
        assert_eq!(
            (&quota["remaining"], &quota["limit"]),
            (&1.into(), &2.into())
        );
    }
    assert_eq!(wait(&asks(&mut client, "buyer")), None);
    let keys = redis.ask(&["DBSIZE"]);
    let explained = explain(other, "buyer");
    assert_eq!(explained["outcome"], "rate_limited", "{explained}");
    assert_eq!(explained["quotas"][0]["admits"], false);
    // Somebody new has nothing there, and still has nothing after.
    assert_eq!(explain(other, "stranger")["quotas"][0]["remaining"], 2);
    assert_eq!(redis.ask(&["DBSIZE"]), keys);
    assert_eq!(of_store(other, "calls_total"), 0.0);
    // What is told is what is answered, but for how the clocks of two machines differ.
    let told = explained["answer"]["body"].as_str().unwrap();
    let told: Value = serde_json::from_str(told).unwrap();
    let answer = asks(&mut other.client(), "buyer").json();
    assert_eq!(told["error"]["code"], answer["error"]["code"]);
    let wait = |of: &Value| of["error"]["data"][1]["value"]["details"]["retry_after_ms"].as_u64();
    let (told, came) = (wait(&told).unwrap(), wait(&answer).unwrap());
    assert!(came <= told && told - came < 60_000, "{told} {came}");
}

fn a_store_that_hangs_is_told_and_waited_for_only_so_long() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let relay = Relay::before(redis.address);
    let url = relay.url();
    let quotas = quota("2/day", 2);
    let gateway = Gateway::start_two(&configured(&upstream, &url, "timeout = \"50ms\"", &quotas));
    connected(&gateway);
    relay.set(Mode::Hang);
    let watch = crate::support::wait::Watch::start();
    let explained = explain(&gateway, "buyer");
    assert!(watch.elapsed() < Duration::from_secs(5));
    assert_eq!(explained["verdict"], "forward", "{explained}");
    let quota = &explained["quotas"][0];
    assert_eq!(quota["store_error"], "timeout");
    assert_eq!(quota["remaining"], 2);
}
