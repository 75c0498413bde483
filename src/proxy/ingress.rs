//! The whole path of a request, top to bottom. Read this file first.
//!
//! 0. A load balancer's probe is answered (`probe`).
//! 1. The live snapshot is loaded once; nothing below looks again. Who the client is, a trusted
//!    proxy may tell (`client`).
//! 2. The request must be HTTP with one meaning (`strict`).
//! 3. Host and path find the endpoint. None: plain 404.
//! 4. A POST is a JSON-RPC call. A GET or HEAD of an agent card, and OPTIONS, are passed on
//!    without policy. Anything else: 405.
//! 5. Content type, then the body (`intake`), then its envelope.
//! 6. Quota, headers, method (`admit`).
//! 7. The same bytes go out with absent headers filled in (`forward`).
//! 8. The answer streams back untouched (`reply`).
//!
//! Whatever stops a request on the way goes to `respond`. Must never look inside the
//! configuration, and never answer by itself.

use std::error::Error;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, Response, Version, request};
use http_body::Body as HttpBody;

use super::body::Body;
use super::client::Told;
use super::forward::{Head, Outgoing, Place, X_REQUEST_ID, target};
use super::intake::{Allowance, Held, Unread, read};
use super::record::Record;
use super::reply::Passed;
use super::respond::{Refused, Stop, respond};
use super::worker::Worker;
use super::{admit, client, fault, http2, probe, reply, strict};
use crate::limit::{Subject, identify, repeated};
use crate::protocol::refusal::Media;
use crate::protocol::{CARDS, Refusal, peek};
use crate::state::connection::Connection;
use crate::state::{Endpoint, Snapshot};
use crate::upstream::{self, Fault, Reply, Upstream};

/// Serves one request.
pub async fn handle<B>(
    worker: &Rc<Worker>,
    connection: &Rc<Connection>,
    request: Request<B>,
) -> Response<Body>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (mut parts, body) = request.into_parts();
    if parts.version == Version::HTTP_2 {
        http2::translate(&mut parts);
    }
    if let Some(answer) = probe::answer(worker, connection, &parts, &body) {
        return answer;
    }
    let snapshot = worker.snapshot();
    let request_id = request_id(&parts.headers, worker);
    let mut record = Record::begin(worker, connection, &parts, request_id, snapshot.generation);
    let passed = pass(worker, connection, &snapshot, parts, body, &mut record).await;
    match passed {
        Ok(passed) => reply::relay(passed, record),
        Err(stop) => respond(stop, record),
    }
}

