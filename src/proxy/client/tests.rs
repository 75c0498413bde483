//! Chains of proxies, honest and forged, in both headers; and that nobody can be anybody by writing
//! to the left of what a trusted proxy wrote.

use std::rc::Rc;

use proptest::prelude::*;
use tokio::time::Instant;

use super::*;
use crate::observe::Metrics;
use crate::state::{Listener, Networks};

/// A connection from a peer to a listener that trusts 10.0.0.0/8 and 2001:db8:f::/48.
fn from(peer: &str, client_header: ClientHeader) -> Connection {
    let trusted = ["10.0.0.0/8", "2001:db8:f::/48"].map(|it| it.parse().unwrap());
    let listener = Listener {
        trusted_proxies: Networks::of(trusted.into()),
        client_header,
        ..Listener::bare("public", Metrics::new("0").listener("public"))
    };
    let peer = std::net::SocketAddr::new(peer.parse().unwrap(), 4711);
    Connection::new(peer, Rc::new(listener), "http", Instant::now())
}

fn headers(lines: &[(&'static str, &str)]) -> Fields {
    let mut headers = http::HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    Fields::from(&headers)
}

/// Whom these lines make the client, behind the trusted 10.0.0.1.
fn client(client_header: ClientHeader, lines: &[&str]) -> String {
    let name = match client_header {
        ClientHeader::XForwardedFor => "x-forwarded-for",
        ClientHeader::Forwarded => "forwarded",
    };
    let lines: Vec<_> = lines.iter().map(|line| (name, *line)).collect();
    let told = told(&from("10.0.0.1", client_header), &headers(&lines)).unwrap();
    assert_eq!(told.forwarded_for, told.address.to_string());
    told.address.to_string()
}

#[test]
fn x_forwarded_for_is_walked_from_the_right() {
    for (lines, expected) in [
        (&["192.0.2.7"][..], "192.0.2.7"),
        // Whatever a caller wrote itself stands to the left.
        (&["198.51.100.9, 192.0.2.7"], "192.0.2.7"),
        (&["198.51.100.9", "192.0.2.7"], "192.0.2.7"),
        (&["192.0.2.7, 10.1.1.1"], "192.0.2.7"),
        (
            &["198.51.100.9, 192.0.2.7,10.1.1.1 ,\t10.2.2.2"],
            "192.0.2.7",
        ),
        (
            &["198.51.100.9, 192.0.2.7", "10.1.1.1", "10.2.2.2"],
            "192.0.2.7",
        ),
        // All of them are ours: the one that began it.
        (&["10.3.3.3, 10.2.2.2"], "10.3.3.3"),
        // Nothing was told.
        (&[], "10.0.0.1"),
        (&[""], "10.0.0.1"),
        (&[" , ,, "], "10.0.0.1"),
        // Empty members are none.
        (&["192.0.2.7,, 10.1.1.1,"], "192.0.2.7"),
        (&["192.0.2.7", "", "10.1.1.1"], "192.0.2.7"),
        // Ports, brackets, both families.
        (&["192.0.2.7:8080"], "192.0.2.7"),
        (&["2001:db8::7"], "2001:db8::7"),
        (&["[2001:db8::7]"], "2001:db8::7"),
        (&["[2001:db8::7]:8080"], "2001:db8::7"),
        (&["192.0.2.7, 2001:db8:f::1, ::ffff:10.1.1.1"], "192.0.2.7"),
        (&["::ffff:192.0.2.7"], "192.0.2.7"),
        // What is no address ends the walk at the last that is certain.
        (&["unknown"], "10.0.0.1"),
        (&["192.0.2.7, unknown"], "10.0.0.1"),
        (&["192.0.2.7, unknown, 10.1.1.1"], "10.1.1.1"),
        (&["192.0.2.7, _hidden, 10.1.1.1"], "10.1.1.1"),
        (&["192.0.2.7, proxy.internal, 10.1.1.1"], "10.1.1.1"),
        (&["192.0.2.7, 10.1.1.1.1"], "10.0.0.1"),
        (&["192.0.2.7, 010.1.1.1"], "10.0.0.1"),
        (&["192.0.2.7, 10.1.1.1:"], "10.0.0.1"),
        (&["192.0.2.7, 10.1.1.1:65536"], "10.0.0.1"),
        (&["192.0.2.7, 10.1.1.1:+1"], "10.0.0.1"),
        (&["192.0.2.7, [10.1.1.1]"], "10.0.0.1"),
        (&["192.0.2.7, [2001:db8:f::1"], "10.0.0.1"),
        (&["192.0.2.7, [2001:db8:f::1]x"], "10.0.0.1"),
        (&["192.0.2.7, fe80::1%eth0"], "10.0.0.1"),
        (&["192.0.2.7, 10.1.1.1 10.2.2.2"], "10.0.0.1"),
        (&["192.0.2.7; 10.1.1.1"], "10.0.0.1"),
        (&["\"192.0.2.7\""], "10.0.0.1"),
        (&["for=192.0.2.7"], "10.0.0.1"),
        (&["192.0.2.7\u{e9}"], "10.0.0.1"),
    ] {
        let found = client(ClientHeader::XForwardedFor, lines);
        assert_eq!(found, expected, "{lines:?}");
    }
}

#[test]
fn forwarded_is_walked_from_the_right() {
    for (lines, expected) in [
        (&["for=192.0.2.7"][..], "192.0.2.7"),
        (&["For=\"192.0.2.7:8080\";proto=https"], "192.0.2.7"),
        (
            &["proto=http; by=10.0.0.1; FOR=192.0.2.7 ; host=a"],
            "192.0.2.7",
        ),
        (&["for=\"[2001:db8::7]:8080\""], "2001:db8::7"),
        (&["for=\"[2001:db8::7]:_port\""], "2001:db8::7"),
        (
            &["for=198.51.100.9, for=192.0.2.7, for=10.1.1.1"],
            "192.0.2.7",
        ),
        (
            &["for=198.51.100.9", "for=192.0.2.7", "for=10.1.1.1"],
            "192.0.2.7",
        ),
        (
            &["for=192.0.2.7;secret=\"a, b; for=10.9.9.9\""],
            "192.0.2.7",
        ),
        (&[], "10.0.0.1"),
        (&["", ", ,"], "10.0.0.1"),
        // A caller that leaves a quote open takes nothing of what comes after it.
        (&["for=\"198.51.100.9, for=192.0.2.7"], "192.0.2.7"),
        (
            &["for=198.51.100.9;x=\", for=\"[2001:db8::7]\""],
            "2001:db8::7",
        ),
        (&["for=198.51.100.9;x=\"\\, for=192.0.2.7"], "192.0.2.7"),
        // Names, nothing, and what is not one value.
        (&["for=192.0.2.7, for=unknown"], "10.0.0.1"),
        (&["for=192.0.2.7, for=_gateway, for=10.1.1.1"], "10.1.1.1"),
        (&["for=192.0.2.7, proto=https"], "10.0.0.1"),
        (&["for=192.0.2.7, for=10.1.1.1;for=10.2.2.2"], "10.0.0.1"),
        (&["for=192.0.2.7, for"], "10.0.0.1"),
        (&["for=192.0.2.7, for="], "10.0.0.1"),
        (&["for=192.0.2.7, for=\"10.1.1.1"], "10.0.0.1"),
        (&["for=192.0.2.7, for=10.1.1.1\""], "10.0.0.1"),
        (&["for=192.0.2.7, for=\"10.1.1.1\\\"\""], "10.0.0.1"),
        // Without brackets an address and a port cannot be told apart.
        (&["for=192.0.2.7, for=\"2001:db8:f::1\""], "10.0.0.1"),
        (&["192.0.2.7"], "10.0.0.1"),
    ] {
        let found = client(ClientHeader::Forwarded, lines);
        assert_eq!(found, expected, "{lines:?}");
    }
}

#[test]
fn the_walk_is_bounded() {
    let proxies = vec!["10.1.1.1"; MOST].join(", ");
    let line = format!("192.0.2.7, {proxies}");
    assert_eq!(client(ClientHeader::XForwardedFor, &[&line]), "10.1.1.1");
    let line = format!("192.0.2.7{}", &proxies["10.1.1.1".len()..]);
    assert_eq!(client(ClientHeader::XForwardedFor, &[&line]), "192.0.2.7");
    let line = ",".repeat(30_000) + "192.0.2.7" + &",".repeat(30_000);
    assert_eq!(client(ClientHeader::XForwardedFor, &[&line]), "10.0.0.1");
}

#[test]
fn nobody_is_believed_but_who_is_trusted_and_only_in_one_header() {
    let both = headers(&[
        ("x-forwarded-for", "192.0.2.7"),
        (
            "forwarded",
            "for=198.51.100.9;proto=https;host=other.example",
        ),
    ]);
    let by = |peer, header| told(&from(peer, header), &both).map(|told| told.address.to_string());
    for header in ClientHeader::ALL {
        assert_eq!(by("192.0.2.1", header), None);
        assert_eq!(by("2001:db8:e::1", header), None);
        let expected = match header {
            ClientHeader::XForwardedFor => "192.0.2.7",
            ClientHeader::Forwarded => "198.51.100.9",
        };
        assert_eq!(by("10.0.0.1", header).as_deref(), Some(expected));
        assert_eq!(by("::ffff:10.0.0.1", header).as_deref(), Some(expected));
        assert_eq!(by("2001:db8:f::1", header).as_deref(), Some(expected));
    }
}

#[test]
fn scheme_and_host_are_taken_where_they_are_single_and_valid() {
    let by = |lines: &[(&'static str, &str)]| {
        let told = told(
            &from("10.0.0.1", ClientHeader::XForwardedFor),
            &headers(lines),
        )
        .unwrap();
        let host = told.host.as_ref().map(|it| it.to_str().unwrap().to_owned());
        (told.scheme, host)
    };
    let (proto, host) = ("x-forwarded-proto", "x-forwarded-host");
    for (value, expected) in [
        ("https", Some("https")),
        ("HTTP", Some("http")),
        ("https, http", None),
        ("ftp", None),
        ("", None),
    ] {
        assert_eq!(by(&[(proto, value)]), (expected, None), "{value}");
    }
    assert_eq!(by(&[(proto, "https"), (proto, "https")]).0, None);
    for (value, is_host) in [
        ("dealer.example.com", true),
        ("dealer.example.com:8443", true),
        ("[2001:db8::7]:8443", true),
        ("a.example, b.example", false),
        ("user@a.example", false),
        ("a.example/path", false),
        ("", false),
    ] {
        let expected = is_host.then(|| value.to_owned());
        assert_eq!(by(&[(host, value)]), (None, expected), "{value}");
    }
    assert_eq!(by(&[(host, "a.example"), (host, "a.example")]).1, None);
}

#[test]
fn scheme_and_host_of_forwarded_stand_beside_the_client() {
    let by = |line: &str| {
        let connection = from("10.0.0.1", ClientHeader::Forwarded);
        let told = told(&connection, &headers(&[("forwarded", line)])).unwrap();
        let host = told.host.as_ref().map(|it| it.to_str().unwrap().to_owned());
        (told.scheme, host)
    };
    let told = (Some("https"), Some("dealer.example.com:8443".to_owned()));
    let client = "for=192.0.2.7;proto=https;host=\"dealer.example.com:8443\"";
    assert_eq!(by(client), told);
    assert_eq!(
        by(&format!("{client}, for=10.1.1.1;proto=http;host=inner")),
        told
    );
    // What stands left of the client is its own invention.
    assert_eq!(
        by("for=1.1.1.1;proto=https;host=a.example, for=192.0.2.7"),
        (None, None)
    );
    assert_eq!(by("for=192.0.2.7;proto=gopher;host=a/b"), (None, None));
    assert_eq!(by("for=192.0.2.7;proto=https;proto=http"), (None, None));
}

fn line() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            Just(",".to_owned()),
            Just("\"".to_owned()),
            Just(";".to_owned()),
            Just("=".to_owned()),
            Just("\\".to_owned()),
            Just("for=".to_owned()),
            Just("10.1.1.1".to_owned()),
            Just("192.0.2.66".to_owned()),
            Just("[2001:db8:f::1]".to_owned()),
            "[ -~]{0,8}",
        ],
        0..12,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    /// Whatever a caller sends, the proxy that it reaches adds the caller's true address to the
    /// right, in the same line or in one of its own: that is the client.
    #[test]
    fn what_a_caller_writes_does_not_make_it_another(
        forged in proptest::collection::vec(line(), 0..3),
        apart in any::<bool>(),
        client_address in any::<[u8; 3]>(),
        proxies in 0_usize..4,
        forwarded in any::<bool>(),
    ) {
        let [a, b, c] = client_address;
        let truth = IpAddr::from([192, a, b, c]);
        let (header, true_entry, proxy) = if forwarded {
            (ClientHeader::Forwarded, format!("for={truth};proto=https"), "for=10.7.7.7")
        } else {
            (ClientHeader::XForwardedFor, truth.to_string(), "10.7.7.7")
        };
        let mut lines = forged;
        let appended = [vec![true_entry], vec![proxy.to_owned(); proxies]].concat();
        match lines.last_mut().filter(|_| !apart) {
            Some(last) => {
                last.push_str(", ");
                last.push_str(&appended.join(", "));
            }
            None => lines.extend(appended),
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        prop_assert_eq!(client(header, &lines), truth.to_string());
    }
}
