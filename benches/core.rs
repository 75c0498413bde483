//! What the pure steps of a request cost: peek, judge, render, and stripping a query.
//!
//! `cargo bench --bench core`. Compare ratios within one run: absolute times depend on the machine.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench is a test")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use forecourt::protocol::{Id, Refusal, Stamp, Supplied, judge, peek, query, releases, render};
use http::HeaderMap;

fn body(padding: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"req_001","method":"SendMessage","params":{{"message":{{"messageId":"m-1","role":"ROLE_USER","parts":[{{"data":{{"type":"inventory.search.request","filters":{{"make":["Honda"],"note":"{}"}}}},"mediaType":"application/vnd.autoagent.inventory-search-request+json"}}]}},"configuration":{{"acceptedOutputModes":["application/vnd.autoagent.inventory-search-response+json"]}}}}}}"#,
        "x".repeat(padding)
    )
}

fn peeking(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("peek");
    for (name, padding) in [("1 KB", 600), ("100 KB", 100_000)] {
        let body = body(padding);
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| peek(black_box(body.as_bytes())).unwrap().id);
        });
        group.bench_function(
            format!("{name}, serde_json ignoring everything"),
            |bencher| {
                bencher.iter(|| {
                    serde_json::from_slice::<serde::de::IgnoredAny>(black_box(body.as_bytes()))
                        .unwrap()
                });
            },
        );
    }
    group.finish();
}

fn judging(criterion: &mut Criterion) {
    let contract = releases::find(releases::DEFAULT)
        .unwrap()
        .contract(None)
        .unwrap();
    let absent = HeaderMap::new();
    let mut supplied = HeaderMap::new();
    supplied.insert("a2a-version", "1.0".parse().unwrap());
    supplied.insert(
        "a2a-extensions",
        contract.extension.as_str().parse().unwrap(),
    );
    let mut group = criterion.benchmark_group("judge");
    for (name, headers) in [("absent", &absent), ("supplied", &supplied)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| judge(black_box(&contract), Supplied::new(black_box(headers))));
        });
    }
    group.finish();
}

fn rendering(criterion: &mut Criterion) {
    let contract = releases::find(releases::DEFAULT)
        .unwrap()
        .contract(None)
        .unwrap();
    let stamp = Stamp {
        error_id: "0195e0a0-0000-7000-8000-000000000001",
        created_at: "2026-05-01T12:00:00Z",
    };
    let refusals = [
        (
            "RATE_LIMITED",
            Refusal::RateLimited {
                retry_after_ms: 29_500,
            },
        ),
        (
            "-32008",
            Refusal::ExtensionSupportRequired {
                uri: contract.extension.clone(),
            },
        ),
    ];
    let mut group = criterion.benchmark_group("render");
    for (name, refusal) in refusals {
        group.bench_function(name, |bencher| {
            bencher.iter(|| render(black_box(&refusal), &contract, Id::NULL, stamp));
        });
    }
    group.finish();
}

fn stripping(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("query");
    for (name, query) in [
        ("nothing to strip", "page=2&sort=price"),
        ("one", "x=1&A2A-Version=1.0"),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| query::strip(black_box(query)))
        });
    }
    group.finish();
}

criterion_group!(benches, peeking, judging, rendering, stripping);
criterion_main!(benches);
