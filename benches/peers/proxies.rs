//! Who is measured: finds each, writes its configuration, starts it on its core, ends it. Installs
//! nothing: what is missing is told with the package that has it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::Failure;
use super::certificate::Certificate;
use super::helpers::BOUND;
use super::payload::EXTENSION;

/// Who answers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Who {
    /// The stub itself: what the bench costs without a proxy.
    Direct,
    Forecourt,
    Nginx,
    Haproxy,
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Forecourt => "forecourt",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
        }
    }
}

/// What Forecourt tells of its requests, besides its metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Telling {
    /// Nothing.
    Nothing,
    /// A line each.
    Log,
    /// A line each, and the spans of this share of the traces; the metrics are pushed, too.
    Traces(&'static str),
}

impl Telling {
    /// What the environment has for it, with a collector at this port.
    fn environment(self, collector: u16) -> Vec<(&'static str, String)> {
        match self {
            Self::Nothing | Self::Log => Vec::new(),
            Self::Traces(share) => vec![
                (
                    "OTEL_EXPORTER_OTLP_ENDPOINT",
                    format!("http://127.0.0.1:{collector}"),
                ),
                ("OTEL_METRICS_EXPORTER", "otlp".to_owned()),
                ("OTEL_METRIC_EXPORT_INTERVAL", "1000".to_owned()),
                ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio".to_owned()),
                ("OTEL_TRACES_SAMPLER_ARG", share.to_owned()),
                // A collector that keeps up: nothing is dropped, everything is paid for.
                ("OTEL_BSP_MAX_QUEUE_SIZE", "65536".to_owned()),
            ],
        }
    }
}

/// Where everything is.
pub(crate) struct Ground {
    /// Configurations, logs, certificates of this run.
    pub(crate) directory: PathBuf,
    pub(crate) certificate: Certificate,
    /// The binary that is measured.
    pub(crate) forecourt: PathBuf,
    pub(crate) stub: u16,
}

/// A started process; dropping it ends it.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) clear: SocketAddr,
    pub(crate) secure: SocketAddr,
}

/// How a proxy is started.
pub(crate) struct Manner<'m> {
    pub(crate) workers: usize,
    /// The cores it may run on, as `taskset -c` takes them; `None`: any.
    pub(crate) cores: Option<&'m str>,
    pub(crate) tls: bool,
    /// What Forecourt tells.
    pub(crate) telling: Telling,
    /// What its command line begins with, such as a simulator.
    pub(crate) under: Vec<String>,
}

impl Manner<'_> {
    /// One worker on any core, with its log.
    pub(crate) const fn plain(tls: bool) -> Self {
        Self {
            workers: 1,
            cores: None,
            tls,
            telling: Telling::Log,
            under: Vec::new(),
        }
    }
}

/// The program in `PATH` or where Debian puts what only root calls.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

fn script_module() -> Option<PathBuf> {
    let module = PathBuf::from("/usr/lib/nginx/modules/ngx_http_js_module.so");
    module.is_file().then_some(module)
}

/// Why `who` cannot be measured here; `None`: it can.
pub(crate) fn missing(who: Who, script: bool) -> Option<String> {
    let without = |program: &str, package: &str| {
        (find(program).is_none()).then(|| format!("no {program} (Debian package {package})"))
    };
    match who {
        Who::Direct | Who::Forecourt => None,
        Who::Nginx => without("nginx", "nginx").or_else(|| {
            (script && script_module().is_none())
                .then(|| "nginx has no njs (Debian package libnginx-mod-http-js)".to_owned())
        }),
        Who::Haproxy => without("haproxy", "haproxy"),
    }
}

