//! Restarts, reloads and a rollback under load: the real process on a service manager's socket, callers
//! over HTTP/1.1 and HTTP/2 that never pause, and streams that are open all the time.
//!
//! Each path leads to one dealer for ever, while everything in between changes its name and its place. Seen
//! from both ends, each call is asked once, at its own dealer, answered once and logged once; callers are
//! told to reconnect, and never meet an error. A stream is cut only when its process has no more time.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use crate::support::call::{Post, call};
use crate::support::http2::{Dealer, Http2, whole};
use crate::support::process::{Process, run};
use crate::support::wait::elapse;
use crate::support::{Client, Peer, Upstream, Watch, upstream, wait_until};

/// How much of everything.
struct Scale {
    calls: u64,
    streams: usize,
    reloads: u64,
    restarts: u64,
    /// Events of a stream, one each 50 ms.
    events: u64,
}

const SOME: Scale = Scale {
    calls: 3_000,
    streams: 20,
    reloads: 20,
    restarts: 2,
    events: 20,
};

const WHOLE: Scale = Scale {
    calls: 50_000,
    streams: 100,
    reloads: 200,
    restarts: 3,
    events: 60,
};

#[test]
#[ignore = "cuts calls that take longer than 300 ms, as they do beside all other tests; .ci/run runs it alone"]
fn nothing_is_lost_and_nothing_goes_astray() {
    under_load(&SOME);
}

#[test]
#[ignore = "about a minute; .ci/run runs it"]
fn nothing_is_lost_at_full_scale() {
    under_load(&WHOLE);
}

/// Dealers that speak HTTP/1.1, then dealers that speak HTTP/2; dealer `n` is behind `/d{n}`.
const OF_HTTP1: u64 = 4;
const OF_HTTP2: u64 = 2;
const DEALERS: u64 = OF_HTTP1 + OF_HTTP2;

/// Ids from here on are of streams. The rest when it is divided by the dealers tells the dealer, as of calls.
const STREAMS: u64 = 200_000 * DEALERS;

/// What a connection that was quiet for so long is not used again, as clients do.
const STALE: Duration = Duration::from_millis(500);

/// How long a process has when it is to cut streams, and when it is not.
const SHORT: &str = "300ms";
const LONG: &str = "60s";

struct Ground {
    address: SocketAddr,
    scale: &'static Scale,
    next: AtomicU64,
    is_over: AtomicBool,
    /// The ids of calls, and how each ended for its caller.
    fates: Mutex<HashMap<u64, Vec<Fate>>>,
    /// Calls that had to reconnect.
    reconnected: AtomicUsize,
    open: AtomicUsize,
    watch: Watch,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Answered,
    /// A stream came to its end.
    Whole,
    /// A stream was cut, after so long.
    Cut(Duration),
}

impl Ground {
    fn claim(&self) -> Option<u64> {
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        (id <= self.scale.calls).then_some(id)
    }

    /// Streams have ids of their own, at dealers of HTTP/1.1.
    fn claim_stream(&self, turn: u64) -> u64 {
        STREAMS + turn * DEALERS + turn % OF_HTTP1
    }

    fn ends(&self, id: u64, fate: Fate) {
        self.fates.lock().entry(id).or_default().push(fate);
    }
}

fn dealer_of(id: u64) -> u64 {
    id % DEALERS
}

fn path_of(id: u64) -> String {
    format!("/d{}", dealer_of(id))
}

fn id_of(body: &[u8]) -> u64 {
    let json: Value = serde_json::from_slice(body).unwrap();
    json["id"].as_u64().unwrap()
}

fn event(id: u64, at: u64) -> String {
    format!("id: {at}\ndata: {id}\n\n")
}

