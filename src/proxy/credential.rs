//! Decides who is asking at an endpoint that wants it proven, and what of that the dealer gets.
//!
//! Whoever is not proven is told apart by address alone where a credential was bad or missing: a key
//! that nobody knows must not make a bucket, or each guess would have a fresh one. Must never let a
//! request on whose credentials do not prove what they say.

use std::net::IpAddr;

use http::HeaderName;

use super::record::Record;
use super::strict::{REPEATED_CALLER, Unfit};
use super::token::Judge;
use super::worker::Worker;
use crate::credential::token::Bad;
use crate::credential::{Carriers, Verdict, Who};
use crate::http1::{Field, Fields, Known};
use crate::limit::{Caller, Source, identify, repeated};
use crate::observe::CredentialResult;
use crate::protocol::Refusal;
use crate::protocol::refusal::Lack;
use crate::state::connection::Connection;
use crate::state::{Gate, Snapshot};

/// Who is asking, and whether they may.
#[derive(Debug)]
pub(super) struct Asker {
    /// Whose bucket the call falls into.
    pub(super) caller: Caller,
    /// Why the call goes no further.
    pub(super) refusal: Option<Refusal>,
    /// What proved the caller.
    pub(super) by: Carriers,
}

/// Who is asking, as far as the configured sources say: where nothing is proven.
///
/// # Errors
/// A source stands on more than one line.
pub(super) fn identified(
    snapshot: &Snapshot,
    fields: &Fields,
    client: IpAddr,
) -> Result<Asker, Unfit> {
    if repeated(&snapshot.callers, fields).is_some() {
        return Err(REPEATED_CALLER);
    }
    Ok(Asker {
        caller: identify(&snapshot.callers, fields, client),
        refusal: None,
        by: Carriers::default(),
    })
}

/// A request at a gate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Knock<'r> {
    gate: &'r Gate,
    worker: &'r Worker,
    snapshot: &'r Snapshot,
    connection: &'r Connection,
    fields: &'r Fields,
}

/// Who is asking at this gate. Waits where a token's key is not known and its issuer may have it, for
/// a bounded time.
///
/// # Errors
/// A header that carries credentials, or names the caller, stands on more than one line.
pub(super) async fn examine(
    knock: Knock<'_>,
    client: IpAddr,
    record: &mut Record,
) -> Result<Asker, Unfit> {
    let (worker, snapshot) = (knock.worker, knock.snapshot);
    let mut judge = Judge::new(worker, snapshot, false);
    let mut verdict = knock.look(&mut judge);
    if let Some(issuer) = judge.unknown.take() {
        // In memory of its own: nobody else pays for it.
        let renewed = Box::pin(issuer.keys.renewed(worker.shared.limiter.now()));
        if renewed.await {
            judge = Judge::new(worker, snapshot, true);
            verdict = knock.look(&mut judge);
        } else {
            issuer.meters.refused(Bad::UnknownKey as usize);
        }
    }
    knock.answer(verdict, judge.caller, client, record)
}

/// What proves somebody at this gate, in words, and the table of the configuration that knows them.
/// Never a credential. `None`: nobody is proven. Not for the path of a request.
pub(super) fn proven_by(knock: Knock<'_>) -> Option<(String, Vec<String>)> {
    let settings = &knock.snapshot.settings;
    let mut judge = Judge::new(knock.worker, knock.snapshot, true);
    let Verdict::Proven(proof) = knock.look(&mut judge) else {
        return None;
    };
    let header = knock.snapshot.credentials.key_header();
    let by = match (proof.by.key_header, proof.by.bearer) {
        (true, true) => format!("header:{header} and header:authorization"),
        (true, false) => format!("header:{header}"),
        (false, true) => "header:authorization".to_owned(),
        (false, false) => "its client certificate".to_owned(),
    };
    let (table, name) = match proof.who {
        Who::Caller(place) => ("caller", &settings.known.get(place)?.name),
        Who::Token { issuer } => ("issuer", &settings.issuers.get(issuer)?.name),
    };
    Some((by, vec![table.to_owned(), name.to_string()]))
}

impl<'r> Knock<'r> {
    pub(super) const fn at(
        gate: &'r Gate,
        worker: &'r Worker,
        snapshot: &'r Snapshot,
        connection: &'r Connection,
        fields: &'r Fields,
    ) -> Self {
        Self {
            gate,
            worker,
            snapshot,
            connection,
            fields,
        }
    }

