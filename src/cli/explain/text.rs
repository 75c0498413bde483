//! Decides how an explanation reads: the verdict first, then who, where and how much, then each step,
//! then the bytes. Made of the JSON that a gateway answers, so that both ways read alike.

use std::fmt::Write;

use serde_json::Value;

/// An explanation.
pub(super) fn explained(told: &Value) -> String {
    let mut out = format!("{}: {}\n\n", word(&told["verdict"]), word(&told["why"]));
    let mut line = |name: &str, text: String| {
        // Writing to a string does not fail.
        writeln!(out, "{name:<10} {text}").ok();
    };
    line("listener", word(&told["listener"]));
    let client = &told["client"];
    line(
        "client",
        format!(
            "{}, told by {}",
            word(&client["address"]),
            word(&client["told_by"])
        ),
    );
    let request = &told["request"];
    if request.is_object() {
        let host = request["host"].as_str().unwrap_or("no host");
        let (method, path) = (word(&request["method"]), word(&request["path"]));
        line("request", format!("{method} {path} at {host}"));
    }
    let route = &told["route"];
    let endpoint = &route["endpoint"];
    if endpoint.is_object() {
        line(
            "endpoint",
            format!(
                "{} ({}, {}), contract {}",
                word(&endpoint["name"]),
                word(&endpoint["host"]),
                word(&endpoint["path"]),
                word(&endpoint["contract"]),
            ),
        );
        rules(&endpoint["rules"], &mut line);
    }
    for other in list(&route["others"]) {
        let (name, why) = (word(&other["name"]), word(&other["why"]));
        let (host, path) = (word(&other["host"]), word(&other["path"]));
        line("  not", format!("{name} ({host}, {path}): {why}"));
    }
    let caller = &told["caller"];
    if caller.is_object() {
        let plan = caller["plan"].as_str();
        let plan = plan.map_or_else(String::new, |plan| format!(", plan {plan}"));
        let (name, by) = (word(&caller["name"]), word(&caller["by"]));
        line("caller", format!("{name}, by {by}{plan}"));
        rules(&caller["rules"], &mut line);
    }
    let call = &told["call"];
    if call.is_object() {
        let skill = call["skill"].as_str();
        let skill = skill.map_or_else(String::new, |skill| format!(", skill {skill}"));
        line("call", format!("{}{skill}", word(&call["method"])));
    }
    for quota in list(&told["quotas"]) {
        line("quota", this_quota(quota));
        rules(&quota["rules"], &mut line);
    }
    out.push_str("\nsteps\n");
    for step in list(&told["steps"]) {
        let (name, verdict) = (word(&step["step"]), word(&step["verdict"]));
        let text = format!("  {verdict:<12} {name:<13} {}", word(&step["why"]));
        writeln!(out, "{}", text.trim_end()).ok();
        if verdict == "refuse" || verdict == "report" || verdict == "pass" {
            let mut told: Vec<String> = list(&step["rules"]).iter().map(rule).collect();
            told.push(word(&step["section"]));
            writeln!(out, "  {:<26} {}", "", told.join("; ")).ok();
        }
    }
    forward(&told["forward"], &mut out);
    let answer = &told["answer"];
    if answer.is_object() {
        out.push_str("\nanswer\n");
        out.push_str(&word(&answer["head"]).replace("\r\n", "\n"));
        out.push_str(&word(&answer["body"]));
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// Decisions that were taken before.
pub(super) fn recalled(told: &Value) -> String {
    let mut out = String::new();
    for it in list(&told["decisions"]) {
        let (ts, outcome) = (word(&it["ts"]), word(&it["outcome"]));
        let id = word(&it["request_id"]);
        writeln!(out, "{ts} {outcome}, request {id}").ok();
        let mut line = |name: &str, text: String| {
            writeln!(out, "  {name:<10} {text}").ok();
        };
        for (name, member) in [
            ("endpoint", "endpoint"),
            ("contract", "contract"),
            ("caller", "caller"),
            ("method", "rpc_method"),
            ("skill", "skill"),
            ("why", "why"),
            ("quota", "quota"),
            ("wait", "retry_after_ms"),
            ("error", "error_id"),
            ("upstream", "upstream"),
            ("step", "step"),
            ("follows", "section"),
        ] {
            if !it[member].is_null() {
                let unit = if name == "wait" { " ms" } else { "" };
                line(name, format!("{}{unit}", word(&it[member])));
            }
        }
        for found in list(&it["rules"]) {
            line("by", rule(found));
        }
        for (name, member) in [("filled in", "normalized"), ("reported", "reported")] {
            let all: Vec<String> = list(&it[member]).iter().map(word).collect();
            if !all.is_empty() {
                line(name, all.join(", "));
            }
        }
        let generation = word(&it["generation"]);
        line(
            "by",
            match it["generation_is_known"] == true {
                true => format!("generation {generation}"),
                false => format!("generation {generation}, which is no longer kept"),
            },
        );
    }
    out
}

fn this_quota(quota: &Value) -> String {
    let (name, kept) = (word(&quota["name"]), word(&quota["kept_in"]));
    if quota["looks_at_it"] != true {
        return format!("{name}: does not look at this call");
    }
    let (remaining, limit) = (word(&quota["remaining"]), word(&quota["limit"]));
    let mut text = format!("{name}: {remaining} of {limit} left, {kept}");
    write!(text, ", this costs {}", word(&quota["cost"])).ok();
    if quota["admits"] != true {
        write!(text, ", refuses for {} ms", word(&quota["retry_after_ms"])).ok();
    }
    if let Some(error) = quota["store_error"].as_str() {
        write!(text, ", which did not answer: {error}").ok();
    }
    text
}

fn forward(forward: &Value, out: &mut String) {
    if !forward.is_object() {
        return;
    }
    let (method, url) = (word(&forward["method"]), word(&forward["url"]));
    writeln!(out, "\nto the dealer\n  {method} {url}").ok();
    if forward["query"] != "none" {
        writeln!(out, "  the query {}", word(&forward["query"])).ok();
    }
    for header in list(&forward["headers"]) {
        let name = word(&header["name"]);
        let value = header["value"].as_str();
        let value = value.map_or_else(String::new, |value| format!(": {value}"));
        let why = word(&header["why"]);
        let why = if why.is_empty() {
            why
        } else {
            format!("  ({why})")
        };
        writeln!(out, "  {:<9} {name}{value}{why}", word(&header["change"])).ok();
    }
    writeln!(out, "  the same body, {} bytes", word(&forward["body"])).ok();
}

fn rules(all: &Value, line: &mut impl FnMut(&str, String)) {
    for found in list(all) {
        line("", rule(found));
    }
}

/// `endpoint.lakeside.path (forecourt.toml:12)`.
fn rule(rule: &Value) -> String {
    let key = word(&rule["key"]);
    match (rule["file"].as_str(), rule["line"].as_u64()) {
        (Some(file), Some(line)) => format!("{key} ({file}:{line})"),
        _ => format!("{key} (default)"),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A text as it is, anything else as JSON; control characters, which a terminal would obey, replaced.
fn word(value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    let keep = |c: char| matches!(c, '\n' | '\r' | '\t') || !c.is_control();
    text.chars()
        .map(|c| if keep(c) { c } else { '\u{fffd}' })
        .collect()
}
