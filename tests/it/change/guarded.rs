//! The guard: what goes back by itself, and what does not.

use std::time::Duration;

use super::*;
use crate::support::call::call;
use crate::support::gateway::dealer_at;
use crate::support::wait::stays;
use crate::support::{Nobody, Upstream, wait_until};

const GUARD: &str =
    "[reload]\nrollback_on_errors = { window = \"1h\", ratio = \"10%\", min_requests = 20 }\n";

/// Two dealers, one at each address.
fn two(one: std::net::SocketAddr, other: std::net::SocketAddr, guard: &str) -> String {
    let other = dealer_at(other, "", "")
        .replace("lakeside", "hilltop")
        .replace("path = \"/a2a\"", "path = \"/hilltop\"");
    format!("{guard}{}{other}", dealer_at(one, "", ""))
}

fn ask(gateway: &Gateway, path: &str, count: usize) {
    let mut client = gateway.client();
    for _ in 0..count {
        let answer = client.ask(Post::to(path).body(call("1")).bytes());
        if answer.closes() {
            client = gateway.client();
        }
    }
}

#[track_caller]
fn apply(gateway: &Gateway, configuration: &str) {
    gateway.write(configuration);
    gateway.inner.reload().unwrap();
}

#[test]
fn a_configuration_under_which_requests_fail_is_taken_back() {
    let (upstream, nobody) = (Upstream::recording(), Nobody::new());
    let good = two(upstream.address, upstream.address, GUARD);
    let gateway = Gateway::start(&good);
    ask(&gateway, "/a2a", 30);
    apply(&gateway, &two(nobody.address, upstream.address, GUARD));
    assert_eq!(gateway.post(call("1")).code(), -32603);
    // Nine in ten are fine, and one more is not enough.
    ask(&gateway, "/hilltop", 9);
    ask(&gateway, "/a2a", 30);
    wait_until("it goes back", || rollbacks(&gateway, "guard") == 1.0);
    wait_until("it serves", || {
        gateway.post(call("1")).status == 200 && configuration(&gateway)["generation"] == 3
    });
    let told = configuration(&gateway);
    assert_eq!(told["standing"], "set_aside");
    assert_eq!(told["differs_from_file"], true);
    let last = &told["last_reload"];
    assert_eq!(
        (&last["order"], &last["result"]),
        (&"guard".into(), &"rolled_back".into())
    );
    assert_eq!((&last["generation"], &last["of"]), (&3.into(), &1.into()));
    let saw = &last["guard"];
    assert_eq!(
        (&saw["generation"], &saw["ratio"]),
        (&2.into(), &"10%".into())
    );
    let (ended, failed) = (number(&saw["ended"]), number(&saw["failed"]));
    assert!(ended >= 20 && failed * 10 > ended && failed <= 31, "{saw}");
    let all = gateway.admin_get("/generations").json();
    assert_eq!(all["generations"][0]["how"], "guard");
    assert!(
        all["generations"][0]["why"]
            .as_str()
            .unwrap()
            .contains("failed by the gateway")
    );
    // The dealer goes away now: nothing is gone back to once more.
    drop(upstream);
    ask(&gateway, "/a2a", 60);
    apply(&gateway, &two(nobody.address, nobody.address, GUARD));
    assert_eq!(configuration(&gateway)["generation"], 4);
    assert_eq!(rollbacks(&gateway, "guard"), 1.0);
}

#[test]
fn callers_mistakes_and_dealers_errors_never_count() {
    let refusing = Upstream::answering(crate::support::upstream::answer(
        "500 Internal Server Error",
        "",
        "{}",
    ));
    let (upstream, nobody) = (Upstream::recording(), Nobody::new());
    let strict = "[quota.q]\nper = \"all\"\nrate = \"1/day\"\n";
    let with = |address| {
        let two = two(refusing.address, address, GUARD);
        let two = two.replace("path = \"/a2a\"", "path = \"/a2a\"\nquotas = []");
        format!(
            "{two}{strict}[endpoint.spent]\npath = \"/spent\"\nupstream = \"hilltop\"\nquotas = [\"q\"]\n"
        )
    };
    let gateway = Gateway::start(&with(upstream.address));
    apply(
        &gateway,
        &format!(
            "{}[endpoint.more]\npath = \"/more\"\nupstream = \"hilltop\"\n",
            with(upstream.address)
        ),
    );
    // A hundred of each kind of mistake, the dealer's own errors, and paths that do not exist.
    ask(&gateway, "/a2a", 100);
    ask(&gateway, "/spent", 100);
    ask(&gateway, "/nowhere", 100);
    let mut client = gateway.client();
    for body in ["not json", "[]", "{}"] {
        for _ in 0..100 {
            client.ask(Post::to("/hilltop").body(body).bytes());
        }
    }
    for _ in 0..100 {
        client.ask(
            Post::to("/hilltop")
                .field("A2A-Version", "0.3")
                .body(call("1"))
                .bytes(),
        );
    }
    // Then one kind of failure until it is more than a tenth of all: only these are counted.
    let endpoint = "[endpoint.down]\npath = \"/down\"\nupstream = \"down\"\n[upstream.down]\n";
    let next = format!(
        "{}{endpoint}url = \"http://{}\"\n",
        with(upstream.address),
        nobody.address
    );
    apply(&gateway, &next);
    assert_eq!(configuration(&gateway)["generation"], 3);
    ask(&gateway, "/a2a", 100);
    ask(&gateway, "/down", 40);
    wait_until("it goes back", || rollbacks(&gateway, "guard") == 1.0);
    let last = configuration(&gateway)["last_reload"].clone();
    // Nothing but those that failed, whatever else went wrong before.
    assert!(number(&last["guard"]["failed"]) <= 40, "{last}");
    assert_eq!(last["of"], 2);
}

#[test]
fn without_it_nothing_is_taken_back() {
    let (upstream, nobody) = (Upstream::recording(), Nobody::new());
    let gateway = Gateway::start(&two(upstream.address, upstream.address, ""));
    apply(&gateway, &two(nobody.address, upstream.address, ""));
    ask(&gateway, "/a2a", 100);
    // Whoever switches it on is not judged by what was before, and is then watched.
    apply(&gateway, &two(nobody.address, upstream.address, GUARD));
    ask(&gateway, "/a2a", 100);
    // Too many failed before it as well: the dealer is down, and that is nobody's change.
    apply(&gateway, &two(nobody.address, nobody.address, GUARD));
    ask(&gateway, "/a2a", 100);
    assert_eq!(configuration(&gateway)["generation"], 4);
    assert_eq!(rollbacks(&gateway, "guard"), 0.0);
}

#[test]
fn what_somebody_went_back_to_is_theirs() {
    let (upstream, nobody) = (Upstream::recording(), Nobody::new());
    let gateway = Gateway::start(&two(nobody.address, upstream.address, GUARD));
    apply(&gateway, &two(upstream.address, upstream.address, GUARD));
    ask(&gateway, "/a2a", 60);
    assert_eq!(order(&gateway, "/rollback", "").status, 200);
    ask(&gateway, "/a2a", 60);
    // Several looks long.
    let stands = || configuration(&gateway)["generation"] == 3;
    assert!(stays(Duration::from_millis(800), stands));
    assert_eq!(rollbacks(&gateway, "guard"), 0.0);
}
