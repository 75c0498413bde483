//! Certificates that change while they are served: in every way that tools change them, and in every
//! way that goes wrong on the way.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustls::pki_types::CertificateDer;

use crate::support::call::{call, post};
use crate::support::gateway::dealer;
use crate::support::process::Process;
use crate::support::tls::{Issued, Place, Speaker, put, secured};
use crate::support::wait::{elapse, stays};
use crate::support::{Gateway, Upstream, Watch, wait_until};

/// New certificates serve within this after their pair is consistent.
const SOON: Duration = Duration::from_secs(2);

fn shown(gateway: &Gateway, speaker: &Speaker, name: &str) -> CertificateDer<'static> {
    speaker.connect(gateway.address(), name).shown()
}

fn comes(gateway: &Gateway, speaker: &Speaker, name: &str, issued: &Issued) {
    let watch = Watch::start();
    wait_until("the next certificate is shown", || {
        shown(gateway, speaker, name) == issued.der()
    });
    assert!(watch.elapsed() < SOON, "after {:?}", watch.elapsed());
}

/// Why the first certificate's files are not in force.
fn refused(gateway: &Gateway) -> Option<String> {
    let status = gateway.admin_get("/status").json();
    let refused = &status["listeners"][0]["certificates"][0]["refused"];
    refused.as_str().map(str::to_owned)
}

#[track_caller]
fn is_refused(gateway: &Gateway, why: &str) {
    wait_until(why, || {
        refused(gateway).is_some_and(|told| told.contains(why))
    });
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                      Transfer-Encoding: chunked\r\n\r\n";

#[test]
fn no_handshake_fails_and_no_stream_is_cut_whatever_is_written() {
    let upstream = Upstream::manual();
    let place = Place::new();
    let directory = place.directory.path();
    let first = place.issue("usual", &["gw.example"]);
    let other = place.issue("other", &["other.example"]);
    let tls = format!(
        "{}, certificates = [{{ {} }}]",
        place.pair("usual"),
        place.pair("other")
    );
    let gateway = Gateway::start_whole(&secured(&tls, &dealer(&upstream)));
    let speaker = Speaker::trusting(&place.authority);

    let mut streaming = speaker.connect(gateway.address(), "gw.example");
    streaming.send(post(call("1")));
    let mut peer = upstream.accept();
    peer.request().unwrap();
    peer.send(STREAM);
    streaming.head();
    let mut still_streams = || {
        peer.chunk("data: on\n\n");
        assert_eq!(streaming.bytes(10), b"data: on\n\n");
    };

    let is_over = AtomicBool::new(false);
    let handshakes = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (gateway, speaker) = (&gateway, &speaker);
        let (is_over, handshakes) = (&is_over, &handshakes);
        scope.spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                for name in ["gw.example", "other.example"] {
                    speaker.connect(gateway.address(), name);
                    handshakes.fetch_add(1, Ordering::SeqCst);
                }
                elapse(Duration::from_millis(50));
            }
        });
        let over = Over(is_over);
        let shows = |issued: &Issued| {
            assert_eq!(shown(gateway, speaker, "gw.example"), issued.der());
        };

        // The certificate alone, a second, then its key.
        let second = place.authority.issue(&["gw.example"]);
        put(&directory.join("usual.pem"), &second.certificate.pem());
        is_refused(gateway, "the key does not belong to the certificate");
        assert!(stays(Duration::from_secs(1), || {
            shown(gateway, speaker, "gw.example") == first.der()
        }));
        put(&directory.join("usual.key"), &second.key.serialize_pem());
        comes(gateway, speaker, "gw.example", &second);
        wait_until("all is in force", || refused(gateway).is_none());
        still_streams();

        // In place, in two pieces, with a pause in the middle of the certificate.
        let third = place.authority.issue(&["gw.example"]);
        let pem = third.certificate.pem();
        let (head, _) = pem.split_at(pem.len() / 2);
        fs::write(directory.join("usual.pem"), head).unwrap();
        elapse(Duration::from_millis(600));
        shows(&second);
        fs::write(directory.join("usual.pem"), &pem).unwrap();
        fs::write(directory.join("usual.key"), third.key.serialize_pem()).unwrap();
        comes(gateway, speaker, "gw.example", &third);
        still_streams();

        // What cannot be used.
        let pem = directory.join("usual.pem");
        put(
            &pem,
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        );
        is_refused(gateway, "the certificate cannot be understood");
        shows(&third);
        fs::remove_file(&pem).unwrap();
        is_refused(gateway, "the certificate cannot be read");
        shows(&third);
        let late = place.authority.issue_with(&["gw.example"], |params| {
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        });
        late.write(directory, "usual");
        is_refused(gateway, "the certificate is expired");
        shows(&third);
        let locked = place.authority.issue(&["gw.example"]);
        put(&pem, &locked.certificate.pem());
        put(
            &directory.join("usual.key"),
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
        );
        is_refused(gateway, "the key is encrypted");
        shows(&third);
        still_streams();

        // And after all that a good one, with other names.
        let last = place.authority.issue(&["gw.example", "new.example"]);
        last.write(directory, "usual");
        comes(gateway, speaker, "gw.example", &last);
        assert_eq!(shown(gateway, speaker, "new.example"), last.der());
        assert_eq!(shown(gateway, speaker, "other.example"), other.der());
        still_streams();
        drop(over);
    });
    assert!(handshakes.load(Ordering::SeqCst) > 50);
    let failed = gateway.metrics();
    let failed = failed
        .iter()
        .filter(|(series, _)| series.contains("handshake_failures"));
    assert_eq!(failed.map(|(_, count)| count).sum::<f64>(), 0.0);
    // The configuration was not what changed.
    assert_eq!(gateway.series("forecourt_config_generation"), 1.0);
    assert_eq!(
        gateway.series("forecourt_config_reloads_total{result=\"failure\"}"),
        0.0
    );
}

