//! What a scrape shows: names, labels, and no more series than the configuration has.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;

/// One of everything.
fn busy() -> Metrics {
    let metrics = Metrics::new("1.2.3");
    let endpoint = metrics.endpoint("lakeside");
    endpoint.ended(Outcome::RateLimited, Duration::from_millis(3));
    endpoint.answered(Duration::from_millis(2));
    endpoint.filled_version();
    endpoint.filled_extensions();
    endpoint.reported(Step::Media);
    endpoint.stripped_query();
    metrics
        .credentials("lakeside")
        .examined(CredentialResult::Bad);
    metrics.quota("per-buyer").refused.inc();
    let stored = metrics.stored_quota("everywhere").stored.unwrap();
    stored.admitted("lease");
    stored.refused("fallback");
    stored.refused("nobody known");
    let store = metrics.store("central", &["timeout", "closed"]);
    store.errors[1].inc();
    store.calls.inc();
    store.answered(Duration::from_millis(1));
    store.degraded.set(1);
    metrics.listener("public").refused.inc();
    metrics
        .handshakes("public")
        .failed(HandshakeFailure::NotTls);
    metrics.certificate("public", "gw.example", Timestamp::UNIX_EPOCH);
    let tokens = metrics.tokens("idp", &["malformed", "expired"]);
    tokens.ok.inc();
    tokens.refused(1);
    tokens.refused(2);
    metrics.tokens("", &["malformed", "expired"]).refused(0);
    metrics.keys("idp").keys.set(2);
    metrics.worker(1).set(3);
    metrics.upstream("lakeside").idle.set(4);
    metrics.configuration.applied(
        7,
        "sha256:00",
        Timestamp::from_second(1_796_057_603).unwrap(),
    );
    metrics.configuration.reloaded(true);
    metrics.limiter(12, 5);
    metrics
}

#[track_caller]
fn has(metrics: &Metrics, line: &str) {
    let text = metrics.render(Exposition::Text);
    assert!(
        text.lines().any(|have| have == line),
        "{line} not in\n{text}"
    );
}

#[test]
fn the_names_are_exactly_those_listed() {
    let text = busy().render(Exposition::Text);
    let help: BTreeMap<_, _> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP "))
        .filter_map(|line| line.split_once(' '))
        .collect();
    let listed: BTreeMap<_, _> = NAMES.iter().copied().collect();
    assert_eq!(listed.len(), NAMES.len());
    assert_eq!(
        help.keys().collect::<Vec<_>>(),
        listed.keys().collect::<Vec<_>>()
    );
    for (name, listed) in listed {
        assert_eq!(help[name], format!("{listed}."));
        assert!(!listed.is_empty());
    }
}

#[test]
fn what_was_counted_is_shown() {
    let metrics = busy();
    for line in [
        "forecourt_http_requests_total{endpoint=\"lakeside\",outcome=\"rate_limited\"} 1",
        "forecourt_tls_handshake_failures_total{listener=\"public\",reason=\"not_tls\"} 1",
        "forecourt_tls_handshake_failures_total{listener=\"public\",reason=\"other\"} 0",
        "forecourt_tls_certificate_expiry_timestamp_seconds{listener=\"public\",name=\"gw.example\"} 0",
        "forecourt_http_requests_total{endpoint=\"lakeside\",outcome=\"ok\"} 0",
        "forecourt_http_request_duration_seconds_bucket{endpoint=\"lakeside\",le=\"0.005\"} 1",
        "forecourt_http_request_duration_seconds_sum{endpoint=\"lakeside\"} 0.003",
        "forecourt_upstream_duration_seconds_count{endpoint=\"lakeside\"} 1",
        "forecourt_normalized_headers_total{endpoint=\"lakeside\",header=\"a2a-version\"} 1",
        "forecourt_normalized_headers_total{endpoint=\"lakeside\",header=\"a2a-extensions\"} 1",
        "forecourt_reported_total{endpoint=\"lakeside\",step=\"media\"} 1",
        "forecourt_reported_total{endpoint=\"lakeside\",step=\"quota\"} 0",
        "forecourt_stripped_query_total{endpoint=\"lakeside\"} 1",
        "forecourt_credentials_total{endpoint=\"lakeside\",result=\"bad\"} 1",
        "forecourt_credentials_total{endpoint=\"lakeside\",result=\"forbidden\"} 0",
        "forecourt_ratelimit_decisions_total{quota=\"per-buyer\",decision=\"refused\",source=\"local\"} 1",
        "forecourt_ratelimit_decisions_total{quota=\"per-buyer\",decision=\"admitted\",source=\"local\"} 0",
        "forecourt_ratelimit_decisions_total{quota=\"everywhere\",decision=\"admitted\",source=\"lease\"} 1",
        "forecourt_ratelimit_decisions_total{quota=\"everywhere\",decision=\"refused\",source=\"fallback\"} 1",
        "forecourt_ratelimit_decisions_total{quota=\"everywhere\",decision=\"refused\",source=\"store\"} 0",
        "forecourt_ratelimit_store_calls_total{store=\"central\"} 1",
        "forecourt_ratelimit_store_duration_seconds_count{store=\"central\"} 1",
        "forecourt_ratelimit_store_errors_total{store=\"central\",kind=\"closed\"} 1",
        "forecourt_ratelimit_store_errors_total{store=\"central\",kind=\"timeout\"} 0",
        "forecourt_ratelimit_store_degraded{store=\"central\"} 1",
        "forecourt_ratelimit_keys 12",
        "forecourt_ratelimit_overflow_total 5",
        "forecourt_connections{listener=\"public\"} 0",
        "forecourt_connections_refused_total{listener=\"public\"} 1",
        "forecourt_tokens_total{issuer=\"idp\",result=\"ok\"} 1",
        "forecourt_tokens_total{issuer=\"idp\",result=\"cached\"} 0",
        "forecourt_tokens_total{issuer=\"idp\",result=\"malformed\"} 0",
        "forecourt_tokens_total{issuer=\"idp\",result=\"expired\"} 1",
        "forecourt_tokens_total{issuer=\"\",result=\"malformed\"} 1",
        "forecourt_token_unknown_plans_total{issuer=\"idp\"} 0",
        "forecourt_jwks_refreshes_total{issuer=\"idp\",result=\"failure\"} 0",
        "forecourt_jwks_keys{issuer=\"idp\"} 2",
        "forecourt_worker_connections{worker=\"1\"} 3",
        "forecourt_upstream_connections{upstream=\"lakeside\",state=\"idle\"} 4",
        "forecourt_config_reloads_total{result=\"success\"} 1",
        "forecourt_config_reloads_total{result=\"failure\"} 0",
        "forecourt_config_generation 7",
        "forecourt_config_last_reload_success_timestamp_seconds 1796057603",
        "forecourt_access_log_dropped_total 0",
        "forecourt_build_info{version=\"1.2.3\"} 1",
    ] {
        has(&metrics, line);
    }
    metrics.limiter(11, 4);
    has(&metrics, "forecourt_ratelimit_keys 11");
    has(&metrics, "forecourt_ratelimit_overflow_total 5");
}

