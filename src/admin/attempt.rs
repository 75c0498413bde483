//! Decides how operators are told what became of a reload, a rollback, or a look at what one would do.
//!
//! Must never show a secret: problems never carry one.

use http::StatusCode;
use serde::Serialize;

use super::answer::{Answer, json_as, text};
use crate::config::Problems;
use crate::observe::rfc3339;
use crate::state::reload::{Figures, Order, Reloaded};
use crate::state::{Attempt, Preview, Rejected};

/// An order, and what became of it.
#[derive(Serialize)]
pub(super) struct Told {
    at: String,
    /// `reload`, `rollback`, `guard`.
    order: &'static str,
    #[serde(flatten)]
    result: Ended,
    guard: Option<Guarded>,
}

/// What became of an order.
#[derive(Serialize)]
pub(super) struct Ended {
    /// `applied`, `unchanged`, `rolled_back`, `rejected`.
    result: &'static str,
    /// Which serves since.
    generation: Option<u64>,
    /// Which it is again.
    of: Option<u64>,
    /// The tables that cannot change live and did.
    restart_needed: Vec<&'static str>,
    problems: Problems,
    /// The workers that have yet to take up what changed about listeners. `None`: nothing did.
    #[serde(skip_serializing_if = "Option::is_none")]
    workers_behind: Option<Vec<usize>>,
    /// The same for people.
    text: String,
}

/// What the guard saw.
#[derive(Serialize)]
struct Guarded {
    generation: u64,
    ended: u64,
    failed: u64,
    ratio: String,
    after_ms: u64,
    text: String,
}

/// For whom something is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum As {
    /// People.
    Text,
    /// Programs.
    Json,
}

impl Told {
    pub(super) fn of(attempt: Attempt) -> Self {
        let guard = match attempt.order {
            Order::Reload | Order::Rollback => None,
            Order::Guard(figures) => Some(Guarded::of(&figures)),
        };
        Self {
            at: rfc3339(attempt.at),
            order: attempt.order.name(),
            result: Ended::of(attempt.result),
            guard,
        }
    }
}

impl Guarded {
    fn of(figures: &Figures) -> Self {
        Self {
            generation: figures.generation,
            ended: figures.ended,
            failed: figures.failed,
            ratio: figures.ratio.to_string(),
            after_ms: u64::try_from(figures.after.as_millis()).unwrap_or(u64::MAX),
            text: figures.to_string(),
        }
    }
}

impl Ended {
    fn of(result: Result<Reloaded, Rejected>) -> Self {
        let text = match &result {
            Ok(reloaded) => reloaded.to_string(),
            Err(rejected) => rejected.to_string(),
        };
        let (result, generation, of) = match &result {
            Ok(Reloaded::Applied(generation)) => ("applied", Some(*generation), None),
            Ok(Reloaded::Unchanged(generation)) => ("unchanged", Some(*generation), None),
            Ok(Reloaded::Again { generation, of }) => ("rolled_back", Some(*generation), Some(*of)),
            Err(rejected) => return Self::rejected(rejected, text),
        };
        Self {
            result,
            generation,
            of,
            restart_needed: Vec::new(),
            problems: Problems::default(),
            workers_behind: None,
            text,
        }
    }

    fn rejected(rejected: &Rejected, text: String) -> Self {
        let (restart_needed, problems) = match rejected {
            Rejected::RestartNeeded(tables) => (tables.clone(), Problems::default()),
            Rejected::Problems(problems) => (Vec::new(), problems.clone()),
            Rejected::NotKept { .. } => (Vec::new(), Problems::default()),
        };
        Self {
            result: "rejected",
            generation: None,
            of: None,
            restart_needed,
            problems,
            workers_behind: None,
            text,
        }
    }
}

/// A preview, with its text.
#[derive(Serialize)]
struct Previewed<'p> {
    #[serde(flatten)]
    preview: &'p Preview,
    /// The same for people.
    text: String,
}

/// Answers an order.
pub(super) fn ended(result: Result<Reloaded, Rejected>, to: As) -> Answer {
    ended_with(result, None, to)
}

/// The same, with the workers that have yet to take up what changed about listeners.
pub(super) fn ended_with(
    result: Result<Reloaded, Rejected>,
    behind: Option<Vec<usize>>,
    to: As,
) -> Answer {
    let status = match &result {
        Ok(_) => StatusCode::OK,
        Err(rejected) => status(rejected),
    };
    let mut ended = Ended::of(result);
    match behind.as_deref() {
        None => {}
        Some([]) => ended.text += "\nlisteners: every worker has taken them up",
        Some(behind) => {
            ended.text += &format!("\nlisteners: not yet taken up by workers {behind:?}")
        }
    }
    ended.workers_behind = behind;
    match to {
        As::Text => text(status, ended.text + "\n"),
        As::Json => json_as(status, &ended),
    }
}

/// Answers what something would change.
pub(super) fn previewed(result: Result<Preview, Rejected>, status: StatusCode, to: As) -> Answer {
    let preview = match result {
        Ok(preview) => preview,
        Err(rejected) => return ended(Err(rejected), to),
    };
    let shown = preview.to_string();
    match to {
        As::Text => text(status, shown),
        As::Json => json_as(
            status,
            &Previewed {
                preview: &preview,
                text: shown,
            },
        ),
    }
}

const fn status(rejected: &Rejected) -> StatusCode {
    match rejected {
        Rejected::Problems(_) | Rejected::RestartNeeded(_) => StatusCode::UNPROCESSABLE_ENTITY,
        Rejected::NotKept { .. } => StatusCode::NOT_FOUND,
    }
}
