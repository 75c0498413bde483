//! What it costs to find the endpoint of a host and path among a thousand dealers.
//!
//! `cargo bench --bench routes`. Compare ratios within one run: absolute times depend on the
//! machine.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench is a test")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use forecourt::config::Host;
use forecourt::state::routes::Routes;

/// A thousand dealers with a host each, one for every host below a domain, ten at any host.
fn routes() -> Routes<usize> {
    let mut routes = Routes::default();
    for dealer in 0..1000 {
        let host = Host::Exact(format!("dealer-{dealer}.example.com").into());
        routes.add(&host, "/a2a", dealer);
    }
    routes.add(&Host::OneLabel("example.org".into()), "/a2a", 1000);
    for dealer in 0..10 {
        routes.add(&Host::Any, &format!("/dealer-{dealer}/a2a"), 1001 + dealer);
    }
    routes
}

fn finding(criterion: &mut Criterion) {
    let routes = routes();
    let mut group = criterion.benchmark_group("route");
    for (name, host, path, found) in [
        ("exact host", "dealer-500.example.com", "/a2a", Some(500)),
        (
            "a host's label",
            "lakeside.example.org",
            "/a2a/x",
            Some(1000),
        ),
        (
            "any host",
            "elsewhere.example.net",
            "/dealer-7/a2a",
            Some(1008),
        ),
        ("nothing", "elsewhere.example.net", "/a2a-old", None),
    ] {
        let find = || {
            routes
                .find(Some(black_box(host)), black_box(path))
                .map(|it| *it.endpoint)
        };
        assert_eq!(find(), found, "{name}");
        group.bench_function(name, |bencher| bencher.iter(find));
    }
    group.finish();
}

criterion_group!(benches, finding);
criterion_main!(benches);
