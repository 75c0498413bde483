//! What would become of a request, and why: the path of a request tried out, and told.
//!
//! | file | decides |
//! |---|---|
//! | `rehearse` | how a request is tried out: on the path itself, and held where it would leave |
//! | `step` | what the steps are called, in which order they stand, what they follow |
//! | `rules` | which key of the configuration decides at each |
//! | `quotas` | how the caller stands, before this call |
//! | `sent` | what became of each header line |
//! | `walked` | what is said of each step |
//! | `told` | what an explanation looks like |
//!
//! Everything is read off what the path did, so it cannot say anything else than happens. Nothing is
//! consumed: no quota, no counter, no line, no place, no connection to a dealer.

mod quotas;
mod rehearse;
mod rules;
mod sent;
mod step;
mod told;
mod walked;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::credential::{Knock, proven_by};
use super::{admit, client, strict};
use crate::http1::RequestHead;
use crate::limit::{Caller, Source, Subject, identify};
use crate::observe::{Decision, WallClock};
use crate::protocol::{Outcome, peek};
use crate::state::routes::Fit;
use crate::state::tls::Keyring;
use crate::state::twin::{apart, twin};
use crate::state::{Endpoint, Lines, Live, Readiness, Shared, Snapshot};
use rehearse::{Answered, Ending, Given, Rehearsal, Run};
use rules::Names;
pub use step::Stage;
pub use told::{Explanation, Recalled};

/// How many endpoints are named that were not chosen.
const OTHERS: usize = 5;

/// What a request is explained on.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'g> {
    /// What serves.
    pub snapshot: &'g Arc<Snapshot>,
    /// The buckets, and how many requests there are.
    pub shared: &'g Shared,
    /// The certificates and keys in force.
    pub keyring: &'g Keyring,
    /// Whether new calls are welcome.
    pub readiness: &'g Arc<Readiness>,
    /// The time of day.
    pub wall: &'g Arc<dyn WallClock>,
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// A request as it comes over HTTP/1.1, to the byte.
    pub request: Bytes,
    /// Who connects.
    pub client: IpAddr,
    /// At which listener; `None`: the first.
    pub listener: Option<Box<str>>,
}

/// Why there is no explanation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unasked {
    /// No listener has this name.
    #[error("there is no listener {0:?}")]
    NoSuchListener(Box<str>),
    /// A gateway would wait for more.
    #[error("the head of the request is not complete: it ends with an empty line")]
    Incomplete,
}

/// Says what would become of a request, and why.
///
/// Waits for stores that keep quotas, each as long as it is configured, and for nothing else.
///
/// # Errors
/// Why that cannot be said.
pub async fn explain(ground: &Ground<'_>, question: Question) -> Result<Explanation, Unasked> {
    let listeners = &ground.snapshot.settings.listeners;
    let listener = match question.listener {
        None => 0,
        Some(name) => listeners
            .iter()
            .position(|it| it.name == name)
            .ok_or(Unasked::NoSuchListener(name))?,
    };
    let at = (listener, question.client);
    let in_flight = ground.shared.metrics.requests_in_flight.get();
    let fresh = || Arc::new(apart(&ground.shared.clock, in_flight));
    let first = fresh();
    let (settings, generation) = (&ground.snapshot.settings, ground.snapshot.generation);
    let live = Live::new(twin(settings, generation, &first, ground.keyring));
    let on = |shared| Rehearsal::new(ground, &live, shared, at).ok_or(Unasked::Incomplete);

    // Once to learn who is asking, and where; then again with the quotas as they stand.
    let learnt = on(first)?;
    let run = learnt.run(&question.request).await;
    let run = run.ok_or(Unasked::Incomplete)?;
    let shared = fresh();
    let rehearsal = on(Arc::clone(&shared))?;
    let mut raw = BytesMut::from(&*question.request);
    let Ok(Some(head)) = rehearsal.head(&mut raw) else {
        return Ok(told_of(ground, &rehearsal, run, None, Vec::new()));
    };
    let body = Given::new(&head, raw).rest().freeze();
    let (run, quotas) = match (&run.caller, &run.endpoint) {
        (Some(caller), Some(endpoint)) => {
            let standings = stand(
                ground,
                &rehearsal,
                (caller, endpoint),
                &shared,
                &head,
                &body,
            );
            let quotas = standings.await;
            let again = rehearsal.run(&question.request).await;
            (again.unwrap_or(run), quotas)
        }
        _ => (run, Vec::new()),
    };
    Ok(told_of(
        ground,
        &rehearsal,
        run,
        Some((&head, &body)),
        quotas,
    ))
}

