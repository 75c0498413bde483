//! What operators see of a caller in a store, and that forgiving reaches every gateway and nobody else.

use std::time::Duration;

use serde_json::{Value, json};

use crate::redis::Redis;
use crate::setting::{
    Mode, PATIENT, Relay, asks, configured, connected, gateway, of_store, quota, source, wait,
};
use crate::support::call::call;
use crate::support::wait::Watch;
use crate::support::{Answer, Client, Gateway, Post, Upstream};
use crate::tests;

tests!(
    a_buyer_is_seen_and_forgiven_everywhere,
    who_is_known_by_name_is_found_by_a_gateway_that_never_served_it,
    eight_digits_find_what_this_gateway_asked_about,
    each_skill_is_found_and_of_tenants_it_is_said_that_not_all_are,
    a_lease_is_dropped_with_what_it_was_charged_to,
    a_cluster_is_asked_part_by_part,
    a_store_that_hangs_is_told_in_time_and_the_rest_is_forgiven,
    a_store_that_is_away_is_told_and_the_rest_is_forgiven,
    what_a_store_decided_is_counted_among_the_quotas,
);

const BY_DIGITS: &str = "caller";

fn ask(gateway: &Gateway, method: &str, caller: &str) -> Answer {
    let name = caller.replace('#', "%23").replace(' ', "%20");
    let path = format!("/limits/{name}");
    let request = Post::method(method, &path).field("Host", "127.0.0.1");
    gateway.admin().ask(request.bytes())
}

/// What the store says of a caller.
#[track_caller]
fn seen(gateway: &Gateway, caller: &str) -> Value {
    let answer = ask(gateway, "GET", caller);
    assert_eq!(answer.status, 200);
    let stores = answer.json()["stores"].clone();
    assert_eq!(stores.as_array().unwrap().len(), 1);
    stores[0].clone()
}

/// What became of a caller in the store.
#[track_caller]
fn forgiven(gateway: &Gateway, caller: &str) -> Value {
    let answer = ask(gateway, "DELETE", caller);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["stores"][0].clone()
}

/// By whom the last call was, as the log has it.
fn name(gateway: &Gateway) -> String {
    gateway.last_line()["caller"].as_str().unwrap().to_owned()
}

/// A call of nobody but its address.
fn by_address(client: &mut Client, body: &str) -> Answer {
    client.ask(Post::to("/a2a").body(body).bytes())
}

fn a_buyer_is_seen_and_forgiven_everywhere() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    redis.ask(&["SET", "fc1:others", "mine"]);
    let gateways = [(); 2].map(|()| gateway(&upstream, &redis.url(), &quota("2/day", 2)));
    let mut clients = gateways.each_ref().map(Gateway::client);
    for client in &mut clients {
        assert_eq!(wait(&asks(client, "one")), None);
    }
    let one = name(&gateways[0]);
    for client in &mut clients {
        assert!(wait(&asks(client, "one")).is_some());
        assert!(wait(&asks(client, "one")).is_some());
    }
    assert_eq!(source(&gateways[0]), "deny_cache");
    assert_eq!(wait(&asks(&mut clients[0], "two")), None);
    let two = name(&gateways[0]);

    let calls = of_store(&gateways[0], "calls_total");
    let shown = seen(&gateways[0], &one);
    let bucket = &shown["buckets"][0];
    assert_eq!(shown["store"], "central");
    assert_eq!(shown["error"], Value::Null);
    assert_eq!(shown["incomplete"], json!([BY_DIGITS]));
    assert_eq!(shown["buckets"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&bucket["quota"], &bucket["endpoint"]),
        (&json!("q"), &json!("lakeside"))
    );
    assert_eq!(
        (&bucket["remaining"], &bucket["most"]),
        (&json!(0), &json!(2))
    );
    let day = 24 * 3600 * 1000;
    let full = bucket["full_in_ms"].as_u64().unwrap();
    assert!((day - 60_000..=day).contains(&full), "{full}");
    // To look costs nobody anything.
    assert_eq!(seen(&gateways[0], &two)["buckets"][0]["remaining"], 1);
    assert_eq!(of_store(&gateways[0], "calls_total"), calls);

    let told = forgiven(&gateways[0], &one);
    let expected = json!({
        "store": "central", "error": null, "forgiven": 1, "incomplete": [BY_DIGITS],
    });
    assert_eq!(told, expected);
    // Here at once, though it was refused just now; elsewhere once a refusal is not believed any more.
    assert_eq!(wait(&asks(&mut clients[0], "one")), None);
    assert_eq!(source(&gateways[0]), "store");
    gateways[1].clock.advance(Duration::from_secs(1));
    assert_eq!(wait(&asks(&mut clients[1], "one")), None);
    assert!(wait(&asks(&mut clients[1], "one")).is_some());
    // Nobody else was, and what is not ours is as it was.
    assert_eq!(seen(&gateways[0], &two)["buckets"][0]["remaining"], 1);
    assert_eq!(redis.ask(&["GET", "fc1:others"]), "mine");
    assert_eq!(forgiven(&gateways[0], "acme")["forgiven"], 0);
}

