//! Decides what is remembered of a request, and writes it down once: when its last byte is out, or
//! when its client is gone.
//!
//! A record is dropped exactly once, whatever happens to its request; dropping it counts and logs.
//! Until something else is said its outcome is `client_gone`: a request whose future is dropped
//! was abandoned by its client, unless a panic drops it. Must never hold a body or a credential.

mod made;
mod noticed;
mod remembered;

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode, Uri, Version};
use tokio::time::Instant;

pub(super) use made::Made;
use remembered::Remembered;

use super::client::Told;
use super::request_id::RequestId;
use super::trace::Trace;
use super::worker::Worker;
use crate::http1::{Known, RequestHead};
use crate::limit::{Announced, Caller, Seats};
use crate::observe::otlp::Recorded;
use crate::observe::{LOCAL, Line, Presence, Timestamp};
use crate::protocol::{Activation, Envelope, Noted, Outcome, Steps};
use crate::state::connection::Connection;
use crate::state::{Endpoint, Snapshot};
use crate::upstream::Place;

/// One request, from its head to its end.
#[derive(Debug)]
pub(super) struct Record {
    worker: Rc<Worker>,
    connection: Rc<Connection>,
    started: Instant,
    ts: Timestamp,
    generation: u64,
    config_hash: [u8; 8],
    version: Version,
    method: Method,
    uri: Uri,
    host: Option<Bytes>,
    user_agent: Option<Bytes>,
    /// What trusted proxies told of the client.
    told: Option<Rc<Told>>,
    /// The id sent upstream and back.
    pub(super) request_id: RequestId,
    /// Its place in a trace.
    pub(super) trace: Trace,
    endpoint: Option<Arc<Endpoint>>,
    pin: usize,
    caller: Option<Caller>,
    rpc: Remembered,
    supplied: Noted,
    fills_version: bool,
    fills_extensions: bool,
    /// When it went to the upstream.
    forwarded: Option<Instant>,
    /// How often, once answered.
    attempts: u8,
    reported: Steps,
    stripped_query: bool,
    why: Option<Cow<'static, str>>,
    /// Bytes of the request body.
    pub(super) bytes_in: u64,
    /// Bytes of the answer's body so far.
    pub(super) bytes_out: u64,
    upstream_took: Option<Duration>,
    status: Option<StatusCode>,
    answer: Option<Made>,
    announced: Option<Announced>,
    outcome: Outcome,
    in_flight: Presence,
    /// Its place at the upstream.
    place: Option<Place>,
    /// Its places among requests at once.
    seats: Option<Seats>,
    /// Who decided on quotas of which a store keeps some.
    limit_source: Option<&'static str>,
    /// How much the tightest quota has left.
    limit_remaining: Option<u32>,
}

impl Record {
    /// Begins a record when a request's head has been read.
    pub(super) fn begin(
        worker: &Rc<Worker>,
        connection: &Rc<Connection>,
        head: &RequestHead,
        snapshot: &Snapshot,
    ) -> Box<Self> {
        let (started, ts) = (Instant::now(), worker.now());
        connection.begin(started);
        Box::new(Self {
            started,
            ts,
            generation: snapshot.generation,
            config_hash: snapshot.effective.short,
            version: head.version,
            method: head.method.clone(),
            uri: head.uri.clone(),
            host: head.fields.keep_first(Known::Host),
            user_agent: head.fields.keep_first(Known::UserAgent),
            told: None,
            request_id: RequestId::of(&head.fields, || worker.identifier(ts)),
            trace: Trace::of(worker, &head.fields),
            endpoint: None,
            pin: 0,
            caller: None,
            rpc: Remembered::default(),
            supplied: Noted::NOTHING,
            fills_version: false,
            fills_extensions: false,
            forwarded: None,
            attempts: 1,
            reported: Steps::NONE,
            stripped_query: false,
            why: None,
            bytes_in: 0,
            bytes_out: 0,
            upstream_took: None,
            status: None,
            answer: None,
            announced: None,
            outcome: Outcome::ClientGone,
            in_flight: Presence::of(&worker.shared.metrics.requests_in_flight),
            place: None,
            seats: None,
            limit_source: None,
            limit_remaining: None,
            worker: Rc::clone(worker),
            connection: Rc::clone(connection),
        })
    }

    /// Whether only the head of an answer is asked for.
    pub(super) fn asks_head(&self) -> bool {
        self.method == Method::HEAD
    }

