//! The real binary, with its signals and its exit codes.

use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde_json::Value;

use super::wait::{PATIENCE, wait_until};

/// A running `forecourt`.
pub struct Process {
    child: Child,
    diagnostics: Receiver<String>,
    /// Everything on standard error so far.
    pub seen: Vec<String>,
}

/// What a command that ended has left.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// What this program was told by a variable.
#[allow(
    clippy::disallowed_methods,
    reason = "how tests run is said from outside"
)]
pub fn told(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forecourt"));
    command.env_clear().env("DEALER_TOKEN", "dealer-secret");
    command
}

/// Runs a command to its end.
pub fn run(arguments: &[&str]) -> Ended {
    ended(command().args(arguments))
}

/// The same with one more variable.
pub fn run_with(arguments: &[&str], name: &str, value: &str) -> Ended {
    ended(command().args(arguments).env(name, value))
}

/// The same with something on standard input.
pub fn feed(arguments: &[&str], input: &[u8]) -> Ended {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(input).unwrap();
    file.rewind().unwrap();
    ended(command().args(arguments).stdin(file))
}

fn ended(command: &mut Command) -> Ended {
    let output = command.output().unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Process {
    /// `forecourt run -c FILE`.
    pub fn start(file: &Path) -> Self {
        let mut command = command();
        command.args(["run", "-c"]).arg(file).stdin(Stdio::null());
        Self::spawn(command)
    }

    /// The same with these variables.
    pub fn start_with(file: &Path, environment: &[(&str, &str)]) -> Self {
        let mut command = command();
        command.args(["run", "-c"]).arg(file).stdin(Stdio::null());
        command.envs(environment.iter().copied());
        Self::spawn(command)
    }

    /// A test of this program as a process of its own, which is told a file and these variables.
    pub fn start_test(test: &str, file: &Path, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env_clear().args([test, "--exact", "--nocapture"]);
        command.env("FORECOURT_AS_A_PROCESS", file);
        command.envs(environment.iter().copied());
        Self::spawn(command)
    }

    /// The same with another binary, as one that was built for release.
    pub fn start_binary(binary: &Path, file: &Path) -> Self {
        let mut command = Command::new(binary);
        command.env_clear().args(["run", "-c"]).arg(file);
        command.stdin(Stdio::null());
        Self::spawn(command)
    }

    /// The same through a line of shell, in which `"$@"` is the command, and standard input is
    /// given.
    pub fn start_through(line: &str, stdin: Stdio, file: &Path) -> Self {
        let mut command = Command::new("/bin/sh");
        command.env_clear().args(["-c", line, "sh"]);
        command.args([env!("CARGO_BIN_EXE_forecourt"), "run", "-c"]);
        command.arg(file).stdin(stdin);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, diagnostics) = mpsc::channel();
        thread::spawn(move || {
            for line in stderr.lines() {
                if line.is_ok_and(|line| sender.send(line).is_err()) {
                    return;
                }
            }
        });
        Self {
            child,
            diagnostics,
            seen: Vec::new(),
        }
    }

    /// Waits for a line of diagnostics with this message.
    #[track_caller]
    pub fn says(&mut self, message: &str) -> Value {
        loop {
            let line = self.diagnostics.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("never said {message}: {:?}", self.seen));
            self.seen.push(line.clone());
            let line: Value = serde_json::from_str(&line).unwrap_or_default();
            if line["message"]
                .as_str()
                .is_some_and(|text| text.contains(message))
            {
                return line;
            }
        }
    }

    /// Whether it has said so by now.
    pub fn has_said(&mut self, message: &str) -> bool {
        self.seen.extend(self.diagnostics.try_iter());
        let told = format!("\"message\":\"{message}\"");
        self.seen.iter().any(|line| line.contains(&told))
    }

    /// The addresses of the listener and of the admin socket.
    #[track_caller]
    pub fn addresses(&mut self) -> (SocketAddr, SocketAddr) {
        let address = |value: &Value| value.as_str().unwrap().parse().unwrap();
        let listener = address(&self.says("listening")["address"]);
        let admin = address(&self.says("admin socket")["admin"]);
        (listener, admin)
    }

    /// The addresses of these listeners and of the admin socket.
    #[track_caller]
    pub fn addresses_of<const N: usize>(
        &mut self,
        listeners: [&str; N],
    ) -> ([SocketAddr; N], SocketAddr) {
        let address = |value: &Value| value.as_str().unwrap().parse().unwrap();
        let admin = address(&self.says("admin socket")["admin"]);
        let lines = self.seen.iter().map(|line| serde_json::from_str(line));
        let lines: Vec<Value> = lines.map(Result::unwrap_or_default).collect();
        let of = |name| lines.iter().find(|line| line["listener"] == name);
        let addresses = listeners.map(|name| address(&of(name).unwrap()["address"]));
        (addresses, admin)
    }

    /// Memory in use, bytes.
    pub fn memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.unwrap().trim().strip_suffix(" kB").unwrap();
        kilobytes.parse::<usize>().unwrap() * 1024
    }

    /// Open descriptors.
    pub fn descriptors(&self) -> usize {
        let all = std::fs::read_dir(format!("/proc/{}/fd", self.id()));
        all.unwrap().count()
    }

    /// The names of its threads.
    pub fn threads(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id())).unwrap();
        let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
        let names = names.filter_map(Result::ok);
        names.map(|name| name.trim_end().to_owned()).collect()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end.
    #[track_caller]
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the process ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        self.seen.extend(self.diagnostics.iter());
        status.unwrap()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if let Some(mut stderr) = self.child.stderr.take() {
            drop(stderr.read_to_end(&mut Vec::new()));
        }
    }
}
