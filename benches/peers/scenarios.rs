//! What is measured: each kind of work, who does it, and the targets Forecourt is held to.

use std::net::SocketAddr;

use super::load::{Job, Until};
use super::payload::{LARGE, SMALL};
use super::proxies::{Telling, Who};

/// A figure of a sample. Lower is better, but for the rate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Figure {
    /// Microseconds of user and system time of all threads of the proxy, per request or event.
    Cpu,
    /// Answers (events) per second.
    Rate,
    /// Microseconds, of a call or of an event's way.
    P50,
    P99,
    /// Microseconds more than without a proxy.
    AddedP50,
    AddedP99,
    /// MB of the proxy's processes (proportional set size), after the round.
    Memory,
    /// KB for each idle connection.
    Each,
    /// Percent of the connections that the busier worker has.
    Share,
    /// Percent of the proxy's core that others used meanwhile: how far to trust the rest.
    Others,
}

impl Figure {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU us",
            Self::Rate => "per s",
            Self::P50 => "p50 us",
            Self::P99 => "p99 us",
            Self::AddedP50 => "+p50 us",
            Self::AddedP99 => "+p99 us",
            Self::Memory => "MB",
            Self::Each => "KB each",
            Self::Share => "share %",
            Self::Others => "others %",
        }
    }
}

/// One of those compared.
#[derive(Clone, Copy)]
pub(crate) struct Entrant {
    pub(crate) name: &'static str,
    pub(crate) who: Who,
    pub(crate) workers: usize,
    pub(crate) telling: Telling,
}

/// `figure` of `of` is at most `most`: times that of `to`, or as it is.
pub(crate) struct Target {
    pub(crate) figure: Figure,
    pub(crate) of: &'static str,
    pub(crate) to: Option<&'static str>,
    pub(crate) most: f64,
}

/// How the work is done and what is read.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Calls of the load generator, the connections kept.
    Calls,
    /// The same at a fixed rate; what counts is the time added to the stub's own.
    Paced,
    /// Calls in a version that is not served.
    Refusals,
    /// Calls of h2load.
    Http2,
    /// Connections that had one call and stay.
    Idle,
    /// Streams of server-sent events.
    Events,
    /// Calls, and how the connections are spread over the workers.
    Workers,
}

pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) kind: Kind,
    pub(crate) tls: bool,
    pub(crate) entrants: &'static [Entrant],
    /// What differs from the plain job.
    pub(crate) shape: fn(&mut Job),
    pub(crate) targets: Vec<Target>,
}

const DIRECT: Entrant = alone("direct", Who::Direct);
const FORECOURT: Entrant = alone("forecourt", Who::Forecourt);
const NGINX: Entrant = alone("nginx", Who::Nginx);
const HAPROXY: Entrant = alone("haproxy", Who::Haproxy);

const ALL: &[Entrant] = &[FORECOURT, NGINX, HAPROXY];
const WITH_DIRECT: &[Entrant] = &[DIRECT, FORECOURT, NGINX, HAPROXY];
const WORKERS: &[Entrant] = &[
    Entrant {
        name: "one worker",
        ..FORECOURT
    },
    Entrant {
        name: "two workers",
        workers: 2,
        ..FORECOURT
    },
];

const TELLING: &[Entrant] = &[
    Entrant {
        name: "telemetry off",
        telling: Telling::Nothing,
        ..FORECOURT
    },
    Entrant {
        name: "log",
        ..FORECOURT
    },
    Entrant {
        name: "a tenth traced",
        telling: Telling::Traces("0.1"),
        ..FORECOURT
    },
    Entrant {
        name: "all traced",
        telling: Telling::Traces("1"),
        ..FORECOURT
    },
];

const fn alone(name: &'static str, who: Who) -> Entrant {
    Entrant {
        name,
        who,
        workers: 1,
        telling: Telling::Log,
    }
}

/// The idle connections of that scenario.
pub(crate) const IDLE: usize = 9500;
/// Milliseconds between two events of a stream.
pub(crate) const EVERY: u64 = 50;

