//! The walk as a table: what is done, which rule it shows and where that rule stands, what is sent,
//! and what has to come back. Nothing here runs.

use super::answered::{
    DEALER_WANTS_1_2, DEALER_WANTS_3_0, DEALER_WANTS_A_VERSION, EVENTS, FACETS_FOUND, LEAD_TAKEN,
    SEARCH_FOUND, VEHICLE_FOUND, VEHICLE_NOT_FOUND_1_2, VEHICLE_NOT_FOUND_3_0,
};
use super::asked::{
    AAP_1_2, AAP_3_0, BATCH, BROKEN, ESCAPED_ID, FACETS, LARGE_ID, LEAD, SEARCH, UNKNOWN_VEHICLE,
    VEHICLE,
};
use super::ground::Version;
use super::refused::{
    NEEDS_3_0, NO_BATCH, NOT_0_3, NOT_1, NOT_99_0, OLD_METHOD_ESCAPED_ID, OLD_METHOD_LARGE_ID,
    PARSE_ERROR, RATE_LIMITED_3_0, UNREACHABLE,
};
use super::script::{
    ADMITTED, Act, Answer, DIRECT, FILLED_1_2, Heard, LIMITED, LIMITED_1_2, RELAYED_1_2, RELOAD,
    SKILL, SPENT, SPENT_1_2, SPENT_ALL, SPENT_ALL_3_0, SPENT_ALL_IN_1_2, STOPPED, STREAMED, Step,
};

