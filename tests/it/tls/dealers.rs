//! Dealers over TLS: whom the gateway believes, what it shows, and what a failed handshake becomes.

use crate::support::call::{call, lead};
use crate::support::gateway::dealer_at;
use crate::support::tls::{Authority, Front, Issued, Place, put};
use crate::support::wait::stays;
use crate::support::{Gateway, Nobody, PATIENCE, Peer, Upstream, Watch, wait_until};

use std::net::SocketAddr;
use std::time::Duration;

/// The usual dealer at an `https` URL.
fn secure_dealer(address: SocketAddr, of_upstream: &str) -> String {
    dealer_at(address, of_upstream, "").replace("http://", "https://")
}

fn trusting(place: &Place, file: &str) -> String {
    format!("keep_alive = \"0s\"\nca = \"{}\"", place.at(file))
}

/// The last call's outcome and why, from the access log.
fn told(gateway: &Gateway) -> (String, String) {
    let line = gateway.last_line();
    let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
    (text("outcome"), text("why"))
}

#[test]
fn a_private_authority_is_believed_where_it_is_named() {
    let upstream = Upstream::recording();
    let place = Place::new();
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    let front = Front::new(
        upstream.address,
        &place.authority.issue(&["127.0.0.1"]),
        None,
    );
    let gateway = Gateway::start(&secure_dealer(front.address, &trusting(&place, "ca.pem")));
    let answer = gateway.post(call("\"req_001\""));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let arrival = upstream.take();
    assert_eq!(arrival.head.one("host").unwrap(), front.address.to_string());
    assert_eq!(arrival.head.one("x-forwarded-proto").unwrap(), "http");
    let seen = front.seen();
    assert_eq!(seen.len(), 1);
    // An address is not asked for by name.
    assert_eq!(seen[0].name, None);
    assert_eq!(seen[0].protocol.as_deref(), Some(&b"http/1.1"[..]));
    assert_eq!(seen[0].certificate, None);
    assert_eq!(gateway.ended("ok"), 1.0);
}

#[test]
fn a_self_signed_certificate_is_its_own_root_unless_it_is_an_authority() {
    let upstream = Upstream::recording();
    let place = Place::new();
    for (is_authority, status) in [(false, 200), (true, 502)] {
        let own = Issued::self_signed(&["127.0.0.1"], is_authority);
        put(
            &place.directory.path().join("own.pem"),
            &own.certificate.pem(),
        );
        let front = Front::new(upstream.address, &own, None);
        let keys = trusting(&place, "own.pem");
        let gateway = Gateway::start(&secure_dealer(front.address, &keys));
        assert_eq!(gateway.post(call("1")).status, status);
    }
}

#[test]
fn who_is_not_believed_gets_nothing() {
    let upstream = Upstream::recording();
    let place = Place::new();
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    let late = place.authority.issue_with(&["127.0.0.1"], |params| {
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    });
    for (own, why) in [
        (
            Authority::new("strangers").issue(&["127.0.0.1"]),
            "UnknownIssuer",
        ),
        (
            place.authority.issue(&["agent.internal"]),
            "not valid for name",
        ),
        (late, "expired"),
    ] {
        let front = Front::new(upstream.address, &own, None);
        let gateway = Gateway::start(&secure_dealer(front.address, &trusting(&place, "ca.pem")));
        // A lead, which must not be sent twice: but nothing was sent.
        let answer = gateway.post(lead("\"req_001\"", None));
        assert_eq!((answer.status, answer.code()), (502, -32603));
        assert_eq!(answer.id(), "\"req_001\"");
        assert!(
            answer.text().contains("\"retryable\":true"),
            "{}",
            answer.text()
        );
        for inner in ["127.0.0.1", "certificate", "TLS"] {
            assert!(!answer.text().contains(inner), "{}", answer.text());
        }
        let (outcome, told) = told(&gateway);
        assert_eq!(outcome, "upstream_unreachable");
        assert!(told.starts_with("no TLS: ") && told.contains(why), "{told}");
        assert_eq!(front.seen().len(), 0);
    }
    assert_eq!((upstream.count(), upstream.connections()), (0, 0));
}

#[test]
fn the_name_can_be_another_than_the_urls() {
    let upstream = Upstream::recording();
    let place = Place::new();
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    let own = place.authority.issue(&["agent.internal"]);
    let front = Front::new(upstream.address, &own, None);
    let keys = format!(
        "{}\nserver_name = \"agent.internal\"",
        trusting(&place, "ca.pem")
    );
    let gateway = Gateway::start(&secure_dealer(front.address, &keys));
    assert_eq!(gateway.post(call("1")).status, 200);
    let name = front.seen()[0].name.clone();
    assert_eq!(name.as_deref(), Some("agent.internal"));
    // What is asked of the dealer is still at the URL's host.
    let host = upstream.take().head.one("host").unwrap();
    assert_eq!(host, front.address.to_string());
}

