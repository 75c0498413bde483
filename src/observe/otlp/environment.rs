//! Decides what the standard variables of OpenTelemetry ask for: `OTEL_*`, and nothing else.
//!
//! Nothing is exported unless an endpoint or an exporter is named. What is asked for and not offered
//! is said in a note at the start. Must never show the value of a header: it is a secret.

use std::path::PathBuf;
use std::time::Duration;

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Uri};

use super::sampler::Sampler;

/// Where telemetry goes unless an endpoint is named.
const LOCAL: &str = "http://localhost:4318";

/// What the variables ask for.
#[derive(Debug, Default)]
pub struct Telemetry {
    /// Spans are exported.
    pub traces: Option<Traces>,
    /// Metrics are pushed.
    pub metrics: Option<Push>,
    /// What is said of this process, in order: `service.name` and more.
    pub resource: Vec<(String, String)>,
    /// What was asked for and cannot be had, in words of ours.
    pub notes: Vec<String>,
}

/// How spans are exported.
#[derive(Debug)]
pub struct Traces {
    /// Where to.
    pub to: Destination,
    /// Which traces that begin here are recorded.
    pub sampler: Sampler,
    /// How long a span may wait (`OTEL_BSP_SCHEDULE_DELAY`).
    pub delay: Duration,
    /// How many spans may wait (`OTEL_BSP_MAX_QUEUE_SIZE`).
    pub queue: usize,
    /// How many go out together (`OTEL_BSP_MAX_EXPORT_BATCH_SIZE`).
    pub batch: usize,
    /// How long a batch is tried (`OTEL_BSP_EXPORT_TIMEOUT`).
    pub patience: Duration,
}

/// How metrics are pushed.
#[derive(Debug)]
pub struct Push {
    /// Where to.
    pub to: Destination,
    /// How often (`OTEL_METRIC_EXPORT_INTERVAL`).
    pub every: Duration,
    /// How long a push is tried (`OTEL_METRIC_EXPORT_TIMEOUT`).
    pub patience: Duration,
}

/// A collector that takes OTLP over HTTP.
#[derive(Clone, Debug)]
pub struct Destination {
    /// What is posted to.
    pub url: Uri,
    /// Sent along; marked as secret.
    pub headers: HeaderMap,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// PEM file with the roots it is verified against; `None`: the system's.
    pub certificate: Option<PathBuf>,
}

/// Answers for environment variables.
type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

struct Reader<'e> {
    env: Environment<'e>,
    notes: Vec<String>,
}

/// Reads the variables.
#[must_use]
pub fn read(env: Environment<'_>) -> Telemetry {
    let mut reader = Reader {
        env,
        notes: Vec::new(),
    };
    if reader
        .text("OTEL_SDK_DISABLED")
        .is_some_and(|it| it.eq_ignore_ascii_case("true"))
    {
        return Telemetry::default();
    }
    reader.propagators();
    let traces = reader.traces();
    let metrics = reader.metrics();
    Telemetry {
        resource: reader.resource(),
        traces,
        metrics,
        notes: reader.notes,
    }
}

