//! A real gateway from a configuration text, on ports of its own, with clocks that stand still.

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use forecourt::app::{self, Inherited, Options};
use forecourt::limit::{Clock, ManualClock, SystemClock};
use forecourt::observe::ManualWallClock;
use forecourt::state::reload::Environment;
use serde_json::Value;
use tempfile::TempDir;

use super::call::Post;
use super::client::{Answer, Client};
use super::upstream::Upstream;

/// 2026-11-30T16:53:23.042Z.
pub const NOW_MS: i64 = 1_796_057_603_042;
pub const NOW: &str = "2026-11-30T16:53:23.042Z";

/// A gateway that serves until it is dropped.
pub struct Gateway {
    pub inner: app::Gateway,
    pub clock: ManualClock,
    pub wall: ManualWallClock,
    pub directory: TempDir,
}

/// What stands before every configuration: ports chosen by the system, the access log in a file,
/// one worker so that its lines are in order.
pub const PRELUDE: &str = r#"
[runtime]
workers = 1
[listener.public]
address = "127.0.0.1:0"
[admin]
address = "127.0.0.1:0"
[log]
access = "access.log"
"#;

/// A whole configuration with two workers.
pub fn two_workers(configuration: &str) -> String {
    format!(
        "{}{configuration}",
        PRELUDE.replace("workers = 1", "workers = 2")
    )
}

/// The usual dealer: `/a2a`, pinned to aap/3.0, upstream path `/a2a`.
pub fn dealer(upstream: &Upstream) -> String {
    dealer_with(upstream, "", "")
}

/// The usual dealer with further lines in its tables `upstream` and `endpoint`.
pub fn dealer_with(upstream: &Upstream, of_upstream: &str, of_endpoint: &str) -> String {
    dealer_at(upstream.address, of_upstream, of_endpoint)
}

/// The same at an address where perhaps nobody listens.
pub fn dealer_at(address: SocketAddr, of_upstream: &str, of_endpoint: &str) -> String {
    format!(
        "[upstream.lakeside]\nurl = \"http://{address}/a2a\"\n{of_upstream}\n\
         [endpoint.lakeside]\npath = \"/a2a\"\nupstream = \"lakeside\"\n{of_endpoint}\n"
    )
}

impl Gateway {
    /// Serves the configuration after the usual prelude.
    #[track_caller]
    pub fn start(configuration: &str) -> Self {
        Self::start_whole(&format!("{PRELUDE}{configuration}"))
    }

    /// The same with two workers.
    #[track_caller]
    pub fn start_two(configuration: &str) -> Self {
        Self::start_whole(&two_workers(configuration))
    }

    /// The usual dealer in front of this upstream.
    #[track_caller]
    pub fn before(upstream: &Upstream) -> Self {
        Self::start(&dealer(upstream))
    }

    /// Serves exactly this configuration.
    #[track_caller]
    pub fn start_whole(configuration: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("forecourt.toml");
        fs::write(&path, configuration).unwrap();
        Self::start_in(directory, path)
    }

