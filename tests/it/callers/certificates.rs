//! Callers known by what their client certificates say.

use rcgen::SanType;
use rustls::version::{TLS12, TLS13};

use super::*;
use crate::support::client::Client as Over;
use crate::support::http2::whole;
use crate::support::tls::{Authority, Issued, Place, Secure, Speaker, put, secured};

struct Office {
    place: Place,
    buyers: Authority,
    upstream: Upstream,
}

impl Office {
    fn new() -> Self {
        let (place, buyers) = (Place::new(), Authority::new("buyers"));
        place.issue("usual", &["gw.example"]);
        put(&place.directory.path().join("buyers.pem"), &buyers.pem());
        Self {
            place,
            buyers,
            upstream: Upstream::recording(),
        }
    }

    fn configuration(&self, callers: &str, of_endpoint: &str) -> String {
        let tls = format!(
            "{}, client_ca = \"{}\", client_certificate = \"optional\"",
            self.place.pair("usual"),
            self.place.at("buyers.pem")
        );
        let rest = format!(
            "{callers}\n{}",
            dealer_with(&self.upstream, "", of_endpoint)
        );
        secured(&tls, &rest).replace("workers = 2", "workers = 1")
    }

    /// A certificate with these alternative names beside `names`.
    fn issue(&self, names: &[&str], others: Vec<SanType>) -> Issued {
        self.buyers
            .issue_with(names, |params| params.subject_alt_names.extend(others))
    }

    fn connect(&self, gateway: &Gateway, own: Option<&Issued>) -> Over<Secure> {
        let versions = [&TLS13, &TLS12];
        let speaker = Speaker::new(&self.place.authority, &versions, own);
        speaker.connect(gateway.address(), "gw.example")
    }
}

fn status(client: &mut Over<Secure>, fields: &[(&str, &str)]) -> u16 {
    let mut post = Post::to("/a2a").body(call("1"));
    for (name, value) in fields {
        post = post.field(name, value);
    }
    client.ask(post.bytes()).status
}

fn uri(text: &str) -> SanType {
    SanType::URI(text.to_owned().try_into().unwrap())
}

#[test]
fn any_of_its_names_or_its_fingerprint_proves_a_caller() {
    let office = Office::new();
    let pinned = office.issue(&["pinned.example"], vec![]);
    let fingerprint = forecourt::credential::key::Digest::of(&pinned.der());
    let hex: String = fingerprint
        .bytes()
        .iter()
        .map(|byte| format!("{byte:02X}:"))
        .collect();
    let callers = format!(
        "[caller.acme]\nkey_sha256 = \"{}\"\n\
         certificate = [\"dns:agent.acme.example\", \"uri:spiffe://acme.example/agent\"]\n\
         [caller.beta]\ncertificate = [\"email:agent@beta.example\", \"sha256:{}\"]\n",
        digest(ACME),
        hex.trim_end_matches(':')
    );
    let gateway =
        Gateway::start_whole(&office.configuration(&callers, "authenticate = \"required\""));
    let mail = SanType::Rfc822Name("agent@beta.example".to_owned().try_into().unwrap());
    for (own, caller) in [
        (office.issue(&["Agent.Acme.example"], vec![]), Some("acme")),
        (
            office.issue(&["x.example"], vec![uri("spiffe://acme.example/agent")]),
            Some("acme"),
        ),
        (office.issue(&[], vec![mail]), Some("beta")),
        (pinned, Some("beta")),
        (office.issue(&["pinned.example"], vec![]), None),
        (
            office.issue(&["x.example"], vec![uri("spiffe://acme.example/other")]),
            None,
        ),
        (office.issue(&["*.acme.example"], vec![]), None),
    ] {
        let mut client = office.connect(&gateway, Some(&own));
        for _ in 0..2 {
            let status = status(&mut client, &[]);
            assert_eq!(status, if caller.is_some() { 200 } else { 401 });
            let line = gateway.last_line();
            assert_eq!(line["caller"], caller.unwrap_or("address 127.0.0.1"));
        }
    }
    // One that several callers are configured with proves none of them, at any endpoint that asks.
    let both = office.issue(
        &["agent.acme.example"],
        vec![SanType::Rfc822Name(
            "agent@beta.example".to_owned().try_into().unwrap(),
        )],
    );
    let mut client = office.connect(&gateway, Some(&both));
    assert_eq!(status(&mut client, &[]), 401);
    assert_eq!(
        gateway.last_line()["why"],
        "the certificate is of several callers"
    );
    assert_eq!(status(&mut client, &[("X-Api-Key", ACME)]), 401);
    // Without one, and without a key.
    let mut client = office.connect(&gateway, None);
    assert_eq!(status(&mut client, &[]), 401);
    assert_eq!(status(&mut client, &[("X-Api-Key", ACME)]), 200);
}

