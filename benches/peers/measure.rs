//! One sample: a proxy does one piece of work, and what that cost is read. And one scenario: the
//! samples of all entrants, round by round, each round in another order.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Failure;
use super::helpers::{HELPER_CORE, Load, PROXY_CORE, load, on_helper_core};
use super::load::{Job, Told, Until};
use super::payload::{SMALL, call};
use super::probe::{probe, without_http2};
use super::process;
use super::proxies::{Ground, Manner, Started, Who, find, missing};
use super::scenarios::{Entrant, Figure, IDLE, Kind, Scenario, events_each, job, refused};

/// What one entrant showed in one round.
pub(crate) type Sample = BTreeMap<Figure, f64>;

/// What became of a scenario.
pub(crate) struct Samples {
    /// Round by round, by the entrant's name.
    pub(crate) rounds: Vec<BTreeMap<&'static str, Sample>>,
    /// Who is not among them, and why.
    pub(crate) absent: Vec<(&'static str, String)>,
}

/// How long idle connections settle before their memory is read.
const SETTLE: Duration = Duration::from_millis(1500);

/// How a run is made.
pub(crate) struct Run<'r> {
    pub(crate) ground: &'r Ground,
    pub(crate) rounds: usize,
    /// Of load in each round.
    pub(crate) seconds: f64,
    /// Why Forecourt does not serve TLS, while it does not.
    pub(crate) without_tls: Option<String>,
    /// How long may still be waited, in all, for others to leave the proxies' core alone.
    pub(crate) patience: Cell<Duration>,
}

/// Others may use so much of the core, in percent, while it counts as quiet.
const QUIET: f64 = 15.0;

impl Run<'_> {
    /// Why the scenario is not measured at all; `None`: it is. Who names it gets what there is.
    pub(crate) fn impossible(&self, scenario: &Scenario, named: bool) -> Option<String> {
        if scenario.kind == Kind::Http2 && find("h2load").is_none() {
            return Some("no h2load (Debian package nghttp2-client)".to_owned());
        }
        let why = self.without_tls.clone();
        why.filter(|_| scenario.tls && !named)
    }

    /// Why this entrant is not measured.
    fn absent(&self, scenario: &Scenario, entrant: &Entrant) -> Option<String> {
        let why = self.without_tls.clone();
        why.filter(|_| scenario.tls && entrant.who == Who::Forecourt)
            .or_else(|| missing(entrant.who, scenario.kind == Kind::Refusals))
    }

    /// Waits until nobody else is busy on the proxies' core, or no longer.
    fn quiet(&self) -> Result<(), Failure> {
        const LOOK: Duration = Duration::from_millis(300);
        while let Some(left) = self.patience.get().checked_sub(LOOK) {
            let before = process::busy(PROXY_CORE)?;
            std::thread::sleep(LOOK);
            let used = process::busy(PROXY_CORE)?.saturating_sub(before);
            if 100.0 * used as f64 / LOOK.as_nanos() as f64 <= QUIET {
                break;
            }
            self.patience.set(left);
        }
        Ok(())
    }
}

/// All rounds of `scenario`.
pub(crate) fn measure(run: &Run<'_>, scenario: &Scenario) -> Result<Samples, Failure> {
    let (ground, rounds) = (run.ground, run.rounds);
    let mut samples = Samples {
        rounds: Vec::new(),
        absent: Vec::new(),
    };
    let mut field = Vec::new();
    for entrant in scenario.entrants {
        match run.absent(scenario, entrant) {
            Some(why) => samples.absent.push((entrant.name, why)),
            None if scenario.kind == Kind::Idle => field.push((entrant, None)),
            None => {
                let started = start(ground, scenario, entrant)?;
                let without = match &started {
                    Some(started) if scenario.kind == Kind::Http2 => {
                        without_http2(started.secure, &ground.certificate.der)?
                    }
                    _ => None,
                };
                match without {
                    Some(why) => samples.absent.push((entrant.name, why)),
                    None => field.push((entrant, started)),
                }
            }
        }
    }
    for round in 0..=rounds {
        let mut shown = BTreeMap::new();
        // The first is not counted: caches, pools and tables fill.
        let warming = round == 0;
        if warming && scenario.kind == Kind::Idle {
            continue;
        }
        for turn in 0..field.len() {
            let (entrant, started) = &field[(turn + round) % field.len()];
            let sample = if scenario.kind == Kind::Idle {
                idle(ground, scenario, entrant)
            } else if warming {
                busy(ground, scenario, entrant, started.as_ref(), 1.0)
            } else {
                quietest(run, scenario, entrant, started.as_ref())
            };
            shown.insert(
                entrant.name,
                sample.map_err(|why| format!("{}: {why}", entrant.name))?,
            );
        }
        if !warming {
            add_to_direct(&mut shown, scenario.kind);
            samples.rounds.push(shown);
        }
    }
    Ok(samples)
}