impl Reader<'_> {
    /// A variable; empty is unset, as the specification says.
    fn text(&self, name: &str) -> Option<String> {
        (self.env)(name)
            .map(|it| it.trim().to_owned())
            .filter(|it| !it.is_empty())
    }

    /// The one of a signal, else the common one, with the name it was found under.
    fn of_signal(&self, signal: &str, what: &str) -> Option<(String, String)> {
        let own = format!("OTEL_EXPORTER_OTLP_{signal}_{what}");
        let common = format!("OTEL_EXPORTER_OTLP_{what}");
        [own, common]
            .into_iter()
            .find_map(|name| Some((self.text(&name)?, name)))
    }

    fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    fn number(&mut self, name: &str, default: u64) -> u64 {
        let Some(text) = self.text(name) else {
            return default;
        };
        match text.parse() {
            Ok(number) if number > 0 => number,
            _ => {
                self.note(format!("{name} is no number above 0; {default} is used"));
                default
            }
        }
    }

    fn millis(&mut self, name: &str, default: u64) -> Duration {
        Duration::from_millis(self.number(name, default))
    }

    fn count(&mut self, name: &str, default: u64) -> usize {
        usize::try_from(self.number(name, default)).unwrap_or(usize::MAX)
    }

    /// Whether a signal is exported. `by_endpoint`: naming an endpoint is asking for it.
    fn is_asked(&mut self, signal: &str, by_endpoint: bool) -> bool {
        let name = format!("OTEL_{signal}_EXPORTER");
        match self.text(&name).as_deref() {
            Some("otlp") => true,
            Some("none") => false,
            None => by_endpoint && self.of_signal(signal, "ENDPOINT").is_some(),
            Some(_) => {
                self.note(format!(
                    "{name} names an exporter that is not here: otlp or none"
                ));
                false
            }
        }
    }

    fn traces(&mut self) -> Option<Traces> {
        if !self.is_asked("TRACES", true) {
            return None;
        }
        let to = self.destination("TRACES", "/v1/traces")?;
        let queue = self.count("OTEL_BSP_MAX_QUEUE_SIZE", 2048);
        Some(Traces {
            to,
            sampler: self.sampler(),
            delay: self.millis("OTEL_BSP_SCHEDULE_DELAY", 5000),
            queue,
            batch: self.count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512).min(queue),
            patience: self.millis("OTEL_BSP_EXPORT_TIMEOUT", 30_000),
        })
    }

    fn metrics(&mut self) -> Option<Push> {
        if !self.is_asked("METRICS", false) {
            return None;
        }
        Some(Push {
            to: self.destination("METRICS", "/v1/metrics")?,
            every: self.millis("OTEL_METRIC_EXPORT_INTERVAL", 60_000),
            patience: self.millis("OTEL_METRIC_EXPORT_TIMEOUT", 30_000),
        })
    }

    /// Contexts of W3C always travel on, and baggage as any field does; others do not.
    fn propagators(&mut self) {
        let name = "OTEL_PROPAGATORS";
        let Some(asked) = self.text(name) else {
            return;
        };
        let is_here = |it: &str| matches!(it, "tracecontext" | "baggage");
        let asked: Vec<&str> = asked.split(',').map(str::trim).collect();
        if !asked.contains(&"tracecontext") || !asked.iter().all(|it| is_here(it)) {
            self.note(format!(
                "{name} is not followed here: trace contexts of W3C travel on, and no other kind is known"
            ));
        }
    }

    fn destination(&mut self, signal: &str, path: &str) -> Option<Destination> {
        if let Some((protocol, name)) = self.of_signal(signal, "PROTOCOL")
            && protocol != "http/protobuf"
        {
            self.note(format!(
                "{name}={protocol:?} is not spoken here, so nothing is exported: http/protobuf is"
            ));
            return None;
        }
        if let Some((compression, name)) = self.of_signal(signal, "COMPRESSION")
            && compression != "none"
        {
            self.note(format!(
                "{name} is not offered here: what is exported is not compressed"
            ));
        }
        let (url, name) = match self.text(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")) {
            // The one of a signal is taken as it is.
            Some(url) => (url, format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")),
            None => {
                let name = "OTEL_EXPORTER_OTLP_ENDPOINT";
                let base = self.text(name).unwrap_or_else(|| LOCAL.to_owned());
                (
                    format!("{}{path}", base.trim_end_matches('/')),
                    name.to_owned(),
                )
            }
        };
        let url: Option<Uri> = url.parse().ok();
        let is_url = |url: &Uri| {
            matches!(url.scheme_str(), Some("http" | "https"))
                && url.authority().is_some_and(|it| !it.as_str().contains('@'))
        };
        let Some(url) = url.filter(is_url) else {
            self.note(format!(
                "{name} is no http or https URL, so nothing is exported"
            ));
            return None;
        };
        let timeout = match self.of_signal(signal, "TIMEOUT") {
            Some((_, name)) => self.millis(&name, 10_000),
            None => Duration::from_secs(10),
        };
        Some(Destination {
            url,
            headers: self.headers(signal),
            timeout,
            certificate: self
                .of_signal(signal, "CERTIFICATE")
                .map(|(path, _)| path.into()),
        })
    }

    fn headers(&mut self, signal: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Some((text, name)) = self.of_signal(signal, "HEADERS") else {
            return headers;
        };
        for (key, value) in pairs(&text) {
            let key = HeaderName::from_bytes(key.as_bytes());
            match (key, HeaderValue::from_str(&value)) {
                (Ok(key), Ok(mut value)) => {
                    value.set_sensitive(true);
                    headers.append(key, value);
                }
                _ => self.note(format!(
                    "{name} has an entry that is no header; it is left out"
                )),
            }
        }
        headers
    }

    fn sampler(&mut self) -> Sampler {
        let name = "OTEL_TRACES_SAMPLER";
        let ratio = |reader: &mut Self| {
            let name = "OTEL_TRACES_SAMPLER_ARG";
            let given = reader.text(name);
            let ratio = given.as_deref().and_then(|it| it.parse().ok());
            match (given.is_some(), ratio.filter(|it| (0.0..=1.0).contains(it))) {
                (_, Some(ratio)) => ratio,
                (false, None) => 1.0,
                (true, None) => {
                    reader.note(format!("{name} is no number from 0 to 1; 1 is used"));
                    1.0
                }
            }
        };
        match self.text(name).as_deref() {
            None | Some("parentbased_always_on") => Sampler::of_parent(1.0),
            Some("parentbased_always_off") => Sampler::of_parent(0.0),
            Some("parentbased_traceidratio") => Sampler::of_parent(ratio(self)),
            Some("always_on") => Sampler::of_itself(1.0),
            Some("always_off") => Sampler::of_itself(0.0),
            Some("traceidratio") => Sampler::of_itself(ratio(self)),
            Some(_) => {
                self.note(format!(
                    "{name} names no sampler; parentbased_always_on is used"
                ));
                Sampler::of_parent(1.0)
            }
        }
    }

    fn resource(&self) -> Vec<(String, String)> {
        let mut resource = vec![
            ("service.name".to_owned(), "forecourt".to_owned()),
            (
                "service.version".to_owned(),
                env!("CARGO_PKG_VERSION").to_owned(),
            ),
        ];
        let mut set =
            |key: String, value: String| match resource.iter_mut().find(|(known, _)| *known == key)
            {
                Some((_, old)) => *old = value,
                None => resource.push((key, value)),
            };
        let attributes = self.text("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        for (key, value) in pairs(&attributes) {
            set(key, value);
        }
        if let Some(name) = self.text("OTEL_SERVICE_NAME") {
            set("service.name".to_owned(), name);
        }
        resource
    }
}