/// Ends what goes on in the background, also where the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn as_kubernetes_swaps_a_secret() {
    let upstream = Upstream::recording();
    let place = Place::new();
    let root = place.directory.path();
    let swap = |name: &str| {
        let issued = place.authority.issue(&["gw.example"]);
        let directory = root.join(format!("..{name}"));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("tls.pem"), issued.certificate.pem()).unwrap();
        fs::write(directory.join("tls.key"), issued.key.serialize_pem()).unwrap();
        symlink(format!("..{name}"), root.join("next")).unwrap();
        fs::rename(root.join("next"), root.join("..data")).unwrap();
        issued
    };
    let first = swap("v0");
    for file in ["tls.pem", "tls.key"] {
        symlink(Path::new("..data").join(file), root.join(file)).unwrap();
    }
    let gateway = Gateway::start_whole(&secured(&place.pair("tls"), &dealer(&upstream)));
    let speaker = Speaker::trusting(&place.authority);
    assert_eq!(shown(&gateway, &speaker, "gw.example"), first.der());
    for number in 1..=4 {
        let next = swap(&format!("v{number}"));
        if number % 2 == 0 {
            fs::remove_dir_all(root.join(format!("..v{}", number - 1))).unwrap();
        }
        comes(&gateway, &speaker, "gw.example", &next);
    }
}

#[test]
fn an_expired_one_replaces_only_an_expired_one() {
    let upstream = Upstream::recording();
    let place = Place::new();
    let directory = place.directory.path();
    let until = |year: i32| {
        place.authority.issue_with(&["gw.example"], |params| {
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
        })
    };
    let (first, second) = (until(2019), until(2020));
    first.write(directory, "usual");
    let gateway = Gateway::start_whole(&secured(&place.pair("usual"), &dealer(&upstream)));
    let anyone = Speaker::trusting_anyone();
    let expiry = || {
        gateway.series(
            "forecourt_tls_certificate_expiry_timestamp_seconds{listener=\"public\",name=\"gw.example\"}",
        )
    };
    assert_eq!(shown(&gateway, &anyone, "gw.example"), first.der());
    assert_eq!(expiry(), 1_546_300_800.0);
    second.write(directory, "usual");
    comes(&gateway, &anyone, "gw.example", &second);
    assert_eq!(expiry(), 1_577_836_800.0);
    let good = place.issue("usual", &["renamed.example"]);
    comes(&gateway, &anyone, "gw.example", &good);
    let metrics = gateway.metrics();
    let named = |name: &str| metrics.keys().any(|series| series.contains(name));
    // The series of a name that is gone goes with it.
    assert!(named("renamed.example") && !named("gw.example"));
    until(2021).write(directory, "usual");
    is_refused(&gateway, "is expired");
    assert_eq!(shown(&gateway, &anyone, "gw.example"), good.der());
}