fn who_is_known_by_name_is_found_by_a_gateway_that_never_served_it() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let key = forecourt::credential::fresh::digest("fc_acme-key");
    let quotas = format!(
        "[caller.acme]\nkey_sha256 = \"{key}\"\nplan = \"gold\"\n\
         [plan.gold]\nquotas = {{ q = {{ rate = \"5/day\", burst = 5 }} }}\n\
         [quota.q]\nper = \"caller\"\nrate = \"2/day\"\nburst = 2\nstore = \"central\"\n\
         [quota.place]\nper = [\"caller\", \"address\"]\nrate = \"9/day\"\nshared = true\n\
         store = \"central\"\n"
    );
    let config = configured(&upstream, &redis.url(), PATIENT, &quotas);
    let gateways = [(); 2].map(|()| {
        let gateway = Gateway::start(&format!("{config}authenticate = \"optional\"\n"));
        connected(&gateway);
        gateway
    });
    let mut client = gateways[0].client();
    assert_eq!(wait(&asks(&mut client, "fc_acme-key")), None);
    assert_eq!(name(&gateways[0]), "acme");
    assert_eq!(wait(&by_address(&mut client, &call("1"))), None);
    let address = name(&gateways[0]);
    assert_eq!(redis.keys().len(), 4);

    // Of the second only by whoever knows the address.
    let both = seen(&gateways[0], "acme");
    assert_eq!(both["buckets"].as_array().unwrap().len(), 2);
    assert_eq!(both["incomplete"], json!(["address"]));
    let shown = seen(&gateways[1], "acme");
    assert_eq!(shown["incomplete"], json!(["address"]));
    assert_eq!(shown["buckets"].as_array().unwrap().len(), 1);
    assert_eq!(shown["buckets"][0]["remaining"], 4);
    assert_eq!(shown["buckets"][0]["most"], 5);
    let shown = seen(&gateways[1], &address);
    assert_eq!(shown["incomplete"], json!([]));
    assert_eq!(shown["buckets"].as_array().unwrap().len(), 2);
    assert_eq!(shown["buckets"][0]["remaining"], 1);

    assert_eq!(forgiven(&gateways[1], &address)["forgiven"], 2);
    assert_eq!(forgiven(&gateways[1], "acme")["forgiven"], 1);
    assert_eq!(redis.keys().len(), 1);
    assert_eq!(forgiven(&gateways[0], "acme")["forgiven"], 1);
    assert_eq!(redis.keys(), [""; 0]);
}

fn eight_digits_find_what_this_gateway_asked_about() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let gateways = [(); 2].map(|()| gateway(&upstream, &redis.url(), &quota("2/day", 2)));
    assert_eq!(wait(&asks(&mut gateways[0].client(), "one")), None);
    let one = name(&gateways[0]);
    assert_eq!(seen(&gateways[0], &one)["buckets"][0]["remaining"], 1);
    // The other cannot know whose these digits are, and says so.
    let shown = seen(&gateways[1], &one);
    assert_eq!(
        (&shown["buckets"], &shown["incomplete"]),
        (&json!([]), &json!([BY_DIGITS]))
    );
    assert_eq!(forgiven(&gateways[1], &one)["forgiven"], 0);
    assert_eq!(redis.keys().len(), 1);
}

fn each_skill_is_found_and_of_tenants_it_is_said_that_not_all_are() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let quotas = "[quota.q]\nper = [\"caller\", \"skill\"]\nrate = \"9/day\"\nstore = \"central\"\n\
                  [quota.t]\nper = [\"caller\", \"tenant\"]\nrate = \"9/day\"\nstore = \"central\"\n";
    let gateways = [(); 2].map(|()| gateway(&upstream, &redis.url(), quotas));
    let mut client = gateways[0].client();
    let plain = call("1");
    let tenant = plain.replacen("\"params\":{", "\"params\":{\"tenant\":\"t\",", 1);
    assert_ne!(plain, tenant);
    assert_eq!(wait(&by_address(&mut client, &plain)), None);
    assert_eq!(wait(&by_address(&mut client, &tenant)), None);
    let address = name(&gateways[0]);
    let told = |gateway: &Gateway| -> Vec<Value> {
        let shown = seen(gateway, &address);
        assert_eq!(shown["incomplete"], json!(["tenant"]));
        let mut told: Vec<Value> = shown["buckets"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| json!([it["quota"], it["skill"], it["untold"], it["remaining"]]))
            .collect();
        told.sort_by_key(Value::to_string);
        told
    };
    let skill = json!("dealer.information");
    let q = json!(["q", skill, [], 7]);
    let t = json!(["t", null, [], 8]);
    let of_tenant = json!(["t", null, ["tenant"], 8]);
    assert_eq!(told(&gateways[1]), [q.clone(), t.clone()]);
    assert_eq!(told(&gateways[0]), [q, of_tenant, t]);
    assert_eq!(forgiven(&gateways[0], &address)["forgiven"], 3);
    assert_eq!(redis.keys(), [""; 0]);
}