#[test]
fn a_certificate_beside_a_key() {
    let office = Office::new();
    let callers = format!(
        "[caller.acme]\nkey_sha256 = \"{}\"\ncertificate = \"dns:acme.example\"\n\
         [caller.beta]\nkey_sha256 = \"{}\"\n",
        digest(ACME),
        digest(BETA)
    );
    let gateway = Gateway::start_whole(&office.configuration(
        &callers,
        "authenticate = \"optional\"\nforward_credential = false",
    ));
    let known = office.issue(&["acme.example"], vec![]);
    let unknown = office.issue(&["sidecar.example"], vec![]);
    for (own, key, expected, caller) in [
        (&known, None, 200, "acme"),
        (&known, Some(ACME), 200, "acme"),
        (&known, Some(BETA), 401, "address 127.0.0.1"),
        (&known, Some("fc_other"), 401, "address 127.0.0.1"),
        // A certificate that no caller has is as none: it let the connection in, and no more.
        (&unknown, None, 200, "address 127.0.0.1"),
        (&unknown, Some(BETA), 200, "beta"),
        (&unknown, Some("fc_other"), 401, "address 127.0.0.1"),
    ] {
        let mut client = office.connect(&gateway, Some(own));
        let fields: Vec<_> = key.into_iter().map(|key| ("X-Api-Key", key)).collect();
        assert_eq!(status(&mut client, &fields), expected, "{key:?}");
        assert_eq!(gateway.last_line()["caller"], caller, "{key:?}");
    }
    // What a certificate proved takes nothing from the headers that proved nothing.
    let mut client = office.connect(&gateway, Some(&known));
    assert_eq!(status(&mut client, &[("Authorization", "Basic eDp5")]), 200);
    assert!(office.upstream.last().head.has("authorization"));
}

#[test]
fn a_resumed_session_and_a_reload_know_the_caller() {
    let office = Office::new();
    let acme = "[caller.acme]\ncertificate = \"dns:acme.example\"\n";
    let beta = acme.replace("caller.acme", "caller.beta");
    let required = "authenticate = \"required\"";
    let gateway = Gateway::start_whole(&office.configuration(acme, required));
    let own = office.issue(&["acme.example"], vec![]);
    for version in [&TLS12, &TLS13] {
        let speaker = Speaker::new(&office.place.authority, &[version], Some(&own));
        for is_resumed in [false, true] {
            let mut client = speaker.connect(gateway.address(), "gw.example");
            assert_eq!(status(&mut client, &[]), 200);
            assert_eq!(client.is_resumed(), is_resumed);
            assert_eq!(gateway.last_line()["caller"], "acme");
        }
    }
    // On a connection that is open.
    let mut client = office.connect(&gateway, Some(&own));
    for (callers, expected, caller) in [
        (acme, 200, "acme"),
        (&*beta, 200, "beta"),
        (
            &*acme.replace("acme.example", "other.example"),
            401,
            "address 127.0.0.1",
        ),
        (acme, 200, "acme"),
    ] {
        gateway.write_whole(&office.configuration(callers, required));
        gateway.inner.reload().unwrap();
        for _ in 0..2 {
            assert_eq!(status(&mut client, &[]), expected, "{callers}");
            assert_eq!(gateway.last_line()["caller"], caller);
        }
    }
}

#[test]
fn over_http2_it_is_known_as_well() {
    let office = Office::new();
    let acme = "[caller.acme]\ncertificate = \"dns:acme.example\"\n";
    let gateway = Gateway::start_whole(&office.configuration(acme, "authenticate = \"required\""));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    for (name, expected) in [("acme.example", 200), ("other.example", 401)] {
        let own = office.issue(&[name], vec![]);
        let speaker = Speaker::showing(&office.place.authority, &own).offering(&["h2"]);
        let address = gateway.address();
        runtime.block_on(async {
            let connector = tokio_rustls::TlsConnector::from(speaker.config);
            let socket = tokio::net::TcpStream::connect(address).await.unwrap();
            let server = "gw.example".try_into().unwrap();
            let stream = connector.connect(server, socket).await.unwrap();
            let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            for _ in 0..2 {
                let request = http::Request::post("https://gw.example/a2a")
                    .header("content-type", "application/json")
                    .body(())
                    .unwrap();
                let (answer, mut body) = sender.send_request(request, false).unwrap();
                body.send_data(call("1").into(), true).unwrap();
                let answer = whole(answer.await.unwrap()).await.unwrap();
                assert_eq!(answer.status(), expected, "{name}");
            }
        });
    }
}