#[test]
fn a_certificate_is_shown_to_who_asks_for_it() {
    let upstream = Upstream::recording();
    let place = Place::new();
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    let buyers = Authority::new("what dealers believe");
    let own = buyers.issue(&["gateway.example"]);
    own.write(place.directory.path(), "own");
    let front = Front::new(
        upstream.address,
        &place.authority.issue(&["127.0.0.1"]),
        Some(&buyers),
    );
    let keys = format!(
        "{}\nclient_certificate = \"{}\"\nclient_key = \"{}\"",
        trusting(&place, "ca.pem"),
        place.at("own.pem"),
        place.at("own.key")
    );
    let gateway = Gateway::start(&secure_dealer(front.address, &keys));
    assert_eq!(gateway.post(call("1")).status, 200);
    assert_eq!(front.seen()[0].certificate, Some(own.der()));
    // Without one the dealer hangs up.
    let keys = trusting(&place, "ca.pem");
    let bare = Gateway::start(&secure_dealer(front.address, &keys));
    assert_eq!(bare.post(call("2")).status, 502);
    assert_eq!(upstream.count(), 1);
    // It is followed as well.
    let next = buyers.issue(&["gateway.example"]);
    next.write(place.directory.path(), "own");
    wait_until("the next one is shown", || {
        assert_eq!(gateway.post(call("3")).status, 200);
        front.seen().last().unwrap().certificate == Some(next.der())
    });
}

#[test]
fn authority_and_certificate_can_change_together() {
    let upstream = Upstream::recording();
    let place = Place::new();
    let file = place.directory.path().join("ca.pem");
    put(&file, &place.authority.pem());
    let front = Front::new(
        upstream.address,
        &place.authority.issue(&["127.0.0.1"]),
        None,
    );
    let keys = format!("ca = \"{}\"", place.at("ca.pem"));
    let gateway = Gateway::start(&secure_dealer(front.address, &keys));
    let fresh = format!("{keys}\nkeep_alive = \"0s\"");
    let impatient = Gateway::start(&secure_dealer(front.address, &fresh));
    assert_eq!(gateway.post(call("1")).status, 200);
    assert_eq!(impatient.post(call("1")).status, 200);

    let next = Authority::new("the next one");
    front.show(&next.issue(&["127.0.0.1"]));
    // Who must connect anew does not believe it, and does not resume its way past that.
    assert_eq!(impatient.post(call("2")).status, 502);
    put(&file, &next.pem());
    let watch = Watch::start();
    wait_until("the next one is believed", || {
        impatient.post(call("3")).status == 200
    });
    assert!(
        watch.elapsed() < Duration::from_secs(2),
        "{:?}",
        watch.elapsed()
    );
    assert_eq!(gateway.post(call("4")).status, 200);
}

#[test]
fn the_handshake_is_part_of_the_connect_timeout() {
    // Accepts, and never says a word.
    let upstream = Upstream::manual();
    let place = Place::new();
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    let keys = format!(
        "{}\nconnect_timeout = \"300ms\"",
        trusting(&place, "ca.pem")
    );
    let gateway = Gateway::start(&secure_dealer(upstream.address, &keys));
    let watch = Watch::start();
    let answer = gateway.post(call("1"));
    assert_eq!(answer.status, 504);
    assert!(
        answer.text().contains("\"retryable\":true"),
        "{}",
        answer.text()
    );
    assert!(watch.elapsed() < PATIENCE / 2);
    assert_eq!(told(&gateway).0, "upstream_timeout");
}

#[test]
fn a_handshake_that_comes_to_nothing_has_sent_nothing() {
    let place = Place::new();
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    let nobody = Nobody::new();
    let closing = Upstream::scripted(Peer::close);
    let resetting = Upstream::scripted(Peer::reset);
    let garbling = Upstream::scripted(|mut peer| {
        let _ = peer.try_send("HTTP/1.1 400 Bad Request\r\n\r\n");
        peer.is_closed_within(PATIENCE);
    });
    // A fatal alert: handshake_failure.
    let alerting = Upstream::scripted(|mut peer| {
        let _ = peer.try_send(b"\x15\x03\x03\x00\x02\x02\x28");
        peer.is_closed_within(PATIENCE);
    });
    for address in [
        nobody.address,
        closing.address,
        resetting.address,
        garbling.address,
        alerting.address,
    ] {
        for http2 in [false, true] {
            let keys = format!("{}\nhttp2 = {http2}", trusting(&place, "ca.pem"));
            let gateway = Gateway::start(&secure_dealer(address, &keys));
            let answer = gateway.post(lead("\"req_001\"", None));
            assert_eq!((answer.status, answer.code()), (502, -32603));
            assert_eq!(answer.id(), "\"req_001\"");
            let value = &answer.json()["error"]["data"][1]["value"];
            assert_eq!(value["retryable"], true, "{}", answer.text());
            assert_eq!(told(&gateway).0, "upstream_unreachable");
        }
    }
    // One attempt each.
    for dealer in [closing, resetting, garbling, alerting] {
        assert_eq!(dealer.connections(), 2);
    }
}

#[test]
fn a_dealer_in_clear_is_not_spoken_to_in_clear() {
    let upstream = Upstream::recording();
    let place = Place::new();
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    let gateway = Gateway::start(&secure_dealer(
        upstream.address,
        &trusting(&place, "ca.pem"),
    ));
    // The dealer waits for the end of a head: the handshake runs into its time.
    let answer = gateway.post(call("1"));
    assert!(answer.status == 504 || answer.status == 502);
    assert!(stays(Duration::from_millis(100), || upstream.count() == 0));
}

#[test]
fn a_stream_passes_over_tls_event_by_event() {
    let upstream = Upstream::manual();
    let place = Place::new();
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    let front = Front::new(
        upstream.address,
        &place.authority.issue(&["127.0.0.1"]),
        None,
    );
    let gateway = Gateway::start(&secure_dealer(front.address, &trusting(&place, "ca.pem")));
    let mut client = gateway.client();
    client.send(crate::support::call::post(call("1")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.head();
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        peer.chunk(event);
        assert_eq!(client.bytes(event.len()), event.as_bytes());
    }
    // A client that goes away closes the exchange.
    drop(client);
    assert!(peer.is_closed_within(PATIENCE));
}