fn a_lease_is_dropped_with_what_it_was_charged_to() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let gateway = gateway(&upstream, &redis.url(), &quota("1000/s", 1000));
    let mut client = gateway.client();
    for expected in ["store", "lease"] {
        assert_eq!(wait(&asks(&mut client, "one")), None);
        assert_eq!(source(&gateway), expected);
    }
    assert_eq!(ask(&gateway, "DELETE", &name(&gateway)).status, 200);
    assert_eq!(wait(&asks(&mut client, "one")), None);
    assert_eq!(source(&gateway), "store");
}

fn a_cluster_is_asked_part_by_part() {
    let (nodes, upstream) = (crate::kinds::cluster(), Upstream::recording());
    let quotas = "[quota.q]\nper = [\"caller\", \"skill\"]\nrate = \"9/day\"\nstore = \"central\"\n\
                  [quota.t]\nper = \"caller\"\nrate = \"9/day\"\nstore = \"central\"\n";
    let of_store = format!("{PATIENT}\ncluster = true");
    let gateway = Gateway::start(&configured(&upstream, &nodes[0].url(), &of_store, quotas));
    connected(&gateway);
    let mut client = gateway.client();
    assert_eq!(wait(&by_address(&mut client, &call("1"))), None);
    let address = name(&gateway);
    assert_eq!(
        seen(&gateway, &address)["buckets"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(forgiven(&gateway, &address)["forgiven"], 2);
    for node in &nodes {
        assert_eq!(node.keys(), [""; 0]);
    }
}

/// What is counted here beside the store.
fn with_local() -> String {
    let q = quota("9/day", 9);
    format!("[quota.here]\nper = \"caller\"\nrate = \"1/day\"\nburst = 1\n{q}")
}

/// The store fails so, and all else is done in far less than it takes to give a connection up.
fn fails(gateway: &Gateway, client: &mut Client, error: &str) {
    let caller = name(gateway);
    let watch = Watch::start();
    let answer = ask(gateway, "GET", &caller);
    assert_eq!(answer.status, 200);
    let shown = answer.json();
    assert_eq!(shown["buckets"][0]["quota"], "here");
    let expected = json!([{
        "store": "central", "error": error, "buckets": [], "more": 0, "incomplete": [BY_DIGITS],
    }]);
    assert_eq!(shown["stores"], expected);
    let answer = ask(gateway, "DELETE", &caller);
    assert_eq!(answer.status, 503);
    let expected = json!({
        "caller": caller, "forgiven": 1, "still_open": 0,
        "stores": [{
            "store": "central", "error": error, "forgiven": 0, "incomplete": [BY_DIGITS],
        }],
    });
    assert_eq!(answer.json(), expected);
    let took = watch.elapsed();
    assert!(took < Duration::from_millis(1500), "{took:?}");
    // What was counted here is forgiven.
    assert_eq!(wait(&asks(client, "one")), None);
}

fn a_store_that_hangs_is_told_in_time_and_the_rest_is_forgiven() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let relay = Relay::before(redis.address);
    let config = configured(
        &upstream,
        &relay.url(),
        "timeout = \"200ms\"",
        &with_local(),
    );
    let gateway = Gateway::start(&config);
    connected(&gateway);
    let mut client = gateway.client();
    assert_eq!(wait(&asks(&mut client, "one")), None);
    assert!(wait(&asks(&mut client, "one")).is_some());
    relay.set(Mode::Hang);
    fails(&gateway, &mut client, "timeout");
}

fn a_store_that_is_away_is_told_and_the_rest_is_forgiven() {
    let (mut redis, upstream) = (Redis::start(), Upstream::recording());
    let gateway = gateway(&upstream, &redis.url(), &with_local());
    let mut client = gateway.client();
    assert_eq!(wait(&asks(&mut client, "one")), None);
    assert!(wait(&asks(&mut client, "one")).is_some());
    redis.kill();
    crate::support::wait_until("its absence is noticed", || {
        crate::setting::is_degraded(&gateway)
    });
    fails(&gateway, &mut client, "unreachable");
}

fn what_a_store_decided_is_counted_among_the_quotas() {
    let (redis, upstream) = (Redis::start(), Upstream::recording());
    let gateway = gateway(&upstream, &redis.url(), &quota("2/day", 2));
    let mut client = gateway.client();
    let waits = [(); 5].map(|()| wait(&asks(&mut client, "one")).is_some());
    assert_eq!(waits, [false, false, true, true, true]);
    let request = Post::method("GET", "/limits").field("Host", "127.0.0.1");
    let listed = gateway.admin().ask(request.bytes()).json()["quotas"].clone();
    let counted: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["admitted"].clone(), it["refused"].clone()))
        .collect();
    assert_eq!(counted, [(json!(2), json!(3))]);
}
