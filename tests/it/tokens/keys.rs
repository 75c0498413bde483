//! Where an issuer's keys come from: files that are followed and URLs that are fetched, in every way
//! that goes wrong on the way.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use super::{ask, claims, configuration, judged};
use crate::support::gateway::PRELUDE;
use crate::support::tls::{Authority, Front, Place, put};
use crate::support::token::{Key, set};
use crate::support::upstream::answer;
use crate::support::wait::stays;
use crate::support::{Gateway, Nobody, Upstream, Watch, wait_until};

/// Requests do not wait for keys much longer than a second.
const BOUNDED: Duration = Duration::from_secs(4);

/// Whoever publishes keys: its answer can be changed at any time. No answer: it keeps silent.
struct Publisher {
    server: Upstream,
    answer: Arc<Mutex<Option<Vec<u8>>>>,
}

impl Publisher {
    fn new() -> Self {
        let answer = Arc::new(Mutex::new(None::<Vec<u8>>));
        let given = Arc::clone(&answer);
        let server = Upstream::scripted(move |mut peer| {
            while peer.request().is_some() {
                let bytes = given.lock().clone();
                let Some(bytes) = bytes else { continue };
                // What is too much is not read to its end.
                if peer.try_send(bytes).is_err() {
                    return;
                }
            }
        });
        Self { server, answer }
    }

    fn of<'k>(keys: impl IntoIterator<Item = (&'k str, &'k Key)>) -> Self {
        let publisher = Self::new();
        publisher.publish(keys);
        publisher
    }

    fn publish<'k>(&self, keys: impl IntoIterator<Item = (&'k str, &'k Key)>) {
        let keys = keys.into_iter().map(|(kid, key)| key.jwk(kid));
        self.answers(ok(&set(keys)));
    }

    fn answers(&self, bytes: Vec<u8>) {
        *self.answer.lock() = Some(bytes);
    }

    fn keeps_silent(&self) {
        *self.answer.lock() = None;
    }

    fn url(&self) -> String {
        format!("http://{}/keys?of=idp", self.server.address)
    }
}

fn ok(body: &str) -> Vec<u8> {
    answer("200 OK", "Content-Type: application/json\r\n", body)
}

fn error(gateway: &Gateway) -> Option<String> {
    let status = gateway.admin_get("/status").json();
    status["issuers"][0]["error"].as_str().map(str::to_owned)
}

fn refreshes(gateway: &Gateway, result: &str) -> f64 {
    gateway.series(&format!(
        "forecourt_jwks_refreshes_total{{issuer=\"idp\",result=\"{result}\"}}"
    ))
}

fn keys(gateway: &Gateway) -> f64 {
    gateway.series("forecourt_jwks_keys{issuer=\"idp\"}")
}

/// Once the gateway has fetched the keys that it is published at the start.
#[track_caller]
fn has_fetched(gateway: &Gateway) {
    wait_until("keys were fetched", || refreshes(gateway, "success") == 1.0);
}

