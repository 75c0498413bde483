//! What telling costs per request: one access log line, counting one outcome, and remembering one
//! decision.
//!
//! `cargo bench --bench observe`. Compare ratios within one run: absolute times depend on the
//! machine.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench is a test")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use forecourt::observe::{Decisions, Line, Metrics, Rfc3339, Timestamp};
use forecourt::protocol::Outcome;

/// What an admitted call is told of.
fn admitted() -> Line<'static> {
    Line {
        request_id: Some(b"0190b3a4-0000-7000-8000-000000000000"),
        client_ip: Some("192.0.2.7"),
        listener: Some("public"),
        protocol: Some("HTTP/1.1"),
        method: Some("POST"),
        host: Some(b"lakeside.example.com"),
        path: Some("/a2a"),
        endpoint: Some("lakeside"),
        contract: Some("aap/3.0"),
        caller: Some("x-api-key#1a2b3c4d"),
        rpc_method: Some(b"SendMessage"),
        rpc_id: Some(b"\"req-1\""),
        skill: Some(b"inventory.search"),
        normalized: &["a2a-version", "a2a-extensions"],
        status: Some(200),
        upstream: Some("lakeside"),
        bytes_in: 1024,
        bytes_out: 2048,
        duration: Duration::from_micros(12_345),
        upstream_duration: Some(Duration::from_micros(11_040)),
        limit_remaining: Some(17),
        overhead: Some(Duration::from_micros(60)),
        config_hash: *b"1f40fc92",
        user_agent: Some(b"python-httpx/0.28.1"),
        generation: 3,
        ..Line::new(
            Timestamp::from_millisecond(1_796_057_603_042).unwrap(),
            Outcome::Ok,
        )
    }
}

fn line(criterion: &mut Criterion) {
    let line = admitted();
    let (mut out, mut spelled) = (Vec::with_capacity(1024), Rfc3339::default());
    line.append(&mut out, &mut spelled);
    let mut group = criterion.benchmark_group("access line");
    group.throughput(Throughput::Bytes(out.len() as u64));
    group.bench_function("an admitted call", |bencher| {
        bencher.iter(|| {
            out.clear();
            black_box(&line).append(&mut out, &mut spelled);
            out.len()
        });
    });
    group.finish();
}

fn outcome(criterion: &mut Criterion) {
    let endpoint = Metrics::new("0").endpoint("lakeside");
    criterion.bench_function("metrics/one outcome", |bencher| {
        bencher
            .iter(|| endpoint.ended(black_box(Outcome::Ok), black_box(Duration::from_millis(3))));
    });
}

fn decision(criterion: &mut Criterion) {
    let (line, decisions) = (admitted(), Decisions::new(2));
    let ring = decisions.ring(0);
    criterion.bench_function("decisions/one request", |bencher| {
        bencher.iter(|| ring.keep(black_box(&line)));
    });
}

criterion_group!(benches, line, outcome, decision);
criterion_main!(benches);
