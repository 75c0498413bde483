//! Decides in which text formats metrics are given out.

use prometheus_client::encoding::{prometheus_text, text};

use super::Metrics;

/// A text format that scrapers understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// Prometheus text 0.0.4: what every scraper takes.
    Text,
    /// OpenMetrics 1.0 text. In it, `_total` and `_info` belong to the sample, not to the family.
    OpenMetrics,
}

impl Exposition {
    /// The `Content-Type` that must go with it: Prometheus 3 refuses a scrape without one.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => prometheus_text::CONTENT_TYPE,
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Metrics {
    /// All metrics as text.
    #[must_use]
    pub fn render(&self, exposition: Exposition) -> String {
        let mut out = String::new();
        let encoded = match exposition {
            Exposition::Text => prometheus_text::encode(&mut out, &self.registry),
            Exposition::OpenMetrics => text::encode(&mut out, &self.registry),
        };
        // Writing to a string does not fail, and a scrape that is cut short is better than none.
        encoded.ok();
        if exposition == Exposition::OpenMetrics {
            let family = "forecourt_http_request_duration_seconds";
            self.exemplars.write(&mut out, family);
        }
        out
    }
}
