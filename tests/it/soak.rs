//! The real process under everything at once: four ways in, dealers that answer, stream and fail,
//! callers that go, reloads, certificates that change, and SIGTERM at the end. Whatever happens, each
//! call is answered and logged once, reaches its dealer at most once, and nothing is left over.
//!
//! A few seconds long; `SOAK_SECONDS` and `SOAK_BINARY` in the environment make it longer, and of a
//! binary that was built for release.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use crate::support::call::{Post, call};
use crate::support::frames::Frames;
use crate::support::http2::Dealer;
use crate::support::process::Process;
use crate::support::tls::{Ending, Front, Place, put};
use crate::support::wait::elapse;
use crate::support::ways::{Caller, Leaving, SPEECHES, Speech};
use crate::support::{Client, Nobody, Peer, Upstream, Watch, upstream, wait_until};

/// What all threads share.
struct Ground {
    addresses: [SocketAddr; 2],
    admin: SocketAddr,
    place: Place,
    next: AtomicU64,
    is_over: AtomicBool,
    answered: Mutex<HashSet<u64>>,
    vanished: AtomicUsize,
}

impl Ground {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::SeqCst)
    }

    fn id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    fn connect(&self, speech: Speech) -> Caller {
        Caller::connect(speech, self.addresses, &self.place)
    }

    fn metrics(&self) -> BTreeMap<String, f64> {
        let request = Post::method("GET", "/metrics").field("Host", "127.0.0.1");
        let text = Client::connect(self.admin).ask(request.bytes()).text();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(series, value)| (series.to_owned(), value.parse().unwrap()))
            .collect()
    }

    /// What all series of this name come to.
    fn sum(&self, name: &str) -> f64 {
        let metrics = self.metrics();
        let of = metrics.iter().filter(|(series, _)| {
            let rest = series.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
        });
        of.map(|(_, value)| value).sum()
    }
}

fn id_of(body: &[u8]) -> u64 {
    let body: Value = serde_json::from_slice(body).unwrap();
    body["id"].as_u64().unwrap()
}

/// Answers with the call's id; a streaming call with five events.
fn answers(mut peer: Peer) {
    while let Some(arrival) = peer.request() {
        let text = String::from_utf8(arrival.body).unwrap();
        let id = id_of(text.as_bytes());
        let sent = if text.contains("SendStreamingMessage") {
            streams(&mut peer, id)
        } else {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
            peer.try_send(upstream::answer("200 OK", "", &body))
        };
        if sent.is_err() {
            return;
        }
    }
}

fn event(id: u64, at: u64) -> String {
    format!("id: {at}\ndata: {id}\n\n")
}

fn streams(peer: &mut Peer, id: u64) -> std::io::Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n";
    peer.try_send(format!("{head}\r\n"))?;
    for at in 0..5 {
        let event = event(id, at);
        peer.try_send(format!("{:x}\r\n{event}\r\n", event.len()))?;
        elapse(Duration::from_millis(10));
    }
    peer.try_send("0\r\n\r\n")
}

/// Does something else each time.
fn fails(mut peer: Peer) {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    if peer.request().is_none() {
        return;
    }
    let turn = TURN.fetch_add(1, Ordering::SeqCst) % 6;
    let says = match turn {
        2 => "HTTP/1.1 200 OK\r\nContent-Le",
        3 => "SSH-2.0-OpenSSH_9.6\r\n\r\n",
        4 => "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        _ => "",
    };
    let _ = peer.try_send(says);
    match turn {
        0 => peer.reset(),
        // Says nothing until the gateway gives up.
        5 => drop(peer.is_closed_within(Duration::from_secs(5))),
        _ => peer.close(),
    }
}

