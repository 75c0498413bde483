//! The whole path of a request, top to bottom. Read this file first.
//!
//! 0. A load balancer's probe is answered (`probe`).
//! 1. The live snapshot is loaded once; nothing below looks again. Who the client is, a trusted
//!    proxy may tell (`client`).
//! 2. The request must be HTTP with one meaning (`strict`).
//! 3. Host and path find the endpoint. None: plain 404.
//! 4. A POST is a JSON-RPC call. A GET or HEAD of an agent card, and OPTIONS, are passed on
//!    without policy. Anything else: 405.
//! 5. Who is asking (`credential`), content type (`media`), then the body (`intake`), then its envelope.
//! 6. Quota, headers, method (`admit`).
//! 7. The same bytes go out with absent headers filled in (`forward`).
//! 8. The answer streams back untouched (`reply`).
//!
//! Whatever stops a request on the way goes to `respond`, a panic of ours included (`panicked`). Must
//! never look inside the configuration, and never answer by itself.

use std::error::Error;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Method, Version};
use http_body::Body as HttpBody;

use super::body::Body;
use super::client::Told;
use super::credential::{self, Keeping, Knock};
use super::forward::{Head, Place};
use super::intake::{Allowance, Held, Unread, read};
use super::onward::{Onward, send};
use super::panicked::{self, guarded};
use super::record::Record;
use super::reply::Passed;
use super::respond::{Refused, Stop, give_up, respond};
use super::worker::Worker;
use super::{admit, client, fault, media, probe, reply, stored, strict};
use crate::http1::{Answer, RequestHead};
use crate::limit::Subject;
use crate::protocol::{CARDS, Refusal, peek};
use crate::state::connection::Connection;
use crate::state::{Endpoint, Snapshot};

/// How much of a body is read for the id of a call that is refused by its credential, in bytes.
const READ_FOR_ID: u64 = 64 << 10;

/// Serves one request, whatever happens to it.
pub fn handle<'w, B>(
    worker: &'w Rc<Worker>,
    connection: &'w Rc<Connection>,
    head: RequestHead,
    body: B,
) -> impl Future<Output = Answer<Body>> + use<'w, B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    guarded(serve(worker, connection, head, body)).map(|served| {
        served.unwrap_or_else(|_| {
            panicked::note(worker, None);
            give_up()
        })
    })
}

async fn serve<B>(
    worker: &Rc<Worker>,
    connection: &Rc<Connection>,
    head: RequestHead,
    body: B,
) -> Answer<Body>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    if let Some(answer) = probe::answer(worker, connection, &head, &body) {
        return answer;
    }
    let snapshot = worker.snapshot();
    let mut record = Record::begin(worker, connection, &head, &snapshot);
    let onward = &worker.pools;
    let mut held = None;
    let kept = (&mut held, &mut *record);
    let passed = pass(worker, connection, &snapshot, onward, head, body, kept);
    let passed = guarded(passed).await;
    match passed {
        Ok(Ok(passed)) => reply::relay(passed, record),
        Ok(Err(stop)) => respond(stop, record),
        Err(_) => respond(panicked::stop(held.as_ref(), &mut record), record),
    }
}