/// Routes one request and takes it as far as it goes.
async fn pass<'s, B>(
    worker: &Worker,
    connection: &Connection,
    snapshot: &'s Snapshot,
    parts: request::Parts,
    body: B,
    record: &mut Record,
) -> Result<Passed<'s>, Stop>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let request::Parts {
        method,
        uri,
        version,
        headers,
        ..
    } = parts;
    let head = strict::Head {
        method: &method,
        version,
        uri: &uri,
        headers: &headers,
    };
    let told = client::told(connection, &headers);
    record.told(told.clone());
    let told = told.as_deref();
    let framing = match version {
        Version::HTTP_2 => http2::framing(&head, snapshot.settings.limits.header_count)?,
        _ => connection.framing(),
    };
    let target = strict::inspect(&head, framing)?;
    let host = target.host.as_deref();
    let errand = errand(snapshot, &method, host, target.path).ok_or(Stop::NoRoute)?;
    let query = target.query;
    match errand {
        Errand::Call(endpoint, place) => {
            record.at(endpoint);
            let call = Call {
                worker,
                connection,
                told,
                snapshot,
                endpoint,
                place,
                query,
                is_marked: version == Version::HTTP_2,
            };
            call.serve(headers, body, record).await
        }
        Errand::Relay(endpoint, place) => {
            record.at(endpoint);
            admit::load(snapshot.settings.limits.in_flight_requests, record)
                .map_err(Stop::RelayFailed)?;
            let head = Head {
                method: &method,
                headers: &headers,
                place,
                query,
                told,
                activation: None,
            };
            let upstream = &endpoint.first.upstream;
            match send(worker, connection, upstream, &head, &Bytes::new(), record).await {
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
struct Call<'s, 'r> {
    worker: &'r Worker,
    connection: &'r Connection,
    told: Option<&'r Told>,
    snapshot: &'s Snapshot,
    endpoint: &'s Endpoint,
    place: Place<'r>,
    query: Option<&'r str>,
    /// Whether its body says where it ends.
    is_marked: bool,
}

impl<'s> Call<'s, '_> {
    async fn serve<B>(
        self,
        headers: HeaderMap,
        body: B,
        record: &mut Record,
    ) -> Result<Passed<'s>, Stop>
    where
        B: HttpBody<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let endpoint = self.endpoint;
        let told = self.told.map(|told| told.address);
        let client = told.unwrap_or_else(|| self.connection.client());
        if repeated(&self.snapshot.callers, &headers).is_some() {
            return Err(strict::REPEATED_CALLER.into());
        }
        let caller = identify(&self.snapshot.callers, &headers, client);
        let subject = Subject::new(&caller, client);
        record.by(caller);

        let held = match self.body(&headers, body).await {
            Ok(held) => held,
            Err(stop) => {
                admit::charge(endpoint, &subject, record);
                return Err(stop);
            }
        };
        record.bytes_in = held.len();
        let envelope = match peek(&held.bytes) {
            Ok(envelope) => envelope,
            Err(unreadable) => {
                admit::charge(endpoint, &subject, record);
                return Err(Refused::read(unreadable.refusal, 0, unreadable.id).into());
            }
        };
        record.called(&envelope);
        admit::load(self.snapshot.settings.limits.in_flight_requests, record)
            .map_err(|shed| Refused::read(shed, 0, envelope.id))?;
        admit::quota(endpoint, &subject, &envelope, record)?;
        let (pin, activation) = admit::contract(endpoint, &headers, &envelope, record)?;

        let upstream = &endpoint.pin(pin).upstream;
        let head = Head {
            method: &Method::POST,
            headers: &headers,
            place: self.place,
            query: self.query,
            told: self.told,
            activation: Some(activation),
        };
        let sent = send(
            self.worker,
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
    async fn body<B>(&self, headers: &HeaderMap, body: B) -> Result<Held, Stop>
    where
        B: HttpBody<Data = Bytes> + Unpin,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        speaks_json(headers)
            .map_err(|media| Refused::unread(Refusal::ContentTypeNotSupported(media)))?;
        let limits = &self.snapshot.settings.limits;
        let allowance = Allowance {
            body: limits.body,
            in_flight: limits.in_flight_bytes,
            time: limits.body_timeout,
            is_marked: self.is_marked,
        };
        let refusal = match read(body, headers, &self.worker.budget, allowance).await {
            Ok(held) => return Ok(held),
            Err(Unread::TooLarge) => Refusal::BodyTooLarge { limit: limits.body },
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
}

/// Sends a request and waits for the head of its answer.
async fn send(
    worker: &Worker,
    connection: &Connection,
    upstream: &Arc<Upstream>,
    head: &Head<'_>,
    body: &Bytes,
    record: &mut Record,
) -> Result<Reply, Fault> {
    let target = target(head, upstream);
    if target.is_stripped {
        record.stripped_query();
    }
    let since = record.forwarding();
    let request_id = record.request_id.clone();
    let request = upstream::Request {
        method: head.method,
        target: &target.text,
        fields: &Outgoing::new(head, connection, upstream, &request_id),
        body,
    };
    let answer = match upstream.enter() {
        Ok(place) => {
            record.holds(place);
            worker.pools.exchange(upstream, request, since).await
        }
        Err(fault) => Err(fault),
    };
    match answer {
        Ok(reply) => {
            record.answered(reply.at.duration_since(since));
            Ok(reply)
        }
        Err(fault) => {
            tracing::warn!(
                upstream = &*upstream.name,
                request_id = record.request_id.to_str().unwrap_or_default(),
                %fault,
                "upstream failed"
            );
            record.because(fault.to_string());
            Err(fault)
        }
    }
}

/// Whether the body says it is JSON that can be read as it is. No content type at all is accepted.
fn speaks_json(headers: &HeaderMap) -> Result<(), Media> {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    if let Some(line) = lines.next()
        && !(is_json(line) && lines.next().is_none())
    {
        return Err(Media::ContentType);
    }
    let is_coded = headers.get_all(CONTENT_ENCODING).iter().any(|coding| {
        let coding = coding.as_bytes().trim_ascii();
        !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity")
    });
    if is_coded {
        return Err(Media::ContentEncoding);
    }
    Ok(())
}

/// `application/json` with any parameters, but no charset other than UTF-8: the body would mean
/// something else to a server that honours it (RFC 8259 section 8.1).
fn is_json(line: &HeaderValue) -> bool {
    let mut parts = line.as_bytes().split(|byte| *byte == b';');
    let type_ = parts.next().unwrap_or_default().trim_ascii();
    type_.eq_ignore_ascii_case(b"application/json")
        && parts.all(|parameter| {
            let parameter = parameter.trim_ascii();
            match parameter.split_at_checked(b"charset=".len()) {
                Some((name, value)) if name.eq_ignore_ascii_case(b"charset=") => {
                    let value = value.strip_prefix(b"\"").unwrap_or(value);
                    let value = value.strip_suffix(b"\"").unwrap_or(value);
                    value.eq_ignore_ascii_case(b"utf-8") || value.eq_ignore_ascii_case(b"us-ascii")
                }
                _ => true,
            }
        })
}

/// The caller's request id where it is one line of 1 to 128 visible ASCII characters, else a new
/// one.
fn request_id(headers: &HeaderMap, worker: &Worker) -> HeaderValue {
    let mut lines = headers.get_all(X_REQUEST_ID).iter();
    match (lines.next(), lines.next()) {
        (Some(id), None)
            if (1..=128).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic) =>
        {
            id.clone()
        }
        _ => {
            let mut buffer = [0; uuid::fmt::Hyphenated::LENGTH];
            let id = worker.identifier().hyphenated().encode_lower(&mut buffer);
            HeaderValue::from_str(id).unwrap_or_else(|_| HeaderValue::from_static("none"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_json_whatever_its_parameters_but_only_in_utf_8() {
        for (lines, fine) in [
            (&[][..], true),
            (&["application/json"][..], true),
            (&["Application/JSON;Charset=\"UTF-8\""], true),
            (&["application/json ; profile=x"], true),
            (&["application/json; charset=utf-16"], false),
            (&["application/jsonx"], false),
            (&["text/plain"], false),
            (&["application/json", "application/json"], false),
            (&["application/a2a+json"], false),
            (&[""], false),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(CONTENT_TYPE, HeaderValue::from_static(line));
            }
            assert_eq!(speaks_json(&headers).is_ok(), fine, "{lines:?}");
        }
        for (coding, fine) in [
            ("identity", true),
            ("", true),
            ("gzip", false),
            ("GZIP, br", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(CONTENT_ENCODING, HeaderValue::from_static(coding));
            assert_eq!(speaks_json(&headers).is_ok(), fine, "{coding}");
        }
    }
}