/// Calls of every kind, one after the other, on connections of twenty.
fn calls(ground: &Ground, speech: Speech) {
    while ground.goes_on() {
        let mut caller = ground.connect(speech);
        for _ in 0..20 {
            let id = ground.id();
            let body = call(&id.to_string());
            let version = [("a2a-version", "9.9")];
            match id % 12 {
                0 => {
                    caller.send_to("/one", &version, &body);
                    assert_answer(&mut caller, id, Some(-32009));
                }
                1 => {
                    caller.send_to("/fails", &[], &body);
                    assert_answer(&mut caller, id, Some(-32603));
                }
                2 => {
                    caller.send_to("/nobody", &[], &body);
                    assert_answer(&mut caller, id, Some(-32603));
                }
                3 | 4 => {
                    let path = ["/one", "/three"][usize::try_from(id / 12 % 2).unwrap()];
                    caller.send_to(path, &[], &streaming(&body));
                    assert_eq!(caller.head().0, 200);
                    let mut text = Vec::new();
                    while let Some(piece) = caller.piece().unwrap() {
                        text.extend(piece);
                    }
                    let events: String = (0..5).map(|at| event(id, at)).collect();
                    assert_eq!(String::from_utf8(text).unwrap(), events);
                }
                turn => {
                    let paths = ["/one", "/two", "/three", "/four"];
                    caller.send_to(paths[usize::try_from(turn % 4).unwrap()], &[], &body);
                    assert_answer(&mut caller, id, None);
                }
            }
            assert!(ground.answered.lock().insert(id));
            elapse(Duration::from_millis(3));
        }
    }
}

fn streaming(body: &str) -> String {
    body.replace("SendMessage", "SendStreamingMessage")
}

fn assert_answer(caller: &mut Caller, id: u64, code: Option<i64>) {
    let (status, text) = caller.answer();
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["id"], id, "{status} {text}");
    assert_eq!(json["error"]["code"].as_i64(), code, "{status} {text}");
}

/// Callers that go: before and after the head, within a head, and within a handshake.
fn goes(ground: &Ground, speech: Speech) {
    let mut turn = 0;
    while ground.goes_on() {
        turn += 1;
        let how = [Leaving::Hanging, Leaving::Resetting][turn % 2];
        let mut caller = ground.connect(speech);
        let body = streaming(&call(&ground.id().to_string()));
        caller.send_to("/one", &[], &body);
        if turn % 3 > 0 {
            assert_eq!(caller.head().0, 200);
            caller.piece().unwrap();
        }
        ground.vanished.fetch_add(1, Ordering::SeqCst);
        drop(caller.leave(how));
        let address = ground.addresses[usize::from(speech.tls)];
        let mut rude = Client::connect(address);
        rude.send(["POST /one HTTP/1.1\r\nHo", "\x16\x03\x01\x02\x00\x01"][turn % 2]);
        drop(rude);
        if !speech.tls {
            drop(Frames::client(address, &[]));
        }
        elapse(Duration::from_millis(20));
    }
}

/// The configuration, a little other each time.
fn configuration(place: &Place, upstreams: &str, round: u64) -> String {
    let pair = place.pair("own");
    let keep_alive = 1000 + round / 2 % 2 * 100;
    format!(
        "# {round}\n[runtime]\nworkers = 2\n[listener.public]\naddress = \"127.0.0.1:0\"\n\
         [listener.secure]\naddress = \"127.0.0.1:0\"\ntls = {{ {pair} }}\n\
         [admin]\naddress = \"127.0.0.1:0\"\n[log]\naccess = \"access.log\"\n\
         [shutdown]\ndelay = \"300ms\"\ntimeout = \"5s\"\n{}",
        upstreams.replace("KEEP", &format!("{keep_alive}ms"))
    )
}

fn upstream_at(name: &str, url: &str, more: &str) -> String {
    format!(
        "[upstream.{name}]\nurl = \"{url}/a2a\"\nkeep_alive = \"KEEP\"\n\
         response_timeout = \"300ms\"\n{more}\n\
         [endpoint.{name}]\npath = \"/{name}\"\nupstream = \"{name}\"\n"
    )
}