impl Ground {
    /// Why the binary does not serve TLS; `None`: it does.
    pub(crate) fn without_tls(&self) -> Result<Option<String>, Failure> {
        let file = self.directory.join("check.toml");
        fs::write(&file, self.forecourt_toml([1, 2, 3], &Manner::plain(true)))?;
        let checked = Command::new(&self.forecourt)
            .arg("check")
            .arg(&file)
            .output()?;
        if checked.status.success() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&checked.stderr).into_owned();
        let line = text.lines().next().unwrap_or_default();
        Ok(Some(format!("forecourt check refuses TLS: {line}")))
    }

    /// Starts `who` and waits until it accepts.
    pub(crate) fn start(&self, who: Who, manner: &Manner<'_>) -> Result<Started, Failure> {
        let ports = free_ports()?;
        let [clear, secure, _] = ports;
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut line = BOUND.map(str::to_owned).to_vec();
        line.extend(manner.under.iter().cloned());
        if let Some(cores) = manner.cores {
            line.extend(["taskset", "-c", cores].map(str::to_owned));
        }
        line.extend(self.command(who, ports, manner)?);
        let log = fs::File::create(self.directory.join(format!("{}.out", who.name())))?;
        let (program, arguments) = line.split_first().ok_or("no command")?;
        let child = Command::new(program)
            .args(arguments)
            .envs(manner.telling.environment(self.stub))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut started = Started {
            child,
            clear: at(clear),
            secure: at(secure),
        };
        started.wait(who, self, if manner.under.is_empty() { 10 } else { 120 })?;
        Ok(started)
    }

    fn command(
        &self,
        who: Who,
        ports: [u16; 3],
        manner: &Manner<'_>,
    ) -> Result<Vec<String>, Failure> {
        let directory = self.directory.display();
        let file = |name: &str, text: String| -> Result<String, Failure> {
            let path = self.directory.join(name);
            fs::write(&path, text)?;
            Ok(path.display().to_string())
        };
        let words: Vec<String> = match who {
            Who::Direct => return Err("the stub is not started as a proxy".into()),
            Who::Forecourt => {
                let text = self.forecourt_toml(ports, manner);
                vec![
                    self.forecourt.display().to_string(),
                    "run".to_owned(),
                    "-c".to_owned(),
                    file("forecourt.toml", text)?,
                ]
            }
            Who::Nginx => {
                file(
                    "refused.js",
                    include_str!("templates/refused.js").to_owned(),
                )?;
                let (module, script, refuse) = match script_module() {
                    Some(module) => (
                        format!("load_module {};", module.display()),
                        format!("js_path {directory}; js_import refused from refused.js;"),
                        "js_content refused.refused;".to_owned(),
                    ),
                    None => (String::new(), String::new(), "return 400;".to_owned()),
                };
                let reuse = if manner.workers > 1 { " reuseport" } else { "" };
                let text = self
                    .filled(include_str!("templates/nginx.conf"), ports, manner.workers)
                    .replace("@MODULE@", &module)
                    .replace("@SCRIPT@", &script)
                    .replace("@REFUSE@", &refuse)
                    .replace("@REUSEPORT@", reuse);
                let program = find("nginx").ok_or("no nginx")?;
                vec![
                    program.display().to_string(),
                    "-p".to_owned(),
                    directory.to_string(),
                    "-c".to_owned(),
                    file("nginx.conf", text)?,
                ]
            }
            Who::Haproxy => {
                let text =
                    self.filled(include_str!("templates/haproxy.cfg"), ports, manner.workers);
                let program = find("haproxy").ok_or("no haproxy")?;
                vec![
                    program.display().to_string(),
                    "-db".to_owned(),
                    "-f".to_owned(),
                    file("haproxy.cfg", text)?,
                ]
            }
        };
        Ok(words)
    }

    fn forecourt_toml(&self, ports: [u16; 3], manner: &Manner<'_>) -> String {
        let log = match manner.telling {
            Telling::Nothing => "off",
            Telling::Log | Telling::Traces(_) => "@DIRECTORY@/forecourt.log",
        };
        let listener = if manner.tls {
            "\n[listener.secure]\naddress = \"127.0.0.1:@SECURE@\"\n\
             tls = { certificate = \"@PEM@\", key = \"@KEY@\" }\n"
        } else {
            ""
        };
        let text = include_str!("templates/forecourt.toml")
            .replace("@TLS@", listener)
            .replace("@LOG@", log);
        self.filled(&text, ports, manner.workers)
    }

    fn filled(&self, template: &str, ports: [u16; 3], workers: usize) -> String {
        let [clear, secure, admin] = ports;
        [
            ("@WORKERS@", workers.to_string()),
            ("@CLEAR@", clear.to_string()),
            ("@SECURE@", secure.to_string()),
            ("@ADMIN@", admin.to_string()),
            ("@STUB@", self.stub.to_string()),
            ("@EXTENSION@", EXTENSION.to_owned()),
            ("@DIRECTORY@", self.directory.display().to_string()),
            ("@PEM@", self.certificate.pem.display().to_string()),
            ("@KEY@", self.certificate.key.display().to_string()),
            ("@BOTH@", self.certificate.both.display().to_string()),
        ]
        .iter()
        .fold(template.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        })
    }
}

impl Started {
    fn wait(&mut self, who: Who, ground: &Ground, seconds: u64) -> Result<(), Failure> {
        let until = Instant::now() + Duration::from_secs(seconds);
        while TcpStream::connect(self.clear).is_err() {
            if self.child.try_wait()?.is_some() || Instant::now() > until {
                let name = who.name();
                let file = ground.directory.join(format!("{name}.out"));
                let said = fs::read_to_string(file).unwrap_or_default();
                return Err(format!("{name} does not start: {said}").into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let pid = self.child.id().to_string();
            let _ = Command::new("sh")
                .args(["-c", "kill -TERM \"$0\"", &pid])
                .status();
            let until = Instant::now() + Duration::from_secs(30);
            while matches!(self.child.try_wait(), Ok(None)) {
                if Instant::now() > until {
                    let _ = self.child.kill();
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Three ports that nobody listens on now.
fn free_ports() -> Result<[u16; 3], Failure> {
    let open = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let (first, second, third) = (open()?, open()?, open()?);
    Ok([
        first.local_addr()?.port(),
        second.local_addr()?.port(),
        third.local_addr()?.port(),
    ])
}
