//! How exact three gateways are on one store, and how seldom they ask it: with three times the demand
//! that the limit allows, and with nine tenths of it.
//!
//! `cargo bench --bench store`. Needs `redis-server`. Says what was admitted of the ideal (rate times
//! time, and the burst), and how many calls to the store that took for each request.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a bench measures real time and fails loudly"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use forecourt::app::{Gateway, Options};

const RATE: u64 = 1000;
const BURST: u64 = 100;
const GATEWAYS: usize = 3;
/// Connections to each gateway.
const CLIENTS: usize = 4;
const TIME: Duration = Duration::from_secs(8);
const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}"#;
const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn main() {
    // `cargo test --benches` builds and runs every bench.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let Some((_server, store)) = redis() else {
        println!("skipped: needs redis-server (Debian package redis-server)");
        return;
    };
    let dealer = dealer();
    println!(
        "{GATEWAYS} gateways, {RATE}/s, burst {BURST}, {} s each",
        TIME.as_secs()
    );
    println!("demand/s  requests  admitted  of the ideal  calls to the store  per request");
    for demand in [RATE * 9 / 10, RATE * 3] {
        measure(store, dealer, demand);
    }
}

fn measure(store: SocketAddr, dealer: SocketAddr, demand: u64) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("forecourt.toml");
    let configuration = format!(
        "[runtime]\nworkers = 1\n[listener.public]\naddress = \"127.0.0.1:0\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\n[log]\naccess = \"off\"\n\
         [store.central]\nurl = \"redis://{store}\"\nreplicas = {GATEWAYS}\ntimeout = \"1s\"\n\
         [quota.q]\nper = \"all\"\nrate = \"{RATE}/s\"\nburst = {BURST}\nstore = \"central\"\n\
         [upstream.dealer]\nurl = \"http://{dealer}\"\n\
         [endpoint.dealer]\npath = \"/a2a\"\nupstream = \"dealer\"\nquotas = [\"q\"]\n"
    );
    std::fs::write(&path, configuration).unwrap();
    let start = || Gateway::start(Options::new(path.clone())).unwrap();
    let gateways: Vec<Gateway> = (0..GATEWAYS).map(|_| start()).collect();
    for gateway in &gateways {
        while series(gateway, "forecourt_ratelimit_store_degraded{") > 0.0 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let (requests, admitted) = (AtomicU64::new(0), AtomicU64::new(0));
    let began = micros(store);
    thread::scope(|scope| {
        let (requests, admitted) = (&requests, &admitted);
        for gateway in &gateways {
            let address = gateway.address("public").unwrap();
            for _ in 0..CLIENTS {
                scope.spawn(move || ask(address, demand, requests, admitted));
            }
        }
    });
    let took = micros(store) - began;
    let (requests, admitted) = (requests.into_inner(), admitted.into_inner());
    let ideal = BURST as f64 + RATE as f64 * took as f64 / 1e6;
    let calls: f64 = gateways
        .iter()
        .map(|gateway| series(gateway, "forecourt_ratelimit_store_calls_total{"))
        .sum();
    let asked = requests as f64 / took as f64 * 1e6;
    println!(
        "{asked:8.0}  {requests:8}  {admitted:8}  {:12.4}  {calls:18}  {:11.3}",
        admitted as f64 / ideal.min(requests as f64),
        calls / requests as f64
    );
    assert!(
        admitted as f64 <= ideal,
        "more than the limit was let through"
    );
    redis_ask(store, &["FLUSHALL"]);
}

/// One client: its part of the demand, evenly.
fn ask(address: SocketAddr, demand: u64, requests: &AtomicU64, admitted: &AtomicU64) {
    let clients = (GATEWAYS * CLIENTS) as u64;
    let pause = Duration::from_nanos(1_000_000_000 * clients / demand);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let request = format!(
        "POST /a2a HTTP/1.1\r\nHost: gw\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    let began = Instant::now();
    let mut due = began;
    let mut buffer = vec![0; 8192];
    while began.elapsed() < TIME {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        due += pause;
        stream.write_all(request.as_bytes()).unwrap();
        let answer = read(&mut stream, &mut buffer);
        requests.fetch_add(1, Ordering::Relaxed);
        if answer.contains("\"result\"") {
            admitted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A message with a length, or what there is of one that has none.
fn read<'b>(stream: &mut TcpStream, buffer: &'b mut [u8]) -> std::borrow::Cow<'b, str> {
    let mut used = 0;
    loop {
        let count = stream.read(&mut buffer[used..]).unwrap();
        used += count;
        let text = String::from_utf8_lossy(&buffer[..used]).to_ascii_lowercase();
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = head.split("content-length: ").nth(1);
            let length = length.and_then(|it| it.lines().next()?.trim().parse().ok());
            body.len() >= length.unwrap_or(0)
        });
        if whole || count == 0 {
            return String::from_utf8_lossy(&buffer[..used]);
        }
    }
}

fn dealer() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut stream = stream;
                stream.set_nodelay(true).unwrap();
                let mut buffer = vec![0; 8192];
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
                     Content-Length: {}\r\n\r\n{RESULT}",
                    RESULT.len()
                );
                while !read(&mut stream, &mut buffer).is_empty() {
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn redis() -> Option<(Server, SocketAddr)> {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let child = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let (server, address) = (Server(child), SocketAddr::from(([127, 0, 0, 1], port)));
    while TcpStream::connect(address).is_err() {
        thread::sleep(Duration::from_millis(5));
    }
    Some((server, address))
}

fn redis_ask(store: SocketAddr, command: &[&str]) -> String {
    let mut stream = TcpStream::connect(store).unwrap();
    let parts = command
        .iter()
        .map(|part| format!("${}\r\n{part}\r\n", part.len()));
    let request = format!("*{}\r\n{}", command.len(), parts.collect::<String>());
    stream.write_all(request.as_bytes()).unwrap();
    let mut buffer = [0; 256];
    let count = stream.read(&mut buffer).unwrap();
    String::from_utf8_lossy(&buffer[..count]).into_owned()
}

/// The store's clock.
fn micros(store: SocketAddr) -> u64 {
    let answer = redis_ask(store, &["TIME"]);
    let numbers = answer.lines().filter_map(|line| line.parse::<u64>().ok());
    numbers.fold(0, |sum, number| sum * 1_000_000 + number)
}

fn series(gateway: &Gateway, name: &str) -> f64 {
    let mut stream = TcpStream::connect(gateway.admin_address()).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}
