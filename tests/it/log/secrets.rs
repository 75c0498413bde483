//! At the most verbose level, by every protocol, no header value and no body is in any log.

use std::fs;

use crate::support::frames::{Frames, HEADERS, block};
use crate::support::gateway::{PRELUDE, dealer_at};
use crate::support::http2::Dealer;
use crate::support::process::Process;
use crate::support::tls::{Front, Place, put};
use crate::support::ways::{Caller, SPEECHES};
use crate::support::{Client, Post, U, Upstream};

/// What must not be anywhere, each in another place of a call.
const SECRETS: [&str; 9] = [
    "s3cret-key",
    "s3cret-bearer",
    "s3cret-cookie",
    "s3cret-version",
    "s3cret-extension",
    "s3cret-header",
    "s3cret-query",
    "s3cret-text",
    "s3cret-answer",
];

fn fields() -> Vec<(&'static str, String)> {
    vec![
        ("x-api-key", "s3cret-key".into()),
        ("authorization", "Bearer s3cret-bearer".into()),
        ("cookie", "session=s3cret-cookie".into()),
        (
            "a2a-extensions",
            format!("{U}, https://x.example/s3cret-extension"),
        ),
        ("x-more", "s3cret-header".into()),
    ]
}

const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"s3cret-text"}]}}}"#;

#[test]
fn nothing_is_in_any_log_at_the_most_verbose_level() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nSet-Cookie: s3cret-answer\r\n\
                  Content-Length: 25\r\n\r\n{\"result\":\"s3cret-answer\"}";
    let one = Upstream::answering(answer);
    // One that breaks off, and one that answers nonsense.
    let broken = Upstream::answering("HTTP/1.1 2x0 s3cret-answer\r\nX Y: s3cret-answer\r\n\r\n");
    let two = Dealer::start();
    let place = Place::new();
    place.issue("own", &["gw.example"]);
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    let own = place.authority.issue(&["127.0.0.1"]);
    let front = Front::new(two.address, &own, None);
    let over_tls = format!("http2 = true\nca = \"{}\"", place.at("ca.pem"));
    let configuration = format!(
        "{}level = \"trace\"\n[listener.secure]\naddress = \"127.0.0.1:0\"\ntls = {{ {} }}\n\
         [callers]\nidentify = [\"header:x-api-key\", \"address\"]\n\
         [caller.acme]\nkey_sha256 = \"{:064}\"\n{}\n\
         [upstream.two]\nurl = \"https://{}/a2a\"\n{over_tls}\n\
         [endpoint.two]\npath = \"/two\"\nupstream = \"two\"\nreport = [\"version\"]\n\
         [upstream.broken]\nurl = \"http://{}/a2a\"\n\
         [endpoint.broken]\npath = \"/broken\"\nupstream = \"broken\"\n\
         [endpoint.closed]\npath = \"/closed\"\nupstream = \"two\"\nauthenticate = \"required\"\n",
        PRELUDE,
        place.pair("own"),
        0,
        dealer_at(one.address, "", ""),
        front.address,
        broken.address,
    );
    let file = place.directory.path().join("forecourt.toml");
    fs::write(&file, configuration).unwrap();
    let mut process = Process::start(&file);
    let (addresses, _) = process.addresses_of(["public", "secure"]);
    for speech in SPEECHES {
        for path in [
            "/a2a?key=s3cret-query",
            "/two?key=s3cret-query",
            "/broken",
            "/closed",
        ] {
            for version in ["1.0", "s3cret-version"] {
                let mut fields = fields();
                fields.push(("a2a-version", version.into()));
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| (*name, &**value))
                    .collect();
                let mut caller = Caller::connect(speech, addresses, &place);
                caller.send_to(path, &fields, BODY);
                let (status, _) = caller.head();
                assert!(
                    matches!(status, 200 | 401 | 502),
                    "{speech:?} {path}: {status}"
                );
            }
        }
    }
    nonsense(addresses[0]);
    process.says("client connection ended");
    process.signal("TERM");
    assert!(process.ended().success());

    let said = process.seen.join("\n");
    let written = fs::read_to_string(place.directory.path().join("access.log")).unwrap();
    for secret in SECRETS {
        assert!(
            !said.contains(secret),
            "{secret} in {}",
            around(&said, secret)
        );
        assert!(
            !written.contains(secret),
            "{secret} in {}",
            around(&written, secret)
        );
    }
    assert!(written.lines().count() >= 32, "{written}");
    // It was verbose, and only we were.
    assert!(said.contains("\"level\":\"DEBUG\""), "{said}");
    for foreign in ["\"h2::", "\"hyper", "\"rustls", "\"tokio"] {
        assert!(!said.contains(foreign), "{foreign} in {said}");
    }
}

/// What is no HTTP, with secrets where they break it.
fn nonsense(address: std::net::SocketAddr) {
    for bytes in [
        "POST /a2a HTTP/1.1\r\nHost: gw.example\r\nX Api Key: s3cret-key\r\n\r\n",
        "POST /a2a HTTP/1.1\r\nHost: gw.example\r\nHost: gw.example\r\nX-More: s3cret-header\r\n\r\n",
        "s3cret-text\r\n\r\n",
        "POST /a2a HTTP/1.1\r\nHost: gw.example\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\ns3cret-text\r\n",
        "POST /a2a HTTP/1.1\r\nHost: gw.example\r\nContent-Type: s3cret-header\r\n\
         Content-Length: 2\r\n\r\n{}",
    ] {
        let mut client = Client::connect(address);
        client.send(bytes);
        drop(client.try_answer());
    }
    let unreadable = Post::to("/a2a").body("{\"s3cret-text\"");
    Client::connect(address).ask(unreadable.bytes());
    let mut frames = Frames::client(address, &[]);
    // An upper-case name is malformed; so is one with a space.
    for name in ["X-Api-Key", "x api key"] {
        let fields = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/a2a"),
            (":authority", "gw.example"),
            (name, "s3cret-key"),
        ];
        let stream = if name == "X-Api-Key" { 1 } else { 3 };
        if frames
            .try_send(HEADERS, 0x5, stream, &block(&fields))
            .is_err()
        {
            return;
        }
    }
    drop(frames.next());
}

/// The line that has it.
fn around<'t>(text: &'t str, what: &str) -> &'t str {
    text.lines()
        .find(|line| line.contains(what))
        .unwrap_or_default()
}
