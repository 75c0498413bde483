//! What becomes of the same requests under each row of the contract table, in files that read as
//! HTTP: what the dealer received and what the caller got.
//!
//! `UPDATE_GOLDEN=1 cargo test --test it golden` rewrites them; review the difference.

use std::fs;

use crate::support::gateway::dealer_with;
use crate::support::head::Head;
use crate::support::{Gateway, Nobody, Upstream, fixture};

/// One contract for each row of the protocol's table, and the URI it activates.
pub const RELEASES: [(&str, &str); 4] = [
    (
        "aap-1.0",
        "https://autoagentprotocol.org/extensions/a2a-automotive-retail/v1.0",
    ),
    (
        "aap-1.3",
        "https://autoagentprotocol.org/extensions/aap/v1.3",
    ),
    ("aap-2.0", "https://dealer.example/ext/aap/v2.0"),
    (
        "aap-3.0",
        "https://autoagentprotocol.org/extensions/aap/v3.0",
    ),
];

pub fn gateway(release: &str, uri: &str, upstream: &Upstream, nobody: &Nobody) -> Gateway {
    let contract = release.replacen('-', "/", 1);
    let mut pin = format!("contract = \"{contract}\"\n");
    if contract == "aap/2.0" {
        pin += &format!("extension = \"{uri}\"\n");
    }
    Gateway::start(&format!(
        "[quota.one-a-day]\nper = \"all\"\nrate = \"1/day\"\n{}\
         [upstream.down]\nurl = \"http://{}\"\n\
         [endpoint.down]\npath = \"/down\"\nupstream = \"down\"\n{pin}\
         [endpoint.limited]\npath = \"/limited\"\nupstream = \"lakeside\"\nquotas = [\"one-a-day\"]\n{pin}",
        dealer_with(upstream, "", &pin),
        nobody.address,
    ))
}

/// The bytes of a request file: lines end in CRLF, the length is added.
pub fn request(text: &str, uri: &str) -> Vec<u8> {
    let text = text.replace("{uri}", uri);
    let (head, body) = text.split_once("\n\n").unwrap();
    let body = body.trim_end();
    let head = head.replace('\n', "\r\n");
    format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Head and body as text; what differs from run to run is replaced by its name.
fn shown(head: &Head, body: &[u8], upstream: &Upstream) -> String {
    let mut text = format!("{}\n", head.start);
    for (name, value) in &head.fields {
        let value: String = value.iter().map(|byte| char::from(*byte)).collect();
        let value = match &*name.to_ascii_lowercase() {
            "date" => "DATE".to_owned(),
            "host" => value.replace(&upstream.address.to_string(), "DEALER"),
            _ => value,
        };
        text += &format!("{name}: {value}\n");
    }
    let body = String::from_utf8(body.to_vec()).unwrap();
    let body = match body.split_once(r#""error_id":""#) {
        Some((_, rest)) => body.replace(rest.split('"').next().unwrap(), "ERROR-ID"),
        None => body,
    };
    format!("{text}\n{}\n", indented(&body))
}

/// JSON text with its members on lines of their own; nothing else changes.
fn indented(json: &str) -> String {
    let mut text = String::new();
    let mut depth = 0;
    let mut in_string = false;
    let mut before = ' ';
    for character in json.chars() {
        if in_string {
            text.push(character);
            in_string = character != '"' || before == '\\';
        } else {
            let line = |depth: usize| format!("\n{}", "  ".repeat(depth));
            match character {
                '{' | '[' => {
                    depth += 1;
                    text.push(character);
                    text += &line(depth);
                }
                '}' | ']' => {
                    depth -= 1;
                    text += &line(depth);
                    text.push(character);
                }
                ',' => text += &format!(",{}", line(depth)),
                ':' => text += ": ",
                _ => text.push(character),
            }
            in_string = character == '"';
        }
        before = character;
    }
    text
}

#[allow(
    clippy::disallowed_methods,
    reason = "a switch for whoever rewrites the files"
)]
fn is_update() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

#[test]
fn the_same_requests_under_each_contract() {
    let requests = fixture::files("contract/requests", 7);
    let mut seen = 0;
    for (release, uri) in RELEASES {
        let upstream = Upstream::recording();
        let nobody = Nobody::new();
        let gateway = gateway(release, uri, &upstream, &nobody);
        for (name, text) in &requests {
            let bytes = request(std::str::from_utf8(text).unwrap(), uri);
            if name.starts_with("second-") {
                assert_eq!(gateway.ask(&bytes).status, 200);
                upstream.take();
            }
            let answer = gateway.ask(&bytes);
            let mut outcome = String::from("# What the dealer received\n\n");
            match upstream.count() {
                0 => outcome += "Nothing.\n",
                _ => {
                    let arrival = upstream.take();
                    outcome += &shown(&arrival.head, &arrival.body, &upstream);
                }
            }
            outcome += "\n# What the caller got\n\n";
            outcome += &shown(&answer.head, &answer.body, &upstream);
            let path = fixture::path("contract").join(release).join(name);
            if is_update() {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, outcome).unwrap();
                continue;
            }
            let wanted = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(outcome, wanted, "{}", path.display());
            seen += 1;
        }
        assert_eq!(fixture::files(&format!("contract/{release}"), 7).len(), 7);
    }
    assert!(is_update() || seen == 28, "{seen} files were compared");
}