fn start(
    ground: &Ground,
    scenario: &Scenario,
    entrant: &Entrant,
) -> Result<Option<Started>, Failure> {
    if entrant.who == Who::Direct {
        return Ok(None);
    }
    // Two workers need two cores of their own, where there are so many.
    let cores = std::thread::available_parallelism()?.get();
    let cores = match entrant.workers {
        1 => PROXY_CORE,
        _ if cores >= 3 => "0,2",
        _ => PROXY_CORE,
    };
    let started = ground.start(
        entrant.who,
        &Manner {
            workers: entrant.workers,
            cores: Some(cores),
            tls: scenario.tls,
            telling: entrant.telling,
            under: Vec::new(),
        },
    )?;
    probe(entrant.who, started.clear)?;
    Ok(Some(started))
}

fn order(
    ground: &Ground,
    scenario: &Scenario,
    entrant: &Entrant,
    started: Option<&Started>,
    seconds: f64,
) -> Job {
    let to = match started {
        None => ([127, 0, 0, 1], ground.stub).into(),
        Some(started) if scenario.tls => started.secure,
        Some(started) => started.clear,
    };
    let mut job = job(to, Until::Seconds(seconds));
    if scenario.tls {
        job.tls = Some(ground.certificate.der.clone());
    }
    (scenario.shape)(&mut job);
    if scenario.kind == Kind::Refusals {
        job = refused(job, entrant.who);
    }
    job
}

/// A sample under load; while others disturb it and there is patience, another instead.
fn quietest(
    run: &Run<'_>,
    scenario: &Scenario,
    entrant: &Entrant,
    started: Option<&Started>,
) -> Result<Sample, Failure> {
    let sample = || {
        run.quiet()?;
        busy(run.ground, scenario, entrant, started, run.seconds)
    };
    let noise = |sample: &Sample| sample.get(&Figure::Others).copied().unwrap_or(0.0);
    let mut best = sample()?;
    for _ in 0..2 {
        let spent = Duration::from_secs_f64(run.seconds);
        let Some(left) = run.patience.get().checked_sub(spent) else {
            break;
        };
        if noise(&best) <= QUIET {
            break;
        }
        run.patience.set(left);
        let again = sample()?;
        if noise(&again) < noise(&best) {
            best = again;
        }
    }
    Ok(best)
}

/// A sample under load.
fn busy(
    ground: &Ground,
    scenario: &Scenario,
    entrant: &Entrant,
    started: Option<&Started>,
    seconds: f64,
) -> Result<Sample, Failure> {
    let job = order(ground, scenario, entrant, started, seconds);
    let pid = started.map(|it| it.child.id());
    let mut sample = Sample::new();
    if let (Kind::Workers, Some(pid)) = (scenario.kind, pid) {
        sample.insert(Figure::Share, share(pid, &job)?);
    }
    let spent = || pid.map_or(Ok(0), process::cpu);
    let (cpu, core, since) = (spent()?, process::busy(PROXY_CORE)?, Instant::now());
    let told = match scenario.kind {
        Kind::Http2 => h2load(ground, &job)?,
        Kind::Calls | Kind::Paced | Kind::Refusals | Kind::Events | Kind::Idle | Kind::Workers => {
            load(&job)?
        }
    };

    let elapsed = since.elapsed().as_nanos() as f64;
    let cpu = spent()?.saturating_sub(cpu) as f64;
    let others = (process::busy(PROXY_CORE)?.saturating_sub(core)) as f64 - cpu;
    let units = if job.events {
        let sent = events_each(&job) * job.connections as u64;
        if told.events != sent {
            return Err(format!("{} of {sent} events arrived", told.events).into());
        }
        told.events
    } else {
        told.answers
    };
    sample.insert(Figure::Rate, units as f64 / told.seconds);
    if told.p99 > 0.0 {
        sample.insert(Figure::P50, told.p50);
        sample.insert(Figure::P99, told.p99);
    }
    if let Some(pid) = pid {
        sample.insert(Figure::Cpu, cpu / 1000.0 / units as f64);
        sample.insert(Figure::Memory, process::memory(pid)? / 1024.0);
        sample.insert(Figure::Others, (100.0 * others / elapsed).max(0.0));
    }
    Ok(sample)
}