    /// Whether it is a JSON-RPC call.
    pub(super) fn is_a_call(&self) -> bool {
        self.method == Method::POST
    }

    /// Whether it went on its way to an upstream.
    pub(super) const fn was_forwarded(&self) -> bool {
        self.forwarded.is_some()
    }

    /// Which of the endpoint's contracts it is held to, as far as that was found out.
    pub(super) const fn pin(&self) -> usize {
        self.pin
    }

    /// The worker that serves it.
    pub(super) fn worker(&self) -> &Rc<Worker> {
        &self.worker
    }

    /// How many requests were being served when this one came, over all workers.
    pub(super) fn before(&self) -> usize {
        self.in_flight.before()
    }

    /// It has a place at its upstream until it has ended.
    pub(super) fn holds(&mut self, place: Option<Place>) {
        self.place = place;
    }

    /// It has places among requests at once until it has ended.
    pub(super) fn seated(&mut self, seats: Option<Seats>) {
        self.seats = seats;
    }

    /// Who decided on quotas of which a store keeps some.
    pub(super) fn decided(&mut self, by: &'static str) {
        self.limit_source = Some(by);
    }

    /// A trusted proxy told who the client is.
    pub(super) fn told(&mut self, told: Option<Rc<Told>>) {
        self.told = told;
    }

    /// The endpoint was found.
    pub(super) fn at(&mut self, endpoint: &Arc<Endpoint>) {
        self.endpoint = Some(Arc::clone(endpoint));
    }

    /// The endpoint, once found.
    pub(super) fn endpoint(&self) -> Option<&Arc<Endpoint>> {
        self.endpoint.as_ref()
    }

    /// The caller is known.
    pub(super) fn by(&mut self, caller: Caller) {
        self.caller = Some(caller);
    }

    /// The caller, once known.
    pub(super) fn caller(&self) -> Option<&Caller> {
        self.caller.as_ref()
    }

    /// The body was read as a JSON-RPC request.
    pub(super) fn called(&mut self, envelope: &Envelope<'_>) {
        let skill = envelope.skill();
        self.rpc = Remembered::of(
            envelope.method.as_bytes(),
            envelope.id.as_str().as_bytes(),
            skill.as_deref().unwrap_or_default().as_bytes(),
        );
    }

    /// One of several contracts was selected.
    pub(super) fn selected(&mut self, pin: usize) {
        self.pin = pin;
    }

    /// The headers were admitted.
    pub(super) fn activated(&mut self, activation: &Activation<'_>) {
        self.fills_version = activation.fills_version();
        self.fills_extensions = activation.fills_extensions();
        if let Some(endpoint) = &self.endpoint {
            if self.fills_version {
                endpoint.meters.filled_version();
            }
            if self.fills_extensions {
                endpoint.meters.filled_extensions();
            }
        }
    }

    /// The query lost parameters named like the A2A headers.
    pub(super) fn stripped_query(&mut self) {
        self.stripped_query = true;
        if let Some(endpoint) = &self.endpoint {
            endpoint.meters.stripped_query();
        }
    }

    /// Why the request ended as it did, for the log.
    pub(super) fn because(&mut self, why: impl Into<Cow<'static, str>>) {
        self.why = Some(why.into());
    }

    /// The request goes to the upstream now.
    pub(super) fn forwarding(&mut self) -> Instant {
        let now = Instant::now();
        self.forwarded = Some(now);
        now
    }

    /// The upstream's response head came after so long, to so many attempts.
    pub(super) fn answered(&mut self, took: Duration, attempts: u8) {
        self.upstream_took = Some(took);
        self.attempts = attempts;
        if let Some(endpoint) = &self.endpoint {
            endpoint.meters.answered(took);
        }
    }

    /// The answer will say this of the caller's quotas.
    pub(super) fn announces(&mut self, announced: Option<Announced>) {
        self.announced = announced;
    }

    /// What the answer says of the caller's quotas, to be written once.
    pub(super) fn take_announced(&mut self) -> Option<Announced> {
        self.announced.take()
    }