/// Says who it is. A streaming call gets its events.
fn answers(dealer: u64, events: u64) -> impl Fn(Peer) + Send + Sync + 'static {
    move |mut peer| {
        while let Some(arrival) = peer.request() {
            let id = id_of(&arrival.body);
            let sent = match id {
                0..STREAMS => {
                    let body =
                        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"dealer":{dealer}}}}}"#);
                    peer.try_send(upstream::answer(
                        "200 OK",
                        "Content-Type: application/json\r\n",
                        &body,
                    ))
                }
                _ => streams(&mut peer, id, events),
            };
            if sent.is_err() {
                return;
            }
        }
    }
}

fn streams(peer: &mut Peer, id: u64, events: u64) -> io::Result<()> {
    peer.try_send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    )?;
    for at in 0..events {
        let event = event(id, at);
        peer.try_send(format!("{:x}\r\n{event}\r\n", event.len()))?;
        elapse(Duration::from_millis(50));
    }
    peer.try_send("0\r\n\r\n")
}

/// The configuration of one turn: all names rotate, and what they stand for with them.
fn configuration(address: SocketAddr, dealers: &[SocketAddr], turn: u64, timeout: &str) -> String {
    let mut text = format!(
        "# {turn}\n[runtime]\nworkers = 2\n[listener.public]\naddress = \"{address}\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\n[log]\naccess = \"access.log\"\n\
         [shutdown]\ndelay = \"0s\"\ntimeout = \"{timeout}\"\n"
    );
    for (dealer, address) in (0..).zip(dealers) {
        let upstream = (dealer + turn) % DEALERS;
        let endpoint = (dealer + 2 * turn) % DEALERS;
        let http2 = dealer >= OF_HTTP1;
        text.push_str(&format!(
            "[upstream.u{upstream}]\nurl = \"http://{address}/a2a\"\nhttp2 = {http2}\nkeep_alive = \"{}ms\"\n\
             [endpoint.e{endpoint}]\npath = \"/d{dealer}\"\nupstream = \"u{upstream}\"\n",
            1000 + turn % 3 * 100
        ));
    }
    if turn % 2 == 1 {
        text.push_str("[endpoint.extra]\npath = \"/extra\"\nupstream = \"u0\"\n");
    }
    text
}

/// Calls over HTTP/1.1, one after the other.
fn calls_http1(ground: &Ground) {
    let mut kept: Option<(Client, Watch)> = None;
    let mut count = 0;
    while let Some(id) = ground.claim() {
        let fresh = || {
            ground.reconnected.fetch_add(1, Ordering::SeqCst);
            Client::connect(ground.address)
        };
        let kept_well = kept.take().filter(|(_, quiet)| quiet.elapsed() < STALE);
        let mut client = kept_well.map_or_else(fresh, |(client, _)| client);
        let post = Post::to(&path_of(id)).body(call(&id.to_string()));
        let answer = client
            .try_send(post.bytes())
            .and_then(|()| client.try_answer());
        let answer = match answer {
            Ok(Some(answer)) => answer,
            other => panic!("{id} after {count} on its connection: {other:?}"),
        };
        let json = answer.json();
        assert_eq!(
            (answer.status, &json["id"]),
            (200, &Value::from(id)),
            "{json}"
        );
        if dealer_of(id) < OF_HTTP1 {
            assert_eq!(json["result"]["dealer"], dealer_of(id), "{json}");
        }
        ground.ends(id, Fate::Answered);
        count += 1;
        // Now and then a client goes by itself.
        if answer.closes() || count % 97 == 0 {
            count = 0;
        } else {
            kept = Some((client, Watch::start()));
        }
    }
}

