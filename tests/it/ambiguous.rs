//! Endpoints that serve several contracts: nothing is inferred, and what the caller supplies selects
//! contract, dialect and upstream.

use crate::support::call::{Post, call};
use crate::support::{Answer, Gateway, U, Upstream};

const V12: &str = "https://autoagentprotocol.org/extensions/aap/v1.2";
const HOUSE: &str = "https://house.example/ext/v1";

struct Ground {
    gateway: Gateway,
    /// Where calls of the contracts without an upstream of their own go.
    main: Upstream,
    /// Where calls of aap/1.2 go.
    other: Upstream,
}

/// `/both` serves aap/1.2, aap/3.0 and a house contract on A2A 0.3, in that order.
fn ground(of_endpoint: &str) -> Ground {
    let (main, other) = (Upstream::recording(), Upstream::recording());
    let gateway = Gateway::start(&format!(
        r#"
[quota.q]
per = "endpoint"
rate = "1/min"
burst = 3
[upstream.lakeside]
url = "http://{}/a2a"
[upstream.other]
url = "http://{}/old"
[contract.house]
a2a_version = "0.3"
extension = "{HOUSE}"
absent = "infer"
dialect = "tagged"
[endpoint.both]
path = "/both"
contracts = ["aap/1.2", "aap/3.0", "house"]
upstream = "lakeside"
upstreams = {{ "aap/1.2" = "other" }}
{of_endpoint}
"#,
        main.address, other.address
    ));
    Ground {
        gateway,
        main,
        other,
    }
}

impl Ground {
    fn ask(&self, versions: &[&str], extensions: &[&str]) -> Answer {
        self.ask_with(versions, extensions, &call("7"))
    }

    fn ask_with(&self, versions: &[&str], extensions: &[&str], body: &str) -> Answer {
        let mut post = Post::to("/both").body(body);
        for version in versions {
            post = post.field("A2A-Version", version);
        }
        for extension in extensions {
            post = post.field("A2A-Extensions", extension);
        }
        self.gateway.ask(post.bytes())
    }
}

#[test]
fn the_supplied_uri_selects_contract_and_upstream() {
    let ground = ground("");
    for (version, extensions, contract, goes_to_other) in [
        ("1.0", &[V12][..], "aap/1.2", true),
        ("1.0", &[U], "aap/3.0", false),
        ("1.0.3", &["https://ext.example/x", U], "aap/3.0", false),
        ("0.3", &[HOUSE], "house", false),
        ("", &[HOUSE], "house", false),
        // The URI of a contract of another version selects nothing and does no harm.
        ("1.0", &[HOUSE, V12], "aap/1.2", true),
    ] {
        let answer = ground.ask(&[version], extensions);
        assert_eq!(answer.status, 200, "{contract}");
        let (to, not_to) = if goes_to_other {
            (&ground.other, &ground.main)
        } else {
            (&ground.main, &ground.other)
        };
        let arrival = to.take();
        assert_eq!(not_to.count(), 0);
        assert_eq!(
            arrival.target(),
            if goes_to_other { "/old" } else { "/a2a" }
        );
        // What was supplied passes as it is, lines apart.
        assert_eq!(arrival.head.all("a2a-version"), [version]);
        assert_eq!(arrival.head.all("a2a-extensions"), extensions);
        // The selected URI is named back.
        let selected = match contract {
            "aap/1.2" => V12,
            "aap/3.0" => U,
            _ => HOUSE,
        };
        assert_eq!(answer.head.all("a2a-extensions"), [selected]);
        assert_eq!(ground.gateway.last_line()["contract"], contract);
    }
}

#[test]
fn nothing_is_inferred_and_the_first_contract_speaks_before_the_selection() {
    let ground = ground("");
    let version = |versions: &[&str], extensions: &[&str], requested: Option<&str>| {
        let answer = ground.ask(versions, extensions);
        assert_eq!((answer.code(), answer.id().as_str()), (-32009, "7"));
        let metadata = answer.json()["error"]["data"][0]["metadata"].clone();
        assert_eq!(metadata["supportedVersions"], "1.0, 0.3");
        assert_eq!(metadata["requestedVersion"].as_str(), requested);
    };
    version(&[], &[U], None);
    version(&[], &[], None);
    version(&["1.1"], &[U], Some("1.1"));
    version(&["1.0", "1.0"], &[U], Some("1.0, 1.0"));
    let extension = |versions: &[&str], extensions: &[&str]| {
        let answer = ground.ask(versions, extensions);
        assert_eq!((answer.code(), answer.id().as_str()), (-32008, "7"));
        let error = &answer.json()["error"];
        assert_eq!(error["data"][0]["metadata"]["extensionUri"], V12);
        assert!(error["message"].as_str().unwrap().contains(V12));
    };
    extension(&["1.0"], &[]);
    extension(&["1.0"], &[""]);
    extension(&["1.0"], &["https://ext.example/x"]);
    // Two contracts of one version named: which one is meant?
    extension(&["1.0"], &[&format!("{V12}, {U}")]);
    // A contract of another version.
    extension(&["1.0"], &[HOUSE]);
    extension(&[""], &[U]);
    // What is not even a request is answered in the first contract's dialect as well.
    let answer = ground.ask_with(&["1.0"], &[U], "[]");
    assert_eq!(answer.code(), -32600);
    assert_eq!(ground.main.count() + ground.other.count(), 0);
    assert_eq!(ground.gateway.last_line()["contract"], "aap/1.2");
}

#[test]
fn after_the_selection_the_selected_dialect_speaks() {
    let ground = ground("");
    // An older method name: served by the house contract, refused by the others.
    let older = call("7").replace("SendMessage", "message/send");
    assert_eq!(ground.ask_with(&["1.0"], &[U], &older).code(), -32601);
    assert_eq!(ground.gateway.last_line()["contract"], "aap/3.0");
    assert_eq!(ground.ask_with(&["0.3"], &[HOUSE], &older).status, 200);
    // A fault of the selected contract's upstream.
    let closed = Gateway::start(
        "[upstream.gone]\nurl = \"http://127.0.0.1:9/a2a\"\n[endpoint.both]\npath = \"/both\"\n\
         contracts = [\"aap/1.2\", \"aap/3.0\"]\nupstream = \"gone\"\n",
    );
    let ask = |uri: &str| {
        let post = Post::to("/both").field("A2A-Version", "1.0");
        closed.ask(post.field("A2A-Extensions", uri).body(call("7")).bytes())
    };
    let bare = ask(V12);
    assert_eq!((bare.status, bare.code()), (502, -32603));
    assert_eq!(bare.json()["error"]["data"]["type"], "aap.error");
    let wrapped = ask(U);
    assert_eq!((wrapped.status, wrapped.code()), (502, -32603));
    assert_eq!(
        wrapped.json()["error"]["data"][1]["value"]["type"],
        "aap.error"
    );
}

#[test]
fn over_quota_comes_before_the_selection() {
    let ground = ground("quotas = [\"q\"]");
    for uri in [V12, U, "https://ext.example/x"] {
        ground.ask(&["1.0"], &[uri]);
    }
    // Spelled by the first contract: 1.2 is bare and has a number of its own.
    let answer = ground.ask(&["1.0"], &[U]);
    assert_eq!(answer.code(), -32002);
    assert_eq!(answer.json()["error"]["data"]["code"], "RATE_LIMITED");
}
