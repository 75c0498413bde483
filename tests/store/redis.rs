//! A `redis-server` of our own on a free port, and a way to look into it.

#![allow(
    clippy::disallowed_methods,
    reason = "what is installed and demanded is said by the environment"
)]

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::wait::{PATIENCE, wait_until};

/// Whether `redis-server` can be started here.
pub fn is_installed() -> bool {
    let asked = Command::new("redis-server")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    asked.is_ok_and(|status| status.success())
}

/// Whether its absence is a failure.
pub fn is_demanded() -> bool {
    std::env::var("FORECOURT_DEMANDS").is_ok_and(|all| all.split(',').any(|it| it == "redis"))
}

/// A server that runs until this is dropped.
pub struct Redis {
    child: Child,
    pub address: SocketAddr,
    arguments: Vec<String>,
    pub directory: TempDir,
    password: Option<String>,
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

impl Redis {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// With further arguments.
    #[track_caller]
    pub fn start_with(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self::start_in(directory, free_port(), arguments)
    }

    /// On this port, in this directory.
    #[track_caller]
    pub fn start_in(directory: TempDir, port: u16, arguments: &[&str]) -> Self {
        let arguments: Vec<_> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let password = arguments
            .iter()
            .position(|it| it == "--requirepass")
            .map(|at| arguments[at + 1].clone());
        let mut server = Self {
            child: spawn(&directory, port, &arguments),
            address: ([127, 0, 0, 1], port).into(),
            arguments,
            directory,
            password,
        };
        server.comes_up();
        server
    }

    fn comes_up(&mut self) {
        wait_until("redis-server answers", || {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("redis-server ended: {status}");
            }
            self.speaks_tls() || self.try_ask(&["PING"]).is_some_and(|it| it == "+PONG")
        });
        if self.speaks_tls() {
            wait_until("redis-server listens", || {
                TcpStream::connect(self.address).is_ok()
            });
        }
    }

    fn speaks_tls(&self) -> bool {
        self.arguments.iter().any(|it| it == "--tls-port")
    }

    /// Where it is, in a configuration.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Sends a command and reads the answer as text, lists in one line.
    #[track_caller]
    pub fn ask(&self, command: &[&str]) -> String {
        self.try_ask(command).expect("redis-server does not answer")
    }

    fn try_ask(&self, command: &[&str]) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        if let Some(password) = &self.password {
            stream.write_all(&encoded(&["AUTH", password])).ok()?;
            read(&mut reader)?;
        }
        stream.write_all(&encoded(command)).ok()?;
        read(&mut reader)
    }

    /// A number out of `INFO`.
    #[track_caller]
    pub fn info(&self, field: &str) -> u64 {
        let all = self.ask(&["INFO"]);
        let line = all
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {field} in {all}"))
            .trim()
            .parse()
            .unwrap()
    }

    /// Its clock, in microseconds.
    #[track_caller]
    pub fn micros(&self) -> u64 {
        let time = self.ask(&["TIME"]);
        let (seconds, micros) = time.split_once(' ').unwrap();
        seconds.parse::<u64>().unwrap() * 1_000_000 + micros.parse::<u64>().unwrap()
    }

    pub fn keys(&self) -> Vec<String> {
        let keys = self.ask(&["KEYS", "*"]);
        keys.split_whitespace().map(str::to_owned).collect()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it anew where it was.
    #[track_caller]
    pub fn restart(&mut self) {
        self.child = spawn(&self.directory, self.address.port(), &self.arguments);
        self.comes_up();
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn spawn(directory: &TempDir, port: u16, arguments: &[String]) -> Child {
    let mut command = Command::new("redis-server");
    if arguments.iter().any(|it| it == "--sentinel") {
        // What it is to watch, it finds in a file and writes to it.
        command.arg(directory.path().join("sentinel.conf"));
    }
    if !arguments.iter().any(|it| it == "--tls-port") {
        command.args(["--port", &port.to_string()]);
    }
    let is_sentinel = arguments.iter().any(|it| it == "--sentinel");
    if !is_sentinel {
        command.args(["--save", "", "--appendonly", "no"]);
    }
    command
        .args(["--bind", "127.0.0.1", "--dir"])
        .arg(directory.path())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn encoded(command: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len());
    for part in command {
        bytes.push_str(&format!("${}\r\n{part}\r\n", part.len()));
    }
    bytes.into_bytes()
}

fn read(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1)?;
    match kind {
        "$" => {
            let length: i64 = rest.parse().ok()?;
            let Ok(length) = usize::try_from(length) else {
                return Some("nil".to_owned());
            };
            let mut text = vec![0; length + 2];
            reader.read_exact(&mut text).ok()?;
            Some(String::from_utf8_lossy(&text[..length]).into_owned())
        }
        "*" => {
            let count: usize = rest.parse().ok()?;
            let parts: Option<Vec<_>> = (0..count).map(|_| read(reader)).collect();
            Some(parts?.join(" "))
        }
        _ => Some(line.to_owned()),
    }
}