#[test]
fn each_change_is_logged_once() {
    let upstream = Upstream::recording();
    let place = Place::new();
    place.issue("usual", &["gw.example"]);
    let path = place.directory.path().join("forecourt.toml");
    fs::write(&path, secured(&place.pair("usual"), &dealer(&upstream))).unwrap();
    let mut process = Process::start(&path);
    process.addresses();
    put(&place.directory.path().join("usual.pem"), "nothing\n");
    let line = process.says("cannot be used");
    assert_eq!(line["level"], "WARN");
    assert_eq!(line["file"], place.at("usual.pem"));
    assert!(
        line["why"]
            .as_str()
            .unwrap()
            .contains("holds no certificate")
    );
    // Told to look, it looks, and has nothing new to say.
    process.signal("HUP");
    process.says("configuration unchanged");
    place.issue("usual", &["gw.example"]);
    let line = process.says("certificate replaced");
    assert_eq!(line["name"], "gw.example");
    assert!(line["serial"].as_str().unwrap().len() > 8);
    process.signal("TERM");
    process.ended();
    let about = |text: &str| {
        process
            .seen
            .iter()
            .filter(|line| line.contains(text))
            .count()
    };
    // Between the two, one half may have been seen without the other.
    assert!(
        (1..=2).contains(&about("cannot be used")),
        "{:?}",
        process.seen
    );
    assert_eq!(about("certificate replaced"), 1);
    assert!(process.seen.iter().all(|line| !line.contains("PRIVATE")));
}

#[test]
fn a_reload_takes_other_files_and_waits_for_them() {
    let upstream = Upstream::recording();
    let place = Place::new();
    let first = place.issue("usual", &["gw.example"]);
    let rest = dealer(&upstream);
    let gateway = Gateway::start_whole(&secured(&place.pair("usual"), &rest));
    let speaker = Speaker::trusting(&place.authority);
    let failures = || gateway.series("forecourt_config_reloads_total{result=\"failure\"}");

    // The configuration comes first, its files later: nobody tells.
    let more = format!(
        "{}, certificates = [{{ {} }}]",
        place.pair("usual"),
        place.pair("late")
    );
    gateway.write_whole(&secured(&more, &rest));
    wait_until("refused", || failures() >= 1.0);
    assert_eq!(shown(&gateway, &speaker, "gw.example"), first.der());
    // What serves is followed meanwhile.
    let second = place.issue("usual", &["gw.example"]);
    comes(&gateway, &speaker, "gw.example", &second);
    let late = place.issue("late", &["late.example"]);
    wait_until("the second certificate is served", || {
        speaker
            .try_connect(gateway.address(), "late.example")
            .is_ok_and(|mut client| client.shown() == late.der())
    });
    assert_eq!(gateway.series("forecourt_config_generation"), 2.0);

    // Whether there is TLS, too.
    gateway.write_whole(&secured(&more, &rest).replace("tls = {", "# {"));
    gateway.inner.reload().unwrap();
    wait_until("clear text is served", || {
        let mut client = gateway.client();
        client.try_send(post(call("1"))).is_ok()
            && matches!(client.try_answer(), Ok(Some(answer)) if answer.status == 200)
    });
    assert!(
        !gateway
            .admin_get("/metrics")
            .text()
            .contains("handshake_failures_total{")
    );
}