    /// The status that is sent.
    pub(super) fn sends(&mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// The gateway made the answer.
    pub(super) fn made(&mut self, made: Made) {
        self.answer = Some(made);
    }

    /// How the request ended, or will have ended if its answer gets through.
    pub(super) fn ends(&mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let now = Instant::now();
        self.connection.end(now);
        if thread::panicking() {
            // Nobody is left who could say so.
            self.outcome = Outcome::Internal;
        }
        let took = now.duration_since(self.started);
        let endpoint = self.endpoint.as_deref();
        endpoint.inspect(|endpoint| endpoint.note(self.outcome));
        let meters = endpoint.map_or(&self.worker.nowhere, |endpoint| &endpoint.meters);
        meters.ended(self.outcome, took);
        let recorded = self.trace.recorded();
        if let Some((call, ..)) = &recorded {
            meters.exemplify(took, call.trace, self.ts);
        }
        let shown = self.trace.shown();
        let ids = shown.map(|shown| (shown.spell_trace(), shown.spell_span()));

        let error_id = self
            .answer
            .as_ref()
            .and_then(|made| made.error_id)
            .map(|id| id.hyphenated().to_string());
        let caller = self.caller.as_ref().map(Caller::name);
        let normalized = match (self.fills_version, self.fills_extensions) {
            (false, false) => &[][..],
            (true, false) => &["a2a-version"],
            (false, true) => &["a2a-extensions"],
            (true, true) => &["a2a-version", "a2a-extensions"],
        };
        let [rpc_method, rpc_id, skill] = self.rpc.parts();
        let mut line = Line::new(self.ts, self.outcome);
        line.request_id = Some(self.request_id.as_bytes());
        if let Some((trace, span)) = &ids {
            line.trace_id = std::str::from_utf8(trace).ok();
            line.span_id = std::str::from_utf8(span).ok();
        }
        let told = self.told.as_ref().map(|told| &told.forwarded_for);
        let client = told.unwrap_or(&self.connection.forwarded_for);
        line.client_ip = client.to_str().ok();
        line.peer_ip = self.connection.via.as_deref();
        line.listener = Some(&self.connection.listener.name);
        if let Some(session) = self.connection.session() {
            line.tls_version = Some(session.version);
            line.sni = session.sni.as_deref();
        }
        line.protocol = Some(protocol(self.version));
        line.method = Some(self.method.as_str());
        line.host = self.host.as_deref();
        line.path = Some(self.uri.path());
        line.endpoint = endpoint.map(|endpoint| &*endpoint.name);
        line.contract = endpoint.map(|endpoint| &*endpoint.pin(self.pin).contract.name);
        line.caller = caller.as_deref();
        line.rpc_method = rpc_method;
        line.rpc_id = rpc_id;
        line.skill = skill;
        line.supplied = self.supplied;
        line.normalized = normalized;
        line.status = self.status.map(|status| status.as_u16());
        if let Some(made) = &self.answer {
            line.rpc_code = Some(made.code.into());
            line.error_id = error_id.as_deref();
            line.retry_after_ms = made.retry_after_ms;
            if let Some(shortage) = &made.shortage {
                line.quota =
                    endpoint.and_then(|endpoint| Some(endpoint.quotas.get(shortage.quota)?.name()));
                line.cost = Some(shortage.cost.get()).filter(|cost| *cost > 1);
                line.limit_source = Some(LOCAL);
            }
        }
        line.limit_source = self.limit_source.or(line.limit_source);
        line.limit_remaining = self.limit_remaining;
        line.reported = self.reported;
        line.stripped_query = self.stripped_query;
        line.why = self.why.as_deref();
        line.upstream = endpoint
            .filter(|_| self.forwarded.is_some())
            .map(|endpoint| &*endpoint.pin(self.pin).upstream.name);
        line.attempts = Some(self.attempts).filter(|attempts| *attempts != 1);
        line.bytes_in = self.bytes_in;
        line.bytes_out = self.bytes_out;
        line.duration = took;
        line.upstream_duration = self.upstream_took;
        let overhead = |at: Instant| at.duration_since(self.started);
        line.overhead = self.forwarded.map(overhead);
        line.user_agent = self.user_agent.as_deref();
        line.generation = self.generation;
        line.config_hash = self.config_hash;
        self.worker.pen.write(&line);
        if let (Some((call, parent, exchange)), Some(tracer)) = (recorded, &self.worker.tracer) {
            let exchange = self
                .forwarded
                .map(|at| (exchange, at.duration_since(self.started)));
            tracer.record(
                &line,
                &Recorded {
                    call,
                    parent,
                    exchange,
                },
            );
        }
        self.worker.ring.keep(&line);
    }
}

const fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        _ => "HTTP/1.1",
    }
}
