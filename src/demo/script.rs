//! What the walk is made of: acts, steps that say what is sent and what has to come back, and the
//! steps that others vary.

use super::answered::DEALERSHIP;
use super::asked::{AAP_1_2, AAP_3_0, INFORMATION, STREAM};
use super::ground::Version;
use super::refused::RATE_LIMITED_1_2;

/// One thing that is done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// A heading.
    Chapter(&'static str),
    /// A request, and its whole answer.
    Call(Step),
    /// Waiting exactly as long as the last refusal said.
    Wait,
    /// A stream, up to its first event; the dealer then waits before it goes on.
    Open(Step),
    /// The rest of the open stream, in which these events have to come.
    Finish(&'static [&'static str]),
    /// Writing another version of the configuration file.
    Rewrite(Version),
    /// Writing the last good version again.
    Restore,
}

/// One request and what has to come back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// What is tried.
    pub(super) title: &'static str,
    /// The rule it shows.
    pub(super) rule: &'static str,
    /// Where the rule stands.
    pub(super) source: &'static str,
    /// Whether it only prepares another step, and is told in one line.
    pub(super) is_brief: bool,
    /// Whom it is sent to.
    pub(super) to: To,
    /// The path it is POSTed to.
    pub(super) path: &'static str,
    /// Headers beside those of HTTP itself.
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// The body.
    pub(super) body: &'static str,
    /// The status of the answer.
    pub(super) status: u16,
    /// All headers of the answer but those of framing and time.
    pub(super) answer_headers: &'static [(&'static str, &'static str)],
    /// The body of the answer.
    pub(super) answer: Answer,
    /// What the dealer receives.
    pub(super) heard: Heard,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// The gateway.
    Gateway,
    /// The dealer, past the gateway.
    Dealer,
    /// The gateway's admin socket.
    Admin,
}

/// The body of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// This JSON.
    Json(&'static str),
    /// Text with these lines, in this order.
    Lines(&'static [&'static str]),
    /// The first event of a stream.
    Event(&'static str),
}

/// What reaches the dealer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Heard {
    /// Nothing at all.
    Nothing,
    /// The same body with these header lines.
    Call {
        /// The lines of `A2A-Version`.
        versions: &'static [&'static str],
        /// The lines of `A2A-Extensions`.
        extensions: &'static [&'static str],
    },
}

/// The headers of an answer that was passed on, in contract 3.0.
pub(super) const RELAYED_3_0: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("a2a-extensions", AAP_3_0),
    ("x-request-id", "{request_id}"),
];
/// The same in contract 1.2.
pub(super) const RELAYED_1_2: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("a2a-extensions", AAP_1_2),
    ("x-request-id", "{request_id}"),
];
/// What answers at a limited endpoint tell of the quota: 2 at once, full again after 6 seconds.
const POLICY: (&str, &str) = ("ratelimit-policy", "\"per-buyer\";q=2;w=6");
/// One call is left.
const ONE_LEFT: (&str, &str) = ("ratelimit", "\"per-buyer\";r=1;t={seconds}");
/// None is left.
const NONE_LEFT: (&str, &str) = ("ratelimit", "\"per-buyer\";r=0;t={seconds}");

