//! Decides where an endpoint's quotas are asked, and on those of which some are kept in a store: those
//! of this process first, which cost nothing to ask; then the stores'. Whoever refuses, nobody is
//! charged.
//!
//! Endpoints without such quotas never wait here.

use std::sync::Arc;

use super::admit;
use super::record::Record;
use super::respond::Refused;
use crate::http1::Fields;
use crate::limit::shared::{By, Group, Identity};
use crate::limit::{Admission, Announcement, Decision, Shortage, Subject};
use crate::protocol::Envelope;
use crate::state::Endpoint;

/// Asks the endpoint's quotas, all together, wherever they are kept.
///
/// # Errors
/// RATE_LIMITED by the quota that binds longest; none was charged.
pub(super) async fn quota(
    endpoint: &Endpoint,
    subject: &Subject<'_>,
    fields: &Fields,
    envelope: &Envelope<'_>,
    record: &mut Record,
) -> Result<(), Refused> {
    if endpoint.groups.is_empty() {
        return admit::quota(endpoint, subject, envelope, record);
    }
    Box::pin(ask(endpoint, subject, fields, envelope, record)).await
}

async fn ask(
    endpoint: &Endpoint,
    subject: &Subject<'_>,
    fields: &Fields,
    envelope: &Envelope<'_>,
    record: &mut Record,
) -> Result<(), Refused> {
    let words = endpoint.quotas_look_inside.then(|| admit::words(envelope));
    let decided = match words.as_ref() {
        None => decide(endpoint, subject, fields, record).await,
        Some(words) => {
            let subject = subject.calling(words.call(envelope));
            decide(endpoint, &subject, fields, record).await
        }
    };
    match decided {
        Ok(admission) => {
            record.seated(admission.seats);
            Ok(())
        }
        Err(shortage) => admit::refuse(endpoint, shortage, envelope, record),
    }
}

/// Charges a call that was refused before its quotas were asked, wherever they are kept, and counts no
/// decision: nobody was admitted or refused by a quota.
pub(super) async fn charge(
    endpoint: &Endpoint,
    subject: &Subject<'_>,
    fields: &Fields,
    record: &mut Record,
) {
    admit::charge(endpoint, subject, record);
    if !endpoint.groups.is_empty() {
        Box::pin(charge_stores(endpoint, subject, fields, record)).await;
    }
}

async fn charge_stores(
    endpoint: &Endpoint,
    subject: &Subject<'_>,
    fields: &Fields,
    record: &mut Record,
) {
    let Some(caller) = record.caller().cloned() else {
        return;
    };
    let shared = Arc::clone(&record.worker().shared);
    let identity = Identity {
        caller: &caller,
        fields,
    };
    let mut asked = Vec::with_capacity(endpoint.groups.len());
    for group in &endpoint.groups {
        // What cannot pay is empty already.
        let decided = group.check(&shared.limiter, &endpoint.quotas, subject, &identity);
        asked.push((group, decided.await.by));
    }
    announce(endpoint, subject, &asked, record);
}

/// Decides; counts the decision and prepares what the answer will say of it.
///
/// # Errors
/// The quota that holds the call back longest, of those that were asked.
async fn decide(
    endpoint: &Endpoint,
    subject: &Subject<'_>,
    fields: &Fields,
    record: &mut Record,
) -> Result<Admission, Shortage> {
    let shared = Arc::clone(&record.worker().shared);
    let limiter = &shared.limiter;
    let quotas = &*endpoint.quotas;
    let caller = record.caller().cloned();
    let mut asked: Vec<(&Group, Option<By>)> = Vec::with_capacity(endpoint.groups.len());
    let mut kept: Vec<(&Group, By, Admission)> = Vec::with_capacity(endpoint.groups.len());
    let mut decision = limiter.check(quotas, subject);
    let mut by = By::Local;
    if let (Decision::Admitted(local), Some(caller)) = (&mut decision, &caller) {
        let identity = Identity { caller, fields };
        let mut shortage = None;
        for group in &endpoint.groups {
            let decided = group.check(limiter, quotas, subject, &identity).await;
            asked.push((group, decided.by));
            by = decided.by.unwrap_or(by);
            match decided.decision {
                Decision::Admitted(admission) => kept.push((group, by, admission)),
                Decision::Refused(refused) => {
                    shortage = Some(refused);
                    break;
                }
            }
        }
        if let Some(shortage) = shortage {
            limiter.refund(quotas, subject, local);
            for (group, by, admission) in &kept {
                group.undo(limiter, quotas, subject, &identity, (*by, admission));
            }
            decision = Decision::Refused(shortage);
        }
    }
    record.decided(by.label());
    let admitted = || {
        let looking = quotas.iter().zip(&endpoint.quota_meters).enumerate();
        looking.filter(|(_, (quota, _))| quota.looks_at(subject))
    };
    match &decision {
        Decision::Admitted(_) => {
            for (place, (_, meters)) in admitted() {
                let by = asked.iter().find(|(group, _)| group.has(place));
                match (&meters.stored, by) {
                    (Some(stored), Some((_, Some(by)))) => stored.admitted(by.label()),
                    (Some(_), _) => {}
                    (None, _) => {
                        meters.admitted.inc();
                    }
                }
            }
            admit::note_admitted(record);
        }
        Decision::Refused(shortage) => {
            if let Some(meters) = endpoint.quota_meters.get(shortage.quota) {
                match &meters.stored {
                    Some(stored) => stored.refused(by.label()),
                    None => {
                        meters.refused.inc();
                    }
                }
            }
            admit::note_refused(endpoint, shortage, record);
        }
    }
    announce(endpoint, subject, &asked, record);
    match decision {
        Decision::Admitted(admission) => Ok(admission),
        Decision::Refused(shortage) => Err(shortage),
    }
}

/// Prepares what the answer will say of the caller's quotas.
fn announce(
    endpoint: &Endpoint,
    subject: &Subject<'_>,
    asked: &[(&Group, Option<By>)],
    record: &mut Record,
) {
    if matches!(endpoint.announcement, Announcement::Off) {
        return;
    }
    let limiter = &record.worker().shared.limiter;
    let standing = |(place, quota)| {
        let local = limiter.standing(quota, subject);
        let standing = local.or_else(|| {
            endpoint.groups.iter().find_map(|group| {
                let by = asked.iter().find(|(other, _)| std::ptr::eq(*other, group));
                let by = by.and_then(|(_, by)| *by);
                group.standing(limiter, (place, quota), subject, by)
            })
        });
        Some((quota, standing?))
    };
    let standings: Vec<_> = endpoint
        .quotas
        .iter()
        .enumerate()
        .filter_map(standing)
        .collect();
    standings
        .iter()
        .for_each(|(_, standing)| record.stands(*standing));
    let announced = endpoint.announcement.announce(subject, &standings);
    record.announces(announced);
}
