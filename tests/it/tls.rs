//! Callers over TLS: which certificate they are shown, what is negotiated, and what is turned away.

use std::fs;

use rustls::version::{TLS12, TLS13};
use tempfile::TempDir;

use crate::support::call::{call, post};
use crate::support::gateway::dealer;
use crate::support::tls::{Authority, Speaker};
use crate::support::{Gateway, Upstream};

/// A configuration in a directory of its own, with certificates beside it.
struct Place {
    directory: TempDir,
    authority: Authority,
}

impl Place {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            authority: Authority::new("Forecourt test roots"),
        }
    }

    /// Starts a gateway whose listener has this `tls` table.
    #[track_caller]
    fn start(&self, tls: &str, rest: &str) -> Gateway {
        let path = self.directory.path().join("forecourt.toml");
        fs::write(&path, configuration(tls, rest)).unwrap();
        Gateway::start_at(path)
    }
}

fn configuration(tls: &str, rest: &str) -> String {
    format!(
        "[runtime]\nworkers = 2\n[listener.public]\naddress = \"127.0.0.1:0\"\ntls = {{ {tls} }}\n\
         [admin]\naddress = \"127.0.0.1:0\"\n[log]\naccess = \"access.log\"\n{rest}"
    )
}

const USUAL: &str = "certificate = \"usual.pem\", key = \"usual.key\"";

#[test]
fn a_call_goes_through_in_both_versions() {
    let upstream = Upstream::recording();
    let place = Place::new();
    let issued = place.authority.issue(&["gw.example"]);
    issued.write(place.directory.path(), "usual");
    let gateway = place.start(USUAL, &dealer(&upstream));
    for (version, told) in [
        (&TLS12, rustls::ProtocolVersion::TLSv1_2),
        (&TLS13, rustls::ProtocolVersion::TLSv1_3),
    ] {
        let speaker = Speaker::version(&place.authority, version);
        let mut client = speaker.connect(gateway.address(), "gw.example");
        let answer = client.ask(post(call("\"req_001\"")));
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(client.version(), told);
        assert_eq!(client.protocol().unwrap(), b"http/1.1");
        assert_eq!(client.shown(), issued.der());
        let arrival = upstream.take();
        assert_eq!(arrival.head.one("x-forwarded-proto").unwrap(), "https");
        // The connection is kept.
        assert_eq!(client.ask(post(call("2"))).status, 200);
        upstream.take();
    }
}
