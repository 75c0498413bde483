//! The bench's own processes, this program again: the stub and the load generator, both on the core
//! that no proxy has.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::Failure;
use super::load::{Job, Told};

/// The core of the helpers; the proxies have [`PROXY_CORE`].
pub(crate) const HELPER_CORE: &str = "1";
/// The core of the proxy that is measured.
pub(crate) const PROXY_CORE: &str = "0";

/// Before a command line: nothing that is started here outlives this program, however it ends.
pub(crate) const BOUND: [&str; 3] = ["setpriv", "--pdeathsig", "TERM"];

/// `program` with its arguments, on the helpers' core.
pub(crate) fn on_helper_core(program: &Path) -> Command {
    let [bound, arguments @ ..] = BOUND;
    let mut command = Command::new(bound);
    command.args(arguments);
    command.args(["taskset", "-c", HELPER_CORE]).arg(program);
    command
}

/// The running stub; dropping it ends it.
pub(crate) struct Stub {
    child: Child,
    pub(crate) port: u16,
}

impl Stub {
    pub(crate) fn start() -> Result<Self, Failure> {
        let mut child = on_helper_core(&std::env::current_exe()?)
            .arg("stub")
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the stub has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let port = line.trim().parse()?;
        Ok(Self { child, port })
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Does the whole job; an error where any answer was bad.
pub(crate) fn load(job: &Job) -> Result<Told, Failure> {
    Load::start(job)?.finish()
}

/// A job under way.
pub(crate) struct Load {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Load {
    pub(crate) fn start(job: &Job) -> Result<Self, Failure> {
        let mut child = on_helper_core(&std::env::current_exe()?)
            .args(["load", &serde_json::to_string(job)?])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("the load has no output")?;
        Ok(Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(stdout),
            child,
        })
    }

    /// What it tells next.
    pub(crate) fn told(&mut self) -> Result<Told, Failure> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        if line.is_empty() {
            return Err("the load generator failed: see above".into());
        }
        let told: Told = serde_json::from_str(&line)?;
        match &told.first {
            Some(first) => Err(format!(
                "{} of {} answers were bad, the first: {first}",
                told.bad,
                told.bad + told.answers
            )
            .into()),
            None => Ok(told),
        }
    }

    pub(crate) fn finish(mut self) -> Result<Told, Failure> {
        if let Some(mut stdin) = self.stdin.take() {
            let _ = stdin.write_all(b"\n");
        }
        let told = self.told()?;
        if told.answers == 0 {
            return Err("no answers".into());
        }
        self.child.wait()?;
        Ok(told)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
