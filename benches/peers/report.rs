//! Tells what was measured: medians, ratios of medians with the spread of the rounds' own ratios,
//! and each target with whether it was reached. What was not measured is told with its reason.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::measure::Samples;
use super::scenarios::{Figure, Scenario, Target};

/// Lines that are repeated at the end.
#[derive(Default)]
pub(crate) struct Report {
    targets: Vec<String>,
    skipped: Vec<String>,
    pub(crate) failed: Vec<String>,
    json: Vec<Value>,
}

impl Report {
    pub(crate) fn skip(&mut self, scenario: &str, why: &str) {
        println!("\n{scenario}: skipped: {why}");
        self.skipped.push(format!("{scenario}: {why}"));
    }

    pub(crate) fn fail(&mut self, scenario: &str, why: &str) {
        println!("\n{scenario}: FAILED: {why}");
        self.failed.push(format!("{scenario}: {why}"));
    }

    /// Prints a scenario and keeps its targets.
    pub(crate) fn tell(&mut self, scenario: &Scenario, samples: &Samples) {
        println!("\n{}: {}", scenario.name, scenario.title);
        for (name, why) in &samples.absent {
            self.skip(&format!("{}, {name}", scenario.name), why);
        }
        let figures: BTreeSet<Figure> = samples
            .rounds
            .iter()
            .flat_map(|round| round.values().flat_map(|sample| sample.keys().copied()))
            .collect();
        print!("{:24}", "");
        for figure in &figures {
            print!("{:>10}", figure.name());
        }
        println!();
        for entrant in scenario.entrants {
            if median(&values(samples, entrant.name, Figure::Others)).is_none()
                && figures
                    .iter()
                    .all(|it| values(samples, entrant.name, *it).is_empty())
            {
                continue;
            }
            print!("{:24}", entrant.name);
            for figure in &figures {
                match median(&values(samples, entrant.name, *figure)) {
                    Some(value) => print!("{:>10}", number(value)),
                    None => print!("{:>10}", "-"),
                }
            }
            println!();
        }
        self.compare(scenario, samples, &figures);
        self.json.push(json!({
            "scenario": scenario.name,
            "title": scenario.title,
            "rounds": samples.rounds.iter().map(|round| {
                let entrants = round.iter().map(|(name, sample)| {
                    let figures = sample.iter().map(|(figure, value)| {
                        (figure.name().to_owned(), json!(value))
                    });
                    ((*name).to_owned(), Value::Object(figures.collect()))
                });
                Value::Object(entrants.collect())
            }).collect::<Vec<_>>(),
        }));
    }

    fn compare(&mut self, scenario: &Scenario, samples: &Samples, figures: &BTreeSet<Figure>) {
        let held: BTreeSet<&str> = scenario.targets.iter().map(|it| it.of).collect();
        let subjects = if held.is_empty() {
            BTreeSet::from(["forecourt"])
        } else {
            held
        };
        for subject in &subjects {
            for entrant in scenario.entrants {
                if subjects.contains(entrant.name) || entrant.name == "direct" {
                    continue;
                }
                for figure in figures {
                    if *figure == Figure::Others || *figure == Figure::Share {
                        continue;
                    }
                    let target = scenario.targets.iter().find(|it| {
                        it.of == *subject && it.figure == *figure && it.to == Some(entrant.name)
                    });
                    self.ratio(scenario, samples, (subject, entrant.name), *figure, target);
                }
            }
        }
        for target in scenario.targets.iter().filter(|it| it.to.is_none()) {
            let values = values(samples, target.of, target.figure);
            if let Some(median) = median(&values) {
                let text = format!("{} {}", target.of, target.figure.name());
                self.line(scenario, &text, median, &values, Some(target));
            }
        }
    }

    fn ratio(
        &mut self,
        scenario: &Scenario,
        samples: &Samples,
        (one, other): (&str, &str),
        figure: Figure,
        target: Option<&Target>,
    ) {
        let medians = [one, other].map(|name| median(&values(samples, name, figure)));
        let [Some(above), Some(below)] = medians else {
            return;
        };
        let text = format!("{one} / {other} {}", figure.name());
        if below <= 0.0 {
            let line = format!(
                "{text:38} no ratio: {} against {}",
                number(above),
                number(below)
            );
            println!("  {line}");
            if target.is_some() {
                self.targets.push(format!("{:14} {line}", scenario.name));
            }
            return;
        }
        let ratios: Vec<f64> = samples
            .rounds
            .iter()
            .filter_map(|round| {
                let value = |name| round.get(name)?.get(&figure).copied();
                Some(value(one)? / value(other)?)
            })
            .collect();
        self.line(scenario, &text, above / below, &ratios, target);
    }

    fn line(
        &mut self,
        scenario: &Scenario,
        text: &str,
        value: f64,
        spread: &[f64],
        target: Option<&Target>,
    ) {
        let least = spread.iter().copied().fold(f64::INFINITY, f64::min);
        let most = spread.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let verdict = target.map_or_else(String::new, |target| {
            let reached = if value <= target.most {
                "reached"
            } else {
                "MISSED"
            };
            format!("target {:.2}: {reached}", target.most)
        });
        let line = format!("{text:38} {value:6.2}  ({least:.2} to {most:.2})");
        println!("  {line:64} {verdict}");
        if target.is_some() {
            self.targets
                .push(format!("{:14} {line:64} {verdict}", scenario.name));
        }
    }

    /// The end of the report.
    pub(crate) fn conclude(&self) {
        for (title, lines) in [
            ("Targets", &self.targets),
            ("Skipped", &self.skipped),
            ("Failed", &self.failed),
        ] {
            if !lines.is_empty() {
                println!("\n{title}");
                for line in lines {
                    println!("  {}", line.lines().next().unwrap_or_default());
                }
            }
        }
    }

    /// Every sample.
    pub(crate) fn json(&self) -> Value {
        json!({ "scenarios": self.json, "skipped": self.skipped, "failed": self.failed })
    }
}

fn values(samples: &Samples, entrant: &str, figure: Figure) -> Vec<f64> {
    let rounds = samples.rounds.iter();
    rounds
        .filter_map(|round| round.get(entrant)?.get(&figure).copied())
        .collect()
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        _ if sorted.is_empty() => None,
        0 => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
        _ => Some(sorted[middle]),
    }
}

fn number(value: f64) -> String {
    if value.abs() >= 1000.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}