/// The headers of an answer in contract 3.0 that spent the last call but one.
pub(super) const SPENT_ONE_3_0: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("a2a-extensions", AAP_3_0),
    ("x-request-id", "{request_id}"),
    POLICY,
    ONE_LEFT,
];
/// The same, and it spent the last.
pub(super) const SPENT_ALL_3_0: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("a2a-extensions", AAP_3_0),
    ("x-request-id", "{request_id}"),
    POLICY,
    NONE_LEFT,
];
/// The last call but one, in contract 1.2.
pub(super) const SPENT_ONE_1_2: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("a2a-extensions", AAP_1_2),
    ("x-request-id", "{request_id}"),
    POLICY,
    ONE_LEFT,
];
/// The last, in contract 1.2.
pub(super) const SPENT_ALL_1_2: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("a2a-extensions", AAP_1_2),
    ("x-request-id", "{request_id}"),
    POLICY,
    NONE_LEFT,
];
/// The headers of a refusal.
pub(super) const REFUSED: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("cache-control", "no-store"),
    ("x-request-id", "{request_id}"),
];
/// The headers of RATE_LIMITED.
pub(super) const LIMITED: &[(&str, &str)] = &[
    ("content-type", "application/json"),
    ("cache-control", "no-store"),
    ("retry-after", "{retry_after}"),
    ("x-request-id", "{request_id}"),
    POLICY,
    NONE_LEFT,
];
/// The headers of the admin socket.
pub(super) const TOLD: &[(&str, &str)] = &[
    ("content-type", "text/plain; charset=utf-8"),
    ("cache-control", "no-store"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-resource-policy", "same-origin"),
];
/// Both absent headers filled in, in contract 3.0.
pub(super) const FILLED_3_0: Heard = Heard::Call {
    versions: &["1.0"],
    extensions: &[AAP_3_0],
};
/// The same in contract 1.2.
pub(super) const FILLED_1_2: Heard = Heard::Call {
    versions: &["1.0"],
    extensions: &[AAP_1_2],
};

/// A call without headers at the 3.0 endpoint: admitted.
pub(super) const ADMITTED: Step = Step {
    title: "",
    rule: "",
    source: "",
    is_brief: false,
    to: To::Gateway,
    path: "/a2a",
    headers: &[],
    body: INFORMATION,
    status: 200,
    answer_headers: RELAYED_3_0,
    answer: Answer::Json(DEALERSHIP),
    heard: FILLED_3_0,
};
/// The same, refused.
pub(super) const STOPPED: Step = Step {
    answer_headers: REFUSED,
    heard: Heard::Nothing,
    ..ADMITTED
};
/// Past the gateway.
pub(super) const DIRECT: Step = Step {
    to: To::Dealer,
    path: "/3.0",
    answer_headers: &[("content-type", "application/json")],
    ..ADMITTED
};
/// A skill at the 3.0 endpoint.
pub(super) const SKILL: Step = Step {
    rule: "The dealer's answer passes as it is.",
    source: "AAP 3.0, A2A JSON-RPC binding",
    ..ADMITTED
};
/// A call that spends a quota.
pub(super) const SPENT: Step = Step {
    is_brief: true,
    path: "/busy",
    answer_headers: SPENT_ONE_3_0,
    ..ADMITTED
};
/// The call that spends the rest of it.
pub(super) const SPENT_ALL: Step = Step {
    answer_headers: SPENT_ALL_3_0,
    ..SPENT
};
/// The first of them in contract 1.2.
pub(super) const SPENT_1_2: Step = Step {
    path: "/busy-1.2",
    answer_headers: SPENT_ONE_1_2,
    heard: FILLED_1_2,
    ..SPENT
};
/// The second.
pub(super) const SPENT_ALL_IN_1_2: Step = Step {
    answer_headers: SPENT_ALL_1_2,
    ..SPENT_1_2
};
/// Over that quota.
pub(super) const LIMITED_1_2: Step = Step {
    path: "/busy-1.2",
    answer_headers: LIMITED,
    answer: Answer::Json(RATE_LIMITED_1_2),
    ..STOPPED
};
/// A reload.
pub(super) const RELOAD: Step = Step {
    source: "Forecourt",
    to: To::Admin,
    path: "/reload",
    body: "",
    answer_headers: TOLD,
    heard: Heard::Nothing,
    ..ADMITTED
};
/// A stream at the 3.0 endpoint.
pub(super) const STREAMED: Step = Step {
    body: STREAM,
    answer_headers: &[
        ("content-type", "text/event-stream"),
        ("x-accel-buffering", "no"),
        ("a2a-extensions", AAP_3_0),
        ("x-request-id", "{request_id}"),
    ],
    ..ADMITTED
};