/// All of them.
pub(crate) fn all() -> Vec<Scenario> {
    let plain = || Scenario {
        name: "",
        title: "",
        kind: Kind::Calls,
        tls: false,
        entrants: ALL,
        shape: |_| {},
        targets: Vec::new(),
    };
    let cpu = |nginx, haproxy| {
        vec![
            than(Figure::Cpu, NGINX, nginx),
            than(Figure::Cpu, HAPROXY, haproxy),
        ]
    };
    vec![
        Scenario {
            name: "plain",
            title: "1 KB POST, HTTP/1.1, headers filled in, keyed quota, 64 connections",
            entrants: WITH_DIRECT,
            targets: cpu(0.85, 0.80),
            ..plain()
        },
        Scenario {
            name: "callers",
            title: "the same from 100,000 distinct callers",
            shape: |job| job.callers = 100_000,
            targets: cpu(0.85, 0.80),
            ..plain()
        },
        Scenario {
            name: "refusal",
            title: "refusal with the caller's id (nginx by njs; HAProxy without id)",
            kind: Kind::Refusals,
            targets: cpu(0.45, 1.0),
            ..plain()
        },
        Scenario {
            name: "tls",
            title: "1 KB POST over TLS 1.3, HTTP/1.1, 64 connections",
            tls: true,
            targets: cpu(0.75, 0.75),
            ..plain()
        },
        Scenario {
            name: "tls-http2",
            title: "1 KB POST over TLS, HTTP/2, 8 connections of 16 streams",
            kind: Kind::Http2,
            tls: true,
            targets: vec![than(Figure::Cpu, HAPROXY, 0.90)],
            ..plain()
        },
        Scenario {
            name: "tls-new",
            title: "a new TLS connection for each 1 KB POST",
            tls: true,
            shape: |job| {
                job.connections = 16;
                job.fresh = true;
            },
            targets: vec![than(Figure::Cpu, NGINX, 0.50)],
            ..plain()
        },
        Scenario {
            name: "large-answer",
            title: "1 KB POST, 100 KB answer, 16 connections",
            shape: |job| {
                job.connections = 16;
                job.path = "/a2a/large".to_owned();
                job.answer = Some(LARGE);
            },
            targets: cpu(1.0, 1.0),
            ..plain()
        },
        Scenario {
            name: "large-request",
            title: "100 KB POST, 1 KB answer, 16 connections",
            shape: |job| {
                job.connections = 16;
                job.body = LARGE;
            },
            targets: cpu(1.0, 1.0),
            ..plain()
        },
        Scenario {
            name: "paced",
            title: "time added to 1 KB POSTs at a fixed 4,000/s, 32 connections",
            kind: Kind::Paced,
            entrants: WITH_DIRECT,
            shape: |job| {
                job.connections = 32;
                job.rate = Some(4000.0);
            },
            targets: vec![than(Figure::AddedP99, HAPROXY, 1.05)],
            ..plain()
        },
        Scenario {
            name: "idle",
            title: "9,500 idle keep-alive connections",
            kind: Kind::Idle,
            shape: |job| {
                job.connections = IDLE;
                job.until = Until::Idle;
            },
            targets: vec![Target {
                figure: Figure::Each,
                of: FORECOURT.name,
                to: None,
                most: 20.0,
            }],
            ..plain()
        },
        Scenario {
            name: "events",
            title: "1,000 SSE streams, 20 events a second each; per event",
            kind: Kind::Events,
            entrants: WITH_DIRECT,
            shape: |job| {
                job.connections = 1000;
                job.events = true;
                job.answer = None;
                job.path = format!("/a2a/events?every={EVERY}&count={}", events_each(job));
            },
            targets: vec![than(Figure::Cpu, NGINX, 1.0), than(Figure::P99, NGINX, 1.0)],
            ..plain()
        },
        Scenario {
            name: "workers",
            title: "two workers against one, 64 connections",
            kind: Kind::Workers,
            entrants: WORKERS,
            targets: vec![
                Target {
                    figure: Figure::Cpu,
                    of: "two workers",
                    to: Some("one worker"),
                    most: 1.10,
                },
                Target {
                    figure: Figure::Share,
                    of: "two workers",
                    to: None,
                    most: 60.0,
                },
            ],
            ..plain()
        },
        Scenario {
            name: "telemetry",
            title: "the plain work by the same binary: log, metrics and traces on, against off",
            entrants: TELLING,
            targets: ["a tenth traced", "all traced"]
                .map(|of| Target {
                    figure: Figure::Cpu,
                    of,
                    to: Some("telemetry off"),
                    most: 1.05,
                })
                .into(),
            ..plain()
        },
    ]
}

/// How many events each stream of `job` has.
pub(crate) fn events_each(job: &Job) -> u64 {
    match job.until {
        Until::Seconds(seconds) => (seconds * 1000.0) as u64 / EVERY,
        Until::Answers(_) | Until::Idle => 1,
    }
}

fn than(figure: Figure, to: Entrant, most: f64) -> Target {
    Target {
        figure,
        of: FORECOURT.name,
        to: Some(to.name),
        most,
    }
}

/// The plain job: 1 KB calls from one caller.
pub(crate) fn job(to: SocketAddr, until: Until) -> Job {
    Job {
        to,
        connections: 64,
        until,
        rate: None,
        callers: 1,
        path: "/a2a".to_owned(),
        headers: Vec::new(),
        body: SMALL,
        status: 200,
        answer: Some(SMALL),
        tls: None,
        fresh: false,
        events: false,
    }
}

/// The job's calls in a version that is not served.
pub(crate) fn refused(job: Job, who: Who) -> Job {
    Job {
        headers: vec![("A2A-Version".to_owned(), "0.9".to_owned())],
        // Forecourt's refusals ride on 200 by default.
        status: if who == Who::Forecourt { 200 } else { 400 },
        answer: None,
        ..job
    }
}
