//! Decides how the metrics of `/metrics` are told to a collector: the same families under the same
//! names, cumulative since the process began.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

/// When the counting began and when it was read, in ns since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Between {
    pub(super) started: u64,
    pub(super) now: u64,
}

/// Metrics in Prometheus text format 0.0.4, as they are exported.
pub(super) fn request(
    text: &str,
    resource: Resource,
    between: Between,
) -> ExportMetricsServiceRequest {
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope()),
                metrics: metrics(text, between),
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        }],
    }
}

/// Who measured.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "forecourt".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

/// An attribute with a text.
pub(super) fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            value: Some(Value::StringValue(value.to_owned())),
        }),
        ..KeyValue::default()
    }
}

fn metrics(text: &str, between: Between) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    let mut help = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let Some((name, kind)) = rest.split_once(' ') else {
                continue;
            };
            metrics.push(Metric {
                name: name.to_owned(),
                description: std::mem::take(&mut help).to_owned(),
                data: Some(empty(kind)),
                ..Metric::default()
            });
        } else if let (Some(sample), Some(metric)) = (Sample::read(line), metrics.last_mut()) {
            sample.enter(metric, between);
        }
    }
    metrics.retain(|metric| match &metric.data {
        Some(Data::Sum(sum)) => !sum.data_points.is_empty(),
        Some(Data::Gauge(gauge)) => !gauge.data_points.is_empty(),
        Some(Data::Histogram(histogram)) => !histogram.data_points.is_empty(),
        Some(Data::ExponentialHistogram(_) | Data::Summary(_)) | None => false,
    });
    metrics
}

fn empty(kind: &str) -> Data {
    let aggregation_temporality = AggregationTemporality::Cumulative.into();
    match kind {
        "counter" => Data::Sum(Sum {
            data_points: Vec::new(),
            aggregation_temporality,
            is_monotonic: true,
        }),
        "histogram" => Data::Histogram(Histogram {
            data_points: Vec::new(),
            aggregation_temporality,
        }),
        _ => Data::Gauge(Gauge::default()),
    }
}

/// One line of a metric's family.
struct Sample<'t> {
    name: &'t str,
    /// All labels but `le`.
    labels: Vec<(&'t str, String)>,
    /// The upper bound of a bucket.
    le: Option<String>,
    value: f64,
}

impl<'t> Sample<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let end = line.find(['{', ' '])?;
        let (name, rest) = line.split_at(end);
        let (mut labels, value) = match rest.strip_prefix('{') {
            None => (Vec::new(), rest),
            Some(rest) => labels(rest)?,
        };
        let le = labels.iter().position(|(key, _)| *key == "le");
        let le = le.map(|at| labels.remove(at).1);
        let value = value.trim().parse().ok()?;
        Some(Self {
            name,
            labels,
            le,
            value,
        })
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let labels = self.labels.iter();
        labels.map(|(key, value)| attribute(key, value)).collect()
    }

    fn enter(self, metric: &mut Metric, between: Between) {
        match &mut metric.data {
            Some(Data::Sum(sum)) => sum.data_points.push(self.point(between)),
            Some(Data::Gauge(gauge)) => gauge.data_points.push(self.point(between)),
            Some(Data::Histogram(histogram)) => self.bucket(histogram, &metric.name, between),
            Some(Data::ExponentialHistogram(_) | Data::Summary(_)) | None => {}
        }
    }

    fn point(&self, between: Between) -> NumberDataPoint {
        let is_whole = self.value.fract() == 0.0 && self.value.abs() < 9e15;
        let value = if is_whole {
            number_data_point::Value::AsInt(self.value as i64)
        } else {
            number_data_point::Value::AsDouble(self.value)
        };
        NumberDataPoint {
            attributes: self.attributes(),
            start_time_unix_nano: between.started,
            time_unix_nano: between.now,
            value: Some(value),
            ..NumberDataPoint::default()
        }
    }

    /// A line of a histogram: one bucket's running total, the sum, or the count.
    fn bucket(self, histogram: &mut Histogram, name: &str, between: Between) {
        let attributes = self.attributes();
        let points = &mut histogram.data_points;
        if points
            .last()
            .is_none_or(|point| point.attributes != attributes)
        {
            points.push(HistogramDataPoint {
                attributes,
                start_time_unix_nano: between.started,
                time_unix_nano: between.now,
                ..HistogramDataPoint::default()
            });
        }
        let Some(point) = points.last_mut() else {
            return;
        };
        match (self.name.strip_prefix(name), self.le) {
            (Some("_bucket"), Some(le)) => {
                let before: u64 = point.bucket_counts.iter().sum();
                point
                    .bucket_counts
                    .push((self.value as u64).saturating_sub(before));
                if let Some(bound) = le.parse().ok().filter(|it: &f64| it.is_finite()) {
                    point.explicit_bounds.push(bound);
                }
            }
            (Some("_sum"), _) => point.sum = Some(self.value),
            (Some("_count"), _) => point.count = self.value as u64,
            _ => {}
        }
    }
}

/// Labels, and what stands behind them.
fn labels(mut rest: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches(',');
        if let Some(behind) = rest.strip_prefix('}') {
            return Some((found, behind));
        }
        let (key, quoted) = rest.split_once("=\"")?;
        let mut value = String::new();
        let mut chars = quoted.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at + 1,
                (_, '\\') => value.push(match chars.next()?.1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        found.push((key, value));
        rest = quoted.get(end..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{Exposition, Metrics};
    use crate::protocol::Outcome;
    use std::time::Duration;

    #[test]
    fn the_same_numbers_under_the_same_names() {
        let counted = Metrics::new("1.2.3");
        let meters = counted.endpoint("lake\"side");
        meters.ended(Outcome::RateLimited, Duration::from_millis(3));
        meters.ended(Outcome::Ok, Duration::from_secs(500));
        counted.requests_in_flight.set(2);
        let between = Between { started: 5, now: 9 };
        let told = metrics(&counted.render(Exposition::Text), between);
        let find = |name: &str| told.iter().find(|it| it.name == name).unwrap();

        let Some(Data::Sum(requests)) = &find("forecourt_http_requests_total").data else {
            panic!()
        };
        assert!(requests.is_monotonic);
        assert_eq!(requests.aggregation_temporality, 2);
        let limited = requests.data_points.iter().find(|point| {
            let has = |key: &str, value: &str| point.attributes.contains(&attribute(key, value));
            has("endpoint", "lake\"side") && has("outcome", "rate_limited")
        });
        let limited = limited.unwrap();
        assert_eq!(limited.value, Some(number_data_point::Value::AsInt(1)));
        assert_eq!(
            (limited.start_time_unix_nano, limited.time_unix_nano),
            (5, 9)
        );

        let Some(Data::Histogram(took)) = &find("forecourt_http_request_duration_seconds").data
        else {
            panic!()
        };
        let [point] = &*took.data_points else {
            panic!("{took:?}")
        };
        assert_eq!(point.count, 2);
        assert_eq!(point.bucket_counts.iter().sum::<u64>(), 2);
        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
        assert_eq!(point.bucket_counts.last(), Some(&1));
        assert!((point.sum.unwrap() - 500.003).abs() < 1e-9);

        let Some(Data::Gauge(flight)) = &find("forecourt_requests_in_flight").data else {
            panic!()
        };
        assert_eq!(
            flight.data_points[0].value,
            Some(number_data_point::Value::AsInt(2))
        );
        let Some(Data::Gauge(_)) = &find("forecourt_build_info").data else {
            panic!()
        };
        assert!(told.iter().all(|metric| !metric.description.is_empty()));
    }
}
