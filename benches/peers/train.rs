//! What the compiler learns from: a fixed amount of each kind of work, given to a binary that
//! counts how often each of its branches is taken (`deploy/build`).
//!
//! The amounts say what the shipped binary is made fast for. Must never depend on time: the same
//! binary shall learn the same.

use super::Failure;
use super::helpers::load;
use super::load::{Job, Until};
use super::measure::h2load;
use super::payload::LARGE;
use super::proxies::{Ground, Manner, Who, find};
use super::scenarios::{job, refused};

/// Events of each stream.
const EVENTS: u64 = 200;

/// Does each kind of work with the binary and ends it in order, so that it writes what it counted.
pub(crate) fn train(ground: &Ground) -> Result<(), Failure> {
    let mut started = ground.start(Who::Forecourt, &Manner::plain(true))?;
    let clear = |answers| job(started.clear, Until::Answers(answers));
    let secure = |answers| Job {
        tls: Some(ground.certificate.der.clone()),
        ..job(started.secure, Until::Answers(answers))
    };
    let large_answer = |call: Job| Job {
        path: "/a2a/large".to_owned(),
        answer: Some(LARGE),
        connections: 16,
        ..call
    };
    let large_request = |call: Job| Job {
        body: LARGE,
        connections: 16,
        ..call
    };
    let works = [
        ("calls", clear(20_000)),
        (
            "many callers",
            Job {
                callers: 1000,
                ..clear(10_000)
            },
        ),
        ("refusals", refused(clear(20_000), Who::Forecourt)),
        ("100 KB answers", large_answer(clear(1000))),
        ("100 KB requests", large_request(clear(1000))),
        ("calls over TLS", secure(20_000)),
        ("100 KB answers over TLS", large_answer(secure(500))),
        (
            "new TLS connections",
            Job {
                fresh: true,
                connections: 16,
                ..secure(500)
            },
        ),
        (
            "streams",
            Job {
                connections: 200,
                events: true,
                answer: None,
                path: format!("/a2a/events?every=10&count={EVENTS}"),
                ..clear(200)
            },
        ),
    ];
    for (what, work) in works {
        load(&work).map_err(|why| format!("{what}: {why}"))?;
        println!("trained: {what}");
    }
    if find("h2load").is_some() {
        h2load(ground, &secure(20_000))?;
        println!("trained: HTTP/2 over TLS");
    } else {
        println!("not trained: HTTP/2 over TLS needs h2load (Debian package nghttp2-client)");
    }
    started.stop();
    Ok(())
}