/// Calls over HTTP/2, a few at once.
fn calls_http2(ground: &Ground) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let mut waiting: Vec<u64> = Vec::new();
        loop {
            ground.reconnected.fetch_add(1, Ordering::SeqCst);
            let http2 = Http2::connect(ground.address).await;
            loop {
                while waiting.len() < 4
                    && let Some(id) = ground.claim()
                {
                    waiting.push(id);
                }
                if waiting.is_empty() {
                    return;
                }
                let mut asked = Vec::new();
                while let Some(id) = waiting.pop() {
                    let request = http::Request::post(format!("http://gw.example{}", path_of(id)));
                    let request = request.header("content-type", "application/json");
                    match http2.send(request, &call(&id.to_string())).await {
                        Ok(answer) => asked.push((id, answer)),
                        // Told to go, it has not been sent.
                        Err(_) => {
                            waiting.push(id);
                            break;
                        }
                    }
                }
                for (id, answer) in asked {
                    let answer = match answer.await {
                        Ok(answer) => whole(answer).await,
                        Err(error) => Err(error),
                    };
                    let answer = match answer {
                        Ok(answer) => answer,
                        // It crossed with the word to go, which says that nothing was done with it; or it
                        // was written when the connection was gone, before that word was read. Had a
                        // dealer seen it, it would now see it twice.
                        Err(error) if is_told_to_go(&error) || is_unsent(&error) => {
                            waiting.push(id);
                            continue;
                        }
                        Err(error) => panic!("{id}: {error:?}"),
                    };
                    assert_eq!(
                        (answer.status(), &answer.json()["id"]),
                        (200, &Value::from(id))
                    );
                    ground.ends(id, Fate::Answered);
                }
                let is_over = !waiting.is_empty();
                if is_over {
                    break;
                }
            }
        }
    });
}

/// Streams beyond the last one that a GOAWAY names were not looked at (RFC 9113 section 6.8).
fn is_told_to_go(error: &h2::Error) -> bool {
    error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR)
}

/// The connection ended before everything was written.
fn is_unsent(error: &h2::Error) -> bool {
    let io = error.get_io();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// One stream after the other.
fn reads_streams(ground: &Ground, turns: &AtomicU64) {
    while !ground.is_over.load(Ordering::SeqCst) {
        let id = ground.claim_stream(turns.fetch_add(1, Ordering::SeqCst));
        let body = call(&id.to_string()).replace("SendMessage", "SendStreamingMessage");
        let mut client = Client::connect(ground.address);
        client.send(Post::to(&path_of(id)).body(body).bytes());
        let head = client.try_head();
        let head = head.unwrap_or_else(|error| panic!("{id}: {error}"));
        assert!(
            head.is_some_and(|head| head.start.contains(" 200 ")),
            "{id}"
        );
        ground.open.fetch_add(1, Ordering::SeqCst);
        let mut text = String::new();
        let fate = loop {
            match client.chunk() {
                Ok(Some(piece)) => text.push_str(std::str::from_utf8(&piece).unwrap()),
                Ok(None) => break Fate::Whole,
                Err(_) => break Fate::Cut(ground.watch.elapsed()),
            }
        };
        ground.open.fetch_sub(1, Ordering::SeqCst);
        let all: String = (0..ground.scale.events).map(|at| event(id, at)).collect();
        match fate {
            Fate::Whole => assert_eq!(text, all),
            // What came is what was sent.
            Fate::Answered | Fate::Cut(_) => assert!(all.starts_with(&text), "{id}: {text}"),
        }
        ground.ends(id, fate);
    }
}

/// A process on the service manager's socket.
fn activated(socket: &TcpListener, file: &Path) -> (Process, SocketAddr) {
    let line = "LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\" 3<&0 </dev/null";
    let socket = OwnedFd::from(socket.try_clone().unwrap());
    let mut process = Process::start_through(line, Stdio::from(socket), file);
    let (_, admin) = process.addresses();
    process.says("ready");
    (process, admin)
}

/// Who changes the configuration and restarts the process.
struct Operator<'g> {
    ground: &'g Ground,
    socket: &'g TcpListener,
    dealers: &'g [SocketAddr],
    file: PathBuf,
    process: Process,
    admin: SocketAddr,
    /// Reloads since the process began.
    applied: u64,
    /// When a process was told to end that had little time, and when it had ended.
    hurried: Vec<(Duration, Duration)>,
}