    /// Serves a file that lies somewhere else.
    #[track_caller]
    pub fn start_at(path: PathBuf) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), path)
    }

    /// The same with two workers on a socket that was opened before.
    #[track_caller]
    pub fn start_two_on(socket: TcpListener, configuration: &str) -> Self {
        let address = socket.local_addr().unwrap().to_string();
        let configuration = two_workers(configuration).replacen("127.0.0.1:0", &address, 1);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("forecourt.toml");
        fs::write(&path, configuration).unwrap();
        Self::start_with(directory, path, Inherited::of([socket]).unwrap())
    }

    /// Serves a file in this directory, which stays as long as the gateway does.
    #[allow(
        dead_code,
        reason = "for tests that name files, not for those of stores"
    )]
    #[track_caller]
    pub fn start_there(directory: TempDir, path: PathBuf) -> Self {
        Self::start_in(directory, path)
    }

    #[track_caller]
    fn start_in(directory: TempDir, path: PathBuf) -> Self {
        Self::start_with(directory, path, Inherited::default())
    }

    /// Two workers after the usual prelude, on a clock that runs.
    #[allow(dead_code, reason = "for the tests of stores, which share this file")]
    #[track_caller]
    pub fn start_running(configuration: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("forecourt.toml");
        fs::write(&path, two_workers(configuration)).unwrap();
        let clock = Arc::new(SystemClock::new());
        Self::start_on(clock, directory, path, Inherited::default())
    }

    /// The usual configuration of a dealer, with more variables in the environment.
    #[allow(dead_code, reason = "for the tests of stores, which share this file")]
    #[track_caller]
    pub fn start_in_environment(configuration: &str, variables: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("forecourt.toml");
        fs::write(&path, format!("{PRELUDE}{configuration}")).unwrap();
        let variables: Vec<(String, String)> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let env = Arc::new(move |name: &str| {
            let found = variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        });
        let clock = ManualClock::new();
        let mut gateway = Self::start_where(
            Arc::new(clock.clone()),
            directory,
            path,
            Inherited::default(),
            env,
        );
        gateway.clock = clock;
        gateway
    }

    #[track_caller]
    fn start_with(directory: TempDir, path: PathBuf, inherited: Inherited) -> Self {
        let clock = ManualClock::new();
        let mut gateway = Self::start_on(Arc::new(clock.clone()), directory, path, inherited);
        gateway.clock = clock;
        gateway
    }

    #[track_caller]
    fn start_on(
        clock: Arc<dyn Clock>,
        directory: TempDir,
        path: PathBuf,
        inherited: Inherited,
    ) -> Self {
        let env = |name: &str| (name == "DEALER_TOKEN").then(|| "dealer-secret".to_owned());
        Self::start_where(clock, directory, path, inherited, Arc::new(env))
    }

    #[track_caller]
    fn start_where(
        clock: Arc<dyn Clock>,
        directory: TempDir,
        path: PathBuf,
        inherited: Inherited,
        env: Environment,
    ) -> Self {
        let wall = ManualWallClock::at(NOW_MS);
        let options = Options {
            path,
            env,
            clock,
            wall: Arc::new(wall.clone()),
        };
        let inner = app::Gateway::start_with(options, inherited);
        Self {
            inner: inner.unwrap_or_else(|error| panic!("{error}")),
            clock: ManualClock::new(),
            wall,
            directory,
        }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("forecourt.toml")
    }

    pub fn address(&self) -> SocketAddr {
        self.inner.address("public").unwrap()
    }

    #[track_caller]
    pub fn client(&self) -> Client {
        Client::connect(self.address())
    }

    #[track_caller]
    pub fn admin(&self) -> Client {
        Client::connect(self.inner.admin_address())
    }

    /// Asks on a new connection.
    #[track_caller]
    pub fn ask(&self, bytes: impl AsRef<[u8]>) -> Answer {
        self.client().ask(bytes)
    }

    /// POSTs a JSON body to the usual endpoint on a new connection.
    #[track_caller]
    pub fn post(&self, body: impl AsRef<[u8]>) -> Answer {
        self.ask(Post::to("/a2a").body(body).bytes())
    }

    /// Asks the admin socket.
    #[track_caller]
    pub fn admin_get(&self, path: &str) -> Answer {
        let request = Post::method("GET", path).field("Host", "127.0.0.1");
        self.admin().ask(request.bytes())
    }

    /// Every line of the access log so far.
    #[track_caller]
    pub fn access_log(&self) -> Vec<Value> {
        self.inner.flush_access_log();
        let text = fs::read_to_string(self.directory.path().join("access.log")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The last line of the access log.
    #[track_caller]
    pub fn last_line(&self) -> Value {
        self.access_log().pop().expect("no line was written")
    }

    /// Every series with its value.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        self.admin_get("/metrics")
            .text()
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
            .map(|line| {
                let (series, value) = line.rsplit_once(' ').unwrap();
                (series.to_owned(), value.parse().unwrap())
            })
            .collect()
    }

    /// How many requests of the usual endpoint ended this way.
    #[track_caller]
    pub fn ended(&self, outcome: &str) -> f64 {
        self.ended_at("lakeside", outcome)
    }

    #[track_caller]
    pub fn ended_at(&self, endpoint: &str, outcome: &str) -> f64 {
        self.series(&format!(
            "forecourt_http_requests_total{{endpoint=\"{endpoint}\",outcome=\"{outcome}\"}}"
        ))
    }

    /// The value of one series, which must exist.
    #[track_caller]
    pub fn series(&self, series: &str) -> f64 {
        let metrics = self.metrics();
        let value = metrics.get(series).copied();
        value.unwrap_or_else(|| panic!("no series {series} in {metrics:#?}"))
    }

    /// Puts another configuration in place by renaming it over the old one. Nothing is told.
    pub fn write(&self, configuration: &str) {
        self.write_whole(&format!("{PRELUDE}{configuration}"));
    }

    pub fn write_whole(&self, configuration: &str) {
        let next = self.directory.path().join("next.toml");
        fs::write(&next, configuration).unwrap();
        fs::rename(&next, self.path()).unwrap();
    }
}