/// Routes one request and takes it as far as it goes; `onward` is where it may go on. What was read of
/// it, and what is remembered, is kept outside.
pub(super) async fn pass<'s, B, O: Onward>(
    worker: &Worker,
    connection: &Connection,
    snapshot: &'s Snapshot,
    onward: &O,
    head: RequestHead,
    body: B,
    (held, record): (&mut Option<Held>, &mut Record),
) -> Result<Passed<'s>, Stop>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let told = client::told(connection, &head.fields);
    record.told(told.clone());
    let told = told.as_deref();
    let limits = &snapshot.settings.limits;
    let is_marked = head.version == Version::HTTP_2;
    if is_marked && head.fields.len() > limits.header_count {
        return Err(strict::TOO_MANY_LINES.into());
    }
    let target = strict::inspect(&head)?;
    let host = target.host.as_deref();
    let errand = errand(snapshot, &head.method, host, target.path).ok_or(Stop::NoRoute)?;
    let query = target.query;
    match errand {
        Errand::Call(endpoint, place) => {
            record.at(endpoint);
            record.supplied(&head.fields);
            let call = Call {
                worker,
                connection,
                onward,
                told,
                snapshot,
                endpoint,
                head: &head,
                place,
                query,
                is_marked,
            };
            call.serve(body, held, record).await
        }
        Errand::Relay(endpoint, place) => {
            record.at(endpoint);
            admit::load(limits.in_flight_requests, record).map_err(Stop::RelayFailed)?;
            let gate = endpoint.gate.as_deref();
            let at = |gate| Knock::at(gate, worker, snapshot, connection, &head.fields);
            let credentials = gate.map(|gate| Keeping::of_any(at(gate)));
            let head = Head {
                method: &head.method,
                fields: &head.fields,
                place,
                query,
                told,
                credentials,
                trace: record.trace,
                activation: None,
            };
            let upstream = &endpoint.first.upstream;
            match send(onward, connection, upstream, &head, &Bytes::new(), record).await {
                Ok(reply) => Ok(Passed {
                    reply,
                    activation: None,
                    endpoint,
                    upstream,
                }),
                Err(fault) => Err(Stop::RelayFailed(fault::refusal(&fault, true))),
            }
        }
        Errand::NotServed(endpoint) => {
            record.at(endpoint);
            Err(Stop::MethodNotAllowed)
        }
    }
}

/// What a request is about, once its endpoint is known.
enum Errand<'s, 'p> {
    /// A JSON-RPC call: the policy applies.
    Call(&'s Arc<Endpoint>, Place<'p>),
    /// An agent card or a preflight: passed on without policy.
    Relay(&'s Arc<Endpoint>, Place<'p>),
    /// A method that is not served at this endpoint.
    NotServed(&'s Arc<Endpoint>),
}

/// Finds the endpoint by host and path, and what is asked of it. `None`: nothing is served there.
fn errand<'s, 'p>(
    snapshot: &'s Snapshot,
    method: &Method,
    host: Option<&str>,
    path: &'p str,
) -> Option<Errand<'s, 'p>> {
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if let Some(found) = snapshot.routes.find(host, path) {
        let place = Place::Below(found.rest);
        return Some(match *method {
            Method::POST => Errand::Call(found.endpoint, place),
            Method::OPTIONS => Errand::Relay(found.endpoint, place),
            _ if reads && CARDS.contains(&found.rest) => Errand::Relay(found.endpoint, place),
            _ => Errand::NotServed(found.endpoint),
        });
    }
    // A card at the host's root stands for the one dealer behind this host.
    let is_card = reads && CARDS.contains(&path);
    let dealer = snapshot.routes.only_dealer_at(host).filter(|_| is_card)?;
    Some(Errand::Relay(dealer, Place::Root(path)))
}

/// A POST at an endpoint: a JSON-RPC call.
struct Call<'s, 'r, O> {
    worker: &'r Worker,
    connection: &'r Connection,
    onward: &'r O,
    told: Option<&'r Told>,
    snapshot: &'s Snapshot,
    endpoint: &'s Endpoint,
    head: &'r RequestHead,
    place: Place<'r>,
    query: Option<&'r str>,
    /// Whether its body says where it ends.
    is_marked: bool,
}

impl<'s, O: Onward> Call<'s, '_, O> {
    async fn serve<B>(
        self,
        body: B,
        held: &mut Option<Held>,
        record: &mut Record,
    ) -> Result<Passed<'s>, Stop>
    where
        B: HttpBody<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let endpoint = self.endpoint;
        let fields = &self.head.fields;
        let told = self.told.map(|told| told.address);
        let client = told.unwrap_or_else(|| self.connection.client());
        let gate = endpoint.gate.as_deref();
        let asker = match gate {
            None => credential::identified(self.snapshot, fields, client)?,
            Some(gate) => {
                let knock = Knock::at(gate, self.worker, self.snapshot, self.connection, fields);
                credential::examine(knock, client, record).await?
            }
        };
        let credentials = gate.map(|gate| Keeping::of(gate, self.snapshot, asker.by));
        let subject = Subject::new(&asker.caller, client);
        record.by(asker.caller);
        if let Some(refusal) = asker.refusal {
            // In memory of its own: whoever goes on does not pay for it.
            let stop = Box::pin(self.turn_away(refusal, body, record)).await;
            stored::charge(endpoint, &subject, fields, record).await;
            return Err(stop);
        }

