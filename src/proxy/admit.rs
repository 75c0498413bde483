//! Decides whether a readable call may go on: quota, then headers, then method.
//!
//! The order is the protocol's order of admission. A step in report mode never refuses; what it
//! would have refused is counted and logged.

use std::borrow::Cow;

use super::fault;
use super::record::Record;
use super::respond::Refused;
use crate::http1::Fields;
use crate::limit::{Announcement, Call, Decision, LONGEST_TENANT, Shortage, Standing, Subject};
use crate::protocol::judge::{judge_reporting, select};
use crate::protocol::raw::Raw;
use crate::protocol::{Activation, Envelope, Outcome, Refusal, Step, Supplied, Verdict, method};
use crate::state::Endpoint;

/// Charges a call that was refused before its quota was asked: unreadable calls are not free.
pub(super) fn charge(endpoint: &Endpoint, subject: &Subject<'_>, record: &mut Record) {
    if !endpoint.quotas.is_empty() {
        let limiter = &record.worker().shared.limiter;
        limiter.charge(&endpoint.quotas, subject);
        announce(endpoint, subject, None, record);
    }
}

/// Prepares what the answer will say of the caller's quotas. `known` spares looking where the
/// decision on a single quota told it already.
fn announce(
    endpoint: &Endpoint,
    subject: &Subject<'_>,
    known: Option<Standing>,
    record: &mut Record,
) {
    if let Some(standing) = known {
        record.stands(standing);
    }
    if matches!(endpoint.announcement, Announcement::Off) {
        return;
    }
    let announcement = &endpoint.announcement;
    let announced = match (&*endpoint.quotas, known) {
        ([quota], Some(standing)) => announcement.announce(subject, &[(quota, standing)]),
        (quotas, _) => {
            let limiter = &record.worker().shared.limiter;
            let standing = |quota| Some((quota, limiter.standing(quota, subject)?));
            let standings: Vec<_> = quotas.iter().filter_map(standing).collect();
            standings
                .iter()
                .for_each(|(_, standing)| record.stands(*standing));
            announcement.announce(subject, &standings)
        }
    };
    record.announces(announced);
}

/// Whether there is room for this request among all that are being served.
///
/// # Errors
/// There are `most` before it: it is shed, and charged to nobody.
pub(super) fn load(most: usize, record: &mut Record) -> Result<(), Refusal> {
    if record.before() < most {
        return Ok(());
    }
    record.because("too many requests at once");
    Err(fault::shed())
}

/// Asks the endpoint's quotas, all together.
///
/// # Errors
/// RATE_LIMITED by the quota that binds longest; none was charged.
pub(super) fn quota(
    endpoint: &Endpoint,
    subject: &Subject<'_>,
    envelope: &Envelope<'_>,
    record: &mut Record,
) -> Result<(), Refused> {
    if endpoint.quotas.is_empty() {
        return Ok(());
    }
    if !endpoint.quotas_look_inside {
        return ask(endpoint, subject, envelope, record);
    }
    let words = words(envelope);
    ask(
        endpoint,
        &subject.calling(words.call(envelope)),
        envelope,
        record,
    )
}

/// What a call says of itself, for quotas that look inside.
pub(super) struct Words<'e> {
    skill: Option<Cow<'e, str>>,
    tenant: Option<Cow<'e, str>>,
}

pub(super) fn words<'e>(envelope: &'e Envelope<'_>) -> Words<'e> {
    // Written in escapes a tenant has six times its length.
    let tenant = envelope
        .tenant
        .filter(|raw| raw.as_str().len() <= 2 + 6 * LONGEST_TENANT)
        .and_then(Raw::text);
    Words {
        skill: envelope.skill(),
        tenant,
    }
}

impl Words<'_> {
    pub(super) fn call<'w>(&'w self, envelope: &'w Envelope<'_>) -> Call<'w> {
        Call {
            method: &envelope.method,
            skill: self.skill.as_deref(),
            tenant: self.tenant.as_deref(),
        }
    }
}

