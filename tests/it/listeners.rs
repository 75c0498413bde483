//! Listeners that come, change and go while the gateway serves.

mod gone;
mod moved;
mod stress;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use forecourt::state::reload::Reloaded;

use crate::support::call::{call, post};
use crate::support::gateway::{dealer, two_workers};
use crate::support::wait::stays;
use crate::support::{Answer, Client, Gateway, Post, Upstream, Watch, wait_until};

/// The usual configuration with two workers, and these listeners beside `public`.
fn with(upstream: &Upstream, listeners: &str) -> String {
    two_workers(&format!("{listeners}\n{}", dealer(upstream)))
}

fn more(address: impl std::fmt::Display, rest: &str) -> String {
    format!("[listener.more]\naddress = \"{address}\"\n{rest}\n")
}

/// Serves this from now on.
#[track_caller]
fn reload(gateway: &Gateway, configuration: &str) -> u64 {
    gateway.write_whole(configuration);
    match gateway.inner.reload() {
        Ok(
            Reloaded::Applied(generation)
            | Reloaded::Unchanged(generation)
            | Reloaded::Again { generation, .. },
        ) => generation,
        Err(rejected) => panic!("{rejected}"),
    }
}

fn posted(gateway: &Gateway) -> Answer {
    let request = Post::method("POST", "/reload").field("Host", "127.0.0.1");
    gateway.admin().ask(request.bytes())
}

/// What is served at `/health` of an address: another thing at each listener that has it.
fn probe(client: &mut Client, path: &str) -> u16 {
    client
        .ask(Post::method("GET", path).field("Host", "x").bytes())
        .status
}

#[track_caller]
fn at(gateway: &Gateway, listener: &str) -> SocketAddr {
    let address = gateway.inner.address(listener);
    address.unwrap_or_else(|| panic!("no listener {listener}"))
}

fn is_refused(address: SocketAddr) -> bool {
    Client::try_connect(address)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

#[test]
fn one_that_comes_serves_at_once_and_everything_knows_it() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_whole(&with(&upstream, ""));
    let mut kept = gateway.client();
    assert_eq!(kept.ask(post(call("1"))).status, 200);

    gateway.write_whole(&with(&upstream, &more("127.0.0.1:0", "health = \"/up\"")));
    let answer = posted(&gateway);
    assert_eq!(answer.status, 200);
    let told = answer.text();
    assert!(
        told.ends_with(", generation 2\nlisteners: every worker has taken them up\n"),
        "{told}"
    );
    let address = at(&gateway, "more");
    let mut client = Client::connect(address);
    assert_eq!(client.ask(post(call("2"))).status, 200);
    assert_eq!(probe(&mut client, "/up"), 200);
    assert_eq!(probe(&mut gateway.client(), "/up"), 404);

    let status = gateway.admin_get("/status").json();
    assert_eq!(status["listeners"][1]["name"], "more");
    assert_eq!(status["listeners"][1]["address"], address.to_string());
    assert_eq!(status["listeners"][1]["connections"], 1);
    assert_eq!(status["workers_behind"], serde_json::json!([]));
    assert_eq!(
        gateway.series("forecourt_connections{listener=\"more\"}"),
        1.0
    );
    assert_eq!(gateway.admin_get("/readyz").status, 200);
    // Nothing happened to the other, and a reload of nothing changes nothing.
    assert_eq!(kept.ask(post(call("3"))).status, 200);
    assert!(posted(&gateway).text().starts_with("unchanged"));
    assert_eq!(at(&gateway, "more"), address);
    assert_eq!(client.ask(post(call("4"))).status, 200);
    // A change of something else opens none and asks nothing of the workers.
    let other = with(&upstream, &more("127.0.0.1:0", "health = \"/up\""));
    gateway.write_whole(&other.replace("path = \"/a2a\"", "path = \"/b2b\""));
    assert!(posted(&gateway).text().ends_with("generation 3\n"));
    assert_eq!(at(&gateway, "more"), address);
}

