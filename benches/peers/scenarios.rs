//! What is measured: each kind of work with the targets it is held to.

use std::net::SocketAddr;

use super::load::{Job, Until};
use super::payload::SMALL;
use super::proxies::Who;

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

/// A job of calls in a version that is not served.
pub(crate) fn refused(job: Job, who: Who) -> Job {
    Job {
        headers: vec![("A2A-Version".to_owned(), "0.9".to_owned())],
        // Refusals of an admitted dialect ride on 200 by default.
        status: if who == Who::Forecourt { 200 } else { 400 },
        answer: None,
        ..job
    }
}
