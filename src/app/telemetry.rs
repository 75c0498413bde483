//! Decides what of the environment is asked for and told at the start about OpenTelemetry, and hands
//! its exporter what it tells.

use std::io;
use std::sync::Arc;

use super::Options;
use crate::observe::Exposition;
use crate::observe::otlp::{Export, Sources, environment};
use crate::state::Shared;

/// Starts what the `OTEL_*` variables ask for.
pub(super) fn export(options: &Options, shared: &Arc<Shared>) -> io::Result<Export> {
    let telemetry = environment::read(&|name| (options.env)(name));
    for note in &telemetry.notes {
        tracing::warn!("{note}");
    }
    if let Some(traces) = &telemetry.traces {
        tracing::info!(to = %traces.to.url, sampler = ?traces.sampler, "traces are exported");
    }
    if let Some(metrics) = &telemetry.metrics {
        tracing::info!(to = %metrics.to.url, every = ?metrics.every, "metrics are pushed");
    }
    let counted = Arc::clone(shared);
    let sources = Sources {
        dropped: shared.metrics.spans_dropped.clone(),
        metrics: Box::new(move || {
            let limiter = &counted.limiter;
            counted
                .metrics
                .limiter(limiter.live(), limiter.overflowed());
            counted.metrics.render(Exposition::Text)
        }),
        wall: Arc::clone(&options.wall),
    };
    Export::start(telemetry, sources)
}
