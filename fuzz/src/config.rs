//! Holds `config::parse` to what holds for every text: problems have their place, in order, and no
//! secret; settings keep what their documentation says, and come out equal a second time.
//!
//! Every text is read as TOML and as JSON.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use forecourt::config::{
    Allowance, Dimension, Format, Identify, Problems, Settings, Severity, parse,
};
use serde_json::Value;

/// The variables there are. None of these values may ever be shown.
pub const ENVIRONMENT: [(&str, &str); 6] = [
    ("TOKEN", "s3cret-token"),
    ("URL", "http://s3cret.example:9001/a2a"),
    ("ADDRESS", "127.0.0.1:8080"),
    ("RATE", "60/min"),
    ("QUOTED", "s3cret\"\n[endpoint.s3cret]\n"),
    ("EMPTY", ""),
];

/// Stands in every secret variable.
const VARIABLE_SECRET: &str = "s3cret";
/// Stands in the secrets that a text holds itself.
const LITERAL_SECRET: &str = "HUSH";

/// What the text is called in problems.
const FILE: &str = "etc/forecourt.toml";

/// The most that is listed, and the line that counts the rest.
const MOST_PROBLEMS: usize = 501;
/// The most that is shown of a line: 100 characters, and three dots at either end.
const WIDEST: usize = 106;

/// Any text, in both formats.
pub fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for format in [Format::Toml, Format::Json] {
        let read = read(text, format);
        match &read {
            Ok(settings) => {
                holds(settings);
                places(&settings.warnings, text, Severity::Warning);
                assert!(settings.restart_needed(settings).is_empty());
            }
            Err(problems) => {
                assert!(!problems.is_empty());
                places(problems, text, Severity::Error);
            }
        }
        secrets(&read, text, format);
        again(&read, text, format);
    }
}

fn read(text: &str, format: Format) -> Result<Settings, Problems> {
    let env = |name: &str| {
        let variable = ENVIRONMENT.iter().find(|(known, _)| *known == name);
        variable.map(|(_, value)| (*value).to_owned())
    };
    parse(text, format, Path::new(FILE), &env)
}

/// Problems stand in the text, in its order, and can be printed anywhere.
fn places(problems: &Problems, text: &str, severity: Severity) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = text.split('\n').collect();
    assert!(problems.len() <= MOST_PROBLEMS);
    let mut before = (0, 0);
    for (at, problem) in problems.iter().enumerate() {
        assert_eq!((problem.severity, &*problem.file), (severity, FILE));
        assert!(!problem.what.is_empty());
        let place = (problem.line, problem.column);
        let counts_the_rest = at + 1 == MOST_PROBLEMS;
        assert!(
            place >= before || counts_the_rest,
            "{problem} is out of order"
        );
        before = place;
        if place == (0, 0) {
            assert_eq!(problem.excerpt, None);
            continue;
        }
        assert!((1..=lines.len()).contains(&problem.line), "{problem}");
        let width = lines[problem.line - 1].chars().count();
        assert!((1..=width + 1).contains(&problem.column), "{problem}");
        if let Some(excerpt) = &problem.excerpt {
            let shown = excerpt.text.chars().count();
            assert!(shown <= WIDEST, "{problem}");
            assert!(!excerpt.text.chars().any(char::is_control), "{problem:?}");
            assert!(excerpt.length > 0, "{problem}");
            assert!(excerpt.start + excerpt.length <= shown + 1, "{problem}");
        }
        let first = problem.to_string();
        let first = first.lines().next().unwrap_or_default().to_owned();
        assert!(!first.chars().any(char::is_control), "{first:?}");
    }
}

/// What came from a variable, or stands where secrets stand, is never told.
fn secrets(read: &Result<Settings, Problems>, text: &str, format: Format) {
    let told = match read {
        Ok(settings) => {
            for (_, secret) in settings.upstreams.iter().flat_map(|it| &it.headers) {
                assert_eq!(format!("{secret} {secret:?}"), "*** ***");
            }
            settings.warnings.to_string()
        }
        Err(problems) => problems.to_string(),
    };
    if !text.contains(VARIABLE_SECRET) {
        assert!(!told.contains(VARIABLE_SECRET), "{told}");
    }
    // Escapes and variables spell a text in other ways than it stands: not for this check.
    let count = text.matches(LITERAL_SECRET).count();
    if count == 0 || text.contains(['\\', '$']) {
        return;
    }
    let tree: Option<Value> = match format {
        Format::Toml => toml::from_str(text).ok(),
        Format::Json => serde_json::from_str(text).ok(),
    };
    if tree.is_some_and(|tree| hidden(&tree, false) == count) {
        assert!(!told.contains(LITERAL_SECRET), "{told}");
    }
}

/// How often the secret stands in values that must not be shown.
fn hidden(value: &Value, inside: bool) -> usize {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| hidden(value, inside || is_secret(key)))
            .sum(),
        Value::Array(elements) => elements.iter().map(|it| hidden(it, inside)).sum(),
        Value::String(text) => {
            let lower = text.to_ascii_lowercase();
            let is_credential = lower.starts_with("bearer ") || lower.starts_with("basic ");
            let has_user = lower.split_once("://").is_some_and(|(_, rest)| {
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                rest[..end].contains('@')
            });
            let is_hidden = inside || is_credential || has_user;
            usize::from(is_hidden) * text.matches(LITERAL_SECRET).count()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let words = [
        "authorization",
        "token",
        "secret",
        "passw",
        "cookie",
        "credential",
        "api-key",
        "api_key",
    ];
    key == "header" || key.ends_with("headers") || words.iter().any(|word| key.contains(word))
}

