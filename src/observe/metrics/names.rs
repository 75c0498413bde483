//! Decides what each metric is called, and what it is said to tell. The whole list, in the order of
//! `docs/operations.md`.

/// Every metric as it is scraped in text format 0.0.4, and what it tells.
pub const NAMES: &[(&str, &str)] = &[
    (
        "forecourt_http_requests_total",
        "Requests by how they ended; endpoint is empty where none was found",
    ),
    (
        "forecourt_http_request_duration_seconds",
        "From a request's head to the last byte of its answer",
    ),
    (
        "forecourt_upstream_duration_seconds",
        "From handing a request over to the head of the upstream's answer",
    ),
    (
        "forecourt_normalized_headers_total",
        "Absent headers that were filled in",
    ),
    (
        "forecourt_reported_total",
        "Requests that a step in report mode would have refused",
    ),
    (
        "forecourt_stripped_query_total",
        "Requests from whose query a protocol parameter was removed",
    ),
    (
        "forecourt_credentials_total",
        "Calls at endpoints that look at credentials, by what those proved",
    ),
    (
        "forecourt_ratelimit_decisions_total",
        "Decisions by quota: admitted, or refused by this one; and on whose buckets",
    ),
    ("forecourt_ratelimit_keys", "Quota buckets in memory"),
    (
        "forecourt_ratelimit_overflow_total",
        "Calls decided on a shared bucket because the table was full",
    ),
    (
        "forecourt_ratelimit_store_calls_total",
        "Calls to a store that several processes count together in",
    ),
    (
        "forecourt_ratelimit_store_duration_seconds",
        "From a call to a store to its answer",
    ),
    (
        "forecourt_ratelimit_store_errors_total",
        "Decisions that a store did not take, by reason",
    ),
    (
        "forecourt_ratelimit_store_degraded",
        "1 while a store is not asked: no connection, or too many failures",
    ),
    ("forecourt_connections", "Open client connections"),
    (
        "forecourt_worker_connections",
        "Open client connections by the worker thread that serves them",
    ),
    (
        "forecourt_connections_refused_total",
        "Client connections closed on arrival because there were too many",
    ),
    (
        "forecourt_proxy_protocol_refused_total",
        "Client connections closed for want of a PROXY header: untrusted peer, malformed or late",
    ),
    (
        "forecourt_health_probes_total",
        "Probes of a listener's health path; they are no requests",
    ),
    (
        "forecourt_tls_handshake_failures_total",
        "TLS handshakes of clients that came to nothing, by reason",
    ),
    (
        "forecourt_tls_certificate_expiry_timestamp_seconds",
        "Until when a certificate that is served is valid",
    ),
    (
        "forecourt_tokens_total",
        "Tokens by issuer and what became of them; issuer is empty where none is known",
    ),
    (
        "forecourt_token_unknown_plans_total",
        "Tokens that were believed and name a plan that is not configured",
    ),
    (
        "forecourt_jwks_refreshes_total",
        "Readings of an issuer's keys: success, or failure where those that were stay in force",
    ),
    (
        "forecourt_jwks_keys",
        "Keys of an issuer that can verify tokens",
    ),
    ("forecourt_requests_in_flight", "Requests being served"),
    (
        "forecourt_in_flight_bytes",
        "Bytes of request bodies held in memory",
    ),
    (
        "forecourt_upstream_connections",
        "Connections to an upstream, idle or active",
    ),
    (
        "forecourt_config_reloads_total",
        "Configuration reloads: success, or failure where the old one serves on",
    ),
    (
        "forecourt_config_rollbacks_total",
        "Returns to an older configuration, by cause",
    ),
    (
        "forecourt_config_generation",
        "Generation of the configuration that serves",
    ),
    (
        "forecourt_config_info",
        "Which configuration serves, by generation and hash; always 1",
    ),
    (
        "forecourt_config_last_reload_success_timestamp_seconds",
        "When the configuration that serves was applied",
    ),
    (
        "forecourt_access_log_dropped_total",
        "Access-log lines that were lost",
    ),
    (
        "forecourt_spans_dropped_total",
        "Spans that were lost: too many waited, or the collector did not take them",
    ),
    (
        "forecourt_log_level_changed",
        "1 while the level of the diagnostics is not the configured one",
    ),
    ("forecourt_build_info", "The version that runs; always 1"),
];