/// Has the quotas of a rehearsal stand as they do, and tells how.
async fn stand(
    ground: &Ground<'_>,
    rehearsal: &Rehearsal,
    (caller, endpoint): (&Caller, &Endpoint),
    shared: &Shared,
    head: &RequestHead,
    body: &Bytes,
) -> Vec<told::Quota> {
    let fields = &head.fields;
    let bare = Subject::new(caller, address(rehearsal, head));
    // Whose body cannot be read is charged all the same.
    let unread = quotas::look(ground, endpoint, &bare, caller, fields).await;
    quotas::resemble(shared, endpoint, &bare, &unread);
    let Ok(envelope) = peek(body) else {
        return quotas::told(ground, endpoint, &bare, Some(caller), &unread);
    };
    let words = admit::words(&envelope);
    let who = bare.calling(words.call(&envelope));
    let stood = quotas::look(ground, endpoint, &who, caller, fields).await;
    quotas::resemble(shared, endpoint, &who, &stood);
    quotas::told(ground, endpoint, &who, Some(caller), &stood)
}

/// The client's address, whoever tells.
fn address(rehearsal: &Rehearsal, head: &RequestHead) -> IpAddr {
    let connection = &rehearsal.connection;
    let told = client::told(connection, &head.fields);
    told.map_or(connection.client(), |told| told.address)
}

fn told_of(
    ground: &Ground<'_>,
    rehearsal: &Rehearsal,
    run: Run,
    read: Option<(&RequestHead, &Bytes)>,
    quotas: Vec<told::Quota>,
) -> Explanation {
    let snapshot = &**ground.snapshot;
    let lines = &snapshot.key_lines();
    let head = read.map(|(head, _)| head);
    let caller = caller(rehearsal, &run, head, lines);
    let decision = run.decision.as_ref();
    let contract = decision.and_then(|it| it.contract.as_deref());
    let envelope = read.and_then(|(_, body)| peek(body).ok());
    let steps = walked::steps(&walked::Walked {
        snapshot,
        lines,
        rehearsal,
        run: &run,
        head,
        caller: caller.as_ref(),
        quotas: &quotas,
    });
    let forward = match (&run.ending, head, &run.endpoint) {
        (Ending::Sent(sent), Some(head), Some(endpoint)) => Some(sent::told(
            sent,
            &head.fields,
            head.uri.query(),
            lines,
            (&endpoint.name, contract.unwrap_or_default()),
        )),
        _ => None,
    };
    let (verdict, why) = match &run.ending {
        Ending::Unreadable(bad, _) => ("refuse", bad.to_string()),
        Ending::Probe(_) => (
            "probe",
            "a load balancer's probe, which is no request".into(),
        ),
        Ending::Stopped(_, why, _) => ("refuse", why.trim_end_matches('.').to_owned()),
        Ending::Sent(sent) => {
            let to = &sent.upstream.name;
            ("forward", format!("it would be sent to the upstream {to}"))
        }
    };
    Explanation {
        verdict,
        why,
        outcome: match &run.ending {
            Ending::Stopped(..) => decision.map(|it| it.outcome.label()),
            Ending::Unreadable(..) => Some(Outcome::BadHttp.label()),
            Ending::Probe(_) | Ending::Sent(_) => None,
        },
        generation: snapshot.generation,
        listener: rehearsal.connection.listener.name.to_string(),
        client: who_connects(rehearsal, head, lines),
        request: read.map(|(head, body)| asked(head, body)),
        route: head.and_then(|head| route(head, snapshot, contract)),
        caller,
        call: envelope.map(|envelope| told::Call {
            method: envelope.method.to_string(),
            id: envelope.id.as_str().to_owned(),
            skill: envelope.skill().map(|it| it.into_owned()),
        }),
        quotas,
        steps,
        forward,
        answer: match run.ending {
            Ending::Unreadable(_, answered)
            | Ending::Probe(answered)
            | Ending::Stopped(_, _, answered) => Some(answer(answered)),
            Ending::Sent(_) => None,
        },
    }
}

fn answer(answered: Answered) -> told::Answer {
    told::Answer {
        head: answered.head,
        body: String::from_utf8_lossy(&answered.body).into_owned(),
    }
}

fn asked(head: &RequestHead, body: &Bytes) -> told::Asked {
    let target = strict::inspect(head).ok();
    let host = target.and_then(|it| it.host);
    told::Asked {
        method: head.method.to_string(),
        host: host.map(|it| it.into_owned()),
        path: head.uri.path().to_owned(),
        body: body.len(),
    }
}

fn who_connects(rehearsal: &Rehearsal, head: Option<&RequestHead>, lines: &Lines) -> told::Client {
    let connection = &rehearsal.connection;
    let name = &*connection.listener.name;
    let peer = connection.client();
    let address = head.map_or(peer, |head| address(rehearsal, head));
    let is_told = connection.is_told;
    let rules = [
        lines.rule(&[&["listener", name, "trusted_proxies"]]),
        lines.rule(&[&["listener", name, "client_header"]]),
    ];
    told::Client {
        address,
        told_by: match is_told && address != peer {
            true => connection.listener.client_header.name(),
            false => "the connection",
        },
        peer,
        rules: if is_told {
            rules.into_iter().flatten().collect()
        } else {
            Vec::new()
        },
    }
}

