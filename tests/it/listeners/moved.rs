//! Listeners that are changed, renamed and swapped: the address keeps its socket and its connections.

use crate::support::call::{call, post};
use crate::support::tls::{Place, Speaker};
use crate::support::wait::wait_until;
use crate::support::{Client, Gateway, Upstream};

use super::{at, is_refused, more, probe, reload, with};

/// Waits until every worker has what was last changed.
fn taken_up(gateway: &Gateway) {
    wait_until("taken up", || {
        gateway.admin_get("/status").json()["workers_behind"] == serde_json::json!([])
    });
}

/// The clients of all calls so far; each worker has its own lines.
fn callers(gateway: &Gateway) -> Vec<String> {
    let lines = gateway.access_log().into_iter();
    let calls = lines.filter(|line| line["endpoint"] == "lakeside");
    let mut callers: Vec<_> = calls
        .map(|line| line["client_ip"].as_str().unwrap().to_owned())
        .collect();
    callers.sort();
    callers
}

#[test]
fn a_change_is_for_connections_that_come_after_it() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_whole(&with(&upstream, &more("127.0.0.1:0", "health = \"/one\"")));
    let address = at(&gateway, "more");
    let mut old = Client::connect(address);
    assert_eq!(probe(&mut old, "/one"), 200);
    for (settings, path) in [
        ("health = \"/two\"\nbacklog = 7", "/two"),
        ("health = \"/two\"\nbacklog = 8", "/two"),
        (
            "health = \"/three\"\ntrusted_proxies = [\"127.0.0.1\"]",
            "/three",
        ),
    ] {
        reload(&gateway, &with(&upstream, &more("127.0.0.1:0", settings)));
        taken_up(&gateway);
        assert_eq!(at(&gateway, "more"), address);
        assert_eq!(probe(&mut Client::connect(address), path), 200);
        assert_eq!(probe(&mut Client::connect(address), "/one"), 404);
        assert_eq!(probe(&mut old, "/one"), 200);
    }
    // Who is believed now was not believed before.
    let forwarded = crate::support::Post::to("/a2a").field("X-Forwarded-For", "192.0.2.7");
    let forwarded = forwarded.body(call("1")).bytes();
    assert_eq!(Client::connect(address).ask(&forwarded).status, 200);
    assert_eq!(callers(&gateway), ["192.0.2.7"]);
    assert_eq!(old.ask(&forwarded).status, 200);
    assert_eq!(callers(&gateway), ["127.0.0.1", "192.0.2.7"]);
    // A PROXY header is due from then on, of new connections.
    let proxied = "proxy_protocol = { trusted = [\"127.0.0.1\"] }";
    reload(&gateway, &with(&upstream, &more("127.0.0.1:0", proxied)));
    taken_up(&gateway);
    let mut new = Client::connect(address);
    new.send("PROXY TCP4 192.0.2.8 192.0.2.1 1 2\r\n");
    assert_eq!(new.ask(post(call("2"))).status, 200);
    assert!(callers(&gateway).contains(&"192.0.2.8".to_owned()));
    let mut bare = Client::connect(address);
    bare.send(post(call("3")));
    assert!(bare.is_closed());
    assert_eq!(old.ask(post(call("4"))).status, 200);
}

#[test]
fn tls_is_switched_on_and_off() {
    let place = Place::new();
    place.issue("usual", &["gw.example"]);
    place.issue("other", &["gw.example"]);
    let speaker = Speaker::trusting(&place.authority);
    let upstream = Upstream::recording();
    let tls = |pair: &str| format!("tls = {{ {} }}", place.pair(pair));
    let gateway = Gateway::start_whole(&with(&upstream, &more("127.0.0.1:0", "")));
    let address = at(&gateway, "more");
    let mut clear = Client::connect(address);
    assert_eq!(clear.ask(post(call("1"))).status, 200);

    reload(
        &gateway,
        &with(&upstream, &more("127.0.0.1:0", &tls("usual"))),
    );
    taken_up(&gateway);
    let mut secure = speaker.connect(address, "gw.example");
    let first = secure.shown();
    assert_eq!(secure.ask(post(call("2"))).status, 200);
    assert_eq!(clear.ask(post(call("3"))).status, 200);
    let mut plain = Client::connect(address);
    plain.send(post(call("4")));
    assert!(!matches!(plain.try_answer(), Ok(Some(answer)) if answer.status == 200));
    let series = "forecourt_tls_handshake_failures_total{listener=\"more\",reason=\"not_tls\"}";
    wait_until("counted", || gateway.series(series) == 1.0);
    let status = gateway.admin_get("/status").json();
    assert_eq!(
        status["listeners"][1]["certificates"][0]["names"][0],
        "gw.example"
    );

    // Other files under another name: the new one's certificate is shown.
    let renamed = more("127.0.0.1:0", "").replace("more", "renamed");
    let fixed = renamed.replace("127.0.0.1:0", &address.to_string());
    reload(
        &gateway,
        &with(&upstream, &format!("{fixed}{}", tls("other"))),
    );
    taken_up(&gateway);
    let mut second = speaker.connect(address, "gw.example");
    assert_ne!(second.shown(), first);
    assert_eq!(second.ask(post(call("5"))).status, 200);
    assert_eq!(secure.ask(post(call("6"))).status, 200);

    reload(&gateway, &with(&upstream, &fixed));
    taken_up(&gateway);
    assert_eq!(Client::connect(address).ask(post(call("7"))).status, 200);
    for still in [&mut secure, &mut second] {
        assert_eq!(still.ask(post(call("8"))).status, 200);
    }
    assert_eq!(clear.ask(post(call("9"))).status, 200);
    let text = gateway.admin_get("/metrics").text();
    for gone in [
        "handshake_failures_total{",
        "certificate_expiry_timestamp_seconds{",
    ] {
        assert!(!text.contains(gone), "{gone}");
    }
}