#[test]
fn every_outcome_has_its_own_counter() {
    let metrics = Metrics::new("0");
    let endpoint = metrics.endpoint("");
    for (times, outcome) in Outcome::ALL.into_iter().enumerate() {
        for _ in 0..times {
            endpoint.ended(outcome, Duration::ZERO);
        }
    }
    for (times, outcome) in Outcome::ALL.into_iter().enumerate() {
        let labels = format!("endpoint=\"\",outcome=\"{}\"", outcome.label());
        has(
            &metrics,
            &format!("forecourt_http_requests_total{{{labels}}} {times}"),
        );
    }
}

#[test]
fn the_same_name_counts_on_and_a_forgotten_one_is_gone() {
    let metrics = busy();
    let in_flight = metrics.endpoint("lakeside");
    metrics
        .endpoint("lakeside")
        .ended(Outcome::RateLimited, Duration::ZERO);
    has(
        &metrics,
        "forecourt_http_requests_total{endpoint=\"lakeside\",outcome=\"rate_limited\"} 2",
    );
    metrics.forget_endpoint("lakeside");
    metrics.forget_quota("per-buyer");
    metrics.forget_quota("everywhere");
    metrics.forget_store("central", &["timeout", "closed"]);
    metrics.forget_listener("public");
    metrics.forget_certificate("public", "gw.example");
    metrics.forget_upstream("lakeside");
    in_flight.ended(Outcome::Ok, Duration::ZERO);
    for exposition in [Exposition::Text, Exposition::OpenMetrics] {
        let text = metrics.render(exposition);
        assert!(!text.contains("lakeside"), "{text}");
        assert!(!text.contains("per-buyer"), "{text}");
        assert!(!text.contains("everywhere"), "{text}");
        assert!(!text.contains("central"), "{text}");
        assert!(!text.contains("public"), "{text}");
    }
}

#[test]
fn a_presence_counts_as_long_as_it_lives() {
    let metrics = Metrics::new("0");
    let one = Presence::of(&metrics.requests_in_flight);
    let two = Presence::of(&metrics.requests_in_flight);
    has(&metrics, "forecourt_requests_in_flight 2");
    drop(one);
    has(&metrics, "forecourt_requests_in_flight 1");
    drop(two);
    has(&metrics, "forecourt_requests_in_flight 0");
}

#[test]
fn a_name_cannot_break_out_of_its_label() {
    let metrics = Metrics::new("0");
    let _endpoint = metrics.endpoint("a\"} 1\nforged 2");
    let text = metrics.render(Exposition::Text);
    assert!(
        !text.lines().any(|line| line.starts_with("forged")),
        "{text}"
    );
}

#[test]
fn open_metrics_ends_as_it_must() {
    let text = busy().render(Exposition::OpenMetrics);
    assert!(text.ends_with("# EOF\n"));
    assert!(text.contains("# TYPE forecourt_http_requests counter\n"));
    assert!(!Exposition::Text.content_type().contains("openmetrics"));
}

#[test]
fn of_an_issuer_that_is_gone_nothing_is_left() {
    let metrics = busy();
    metrics.forget_issuer("idp", &["malformed", "expired"]);
    let text = metrics.render(Exposition::Text);
    assert!(!text.contains("issuer=\"idp\""), "{text}");
}