impl Operator<'_> {
    fn write(&self, turn: u64, timeout: &str) {
        let text = configuration(self.ground.address, self.dealers, turn, timeout);
        let next = self.file.with_extension("next");
        fs::write(&next, text).unwrap();
        fs::rename(&next, &self.file).unwrap();
    }

    fn ask(&self, method: &str, path: &str) -> Value {
        let request = Post::method(method, path).field("Host", "127.0.0.1");
        let answer = Client::connect(self.admin).ask(request.bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    fn reload(&mut self, turn: u64, timeout: &str) {
        self.write(turn, timeout);
        self.ask("POST", "/reload");
        self.applied += 1;
        self.is_at_its_generation();
    }

    fn roll_back(&mut self) {
        let url = format!("http://{}", self.admin);
        let ended = run(&["rollback", "--admin", &url]);
        assert_eq!(ended.code, Some(0), "{} {}", ended.stdout, ended.stderr);
        self.applied += 1;
        self.is_at_its_generation();
    }

    /// Each change was taken, once.
    fn is_at_its_generation(&self) {
        let status = self.ask("GET", "/status");
        assert_eq!(status["configuration"]["generation"], self.applied + 1);
    }

    /// As a service manager restarts it: the new process begins when the old one has ended.
    fn restart(&mut self, is_hurried: bool) {
        wait_until("streams are open", || {
            self.ground.open.load(Ordering::SeqCst) >= self.ground.scale.streams / 2
        });
        let told = self.ground.watch.elapsed();
        self.process.signal("TERM");
        let status = self.process.ended();
        assert_eq!(status.code(), Some(0), "{:?}", self.process.seen);
        if is_hurried {
            self.hurried.push((told, self.ground.watch.elapsed()));
        }
        self.is_unharmed();
        (self.process, self.admin) = activated(self.socket, &self.file);
        self.applied = 0;
    }

    fn is_unharmed(&self) {
        let harm = |line: &&String| line.contains("panicked") || line.contains("\"ERROR\"");
        assert_eq!(self.process.seen.iter().find(harm), None);
    }
}

fn under_load(scale: &'static Scale) {
    let of_http1: Vec<_> = (0..OF_HTTP1)
        .map(|dealer| Upstream::scripted(answers(dealer, scale.events)))
        .collect();
    let of_http2: Vec<_> = (0..OF_HTTP2).map(|_| Dealer::start()).collect();
    let addresses = of_http1.iter().map(|it| it.address);
    let dealers: Vec<_> = addresses
        .chain(of_http2.iter().map(|it| it.address))
        .collect();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let address = socket.local_addr().unwrap();
    fs::write(&file, configuration(address, &dealers, 0, LONG)).unwrap();
    let (process, admin) = activated(&socket, &file);
    let ground = Arc::new(Ground {
        address,
        scale,
        next: AtomicU64::new(1),
        is_over: AtomicBool::new(false),
        fates: Mutex::default(),
        reconnected: AtomicUsize::new(0),
        open: AtomicUsize::new(0),
        watch: Watch::start(),
    });
    let mut callers = Vec::new();
    for _ in 0..6 {
        let ground = Arc::clone(&ground);
        callers.push(thread::spawn(move || calls_http1(&ground)));
    }
    for _ in 0..2 {
        let ground = Arc::clone(&ground);
        callers.push(thread::spawn(move || calls_http2(&ground)));
    }
    let turns = Arc::new(AtomicU64::new(0));
    let readers: Vec<_> = (0..scale.streams)
        .map(|_| {
            let (ground, turns) = (Arc::clone(&ground), Arc::clone(&turns));
            thread::spawn(move || reads_streams(&ground, &turns))
        })
        .collect();

    let mut operator = Operator {
        ground: &ground,
        socket: &socket,
        dealers: &dealers,
        file,
        process,
        admin,
        applied: 0,
        hurried: Vec::new(),
    };
    let mut restarted = 0;
    for turn in 1..=scale.reloads {
        // Evenly over all calls, and not sooner than callers get on.
        let due = turn * scale.calls / (scale.reloads + 1);
        wait_until("callers get on", || {
            ground.next.load(Ordering::SeqCst) >= due
                || callers.iter().any(thread::JoinHandle::is_finished)
        });
        // The first restart of two or three lets every stream finish, the second does not.
        let is_hurried = restarted == 1;
        let timeout = if is_hurried { SHORT } else { LONG };
        operator.reload(turn, timeout);
        if turn == scale.reloads * 2 / 3 {
            operator.roll_back();
            operator.reload(turn + 1000, timeout);
        }
        if turn * (scale.restarts + 1) / (scale.reloads + 1) > restarted {
            operator.restart(is_hurried);
            restarted += 1;
        }
    }
    assert_eq!(restarted, scale.restarts);
    let mut failed = callers.into_iter().filter_map(|it| it.join().err()).count();
    ground.is_over.store(true, Ordering::SeqCst);
    failed += readers.into_iter().filter_map(|it| it.join().err()).count();
    assert_eq!(failed, 0, "callers that met an error");
    operator.process.signal("TERM");
    assert_eq!(operator.process.ended().code(), Some(0));
    operator.is_unharmed();

    // Each call has one fate, and no stream was cut but by a process that had no more time.
    let fates = std::mem::take(&mut *ground.fates.lock());
    assert!(fates.values().all(|it| it.len() == 1));
    let answered = fates.values().filter(|it| it[0] == Fate::Answered).count();
    assert_eq!(answered as u64, scale.calls);
    let mut cut = 0;
    for (id, fate) in &fates {
        let Fate::Cut(at) = fate[0] else { continue };
        cut += 1;
        let [(told, ended)] = operator.hurried[..] else {
            panic!("{id} was cut and nobody was in a hurry");
        };
        // Whoever reads it may be late.
        let least = told + Duration::from_millis(300);
        assert!(
            at >= least && at < ended + Duration::from_secs(5),
            "{id} cut at {at:?}, told at {told:?}"
        );
    }
    assert!(cut > 0, "nothing was there to be cut");
    // Each was asked once, at the dealer that its path stands for.
    let mut asked: BTreeMap<u64, u64> = BTreeMap::new();
    let bodies = of_http1
        .iter()
        .map(|it| it.arrivals().into_iter().map(|it| it.body).collect());
    let more = of_http2.iter().map(|it| {
        let arrived = it.seen.arrived.lock();
        arrived.iter().map(|it| it.body.to_vec()).collect()
    });
    let all: Vec<Vec<Vec<u8>>> = bodies.chain(more).collect();
    for (dealer, bodies) in (0..).zip(&all) {
        for body in bodies {
            let id = id_of(body);
            assert_eq!(asked.insert(id, dealer), None, "{id} was asked twice");
            assert_eq!(dealer_of(id), dealer, "{id} went astray");
        }
    }
    assert!(
        asked
            .keys()
            .eq(fates.keys().collect::<std::collections::BTreeSet<_>>())
    );
    // And logged once.
    let log = fs::read_to_string(directory.path().join("access.log")).unwrap();
    let mut logged: BTreeMap<u64, Value> = BTreeMap::new();
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let id: u64 = line["rpc_id"].as_str().unwrap().parse().unwrap();
        assert_eq!(line["path"], path_of(id));
        assert_eq!(logged.insert(id, line), None, "{id} was logged twice");
    }
    assert!(logged.keys().eq(asked.keys()));
    let ok = logged
        .values()
        .filter(|line| line["outcome"] == "ok")
        .count();
    assert_eq!(ok + cut, logged.len());
    let reconnected = ground.reconnected.load(Ordering::SeqCst);
    println!(
        "{answered} calls on {reconnected} connections, {} streams of which {cut} were cut, {restarted} restarts, {:?}",
        fates.len() - answered,
        ground.watch.elapsed()
    );
}