#[test]
fn addresses_are_swapped_and_passed_on() {
    let upstream = Upstream::recording();
    let pair = |one: &str, other: &str| {
        let table = |name, address| {
            format!("[listener.{name}]\naddress = \"{address}\"\nhealth = \"/{name}\"\n")
        };
        with(
            &upstream,
            &format!("{}{}", table("one", one), table("other", other)),
        )
    };
    let gateway = Gateway::start_whole(&pair("127.0.0.1:0", "127.0.0.1:0"));
    let (first, second) = (at(&gateway, "one"), at(&gateway, "other"));
    let (a, b) = (&*first.to_string(), &*second.to_string());
    let mut kept = [Client::connect(first), Client::connect(second)];
    for (one, other) in [(a, b), (b, a), (a, b), (b, a)] {
        reload(&gateway, &pair(one, other));
        taken_up(&gateway);
        let listeners = [("one", one), ("other", other)];
        for (name, address) in listeners {
            let address = address.parse().unwrap();
            assert_eq!(at(&gateway, name), address);
            assert_eq!(
                probe(&mut Client::connect(address), &format!("/{name}")),
                200
            );
        }
        for client in &mut kept {
            let answer = client.ask(post(call("1")));
            assert!(answer.status == 200 && !answer.closes());
        }
    }
    // Renamed, with nothing else changed; then its old name is somewhere else.
    let renamed = pair(a, b).replace("listener.one", "listener.new");
    reload(&gateway, &renamed);
    taken_up(&gateway);
    assert_eq!(
        (at(&gateway, "new"), gateway.inner.address("one")),
        (first, None)
    );
    assert!(
        !gateway
            .admin_get("/metrics")
            .text()
            .contains("listener=\"one\"")
    );
    let mut client = Client::connect(first);
    assert_eq!(probe(&mut client, "/one"), 200);
    let probes = "forecourt_health_probes_total{listener=\"new\"}";
    assert_eq!(gateway.series(probes), 1.0);
    reload(&gateway, &pair("127.0.0.1:0", b));
    wait_until("the address is given up", || is_refused(first));
    assert_ne!(at(&gateway, "one"), first);
    assert!(kept[0].is_closed());
    assert_eq!(kept[1].ask(post(call("2"))).status, 200);
}

#[test]
fn a_rollback_brings_listeners_back_and_takes_them_away() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_whole(&with(&upstream, &more("127.0.0.1:0", "")));
    let address = at(&gateway, "more");
    let fixed = more(address, "").replace("more", "fixed");
    reload(&gateway, &with(&upstream, &fixed));
    taken_up(&gateway);
    let mut kept = Client::connect(address);
    assert_eq!(kept.ask(post(call("1"))).status, 200);
    reload(&gateway, &with(&upstream, ""));
    wait_until("closed", || is_refused(address));
    assert!(kept.is_closed());

    let order = |target: &str| {
        let request = crate::support::Post::method("POST", target).field("Host", "127.0.0.1");
        let answer = gateway.admin().ask(request.bytes());
        (answer.status, answer.json())
    };
    let (status, told) = order("/rollback?generation=2&as=json");
    assert_eq!(
        (status, &told["workers_behind"]),
        (200, &serde_json::json!([]))
    );
    assert_eq!(at(&gateway, "fixed"), address);
    assert_eq!(Client::connect(address).ask(post(call("2"))).status, 200);
    // Somebody took its address meanwhile: then nothing is rolled back.
    let (status, _) = order("/rollback?generation=3&as=json");
    assert_eq!(status, 200);
    wait_until("closed again", || is_refused(address));
    let taken = std::net::TcpListener::bind(address).unwrap();
    let (status, told) = order("/rollback?generation=2&as=json");
    assert_eq!(status, 422);
    assert_eq!(told["problems"][0]["path"], "listener.fixed.address");
    assert_eq!(gateway.inner.address("fixed"), None);
    drop(taken);
    assert_eq!(order("/rollback?generation=2&as=json").0, 200);
    assert_eq!(Client::connect(address).ask(post(call("3"))).status, 200);
}