        let held = match self.body(body).await {
            Ok(read) => held.insert(read),
            Err(stop) => {
                stored::charge(endpoint, &subject, fields, record).await;
                return Err(stop);
            }
        };
        record.bytes_in = held.len();
        let envelope = match peek(&held.bytes) {
            Ok(envelope) => envelope,
            Err(unreadable) => {
                stored::charge(endpoint, &subject, fields, record).await;
                return Err(Refused::read(unreadable.refusal, 0, unreadable.id).into());
            }
        };
        record.called(&envelope);
        admit::load(self.snapshot.settings.limits.in_flight_requests, record)
            .map_err(|shed| Refused::read(shed, 0, envelope.id))?;
        stored::quota(endpoint, &subject, fields, &envelope, record).await?;
        let (pin, activation) = admit::contract(endpoint, fields, &envelope, record)?;

        let upstream = &endpoint.pin(pin).upstream;
        let head = Head {
            method: &Method::POST,
            fields,
            place: self.place,
            query: self.query,
            told: self.told,
            credentials,
            trace: record.trace,
            activation: Some(activation),
        };
        let sent = send(
            self.onward,
            self.connection,
            upstream,
            &head,
            &held.bytes,
            record,
        );
        match sent.await {
            Ok(reply) => Ok(Passed {
                reply,
                activation: Some(activation),
                endpoint,
                upstream,
            }),
            Err(fault) => {
                let refusal = fault::refusal(&fault, envelope.is_safe_to_repeat());
                Err(Refused::read(refusal, pin, envelope.id).into())
            }
        }
    }

    /// Reads the body of a call that says it is JSON.
    async fn body<B>(&self, body: B) -> Result<Held, Stop>
    where
        B: HttpBody<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        media::speaks_json(&self.head.fields)
            .map_err(|media| Refused::unread(Refusal::ContentTypeNotSupported(media)))?;
        let limit = self.snapshot.settings.limits.body;
        let refusal = match self.read(body, limit).await {
            Ok(held) => return Ok(held),
            Err(Unread::TooLarge) => Refusal::BodyTooLarge { limit },
            Err(Unread::TooSlow) => Refusal::BodyTimeout,
            Err(Unread::NoRoom) => fault::shed(),
            Err(Unread::Cut) => return Err(Stop::BrokenBody),
            Err(Unread::Broken(error)) => {
                tracing::debug!(%error, "request body broken");
                return Err(Stop::BrokenBody);
            }
        };
        Err(Refused::unread(refusal).into())
    }

    /// Reads a body of at most so many bytes.
    async fn read<B>(&self, body: B, limit: u64) -> Result<Held, Unread>
    where
        B: HttpBody<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let limits = &self.snapshot.settings.limits;
        let allowance = Allowance {
            body: limit,
            in_flight: limits.in_flight_bytes,
            time: limits.body_timeout,
            is_marked: self.is_marked,
        };
        let announced = self.head.framing.announced();
        read(body, announced, &self.worker.budget, allowance).await
    }

    /// Refuses a caller whose credential was judged. The body is read for the id alone, as far as
    /// that is cheap; where it is not read, nothing is known of the call.
    async fn turn_away<B>(&self, refusal: Refusal, body: B, record: &mut Record) -> Stop
    where
        B: HttpBody<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        if let Err(media) = media::speaks_json(&self.head.fields) {
            return Refused::unread(Refusal::ContentTypeNotSupported(media)).into();
        }
        let limit = self.snapshot.settings.limits.body.min(READ_FOR_ID);
        let held = match self.read(body, limit).await {
            Ok(held) => held,
            Err(Unread::Cut | Unread::Broken(_)) => return Stop::BrokenBody,
            Err(Unread::TooLarge | Unread::TooSlow | Unread::NoRoom) => {
                return Refused::unread(refusal).into();
            }
        };
        record.bytes_in = held.len();
        let id = match peek(&held.bytes) {
            Ok(envelope) => {
                record.called(&envelope);
                envelope.id
            }
            Err(unreadable) => unreadable.id,
        };
        Refused::read(refusal, 0, id).into()
    }
}