/// The same text gives the same; so does it with a mark in front, and with a newline at its end
/// where it is good.
fn again(read: &Result<Settings, Problems>, text: &str, format: Format) {
    assert_eq!(&self::read(text, format), read);
    if !text.starts_with('\u{feff}') {
        assert_eq!(&self::read(&format!("\u{feff}{text}"), format), read);
    }
    if read.is_ok() {
        assert_eq!(&self::read(&format!("{text}\n"), format), read);
    }
}

/// What the documentation of the settings says of them.
fn holds(settings: &Settings) {
    let year = Duration::from_secs(365 * 24 * 3600);
    let is_wait = |time: Duration| time > Duration::ZERO && time <= year;
    assert!(
        settings
            .runtime
            .workers
            .is_none_or(|workers| workers.get() <= 1024)
    );
    assert!(!settings.listeners.is_empty() && !settings.endpoints.is_empty());
    let limits = &settings.limits;
    assert!(limits.body > 0 && limits.body <= limits.in_flight_bytes);
    assert!((8 << 10..=1 << 20).contains(&limits.header_bytes));
    assert!((1..=1000).contains(&limits.header_count));
    assert!(is_wait(limits.header_timeout) && is_wait(limits.body_timeout));
    assert!(is_wait(limits.idle_timeout));
    assert!(limits.connections > 0 && limits.limiter_keys > 0);
    assert!(settings.shutdown.delay <= year && settings.shutdown.timeout <= year);
    let identify = &settings.callers.identify;
    let by_address = identify.iter().position(|it| *it == Identify::Address);
    assert!(!identify.is_empty() && by_address.is_none_or(|at| at + 1 == identify.len()));
    for quota in &settings.quotas {
        let costs = quota.cost.iter().map(|(_, cost)| *cost);
        let changed = settings.plans.iter().flat_map(|plan| &plan.quotas);
        let changed = changed.filter(|(at, _)| settings.quotas.get(*at) == Some(quota));
        for allowance in changed
            .map(|(_, changed)| changed)
            .chain([&quota.allowance])
        {
            if let Allowance::Rate { interval, burst } = allowance {
                assert!(*interval >= Duration::from_nanos(1));
                let refill = interval.as_nanos() * u128::from(burst.get());
                assert!(refill < 1 << 62, "{}", quota.name);
                assert!(costs.clone().all(|cost| cost <= *burst), "{}", quota.name);
            }
        }
        assert!(quota.skills.as_ref().is_none_or(|it| !it.is_empty()));
        assert!(quota.methods.as_ref().is_none_or(|it| !it.is_empty()));
        assert!(!(quota.shared && quota.per.contains(Dimension::Endpoint)));
    }
    for upstream in &settings.upstreams {
        assert!(upstream.url.port != 0 && !upstream.url.path.ends_with('/'));
        assert!(is_wait(upstream.connect_timeout) && is_wait(upstream.response_timeout));
        assert!(is_wait(upstream.idle_timeout) && upstream.keep_alive <= year);
        assert!(upstream.max_connections > 0);
    }
    let mut proofs = BTreeSet::new();
    for caller in &settings.known {
        let keys = caller.key_sha256.iter().map(ToString::to_string);
        let mut count = 0;
        for proof in keys.chain(caller.certificates.iter().map(ToString::to_string)) {
            count += 1;
            assert!(proofs.insert(proof), "{}", caller.name);
        }
        assert!(count > 0, "{}", caller.name);
        let endpoints = caller.endpoints.as_ref();
        assert!(endpoints.is_none_or(|all| !all.is_empty()));
        let mut places = endpoints.into_iter().flatten();
        assert!(places.all(|at| *at < settings.endpoints.len()));
        assert!(caller.plan.is_none_or(|at| at < settings.plans.len()));
    }
    for endpoint in &settings.endpoints {
        let path = &*endpoint.path;
        assert!(path.starts_with('/') && (path == "/" || !path.ends_with('/')));
        assert!(!endpoint.contracts.is_empty());
        let upstreams = settings.upstreams.len();
        assert!(
            endpoint
                .contracts
                .iter()
                .all(|pin| pin.upstream < upstreams)
        );
        assert!(endpoint.quotas.iter().all(|at| *at < settings.quotas.len()));
        assert!(
            endpoint
                .methods
                .as_ref()
                .is_none_or(|methods| !methods.is_empty())
        );
    }
    let names = |names: Vec<&str>| {
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len(), "two of one name");
    };
    names(settings.listeners.iter().map(|it| &*it.name).collect());
    names(settings.quotas.iter().map(|it| &*it.name).collect());
    names(settings.upstreams.iter().map(|it| &*it.name).collect());
    names(settings.endpoints.iter().map(|it| &*it.name).collect());
}