#[test]
fn what_cannot_be_bound_rejects_all_of_it() {
    let upstream = Upstream::recording();
    let gateway = Gateway::start_whole(&with(&upstream, ""));
    let public = gateway.address();
    let mut kept = gateway.client();
    // One address is somebody else's, one was free a moment ago.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = (taken.local_addr().unwrap(), taken);
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let listeners = format!(
        "[listener.free]\naddress = \"{free}\"\n{}[listener.far]\naddress = \"192.0.2.1:80\"\n",
        more(taken.0, "")
    );
    let next = with(&upstream, &listeners).replace("path = \"/a2a\"", "path = \"/b2b\"");
    gateway.write_whole(&next);
    let answer = posted(&gateway);
    assert_eq!(answer.status, 422);
    let told = answer.text();
    for words in [
        "forecourt.toml:13:11: listener.more.address: ",
        &format!("{} cannot be listened on: Address already in use", taken.0),
        "listener.far.address: 192.0.2.1:80 cannot be listened on: Cannot assign requested address",
    ] {
        assert!(told.contains(words), "{words}\n{told}");
    }
    // Nothing changed, and what was opened on the way is closed.
    assert_eq!(gateway.inner.address("free"), None);
    drop(TcpListener::bind(free).expect("a socket was left open"));
    assert_eq!(gateway.series("forecourt_config_generation"), 1.0);
    assert_eq!(gateway.address(), public);
    assert_eq!(kept.ask(post(call("1"))).status, 200);
    assert!(
        !gateway
            .admin_get("/metrics")
            .text()
            .contains("listener=\"free\"")
    );
    let last = gateway.admin_get("/status").json()["configuration"]["last_reload"].clone();
    assert_eq!(last["problems"][0]["path"], "listener.more.address");
    // When the address is free, the same file is taken.
    drop(taken.1);
    gateway.write_whole(&next.replace("192.0.2.1:80", "127.0.0.1:0"));
    assert_eq!(posted(&gateway).status, 200);
    assert_eq!(at(&gateway, "more"), taken.0);
    let mut client = Client::connect(taken.0);
    assert_eq!(
        client.ask(Post::to("/b2b").body(call("1")).bytes()).status,
        200
    );
}

/// A clock at which worker threads stand still when they are told to.
#[derive(Debug, Default)]
struct Standstill(parking_lot::RwLock<()>);

impl forecourt::observe::WallClock for Standstill {
    fn now(&self) -> forecourt::observe::Timestamp {
        let thread = std::thread::current();
        if thread
            .name()
            .is_some_and(|name| name.starts_with("worker-"))
        {
            drop(self.0.read());
        }
        forecourt::observe::Timestamp::UNIX_EPOCH
    }
}

#[test]
fn a_worker_that_is_busy_is_named_and_waited_for_no_longer_than_a_moment() {
    let upstream = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("forecourt.toml");
    let one = with(&upstream, "").replace("workers = 2", "workers = 1");
    std::fs::write(&path, &one).unwrap();
    let clock = Arc::new(Standstill::default());
    let options = forecourt::app::Options {
        wall: Arc::clone(&clock) as Arc<dyn forecourt::observe::WallClock>,
        ..forecourt::app::Options::new(path.clone())
    };
    let gateway = forecourt::app::Gateway::start(options).unwrap();
    let admin = gateway.admin_address();
    let ask = |method, path: &str| {
        let request = Post::method(method, path).field("Host", "127.0.0.1");
        Client::connect(admin).ask(request.bytes())
    };
    let mut client = Client::connect(gateway.address("public").unwrap());
    assert_eq!(client.ask(post(call("1"))).status, 200);

    let stands = clock.0.write();
    client.send(post(call("2")));
    let next = one.replace("[admin]", &format!("{}[admin]", more("127.0.0.1:0", "")));
    std::fs::write(&path, next).unwrap();
    std::thread::scope(|scope| {
        let watch = Watch::start();
        let reloaded = scope.spawn(|| ask("POST", "/reload"));
        wait_until("it is reloaded", || gateway.address("more").is_some());
        // Probes are answered while the worker is waited for.
        assert_eq!(ask("GET", "/livez").status, 200);
        assert!(!reloaded.is_finished());
        let told = reloaded.join().unwrap().text();
        assert!(
            told.ends_with("\nlisteners: not yet taken up by workers [0]\n"),
            "{told}"
        );
        assert!(watch.elapsed() < crate::support::PATIENCE / 2);
    });
    assert_eq!(
        ask("GET", "/status").json()["workers_behind"],
        serde_json::json!([0])
    );
    // Whoever connects meanwhile waits in the queue.
    let mut early = Client::connect(gateway.address("more").unwrap());
    early.send(post(call("3")));
    assert!(stays(std::time::Duration::from_millis(50), || early.is_quiet()));
    drop(stands);
    assert_eq!(early.answer().status, 200);
    assert_eq!(client.answer().status, 200);
    wait_until("all have taken it up", || {
        ask("GET", "/status").json()["workers_behind"] == serde_json::json!([])
    });
}