/// The walk.
pub(super) const SCRIPT: &[Act] = &[
    Act::Chapter("Absent headers"),
    Act::Call(Step {
        title: "Past the gateway, with neither header",
        rule: "An absent A2A-Version means 0.3, and this dealer serves 1.0 only.",
        source: "A2A 1.0, 3.6.2",
        answer: Answer::Json(DEALER_WANTS_A_VERSION),
        heard: Heard::Call {
            versions: &[],
            extensions: &[],
        },
        ..DIRECT
    }),
    Act::Call(Step {
        title: "Past the gateway, with the version only",
        rule: "The dealer's extension is required and not activated.",
        source: "A2A 1.0, 3.3.4",
        headers: &[("A2A-Version", "1.0")],
        answer: Answer::Json(DEALER_WANTS_3_0),
        heard: Heard::Call {
            versions: &["1.0"],
            extensions: &[],
        },
        ..DIRECT
    }),
    Act::Call(Step {
        title: "Through the gateway, with neither header",
        rule: "The endpoint is pinned to one contract, so both absent headers are filled in.",
        source: "AAP 3.0, A2A JSON-RPC binding",
        ..ADMITTED
    }),
    Act::Call(Step {
        title: "Through the gateway at the endpoint of contract 1.2",
        rule: "The same, with the other contract's URI.",
        source: "AAP 1.2",
        path: "/a2a-1.2",
        answer_headers: RELAYED_1_2,
        heard: FILLED_1_2,
        ..ADMITTED
    }),
    Act::Chapter("Supplied headers"),
    Act::Call(Step {
        title: "Both headers supplied",
        rule: "What is supplied is kept: a patch number is not considered, and not removed.",
        source: "A2A 1.0, 3.6.2",
        headers: &[("A2A-Version", "1.0.1"), ("A2A-Extensions", AAP_3_0)],
        heard: Heard::Call {
            versions: &["1.0.1"],
            extensions: &[AAP_3_0],
        },
        ..ADMITTED
    }),
    Act::Call(Step {
        title: "An unrelated URI beside the exact one, on two lines",
        rule: "Lines are one list. An unrelated member is ignored and forwarded.",
        source: "A2A 1.0, 3.2.6; RFC 9110, 5.3",
        headers: &[
            (
                "A2A-Extensions",
                "https://buyer.example/extensions/trace/v2",
            ),
            ("A2A-Extensions", AAP_3_0),
        ],
        heard: Heard::Call {
            versions: &["1.0"],
            extensions: &["https://buyer.example/extensions/trace/v2", AAP_3_0],
        },
        ..ADMITTED
    }),
    Act::Call(Step {
        title: "A2A-Version present and empty",
        rule: "Empty is not absent: it means 0.3.",
        source: "A2A 1.0, 3.6.2",
        headers: &[("A2A-Version", "")],
        answer: Answer::Json(NOT_0_3),
        ..STOPPED
    }),
    Act::Call(Step {
        title: "A2A-Version: 0.3",
        rule: "A version that is not served is refused with -32009.",
        source: "A2A 1.0, 3.6.2",
        headers: &[("A2A-Version", "0.3")],
        answer: Answer::Json(NOT_0_3),
        ..STOPPED
    }),
    Act::Call(Step {
        title: "A2A-Version: 99.0",
        rule: "So is one that does not exist yet.",
        source: "A2A 1.0, 3.6.2",
        headers: &[("A2A-Version", "99.0")],
        answer: Answer::Json(NOT_99_0),
        ..STOPPED
    }),
    Act::Call(Step {
        title: "A2A-Version: 1",
        rule: "A version is Major.Minor; nothing is guessed.",
        source: "A2A 1.0, 3.6",
        headers: &[("A2A-Version", "1")],
        answer: Answer::Json(NOT_1),
        ..STOPPED
    }),
    Act::Call(Step {
        title: "Another contract's URI",
        rule: "A supplied list has to contain the pinned URI, exactly. It is never completed.",
        source: "A2A 1.0, 3.3.4",
        headers: &[("A2A-Extensions", AAP_1_2)],
        answer: Answer::Json(NEEDS_3_0),
        ..STOPPED
    }),
    Act::Call(Step {
        title: "The wrong URI at the endpoint of contract 1.2",
        rule: "1.x never asked for the header, so the call passes untouched: the dealer decides.",
        source: "AAP 1.2",
        path: "/a2a-1.2",
        headers: &[("A2A-Extensions", AAP_3_0)],
        answer_headers: &[
            ("content-type", "application/json"),
            ("x-request-id", "{request_id}"),
        ],
        answer: Answer::Json(DEALER_WANTS_1_2),
        heard: Heard::Call {
            versions: &["1.0"],
            extensions: &[AAP_3_0],
        },
        ..ADMITTED
    }),
    Act::Chapter("Envelopes"),
    Act::Call(Step {
        title: "A method of A2A 0.3, and an id that no float holds",
        rule: "An older method name is refused. The id comes back as it was spelled.",
        source: "JSON-RPC 2.0, 5; A2A 1.0, 9",
        body: LARGE_ID,
        answer: Answer::Json(OLD_METHOD_LARGE_ID),
        ..STOPPED
    }),
    Act::Call(Step {
        title: "An id with an escape in it",
        rule: "The escape is not undone.",
        source: "JSON-RPC 2.0, 5",
        body: ESCAPED_ID,
        answer: Answer::Json(OLD_METHOD_ESCAPED_ID),
        ..STOPPED
    }),
    Act::Call(Step {
        title: "Broken JSON",
        rule: "-32700, and the id is null.",
        source: "JSON-RPC 2.0, 5.1",
        body: BROKEN,
        answer: Answer::Json(PARSE_ERROR),
        ..STOPPED
    }),
    Act::Call(Step {
        title: "A batch",
        rule: "A2A has none. It would be several calls for the price of one.",
        source: "A2A 1.0, 9",
        body: BATCH,
        answer: Answer::Json(NO_BATCH),
        ..STOPPED
    }),
    Act::Chapter("The five skills"),
    Act::Call(Step {
        title: "dealer.information",
        ..SKILL
    }),
    Act::Call(Step {
        title: "inventory.facets",
        body: FACETS,
        answer: Answer::Json(FACETS_FOUND),
        ..SKILL
    }),
    Act::Call(Step {
        title: "inventory.search",
        body: SEARCH,
        answer: Answer::Json(SEARCH_FOUND),
        ..SKILL
    }),
    Act::Call(Step {
        title: "inventory.vehicle",
        body: VEHICLE,
        answer: Answer::Json(VEHICLE_FOUND),
        ..SKILL
    }),
    Act::Call(Step {
        title: "inventory.vehicle, unknown",
        rule: "So does the dealer's own error.",
        body: UNKNOWN_VEHICLE,
        answer: Answer::Json(VEHICLE_NOT_FOUND_3_0),
        ..SKILL
    }),
    Act::Call(Step {
        title: "inventory.vehicle, unknown, at the endpoint of contract 1.2",
        rule: "The dealer's own error, in its older dialect.",
        source: "AAP 1.2",
        path: "/a2a-1.2",
        body: UNKNOWN_VEHICLE,
        answer_headers: RELAYED_1_2,
        answer: Answer::Json(VEHICLE_NOT_FOUND_1_2),
        heard: FILLED_1_2,
        ..SKILL
    }),
    Act::Call(Step {
        title: "lead.submit",
        body: LEAD,
        answer: Answer::Json(LEAD_TAKEN),
        ..SKILL
    }),
    Act::Call(Step {
        title: "lead.submit again, with the same idempotency_key",
        rule: "The dealer sees it is the same lead: lead-0001.",
        body: LEAD,
        answer: Answer::Json(LEAD_TAKEN),
        ..SKILL
    }),
    Act::Chapter("A stream"),
    Act::Open(Step {
        title: "SendStreamingMessage",
        rule: "Each event passes as it comes: the dealer sends no second one until the first is here.",
        source: "A2A 1.0, 9; RFC 9110",
        answer: Answer::Event(first_event()),
        ..STREAMED
    }),
    Act::Finish(EVENTS),
    Act::Chapter("A dealer that is not there"),
    Act::Call(Step {
        title: "Nobody listens at the upstream",
        rule: "502. Nothing was sent, so a retry is safe; how it failed stays inside.",
        source: "AAP Errors; RFC 9110, 15.6.3",
        path: "/gone",
        status: 502,
        answer: Answer::Json(UNREACHABLE),
        ..STOPPED
    }),
    Act::Chapter("Over quota: 20 calls a minute, two at once"),
    Act::Call(SPENT),
    Act::Call(SPENT_ALL),
    Act::Call(Step {
        title: "A third call at once",
        rule: "RATE_LIMITED, -32000 in contract 3.0, with the exact time to wait.",
        source: "AAP 3.0, Errors; RFC 9110, 10.2.3",
        path: "/busy",
        answer_headers: LIMITED,
        answer: Answer::Json(RATE_LIMITED_3_0),
        ..STOPPED
    }),
    Act::Wait,
    Act::Call(Step {
        title: "The same call after exactly that time",
        rule: "Who waits as long as told is admitted.",
        source: "AAP 3.0, Errors",
        path: "/busy",
        answer_headers: SPENT_ALL_3_0,
        ..ADMITTED
    }),
    Act::Call(SPENT_1_2),
    Act::Call(SPENT_ALL_IN_1_2),
    Act::Call(Step {
        title: "A third call at once at the endpoint of contract 1.2",
        rule: "The same refusal in the bare dialect: -32002, and the data is the error itself.",
        source: "AAP 1.2",
        ..LIMITED_1_2
    }),
    Act::Chapter("A reload, while a stream is open"),
    Act::Open(Step {
        title: "The stream",
        rule: "It stays on the configuration it began with.",
        source: "Forecourt",
        answer: Answer::Event(first_event()),
        ..STREAMED
    }),
    Act::Rewrite(Version::Grown),
    Act::Call(Step {
        title: "Reload",
        rule: "A good file goes live as a whole. (Saving it would do: the file is watched.)",
        answer: Answer::Lines(&[", generation 2"]),
        ..RELOAD
    }),
    Act::Call(Step {
        title: "The endpoint that is new",
        rule: "It is served at once.",
        source: "Forecourt",
        path: "/added",
        ..ADMITTED
    }),
    Act::Call(Step {
        title: "The quota that was spent before",
        rule: "A reload refills nothing.",
        source: "Forecourt",
        ..LIMITED_1_2
    }),
    Act::Finish(EVENTS),
    Act::Rewrite(Version::Broken),
    Act::Call(Step {
        title: "Reload with two mistakes in the file",
        rule: "A bad file changes nothing. Every problem is reported, with its place.",
        status: 422,
        answer: Answer::Lines(&[
            "endpoint.added.contract: no contract is named \"app/3.0\"",
            "hint: did you mean \"aap/3.0\"?",
            "endpoint.added.upstream: no upstream is named \"lakside\"",
            "hint: did you mean \"lakeside\"?",
        ]),
        ..RELOAD
    }),
    Act::Call(Step {
        title: "The endpoint that was new",
        rule: "The last good configuration serves on.",
        source: "Forecourt",
        path: "/added",
        ..ADMITTED
    }),
    Act::Restore,
];

const fn first_event() -> &'static str {
    match EVENTS {
        [first, ..] => first,
        [] => "",
    }
}