/// How the connections of `job` are spread over the workers of `pid`, while nothing else goes on.
fn share(pid: u32, job: &Job) -> Result<f64, Failure> {
    let mut held = Load::start(&Job {
        until: Until::Idle,
        ..job.clone()
    })?;
    held.told()?;
    let share = process::share(pid, job.to.port())?;
    held.finish()?;
    if share.connections < job.connections {
        return Err(format!("{} connections are watched", share.connections).into());
    }
    Ok(share.percent)
}

/// A sample of memory: a fresh process, warm, then so many connections more.
fn idle(ground: &Ground, scenario: &Scenario, entrant: &Entrant) -> Result<Sample, Failure> {
    let started = start(ground, scenario, entrant)?.ok_or("no process")?;
    let pid = started.child.id();
    load(&Job {
        connections: 4,
        ..job(started.clear, Until::Answers(500))
    })?;
    let before = process::memory(pid)?;
    let mut load = Load::start(&order(ground, scenario, entrant, Some(&started), 0.0))?;
    let told = load.told()?;
    if told.answers != IDLE as u64 {
        return Err(format!("{} of {IDLE} connections opened", told.answers).into());
    }
    std::thread::sleep(SETTLE);
    let after = process::memory(pid)?;
    load.finish()?;
    Ok(Sample::from([
        (Figure::Each, (after - before) / IDLE as f64),
        (Figure::Memory, after / 1024.0),
    ]))
}

/// What each adds to the stub's own time in the same round.
fn add_to_direct(shown: &mut BTreeMap<&'static str, Sample>, kind: Kind) {
    if kind != Kind::Paced {
        return;
    }
    let Some(direct) = shown.get("direct").cloned() else {
        return;
    };
    for (name, sample) in shown {
        for (whole, added) in [
            (Figure::P50, Figure::AddedP50),
            (Figure::P99, Figure::AddedP99),
        ] {
            if let (false, Some(all), Some(own)) =
                (*name == "direct", sample.get(&whole), direct.get(&whole))
            {
                sample.insert(added, all - own);
            }
        }
    }
}

/// The job by h2load: 8 connections of 16 streams.
pub(crate) fn h2load(ground: &Ground, job: &Job) -> Result<Told, Failure> {
    let (until, seconds) = match job.until {
        Until::Seconds(seconds) => (format!("--duration={}", seconds.ceil()), seconds.ceil()),
        Until::Answers(answers) => (format!("--requests={answers}"), 0.0),
        Until::Idle => return Err("h2load keeps no idle connections".into()),
    };
    let body = ground.directory.join("call.json");
    std::fs::write(&body, call(SMALL))?;
    let program = find("h2load").ok_or("no h2load")?;
    let output = on_helper_core(&program)
        .args(["-t1", "-c8", "-m16"])
        .arg(until)
        .arg("-d")
        .arg(&body)
        .args(["-H", "content-type: application/json"])
        .args(["-H", "x-api-key: buyer-00000000-4f1c2b7a9d3e"])
        .arg(format!("https://{}{}", job.to, job.path))
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |before: &str, line: &str| -> Option<u64> {
        let line = text.lines().find(|it| it.starts_with(line))?;
        let head = line.split(before).next()?;
        head.rsplit([' ', ','])
            .find(|it| !it.is_empty())?
            .parse()
            .ok()
    };
    let answers = number(" 2xx", "status codes:").unwrap_or(0);
    let bad = [
        number(" failed", "requests:"),
        number(" errored", "requests:"),
        number(" 4xx", "status codes:"),
        number(" 5xx", "status codes:"),
    ];
    if answers == 0 || bad.iter().any(|it| *it != Some(0)) {
        return Err(format!("h2load on core {HELPER_CORE}: {text}").into());
    }
    Ok(Told {
        answers,
        seconds,
        ..Told::default()
    })
}
