//! Decides what an explanation looks like. Names of things, and never a header's value but those that
//! the gateway made and those of the two A2A headers.

use std::net::IpAddr;

use serde::Serialize;

use super::step::Stage;
use crate::state::Rule;

/// What would become of a request, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// `forward`, `refuse`, or `probe`: a load balancer's question.
    pub verdict: &'static str,
    /// In one sentence, without a full stop.
    pub why: String,
    /// How it would end, as a label; `None`: as the dealer says.
    pub outcome: Option<&'static str>,
    /// The configuration that decides.
    pub generation: u64,
    /// What it was asked of.
    pub listener: String,
    /// Who the client is.
    pub client: Client,
    /// What the head asks for; `None`: it is none.
    pub request: Option<Asked>,
    /// Where it leads.
    pub route: Option<Route>,
    /// Who is asking, where that was looked at.
    pub caller: Option<Caller>,
    /// What its body asks for, where that could be read.
    pub call: Option<Call>,
    /// Each quota of the endpoint.
    pub quotas: Vec<Quota>,
    /// Each step, in the order of admission.
    pub steps: Vec<Step>,
    /// What the dealer would be sent.
    pub forward: Option<Forward>,
    /// What the gateway would answer, to the byte.
    pub answer: Option<Answer>,
}

/// Who the client is, and who says so.
#[derive(Clone, Debug, Serialize)]
pub struct Client {
    /// The address.
    pub address: IpAddr,
    /// `the connection`, or the header that a trusted proxy filled in.
    pub told_by: &'static str,
    /// Who connects.
    pub peer: IpAddr,
    /// What makes it trusted.
    pub rules: Vec<Rule>,
}

/// What a head asks for. No query: it may carry keys.
#[derive(Clone, Debug, Serialize)]
pub struct Asked {
    /// The HTTP method.
    pub method: String,
    /// Lower-case, without port.
    pub host: Option<String>,
    /// The path.
    pub path: String,
    /// Bytes of the body.
    pub body: usize,
}

/// Where a host and path lead.
#[derive(Clone, Debug, Serialize)]
pub struct Route {
    /// The endpoint; `None`: nothing is served there.
    pub endpoint: Option<Endpoint>,
    /// Those that come next, and why they are not it; the first few.
    pub others: Vec<Other>,
}

/// The endpoint that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Endpoint {
    /// Its name.
    pub name: String,
    /// Its host, or `any host`.
    pub host: String,
    /// Its path.
    pub path: String,
    /// The contract that spells its refusals, or was selected.
    pub contract: String,
    /// Where that stands.
    pub rules: Vec<Rule>,
}

/// An endpoint that was not chosen.
#[derive(Clone, Debug, Serialize)]
pub struct Other {
    /// Its name.
    pub name: String,
    /// Its host, or `any host`.
    pub host: String,
    /// Its path.
    pub path: String,
    /// Why not.
    pub why: &'static str,
}

/// Who is asking.
#[derive(Clone, Debug, Serialize)]
pub struct Caller {
    /// As in the access log.
    pub name: String,
    /// By what: never the credential itself.
    pub by: String,
    /// The plan, where there is one.
    pub plan: Option<String>,
    /// What says so.
    pub rules: Vec<Rule>,
}

/// What a body asks for.
#[derive(Clone, Debug, Serialize)]
pub struct Call {
    /// The JSON-RPC method.
    pub method: String,
    /// The id, as it stood.
    pub id: String,
    /// The AAP skill.
    pub skill: Option<String>,
}

/// How the caller stands with a quota, before this call.
#[derive(Clone, Debug, Serialize)]
pub struct Quota {
    /// Its name.
    pub name: String,
    /// `local`, or the store that keeps it.
    pub kept_in: String,
    /// What came of asking the store.
    pub store_error: Option<&'static str>,
    /// Whether it looks at this call.
    pub looks_at_it: bool,
    /// How many there may be.
    pub limit: u32,
    /// How many there may still be.
    pub remaining: u32,
    /// What this call counts.
    pub cost: u32,
    /// Whether it would let this call through.
    pub admits: bool,
    /// If not, ms until it would.
    pub retry_after_ms: Option<u64>,
    /// What says so.
    pub rules: Vec<Rule>,
}

/// One step.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Its name.
    pub step: &'static str,
    /// `pass`, `refuse`, `report` or `not reached`.
    pub verdict: &'static str,
    /// In a few words.
    pub why: String,
    /// What decides: the first of them most.
    pub rules: Vec<Rule>,
    /// What it follows.
    pub section: &'static str,
}

/// What the dealer would be sent.
#[derive(Clone, Debug, Serialize)]
pub struct Forward {
    /// The upstream's name.
    pub upstream: String,
    /// The method.
    pub method: String,
    /// Where, without the query.
    pub url: String,
    /// `none`, `as it came`, or `without parameters named like the A2A headers`.
    pub query: &'static str,
    /// Each header line.
    pub headers: Vec<Header>,
    /// Bytes of the body, which are the caller's.
    pub body: usize,
    /// Where the upstream stands.
    pub rules: Vec<Rule>,
}

/// A header line on its way to the dealer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// `kept`, `added`, `replaced`, `removed`, or `set` by the operator.
    pub change: &'static str,
    /// Its value where that is told, `***` where it is the operator's.
    pub value: Option<String>,
    /// Why.
    pub why: &'static str,
}

/// What the gateway would answer. `head` and `body`, one after the other, are the bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Status line and headers, with the empty line.
    pub head: String,
    /// The body.
    pub body: String,
}

/// What is known of a decision that was taken before.
#[derive(Clone, Debug, Serialize)]
pub struct Recalled {
    /// Where it stopped; `None`: nowhere here.
    pub step: Option<&'static str>,
    /// What decided, by the configuration of its time.
    pub rules: Vec<Rule>,
    /// What that follows.
    pub section: Option<&'static str>,
}

impl Recalled {
    pub(super) fn at(stage: Option<Stage>, rules: Vec<Rule>) -> Self {
        Self {
            step: stage.map(Stage::name),
            rules,
            section: stage.map(Stage::section),
        }
    }
}
