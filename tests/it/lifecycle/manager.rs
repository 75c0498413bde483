//! What a service manager hears, on a socket as systemd's.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::support::call::{call, post};
use crate::support::gateway::{dealer, dealer_with, two_workers};
use crate::support::process::Process;
use crate::support::wait::stays;
use crate::support::{Client, PATIENCE, Post, Upstream, upstream};

/// A service manager.
struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Manager {
    fn in_directory(directory: &TempDir) -> Self {
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, path }
    }

    fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// The next word, line by line.
    #[track_caller]
    fn hears(&self) -> Vec<String> {
        let mut word = [0; 4096];
        let length = self.socket.recv(&mut word).expect("nothing was said");
        let text = std::str::from_utf8(&word[..length]).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// The next word in which such a line stands.
    #[track_caller]
    fn hears_of(&self, line: &str) -> Vec<String> {
        loop {
            let word = self.hears();
            if word.iter().any(|it| it.starts_with(line)) {
                return word;
            }
        }
    }

    /// Forgets what was said so far.
    fn forget(&self) {
        self.socket.set_nonblocking(true).unwrap();
        while self.socket.recv(&mut [0; 4096]).is_ok() {}
        self.socket.set_nonblocking(false).unwrap();
    }

    /// Whether nothing has been said that begins like this, without waiting. What else was said is
    /// forgotten.
    fn has_not_heard(&self, line: &str) -> bool {
        self.socket.set_nonblocking(true).unwrap();
        let mut word = [0; 4096];
        let mut is_silent = true;
        loop {
            match self.socket.recv(&mut word) {
                Ok(length) => {
                    let text = String::from_utf8_lossy(&word[..length]).into_owned();
                    is_silent &= !text.lines().any(|it| it.starts_with(line));
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        self.socket.set_nonblocking(false).unwrap();
        is_silent
    }
}

fn is_ready(admin: std::net::SocketAddr) -> bool {
    let ready = Post::method("GET", "/readyz").field("Host", "localhost");
    Client::connect(admin).ask(ready.bytes()).status == 200
}

fn write(file: &Path, text: &str) {
    let next = file.with_extension("next");
    fs::write(&next, text).unwrap();
    fs::rename(next, file).unwrap();
}

#[test]
fn it_hears_of_the_start_of_each_reload_and_of_the_end() {
    let dealer_ = Upstream::manual();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let shutdown = "[shutdown]\ndelay = \"1s\"\ntimeout = \"20s\"\n";
    let good = two_workers(&format!("{shutdown}{}", dealer(&dealer_)));
    fs::write(&file, &good).unwrap();
    let manager = Manager::in_directory(&directory);
    let mut process = Process::start_with(&file, &[("NOTIFY_SOCKET", manager.path())]);

    // Once it is said to be ready, it is.
    let ready = manager.hears();
    assert_eq!(
        ready,
        ["READY=1", "STATUS=serving, generation 1, 1 listener"]
    );
    let (public, admin) = process.addresses();
    assert!(is_ready(admin));
    let mut client = Client::connect(public);
    client.send(post(call("1")));
    let mut peer = dealer_.accept();
    peer.request().unwrap();

    process.signal("HUP");
    let reloading = manager.hears();
    assert_eq!((reloading.len(), &*reloading[0]), (2, "RELOADING=1"));
    let since = reloading[1].strip_prefix("MONOTONIC_USEC=").unwrap();
    assert!(since.parse::<u64>().unwrap() > 0);
    assert_eq!(manager.hears()[0], "READY=1");

    // A bad file: ready as before, and the line says why it does not serve.
    write(&file, &good.replace("path = ", "pth = "));
    process.signal("HUP");
    let told = manager
        .hears_of("STATUS=serving, generation 1, 1 listener; the last reload was rejected: ");
    assert!(told.last().unwrap().contains("forecourt.toml:"), "{told:?}");
    // One that is taken without being asked for.
    write(&file, &good.replace("path = \"/a2a\"", "path = \"/b2b\""));
    manager.hears_of("STATUS=serving, generation 2, 1 listener");

    manager.forget();
    process.signal("TERM");
    // As long as the configuration grants, and what the end itself takes.
    let stopping = manager.hears_of("STOPPING=1");
    assert_eq!(
        stopping,
        [
            "STOPPING=1",
            "EXTEND_TIMEOUT_USEC=26000000",
            "STATUS=draining, generation 2, 1 listener"
        ]
    );
    peer.send(upstream::ok());
    assert_eq!(client.answer().status, 200);
    assert_eq!(process.ended().code(), Some(0));
}

#[test]
fn the_watchdog_is_fed_only_while_every_worker_turns() {
    let dealer = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    let quota = "[quota.all]\nper = \"all\"\nrate = \"1000/s\"\nburst = 1000\n";
    let dealer = dealer_with(&dealer, "", "quotas = [\"all\"]");
    fs::write(&file, two_workers(&format!("{quota}{dealer}"))).unwrap();
    let manager = Manager::in_directory(&directory);
    let mut process = Process::start_test(
        "lifecycle::as_a_process",
        &file,
        &[
            ("NOTIFY_SOCKET", manager.path()),
            ("WATCHDOG_USEC", "2000000"),
        ],
    );
    let (public, _) = process.addresses();
    for _ in 0..3 {
        manager.hears_of("WATCHDOG=1");
    }

    // One of the two workers hangs.
    let block = directory.path().join("block");
    fs::write(&block, "").unwrap();
    let mut client = Client::connect(public);
    client.send(post(call("1")));
    let told = process.says("threads do not turn");
    let still = told["still"].as_str().unwrap();
    assert!(
        still.contains("worker-") && !still.contains("control"),
        "{still}"
    );
    manager.forget();
    assert!(stays(Duration::from_secs(3), || manager
        .has_not_heard("WATCHDOG=1")));

    // It turns again.
    fs::remove_file(block).unwrap();
    assert_eq!(client.answer().status, 200);
    manager.hears_of("WATCHDOG=1");
    process.signal("TERM");
    manager.hears_of("STOPPING=1");
    assert_eq!(process.ended().code(), Some(0));
}

#[test]
fn without_one_nothing_is_asked() {
    let dealer_ = Upstream::recording();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("forecourt.toml");
    fs::write(&file, two_workers(&dealer(&dealer_))).unwrap();
    // One that is not there any more does no harm.
    let gone = directory.path().join("gone");
    let mut process = Process::start_with(&file, &[("NOTIFY_SOCKET", gone.to_str().unwrap())]);
    let (public, _) = process.addresses();
    process.says("the service manager cannot be told");
    assert_eq!(Client::connect(public).ask(post(call("1"))).status, 200);
    process.signal("TERM");
    assert_eq!(process.ended().code(), Some(0));
}