/// Where a host and path lead, and what came next.
fn route(head: &RequestHead, snapshot: &Snapshot, contract: Option<&str>) -> Option<told::Route> {
    let target = strict::inspect(head).ok()?;
    let lines = snapshot.key_lines();
    let mut weighed = snapshot.routes.weigh(target.host.as_deref(), target.path);
    weighed.sort_by(|(one, a), (other, b)| (one, &a.name).cmp(&(other, &b.name)));
    let configured = |name: &str| {
        let endpoints = &snapshot.settings.endpoints;
        endpoints.iter().find(|it| *it.name == *name)
    };
    let mut endpoint = None;
    let mut others = Vec::new();
    for (fit, found) in weighed {
        let name = &*found.name;
        let host = configured(name).map(|it| it.host.to_string());
        let host = host.unwrap_or_default();
        if fit == Fit::Taken {
            let keys = ["path", "host"].map(|key| ["endpoint", name, key]);
            let rules = keys.iter().filter_map(|key| lines.rule(&[&key[..]]));
            endpoint = Some(told::Endpoint {
                name: name.to_owned(),
                host,
                path: found.path.to_string(),
                contract: contract.unwrap_or(&found.first.contract.name).to_owned(),
                rules: rules.collect(),
            });
        } else if others.len() < OTHERS {
            others.push(told::Other {
                name: name.to_owned(),
                host,
                path: found.path.to_string(),
                why: match fit {
                    Fit::Taken => "it is taken",
                    Fit::ShorterPath => "its path fits less far",
                    Fit::LessExactHost => "its host is less exact",
                    Fit::OtherPath => "its path is another one",
                    Fit::OtherHost => "its host is another one",
                },
            });
        }
    }
    Some(told::Route { endpoint, others })
}

/// Who is asking, and by what that is known.
fn caller(
    rehearsal: &Rehearsal,
    run: &Run,
    head: Option<&RequestHead>,
    lines: &Lines,
) -> Option<told::Caller> {
    let (caller, head) = (run.caller.as_ref()?, head?);
    let snapshot = &*rehearsal.snapshot;
    let settings = &snapshot.settings;
    let plan = caller.plan().and_then(|place| settings.plans.get(place));
    let (by, key) = by_what(rehearsal, run, caller, head);
    let key: Vec<&str> = key.iter().map(String::as_str).collect();
    Some(told::Caller {
        name: caller.to_string(),
        by,
        plan: plan.map(|it| it.name.to_string()),
        rules: lines.rule(&[&key]).into_iter().collect(),
    })
}

fn by_what(
    rehearsal: &Rehearsal,
    run: &Run,
    caller: &Caller,
    head: &RequestHead,
) -> (String, Vec<String>) {
    let snapshot = &*rehearsal.snapshot;
    let fields = &head.fields;
    let gate = run.endpoint.as_ref().and_then(|it| it.gate.as_deref());
    if let Some(gate) = gate {
        let (worker, connection) = (&rehearsal.worker, &rehearsal.connection);
        let knock = Knock::at(gate, worker, snapshot, connection, fields);
        if let Some((by, key)) = proven_by(knock) {
            return (by, key);
        }
    }
    let identifies = || vec!["callers".to_owned(), "identify".to_owned()];
    let client = address(rehearsal, head);
    let sources = snapshot.callers.iter();
    let source = sources.clone().find(|source| {
        let alone = std::slice::from_ref(*source);
        identify(alone, fields, client) == *caller
    });
    match source {
        Some(Source::Header(name)) => (format!("header:{name}"), identifies()),
        Some(Source::Address) => ("address".to_owned(), identifies()),
        None => ("address: nothing proves it".to_owned(), identifies()),
    }
}

/// Says of a decision that was taken before what decided, by the configuration of its time where that
/// is still known.
#[must_use]
pub fn recall(decision: &Decision, lines: Option<&Lines>) -> Recalled {
    let stage = Stage::of_decision(decision);
    let names = Names {
        endpoint: decision.endpoint.as_deref(),
        contract: decision.contract.as_deref(),
        quota: decision.quota.as_deref(),
        upstream: decision.upstream.as_deref(),
        is_forbidden: decision.outcome == Outcome::PermissionDenied,
        proven: decision
            .caller
            .as_deref()
            .filter(|_| decision.outcome == Outcome::PermissionDenied)
            .map(|caller| match caller.split_once('/') {
                Some((issuer, _)) => ("issuer", issuer),
                None => ("caller", caller),
            }),
        ..Names::default()
    };
    let rules = match (stage, lines) {
        (Some(stage), Some(lines)) => rules::of(stage, &names, lines),
        _ => Vec::new(),
    };
    Recalled::at(stage, rules)
}