#[allow(
    clippy::disallowed_methods,
    reason = "how long it runs is said from outside"
)]
fn told(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
fn everything_at_once() {
    let seconds = told("SOAK_SECONDS").map_or(4, |it| it.parse().unwrap());
    let place = Place::new();
    place.issue("own", &["gw.example"]);
    put(
        &place.directory.path().join("ca.pem"),
        &place.authority.pem(),
    );
    let own = place.authority.issue(&["127.0.0.1"]);
    let (one, two) = (Upstream::scripted(answers), Dealer::start());
    let (three, four) = (Upstream::scripted(answers), Dealer::start());
    let before_three = Front::ending(three.address, &own, Ending::Politely);
    let before_four = Front::ending(four.address, &own, Ending::Politely);
    let (failing, nobody) = (Upstream::scripted(fails), Nobody::new());
    let ca = format!("ca = \"{}\"", place.at("ca.pem"));
    let http = |address: SocketAddr| format!("http://{address}");
    let https = |address: SocketAddr| format!("https://{address}");
    let upstreams = [
        upstream_at("one", &http(one.address), ""),
        upstream_at("two", &http(two.address), "http2 = true"),
        upstream_at("three", &https(before_three.address), &ca),
        upstream_at(
            "four",
            &https(before_four.address),
            &format!("http2 = true\n{ca}"),
        ),
        upstream_at("fails", &http(failing.address), ""),
        upstream_at("nobody", &http(nobody.address), ""),
    ]
    .concat();
    let path = place.directory.path().join("forecourt.toml");
    put(&path, &configuration(&place, &upstreams, 0));
    let mut process = match told("SOAK_BINARY") {
        None => Process::start(&path),
        Some(binary) => Process::start_binary(Path::new(&binary), &path),
    };
    let (addresses, admin) = process.addresses_of(["public", "secure"]);
    let ground = Arc::new(Ground {
        addresses,
        admin,
        place,
        next: AtomicU64::new(5),
        is_over: AtomicBool::new(false),
        answered: Mutex::default(),
        vanished: AtomicUsize::new(0),
    });
    // As it is when everything has been used once.
    for speech in SPEECHES {
        let (mut caller, id) = (ground.connect(speech), ground.id());
        caller.send_to("/one", &[], &call(&id.to_string()));
        assert_answer(&mut caller, id, None);
        ground.answered.lock().insert(id);
    }
    wait_until("all is quiet", || {
        ground.sum("forecourt_connections") + ground.sum("forecourt_upstream_connections") == 0.0
    });
    let descriptors = process.descriptors();
    let mut memory = Vec::new();

    let run = Watch::start();
    let mut threads = Vec::new();
    for speech in SPEECHES {
        for load in [calls, calls, goes] {
            let ground = Arc::clone(&ground);
            threads.push(thread::spawn(move || load(&ground, speech)));
        }
    }
    let mut round = 0;
    while run.elapsed() < Duration::from_secs(seconds) {
        elapse(Duration::from_secs(1));
        round += 1;
        if round % 2 == 0 {
            put(&path, &configuration(&ground.place, &upstreams, round));
        }
        if round % 3 == 0 {
            ground.place.issue("own", &["gw.example"]);
        }
        memory.push(process.memory());
        assert!(
            !threads.iter().any(thread::JoinHandle::is_finished),
            "a call went wrong"
        );
    }
    ground.is_over.store(true, Ordering::SeqCst);
    for thread in threads {
        thread.join().unwrap();
    }

    // Nothing is left.
    for series in [
        "forecourt_connections",
        "forecourt_requests_in_flight",
        "forecourt_in_flight_bytes",
        "forecourt_upstream_connections",
    ] {
        wait_until(series, || ground.sum(series) == 0.0);
    }
    wait_until("all are closed", || process.descriptors() <= descriptors);
    let (early, late) = (memory[memory.len() / 3], memory.last().unwrap());
    assert!(*late < early + (16 << 20), "{memory:?}");
    let generation = ground.sum("forecourt_config_generation");
    assert!(generation > round as f64 / 2.0 - 1.0, "{generation}");

    // Counted as logged, and logged once.
    assert_eq!(ground.sum("forecourt_access_log_dropped_total"), 0.0);
    let mut counted = ground.metrics();
    // What was no request is counted and has no line.
    let no_requests = r#"forecourt_http_requests_total{endpoint="",outcome="bad_http"}"#;
    let no_requests = counted.remove(no_requests).unwrap_or_default();
    let log_file = ground.place.directory.path().join("access.log");
    let answered = ground.answered.lock().clone();
    let mut lines = Vec::new();
    wait_until("all is written", || {
        let text = fs::read_to_string(&log_file).unwrap();
        lines = text
            .lines()
            .filter_map(|it| serde_json::from_str(it).ok())
            .collect::<Vec<Value>>();
        lines.len() as f64 >= ground.sum("forecourt_http_requests_total") - no_requests
    });
    let mut ended: HashMap<String, f64> = HashMap::new();
    let mut logged: HashMap<u64, usize> = HashMap::new();
    for line in &lines {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let (endpoint, outcome) = (text("endpoint"), text("outcome"));
        let series = format!(
            "forecourt_http_requests_total{{endpoint=\"{endpoint}\",outcome=\"{outcome}\"}}"
        );
        *ended.entry(series).or_default() += 1.0;
        if let Ok(id) = text("rpc_id").parse() {
            *logged.entry(id).or_default() += 1;
        }
    }
    let counted: HashMap<String, f64> = counted
        .into_iter()
        .filter(|(series, value)| {
            series.starts_with("forecourt_http_requests_total") && *value > 0.0
        })
        .collect();
    assert_eq!(counted, ended);
    assert!(answered.iter().all(|id| logged.get(id) == Some(&1)));
    assert!(logged.values().all(|count| *count == 1));
    assert!(
        !ended.keys().any(|it| it.contains("\"internal\"")),
        "{ended:?}"
    );
    let gone = ground.vanished.load(Ordering::SeqCst);
    assert!(logged.len() <= answered.len() + gone);

    // Asked once at most.
    let mut asked = HashMap::new();
    let bodies = [&one, &three, &failing].map(|it| it.arrivals()).concat();
    let bodies = bodies.into_iter().map(|it| it.body);
    let of_http2 = [&two, &four]
        .map(|it| it.seen.arrived.lock().clone())
        .concat();
    for body in bodies.chain(of_http2.into_iter().map(|it| it.body.to_vec())) {
        *asked.entry(id_of(&body)).or_insert(0) += 1;
    }
    assert!(asked.values().all(|count| *count == 1), "sent twice");
    let to_dealers = answered.iter().filter(|id| !matches!(**id % 12, 0 | 2));
    let mut lost = to_dealers.filter(|id| !asked.contains_key(id));
    assert_eq!(lost.next(), None, "answered by nobody");
    assert!(answered.len() > 50, "{}", answered.len());
    ends_in_order(&mut process, &ground, &one);
    println!(
        "{} answered, {gone} gone, {} logged, descriptors {descriptors}, memory {memory:?}",
        answered.len(),
        lines.len()
    );
}

/// SIGTERM while calls go on: whatever the dealer was asked is answered.
fn ends_in_order(process: &mut Process, ground: &Arc<Ground>, dealer: &Upstream) {
    let before = dealer.count();
    let closed = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (ground, closed) = (Arc::clone(ground), Arc::clone(&closed));
            thread::spawn(move || {
                let mut answered = Vec::new();
                while let Ok(mut client) = Client::try_connect(ground.addresses[0]) {
                    loop {
                        let id = ground.id();
                        let post = Post::to("/one").body(call(&id.to_string()));
                        let sent = client.try_send(post.bytes());
                        let Ok(Some(answer)) = sent.and_then(|()| client.try_answer()) else {
                            closed.fetch_add(1, Ordering::SeqCst);
                            break;
                        };
                        assert_eq!(answer.json()["id"], id);
                        answered.push(id);
                        if answer.closes() {
                            break;
                        }
                    }
                }
                answered
            })
        })
        .collect();
    wait_until("calls go on", || dealer.count() > before + 50);
    process.signal("TERM");
    let answered: HashSet<u64> = threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap())
        .collect();
    assert!(process.ended().success());
    assert!(!process.seen.iter().any(|line| line.contains("panicked")));
    let asked: Vec<u64> = dealer.arrivals()[before..]
        .iter()
        .map(|it| id_of(&it.body))
        .collect();
    assert!(
        asked.iter().all(|id| answered.contains(id)),
        "asked and not answered"
    );
    assert_eq!(asked.len(), answered.len());
    // Those who connected when the listener was closing.
    assert!(closed.load(Ordering::SeqCst) <= 4);
}