#[test]
fn a_file_is_followed_and_the_last_good_keys_are_kept() {
    let upstream = Upstream::recording();
    let (first, second) = (Key::p256(), Key::p256());
    let place = Place::new();
    let file = place.directory.path().join("keys.json");
    put(&file, &set([first.jwk("k")]));
    let jwks = place.at("keys.json");
    let gateway = Gateway::start(&configuration(&upstream, &jwks, ""));
    let (by_first, by_second) = (
        first.token("k", &claims("alice")),
        second.token("k", &claims("alice")),
    );
    assert_eq!(ask(&gateway, &by_first).status, 200);
    assert_eq!(ask(&gateway, &by_second).status, 401);
    for (content, why) in [
        ("", "is no JSON"),
        ("{\"keys\":[]}", "holds no key"),
        (
            "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}",
            "is symmetric",
        ),
    ] {
        put(&file, content);
        wait_until(why, || error(&gateway).is_some_and(|it| it.contains(why)));
        assert_eq!(ask(&gateway, &by_first).status, 200);
        let status = gateway.admin_get("/status").json();
        let refused = status["refused_files"][&jwks].as_str().unwrap();
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(refreshes(&gateway, "failure"), 3.0);
    put(&file, &set([second.jwk("k"), first.jwk("old")]));
    wait_until("the new keys", || ask(&gateway, &by_second).status == 200);
    assert_eq!(ask(&gateway, &by_first).status, 401);
    assert_eq!((error(&gateway), keys(&gateway)), (None, 2.0));
    assert_eq!(refreshes(&gateway, "success"), 1.0);
    // An unknown key is a reason for nothing.
    let watch = Watch::start();
    assert_eq!(
        ask(&gateway, &first.token("new", &claims("alice"))).status,
        401
    );
    assert!(watch.elapsed() < BOUNDED);
}

#[test]
fn a_file_without_keys_is_a_problem_at_the_start_and_in_a_reload() {
    use forecourt::app::{Options, load};
    let upstream = Upstream::recording();
    let place = Place::new();
    let at = |file: &str| place.directory.path().join(file);
    put(&at("garbage.json"), "-----BEGIN PRIVATE KEY-----\ns3cret\n");
    put(&at("empty.json"), "{\"keys\":[]}");
    let key = Key::p256();
    put(&at("good.json"), &set([key.jwk("k")]));
    let text = |file: &str| configuration(&upstream, &place.at(file), "");
    for (file, why) in [
        ("missing.json", "cannot be read: No such file"),
        ("garbage.json", "is no JSON (line 1, column 2)"),
        ("empty.json", "holds no key"),
    ] {
        fs::write(at("forecourt.toml"), format!("{PRELUDE}{}", text(file))).unwrap();
        let problems = load(&Options::new(at("forecourt.toml")))
            .unwrap_err()
            .to_string();
        assert!(problems.contains("issuer.idp.jwks"), "{problems}");
        assert!(problems.contains(why), "{problems}");
        assert!(!problems.contains("s3cret"), "{problems}");
    }
    let gateway = Gateway::start(&text("good.json"));
    let token = key.token("k", &claims("alice"));
    for file in ["missing.json", "garbage.json", "empty.json"] {
        gateway.write(&text(file));
        assert!(gateway.inner.reload().is_err(), "{file}");
        assert_eq!(ask(&gateway, &token).status, 200);
    }
}

#[test]
fn keys_at_a_url_are_fetched_at_the_start_and_then_again_and_again() {
    let upstream = Upstream::recording();
    let key = Key::p256();
    let publisher = Publisher::of([("k", &key)]);
    let gateway = Gateway::start(&configuration(
        &upstream,
        &publisher.url(),
        "refresh = \"1s\"",
    ));
    // Whoever comes before the keys waits for them.
    assert_eq!(ask(&gateway, &key.token("k", &claims("alice"))).status, 200);
    wait_until("it is fetched again", || publisher.server.count() >= 3);
    let arrival = &publisher.server.arrivals()[0];
    assert_eq!(arrival.head.start, "GET /keys?of=idp HTTP/1.1");
    let host = publisher.server.address.to_string();
    assert_eq!(arrival.head.one("host").unwrap(), host);
    assert!(arrival.head.one("authorization").is_none());
    assert_eq!(error(&gateway), None);
    // The same keys are no change: what was believed is known.
    assert_eq!(ask(&gateway, &key.token("k", &claims("bob"))).status, 200);
    let fetched = publisher.server.count();
    wait_until("it is fetched again", || publisher.server.count() > fetched);
    let token = key.token("k", &claims("carol"));
    assert_eq!(ask(&gateway, &token).status, 200);
    wait_until("and again", || publisher.server.count() > fetched + 2);
    assert_eq!(ask(&gateway, &token).status, 200);
    assert_eq!(judged(&gateway, "idp", "cached"), 1.0);
}

#[test]
fn nothing_waits_for_an_issuer_that_is_down() {
    let upstream = Upstream::recording();
    let nobody = Nobody::new();
    let url = format!("http://{}/keys", nobody.address);
    let watch = Watch::start();
    let gateway = Gateway::start(&configuration(&upstream, &url, ""));
    assert!(watch.elapsed() < BOUNDED, "after {:?}", watch.elapsed());
    assert_eq!(gateway.admin_get("/readyz").status, 200);
    wait_until("it was told", || error(&gateway).is_some());
    let token = Key::p256().token("k", &claims("alice"));
    assert_eq!(ask(&gateway, &token).status, 401);
    assert_eq!(judged(&gateway, "idp", "unknown_key"), 1.0);
    assert_eq!((keys(&gateway), upstream.count()), (0.0, 0));
    // A reload waits for nobody either.
    gateway.write(&configuration(&upstream, &url, "refresh = \"1h\""));
    gateway.inner.reload().unwrap();
    assert!(watch.elapsed() < 3 * BOUNDED);
}

#[test]
fn a_key_that_was_published_a_moment_ago_is_fetched_by_the_request_that_meets_it() {
    let upstream = Upstream::recording();
    let (old, new) = (Key::p256(), Key::p256());
    let publisher = Publisher::of([("old", &old)]);
    let gateway = Gateway::start(&configuration(&upstream, &publisher.url(), ""));
    has_fetched(&gateway);
    publisher.publish([("old", &old), ("new", &new)]);
    assert_eq!(
        ask(&gateway, &new.token("new", &claims("alice"))).status,
        200
    );
    assert_eq!(
        ask(&gateway, &old.token("old", &claims("alice"))).status,
        200
    );
    assert_eq!(publisher.server.count(), 2);
    assert_eq!(judged(&gateway, "idp", "unknown_key"), 0.0);
    // The old one is withdrawn, which is noticed with the next fetch.
    publisher.publish([("new", &new)]);
    gateway.clock.advance(Duration::from_secs(10));
    assert_eq!(
        ask(&gateway, &old.token("unknown", &claims("alice"))).status,
        401
    );
    assert_eq!(
        ask(&gateway, &old.token("old", &claims("alice"))).status,
        401
    );
    assert_eq!(
        ask(&gateway, &new.token("new", &claims("alice"))).status,
        200
    );
    assert_eq!(publisher.server.count(), 3);
}

#[test]
fn a_flood_of_unknown_keys_is_one_fetch_in_ten_seconds() {
    let upstream = Upstream::recording();
    let (key, own) = (Key::p256(), Key::ed25519());
    let publisher = Publisher::of([("k", &key)]);
    let text = configuration(&upstream, &publisher.url(), "");
    let gateway = Gateway::start_two(&text);
    has_fetched(&gateway);
    let flood = |fetches: usize| {
        thread::scope(|scope| {
            for thread in 0..8 {
                let (gateway, own) = (&gateway, &own);
                scope.spawn(move || {
                    for number in 0..25 {
                        let token = own.token(&format!("{thread}.{number}"), &claims("alice"));
                        assert_eq!(ask(gateway, &token).status, 401);
                    }
                });
            }
        });
        assert_eq!(publisher.server.count(), fetches);
    };
    flood(2);
    flood(2);
    gateway.clock.advance(Duration::from_millis(9_999));
    flood(2);
    gateway.clock.advance(Duration::from_millis(1));
    flood(3);
    assert_eq!(judged(&gateway, "idp", "unknown_key"), 800.0);
    // The good ones are served all along, and no fetch goes on in the back.
    assert_eq!(ask(&gateway, &key.token("k", &claims("alice"))).status, 200);
    assert!(stays(Duration::from_millis(300), || publisher
        .server
        .count()
        == 3));
}

#[test]
fn whatever_an_issuer_answers_the_last_good_keys_are_kept() {
    let upstream = Upstream::recording();
    let key = Key::p256();
    let publisher = Publisher::of([("k", &key)]);
    let gateway = Gateway::start(&configuration(&upstream, &publisher.url(), ""));
    has_fetched(&gateway);
    let elsewhere = Upstream::answering(ok(&set([Key::p256().jwk("k")])));
    let away = format!("Location: http://{}/keys\r\n", elsewhere.address);
    let keyset = set([Key::p256().jwk("k")]);
    let mut failures = 0.0;
    let mut fail = |bytes: Vec<u8>, why: &str| {
        publisher.answers(bytes);
        gateway.clock.advance(Duration::from_secs(10));
        let watch = Watch::start();
        assert_eq!(
            ask(&gateway, &key.token("unknown", &claims("alice"))).status,
            401
        );
        assert!(watch.elapsed() < BOUNDED);
        wait_until(why, || error(&gateway).is_some_and(|it| it.contains(why)));
        failures += 1.0;
        assert_eq!(refreshes(&gateway, "failure"), failures, "{why}");
        assert_eq!(ask(&gateway, &key.token("k", &claims(why))).status, 200);
        assert_eq!(keys(&gateway), 1.0);
    };
    fail(
        answer("503 Service Unavailable", "", &keyset),
        "answered 503",
    );
    fail(answer("404 Not Found", "", &keyset), "answered 404");
    fail(answer("204 No Content", "", ""), "answered 204");
    fail(
        answer("302 Found", &away, ""),
        "answered 302, and redirects are not followed",
    );
    fail(ok(""), "what came is no JSON");
    fail(
        ok("<html>s3cret</html>"),
        "what came is no JSON (line 1, column 1)",
    );
    fail(ok("{\"keys\":[{\"kty\":\"oct\"}]}"), "is symmetric");
    fail(
        ok(&format!("{keyset}{}", " ".repeat(1 << 20))),
        "length limit exceeded",
    );
    fail(b"no HTTP\r\n\r\n".to_vec(), "invalid response");
    fail(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_vec(),
        "invalid response",
    );
    assert_eq!(elsewhere.count(), 0);
    publisher.publish([("k", &key), ("unknown", &key)]);
    gateway.clock.advance(Duration::from_secs(10));
    assert_eq!(
        ask(&gateway, &key.token("unknown", &claims("alice"))).status,
        200
    );
    assert_eq!(error(&gateway), None);
}

#[test]
fn a_request_waits_for_a_silent_issuer_only_so_long() {
    let upstream = Upstream::recording();
    let key = Key::p256();
    let publisher = Publisher::of([("k", &key)]);
    let gateway = Gateway::start(&configuration(&upstream, &publisher.url(), ""));
    has_fetched(&gateway);
    publisher.keeps_silent();
    let watch = Watch::start();
    assert_eq!(
        ask(&gateway, &key.token("unknown", &claims("alice"))).status,
        401
    );
    assert!(watch.elapsed() > Duration::from_millis(900), "it waited");
    assert!(watch.elapsed() < BOUNDED, "after {:?}", watch.elapsed());
    let watch = Watch::start();
    assert_eq!(ask(&gateway, &key.token("k", &claims("alice"))).status, 200);
    assert!(watch.elapsed() < Duration::from_millis(900));
    wait_until("the fetch was given up", || {
        error(&gateway).is_some_and(|it| it.contains("no response head in time"))
    });
}

#[test]
fn keys_come_over_tls_from_whom_the_roots_vouch_for() {
    let upstream = Upstream::recording();
    let key = Key::p256();
    let publisher = Publisher::of([("k", &key)]);
    let place = Place::new();
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    let stranger = Authority::new("stranger");
    put(&place.directory.path().join("other.pem"), &stranger.pem());
    let own = place.authority.issue(&["127.0.0.1"]);
    let front = Front::new(publisher.server.address, &own, None);
    let url = format!("https://{}/keys", front.address);
    let with = |ca: &str| {
        let ca = format!("ca = \"{}\"", place.at(ca));
        configuration(&upstream, &url, &ca)
    };
    let gateway = Gateway::start(&with("other.pem"));
    wait_until("it is not believed", || {
        error(&gateway).is_some_and(|it| it.starts_with("no TLS"))
    });
    let token = key.token("k", &claims("alice"));
    assert_eq!(ask(&gateway, &token).status, 401);
    assert_eq!(publisher.server.count(), 0);
    // With other roots, which are followed as they change.
    put(
        &place.directory.path().join("other.pem"),
        &place.authority.pem(),
    );
    wait_until("the roots are replaced", || {
        gateway.clock.advance(Duration::from_secs(10));
        ask(&gateway, &token).status == 200
    });
    gateway.write(&with("ca.pem"));
    gateway.inner.reload().unwrap();
    assert_eq!(ask(&gateway, &token).status, 200);
}

#[test]
fn a_reload_brings_issuers_and_takes_them_away() {
    let upstream = Upstream::recording();
    let (key, other) = (Key::p256(), Key::p256());
    let publisher = Publisher::of([("k", &key)]);
    let second = Publisher::of([("k", &other)]);
    let of_second = format!(
        "[issuer.second]\nissuer = \"second\"\naudience = \"forecourt\"\njwks = \"{}\"\n",
        second.url()
    );
    let gateway = Gateway::start(&configuration(&upstream, &publisher.url(), ""));
    let token = key.token("k", &claims("alice"));
    assert_eq!(ask(&gateway, &token).status, 200);
    // Another rhythm: the keys that are known stay.
    publisher.keeps_silent();
    gateway.write(&format!(
        "{}{of_second}",
        configuration(&upstream, &publisher.url(), "refresh = \"1h\"")
    ));
    gateway.inner.reload().unwrap();
    assert_eq!(ask(&gateway, &token).status, 200);
    let mut claims = claims("alice");
    claims["iss"] = "second".into();
    let of_other = other.token("k", &claims);
    assert_eq!(ask(&gateway, &of_other).status, 200);
    let names = |gateway: &Gateway| -> BTreeSet<String> {
        let status = gateway.admin_get("/status").json();
        let issuers = status["issuers"].as_array().unwrap().iter();
        issuers
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&gateway).len(), 2);

    // One's key does not verify the other's tokens.
    let mut claims = super::claims("alice");
    claims["iss"] = "second".into();
    assert_eq!(ask(&gateway, &key.token("k", &claims)).status, 401);

    gateway.write(&configuration(
        &upstream,
        &publisher.url(),
        "refresh = \"1h\"",
    ));
    gateway.inner.reload().unwrap();
    assert_eq!(ask(&gateway, &of_other).status, 401);
    assert_eq!(ask(&gateway, &token).status, 200);
    assert_eq!(names(&gateway), BTreeSet::from(["idp".to_owned()]));
    let left: Vec<_> = gateway.metrics().into_keys().collect();
    assert!(
        !left.iter().any(|it| it.contains("issuer=\"second\"")),
        "{left:?}"
    );
    let fetched = second.server.count();
    assert!(stays(Duration::from_millis(300), || second.server.count()
        == fetched));
    let shown = gateway.admin_get("/config").json();
    assert_eq!(shown["configuration"]["issuer"]["second"], Value::Null);
}