    fn look(&self, judge: &mut Judge<'_>) -> Verdict {
        let Self {
            snapshot, fields, ..
        } = self;
        let shows = self
            .connection
            .shows(&snapshot.credentials, snapshot.generation);
        let token = |token: &[u8]| judge.judge(token);
        snapshot.credentials.examine(fields, shows, token)
    }

    fn answer(
        &self,
        verdict: Verdict,
        by_token: Option<Caller>,
        client: IpAddr,
        record: &mut Record,
    ) -> Result<Asker, Unfit> {
        let Self {
            gate,
            snapshot,
            fields,
            ..
        } = *self;
        let refused = |refusal| Asker {
            caller: identify(&[Source::Address], fields, client),
            refusal: Some(refusal),
            by: Carriers::default(),
        };
        let (result, asker) = match verdict {
            Verdict::Repeated => {
                gate.meters.examined(CredentialResult::Bad);
                return Err(REPEATED_CALLER);
            }
            Verdict::Absent => {
                let asker = if gate.is_required {
                    refused(Refusal::Unauthenticated(Lack::Absent))
                } else {
                    identified(snapshot, fields, client)?
                };
                (CredentialResult::Absent, asker)
            }
            Verdict::Bad(flaw) => {
                record.because(flaw.why);
                let lack = if flaw.is_bearer {
                    Lack::BadBearer
                } else {
                    Lack::Bad
                };
                let asker = refused(Refusal::Unauthenticated(lack));
                (CredentialResult::Bad, asker)
            }
            Verdict::Proven(proof) => {
                let (result, refusal) = if gate.admits(&proof.who) {
                    (CredentialResult::Proven, None)
                } else {
                    let refusal = Refusal::PermissionDenied;
                    (CredentialResult::Forbidden, Some(refusal))
                };
                let caller = match proof.who {
                    Who::Caller(place) => snapshot.proven.get(place).cloned(),
                    Who::Token { .. } => by_token,
                };
                let asker = Asker {
                    // The places are those of the same snapshot, and a token that proves has a caller.
                    caller: caller.unwrap_or_else(|| identify(&[], fields, client)),
                    refusal,
                    by: proof.by,
                };
                (result, asker)
            }
        };
        gate.meters.examined(result);
        Ok(asker)
    }
}

/// What is done to a caller's credentials on their way to the dealer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keeping<'r> {
    key_header: &'r HeaderName,
    /// The headers that stay here.
    kept: Carriers,
}

impl<'r> Keeping<'r> {
    /// What was proven by these headers, at this gate.
    pub(super) fn of(gate: &Gate, snapshot: &'r Snapshot, by: Carriers) -> Self {
        Self {
            key_header: snapshot.credentials.key_header(),
            kept: if gate.forwards {
                Carriers::default()
            } else {
                by
            },
        }
    }

    /// What a request without policy, such as one for an agent card, proves at this gate. It is
    /// refused nothing; what the gateway knows as a credential stays here all the same.
    pub(super) fn of_any(knock: Knock<'r>) -> Self {
        if knock.gate.forwards {
            return Self::of(knock.gate, knock.snapshot, Carriers::default());
        }
        let mut judge = Judge::new(knock.worker, knock.snapshot, true);
        let by = match knock.look(&mut judge) {
            Verdict::Proven(proof) => proof.by,
            // A token that is not believed now may be the next moment.
            Verdict::Absent | Verdict::Bad(_) | Verdict::Repeated => Carriers {
                bearer: judge.was_asked,
                ..Carriers::default()
            },
        };
        Self::of(knock.gate, knock.snapshot, by)
    }

    /// Whether a field stays here: what proved the caller, where the operator says so; and what
    /// CGI-style servers merge with the header of keys, which nobody has looked at.
    pub(super) fn keeps(&self, field: &Field<'_>) -> bool {
        let header = self.key_header.as_str().as_bytes();
        if field.known == Known::Authorization {
            return self.kept.bearer;
        }
        if field.name.len() != header.len() {
            return false;
        }
        if field.name.eq_ignore_ascii_case(header) {
            return self.kept.key_header;
        }
        let merged = |byte: &u8| match byte {
            b'_' => b'-',
            other => other.to_ascii_lowercase(),
        };
        field.name.iter().map(merged).eq(header.iter().map(merged))
    }
}