/// `key=value` pairs between commas, percent-encoded as in W3C Baggage.
fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let decode = |text: &str| {
        let decoded = percent_encoding::percent_decode_str(text.trim());
        decoded.decode_utf8_lossy().into_owned()
    };
    text.split(',').filter_map(move |pair| {
        let (key, value) = pair.split_once('=')?;
        Some((decode(key), decode(value))).filter(|(key, _)| !key.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(variables: &[(&str, &str)]) -> Telemetry {
        read(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    const AT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/otlp/");

    #[test]
    fn nothing_is_exported_unless_it_is_asked_for() {
        for variables in [
            &[][..],
            &[AT, ("OTEL_SDK_DISABLED", "true")],
            &[AT, ("OTEL_TRACES_EXPORTER", "none")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")],
        ] {
            let telemetry = given(variables);
            assert!(
                telemetry.traces.is_none() && telemetry.metrics.is_none(),
                "{variables:?}"
            );
            assert_eq!(telemetry.notes, [""; 0]);
        }
        let telemetry = given(&[AT]);
        assert_eq!(
            telemetry.traces.unwrap().to.url,
            "http://collector:4318/otlp/v1/traces"
        );
        assert!(telemetry.metrics.is_none());
        let telemetry = given(&[
            ("OTEL_METRICS_EXPORTER", "otlp"),
            ("OTEL_TRACES_EXPORTER", "otlp"),
        ]);
        assert_eq!(
            telemetry.metrics.unwrap().to.url,
            "http://localhost:4318/v1/metrics"
        );
        assert_eq!(
            telemetry.traces.unwrap().to.url,
            "http://localhost:4318/v1/traces"
        );
    }

    #[test]
    fn what_is_of_a_signal_comes_before_what_is_common() {
        let telemetry = given(&[
            AT,
            (
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "https://traces.example/in",
            ),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x = y"),
            ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "api-key=m"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "500"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "ca.pem"),
            ("OTEL_METRICS_EXPORTER", "otlp"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
            ("OTEL_PROPAGATORS", "tracecontext, baggage"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
            ("OTEL_BSP_SCHEDULE_DELAY", "10"),
        ]);
        let (traces, metrics) = (telemetry.traces.unwrap(), telemetry.metrics.unwrap());
        assert_eq!(traces.to.url, "https://traces.example/in");
        assert_eq!(traces.to.headers["api-key"], "a b");
        assert_eq!(traces.to.headers["x"], "y");
        assert!(!format!("{:?}", traces.to).contains("a b"));
        assert_eq!(traces.to.timeout, Duration::from_millis(500));
        assert_eq!((traces.queue, traces.batch), (100, 100));
        assert_eq!(traces.delay, Duration::from_millis(10));
        assert_eq!(metrics.to.headers["api-key"], "m");
        assert_eq!(metrics.to.timeout, Duration::from_millis(2500));
        assert_eq!(metrics.every, Duration::from_secs(1));
        assert_eq!(metrics.to.certificate.unwrap().to_str(), Some("ca.pem"));
        assert_eq!(telemetry.notes, [""; 0]);
    }

    #[test]
    fn who_exports() {
        let resource = given(&[
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "deployment.environment=prod,service.name=a,bad,=x",
            ),
            ("OTEL_SERVICE_NAME", "front"),
        ])
        .resource;
        let find = |key: &str| {
            resource
                .iter()
                .find(|(known, _)| known == key)
                .map(|(_, it)| &**it)
        };
        assert_eq!(find("service.name"), Some("front"));
        assert_eq!(find("deployment.environment"), Some("prod"));
        assert_eq!(find("service.version"), Some(env!("CARGO_PKG_VERSION")));
        assert_eq!(resource.len(), 3);
    }

    #[test]
    fn samplers() {
        for (name, arg, wanted) in [
            ("", "", Sampler::of_parent(1.0)),
            ("parentbased_always_off", "", Sampler::of_parent(0.0)),
            ("parentbased_traceidratio", "0.25", Sampler::of_parent(0.25)),
            ("traceidratio", "", Sampler::of_itself(1.0)),
            ("always_off", "0.5", Sampler::of_itself(0.0)),
            ("always_on", "", Sampler::of_itself(1.0)),
        ] {
            let telemetry = given(&[
                AT,
                ("OTEL_TRACES_SAMPLER", name),
                ("OTEL_TRACES_SAMPLER_ARG", arg),
            ]);
            assert_eq!(telemetry.traces.unwrap().sampler, wanted, "{name} {arg}");
            assert_eq!(telemetry.notes, [""; 0]);
        }
    }

    #[test]
    fn what_cannot_be_had_is_said_and_never_with_a_secret() {
        for (name, value, exports) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", false),
            (
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "collector:4317",
                false,
            ),
            (
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "http://u:secret@c/",
                false,
            ),
            ("OTEL_TRACES_EXPORTER", "zipkin", false),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", true),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=secret", true),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=secret\u{1}", true),
            ("OTEL_TRACES_SAMPLER", "sometimes", true),
            ("OTEL_TRACES_SAMPLER_ARG", "2", true),
            ("OTEL_BSP_SCHEDULE_DELAY", "soon", true),
            ("OTEL_PROPAGATORS", "b3", true),
            ("OTEL_PROPAGATORS", "none", true),
            ("OTEL_PROPAGATORS", "tracecontext,jaeger", true),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "0", true),
        ] {
            let mut variables = vec![AT, (name, value)];
            if name.ends_with("_ARG") {
                variables.push(("OTEL_TRACES_SAMPLER", "traceidratio"));
            }
            let telemetry = given(&variables);
            assert_eq!(telemetry.traces.is_some(), exports, "{name}={value}");
            assert_eq!(
                telemetry.notes.len(),
                1,
                "{name}={value} {:?}",
                telemetry.notes
            );
            assert!(
                !telemetry.notes[0].contains("secret"),
                "{:?}",
                telemetry.notes
            );
        }
    }
}
