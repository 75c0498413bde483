//! Forecourt side by side with nginx and HAProxy: the same job, the same stub upstream, one core
//! each. How it measures and how to run it: `benches/peers/README.md`.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a bench is a test, and measures real time"
)]

mod certificate;
mod head;
mod helpers;
mod instructions;
mod load;
mod measure;
mod payload;
mod probe;
mod process;
mod proxies;
mod report;
mod scenarios;
mod stub;
mod train;
mod wire;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use measure::{Run, measure};
use proxies::Ground;
use report::Report;

/// Why something could not be measured.
pub(crate) type Failure = Box<dyn std::error::Error>;

const USAGE: &str = "\
cargo peers [OPTIONS]                 side by side: a table of ratios
cargo peers instructions [--update]   instructions per request, against the committed figures
cargo peers train --forecourt PATH    a fixed amount of each kind of work; nothing is measured

  --rounds N        interleaved rounds (default 5)
  --seconds S       of load in each (default 3)
  --only A,B        these scenarios only
  --wait S          in all, at most, for others to leave the core alone (default 120)
  --list            names the scenarios and ends
  --json FILE       writes every sample there too
  --forecourt PATH  measures this binary (default: target/shipped/forecourt, by deploy/build)
";

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1).filter(|it| it != "--bench");
    match run(&arguments.collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("peers: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Which of its works.
enum Asked {
    SideBySide,
    Instructions,
    Training,
}

/// How it was asked for.
struct Options {
    rounds: usize,
    seconds: f64,
    only: Vec<String>,
    /// Seconds that may be waited, in all, for a quiet core.
    wait: u64,
    json: Option<PathBuf>,
    forecourt: Option<PathBuf>,
    update: bool,
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut options = Options {
        rounds: 5,
        seconds: 3.0,
        only: Vec::new(),
        wait: 120,
        json: None,
        forecourt: None,
        update: false,
    };
    let mut asked = Asked::SideBySide;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            // This program again, as a helper.
            "stub" => return Ok(stub::serve()?),
            "load" => return load::run(serde_json::from_str(value()?)?),
            "instructions" => asked = Asked::Instructions,
            "train" => asked = Asked::Training,
            "--update" => options.update = true,
            "--rounds" => options.rounds = value()?.parse()?,
            "--seconds" => options.seconds = value()?.parse()?,
            "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
            "--wait" => options.wait = value()?.parse()?,
            "--json" => options.json = Some(value()?.into()),
            "--forecourt" => options.forecourt = Some(std::fs::canonicalize(value()?)?),
            "--list" => {
                for scenario in scenarios::all() {
                    println!("{:14} {}", scenario.name, scenario.title);
                }
                return Ok(());
            }
            "--help" | "-h" => {
                print!("{USAGE}");
                return Ok(());
            }
            other => return Err(format!("{other}: no such option\n{USAGE}").into()),
        }
    }
    if std::thread::available_parallelism()?.get() < 2 {
        return Err("needs two cores: one for the proxy, one for the stub and the load".into());
    }
    for program in ["taskset", "setpriv"] {
        if proxies::find(program).is_none() {
            return Err(format!("needs {program} (Debian package util-linux)").into());
        }
    }
    let directory = tempfile::tempdir()?;
    let stub = helpers::Stub::start()?;
    let ground = Ground {
        directory: directory.path().to_owned(),
        certificate: certificate::make(directory.path())?,
        forecourt: match (&options.forecourt, &asked) {
            (Some(path), _) => path.clone(),
            (None, Asked::Training) => return Err("train needs --forecourt PATH".into()),
            (None, Asked::SideBySide | Asked::Instructions) => build()?,
        },
        stub: stub.port,
    };
    match asked {
        Asked::SideBySide => side_by_side(&ground, &options),
        Asked::Instructions => instructions::gate(&ground, options.update),
        Asked::Training => train::train(&ground),
    }
}

fn side_by_side(ground: &Ground, options: &Options) -> Result<(), Failure> {
    let mut scenarios = scenarios::all();
    let known: Vec<&str> = scenarios.iter().map(|it| it.name).collect();
    if let Some(other) = options.only.iter().find(|it| !known.contains(&it.as_str())) {
        return Err(format!("{other}: no such scenario; there are {}", known.join(", ")).into());
    }
    if !options.only.is_empty() {
        scenarios.retain(|it| options.only.iter().any(|only| only == it.name));
    }
    let run = Run {
        ground,
        rounds: options.rounds,
        seconds: options.seconds,
        without_tls: ground.without_tls()?,
        patience: Cell::new(Duration::from_secs(options.wait)),
    };
    let mut report = Report::default();
    for scenario in &scenarios {
        if let Some(why) = run.impossible(scenario, !options.only.is_empty()) {
            report.skip(scenario.name, &why);
            continue;
        }
        match measure(&run, scenario) {
            Ok(samples) => report.tell(scenario, &samples),
            Err(why) => report.fail(scenario.name, &why.to_string()),
        }
    }
    report.conclude();
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_string_pretty(&report.json())?)?;
    }
    if report.failed.is_empty() {
        Ok(())
    } else {
        Err(format!("{} scenarios failed", report.failed.len()).into())
    }
}

/// Builds the binary as it ships, and says where it is.
fn build() -> Result<PathBuf, Failure> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/build");
    let built = Command::new(script).stderr(Stdio::inherit()).output()?;
    let said = String::from_utf8_lossy(&built.stdout).into_owned();
    match said.lines().last() {
        Some(path) if built.status.success() => Ok(path.into()),
        _ => Err(format!("deploy/build fails: {said}").into()),
    }
}
