//! Callers that show a certificate, or should.

use rustls::version::{TLS12, TLS13};

use crate::support::call::{call, post};
use crate::support::gateway::dealer;
use crate::support::tls::{Authority, Place, Speaker, is_let_in, put, secured};
use crate::support::{Gateway, Upstream, wait_until};

fn start(place: &Place, upstream: &Upstream, demand: &str) -> Gateway {
    let tls = format!(
        "{}, client_ca = \"{}\", client_certificate = \"{demand}\"",
        place.pair("usual"),
        place.at("buyers.pem")
    );
    Gateway::start_whole(&secured(&tls, &dealer(upstream)))
}

#[track_caller]
fn failures(gateway: &Gateway, reason: &str) -> f64 {
    gateway.series(&format!(
        "forecourt_tls_handshake_failures_total{{listener=\"public\",reason=\"{reason}\"}}"
    ))
}

#[test]
fn required_and_optional() {
    let upstream = Upstream::recording();
    let place = Place::new();
    place.issue("usual", &["gw.example"]);
    let (buyers, strangers) = (Authority::new("buyers"), Authority::new("strangers"));
    put(&place.directory.path().join("buyers.pem"), &buyers.pem());
    let right = buyers.issue(&["buyer.example"]);
    let wrong = strangers.issue(&["buyer.example"]);
    let late = buyers.issue_with(&["buyer.example"], |params| {
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    });
    for demand in ["required", "optional"] {
        let gateway = start(&place, &upstream, demand);
        for versions in [[&TLS12], [&TLS13]] {
            let enters = |own| {
                let speaker = Speaker::new(&place.authority, &versions, own);
                is_let_in(&speaker, gateway.address(), "gw.example")
            };
            assert!(enters(Some(&right)), "{demand}");
            assert!(!enters(Some(&wrong)), "{demand}");
            assert!(!enters(Some(&late)), "{demand}");
            assert_eq!(enters(None), demand == "optional");
        }
        let missing = if demand == "required" { 2.0 } else { 0.0 };
        wait_until("counted", || failures(&gateway, "certificate") == 4.0);
        wait_until("counted", || {
            failures(&gateway, "no_certificate") == missing
        });
    }
}

#[test]
fn a_changed_authority_is_believed_and_the_old_one_is_not() {
    let upstream = Upstream::recording();
    let place = Place::new();
    place.issue("usual", &["gw.example"]);
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let file = place.directory.path().join("buyers.pem");
    put(&file, &old.pem());
    let gateway = start(&place, &upstream, "required");
    let address = gateway.address();
    let speaker = |authority: &Authority| {
        let own = authority.issue(&["buyer.example"]);
        Speaker::showing(&place.authority, &own)
    };
    let (of_old, of_new) = (speaker(&old), speaker(&new));
    assert!(is_let_in(&of_old, address, "gw.example"));
    assert!(!is_let_in(&of_new, address, "gw.example"));
    // Its next handshake would be a resumed one.
    let mut open = of_old.connect(address, "gw.example");
    assert_eq!(open.ask(post(call("1"))).status, 200);
    assert!(open.is_resumed());

    // Both for a while, as one changes an authority.
    put(&file, &format!("{}{}", old.pem(), new.pem()));
    wait_until("the new one is believed", || {
        is_let_in(&of_new, address, "gw.example")
    });
    assert!(is_let_in(&of_old, address, "gw.example"));
    put(&file, &new.pem());
    // Not even by a session from before.
    wait_until("the old one is not", || {
        !is_let_in(&of_old, address, "gw.example")
    });
    assert!(is_let_in(&of_new, address, "gw.example"));
    // A connection that is open stays.
    assert_eq!(open.ask(post(call("2"))).status, 200);
    // Roots that cannot be read leave those that could.
    put(
        &file,
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    gateway.inner.reload().unwrap();
    let refused = &gateway.admin_get("/status").json()["refused_files"];
    let why = refused[place.at("buyers.pem")].as_str().unwrap();
    assert!(why.contains("is no root"), "{refused}");
    assert!(is_let_in(&of_new, address, "gw.example"));
    assert!(!is_let_in(&of_old, address, "gw.example"));
}

#[test]
fn a_session_of_one_listener_opens_no_other() {
    let upstream = Upstream::recording();
    let place = Place::new();
    place.issue("usual", &["gw.example"]);
    put(
        &place.directory.path().join("buyers.pem"),
        &Authority::new("buyers").pem(),
    );
    let strict = format!(
        "[listener.strict]\naddress = \"127.0.0.1:0\"\ntls = {{ {}, client_ca = \"{}\", \
         client_certificate = \"required\" }}\n{}",
        place.pair("usual"),
        place.at("buyers.pem"),
        dealer(&upstream)
    );
    let gateway = Gateway::start_whole(&secured(&place.pair("usual"), &strict));
    let strict = gateway.inner.address("strict").unwrap();
    for version in [&TLS12, &TLS13] {
        let speaker = Speaker::version(&place.authority, version);
        assert!(is_let_in(&speaker, gateway.address(), "gw.example"));
        assert!(!is_let_in(&speaker, strict, "gw.example"));
    }
}