fn ask(
    endpoint: &Endpoint,
    subject: &Subject<'_>,
    envelope: &Envelope<'_>,
    record: &mut Record,
) -> Result<(), Refused> {
    let limiter = &record.worker().shared.limiter;
    let decision = limiter.check(&endpoint.quotas, subject);
    let known = match &decision {
        Decision::Admitted(admission) => admission.tightest,
        Decision::Refused(_) => None,
    };
    announce(endpoint, subject, known, record);
    match decision {
        Decision::Admitted(admission) => {
            for (quota, meters) in endpoint.quotas.iter().zip(&endpoint.quota_meters) {
                if quota.looks_at(subject) {
                    meters.admitted.inc();
                }
            }
            note_admitted(record);
            record.seated(admission.seats);
            Ok(())
        }
        Decision::Refused(shortage) => {
            if let Some(meters) = endpoint.quota_meters.get(shortage.quota) {
                meters.refused.inc();
            }
            note_refused(endpoint, &shortage, record);
            refuse(endpoint, shortage, envelope, record)
        }
    }
}

/// Some of those who are admitted are remembered by name.
pub(super) fn note_admitted(record: &Record) {
    if let Some(caller) = record.caller()
        && record.worker().samples()
    {
        record.worker().shared.limiter.note_admitted(caller);
    }
}

/// All who are refused are.
pub(super) fn note_refused(endpoint: &Endpoint, shortage: &Shortage, record: &Record) {
    if let (Some(caller), Some(quota)) = (record.caller(), endpoint.quotas.get(shortage.quota)) {
        record.worker().shared.limiter.note_refused(caller, quota);
    }
}

/// Refuses a call that a quota holds back, or only counts it.
pub(super) fn refuse(
    endpoint: &Endpoint,
    shortage: Shortage,
    envelope: &Envelope<'_>,
    record: &mut Record,
) -> Result<(), Refused> {
    if endpoint.report.contains(Step::Quota) {
        let quota = endpoint
            .quotas
            .get(shortage.quota)
            .map(|quota| quota.name());
        record.would_refuse(Step::Quota, Outcome::RateLimited, quota);
        return Ok(());
    }
    let refusal = Refusal::RateLimited {
        retry_after_ms: shortage.retry_after_ms(),
    };
    let mut refused = Refused::read(refusal, 0, envelope.id);
    refused.shortage = Some(shortage);
    Err(refused)
}

/// Holds the headers to the endpoint's contract, or selects one of several by them; then the
/// method to what is served.
///
/// # Errors
/// The first refusal. The index tells which of the endpoint's pins is in force.
pub(super) fn contract<'e>(
    endpoint: &'e Endpoint,
    fields: &Fields,
    envelope: &Envelope<'_>,
    record: &mut Record,
) -> Result<(usize, Activation<'e>), Refused> {
    let refused = |refusal, pin| Refused::read(refusal, pin, envelope.id);
    let supplied = Supplied::new(fields);
    let (pin, activation) = if endpoint.is_ambiguous() {
        let others = endpoint.others.iter().map(|pin| &pin.contract);
        let (pin, activation) = select(&endpoint.first.contract, others, supplied)
            .map_err(|refusal| refused(refusal, 0))?;
        record.selected(pin);
        (pin, activation)
    } else {
        let would = |step, refusal: Refusal| record.would_refuse(step, refusal.outcome(), None);
        match judge_reporting(&endpoint.first.contract, supplied, endpoint.report, would) {
            Verdict::Admit(activation) => (0, activation),
            Verdict::Refuse(refusal) => return Err(refused(refusal, 0)),
        }
    };
    let pinned = &activation.contract().a2a_version;
    match method::judge(&envelope.method, pinned, endpoint.methods.as_deref()) {
        Ok(()) => {}
        Err(
            refusal @ (Refusal::UnsupportedOperation { .. }
            | Refusal::PushNotificationNotSupported { .. }),
        ) if endpoint.report.contains(Step::Capability) => {
            record.would_refuse(Step::Capability, refusal.outcome(), None);
        }
        Err(refusal) => return Err(refused(refusal, pin)),
    }
    record.activated(&activation);
    Ok((pin, activation))
}
