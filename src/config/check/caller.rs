//! Decides who is known, by what, and whether an endpoint can ask for it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use crate::config::check::names::Names;
use crate::config::file::{self, File};
use crate::config::read::{At, Field, List};
use crate::config::report::{Finding, Report, Span};
use crate::config::settings::{
    Authenticate, Caller, CertificateName, Endpoint, KeySha256, Listener, Settings,
};
use crate::config::table::{Named, Tables};
use crate::config::word::Name;

/// What a caller can name.
pub(crate) struct Rooms<'r> {
    pub(crate) plans: &'r Names<'r>,
    pub(crate) endpoints: &'r Names<'r>,
}

/// The callers, in the order of the file; `None` where something was reported.
pub(crate) fn check(
    tables: &Tables<file::Caller>,
    rooms: &Rooms<'_>,
    report: &Report<'_>,
) -> Vec<Option<Caller>> {
    let (mut keys, mut certificates) = (HashMap::new(), HashMap::new());
    let caller = |named: &Named<file::Caller>| {
        let file = &named.value;
        if file.key_sha256.is_absent() && file.certificate.is_absent() {
            let what = "has no credential: nobody could prove to be it";
            let hint = format!(
                "add key_sha256, which `forecourt key new {}` prints with a new key, or certificate",
                named.name
            );
            let finding = Finding::error(named.span.clone(), named.path.clone(), what);
            report.add(finding.hint(hint));
        }
        let keys: Option<Vec<KeySha256>> = own(&file.key_sha256, &mut keys, &named.path, report);
        let certificates: Option<Vec<CertificateName>> =
            own(&file.certificate, &mut certificates, &named.path, report);
        let plan = match &file.plan {
            Field::Absent => Some(None),
            Field::Wrong => None,
            Field::Given(name) => rooms.plans.resolve(name, report).map(Some),
        };
        let endpoints = endpoints(&file.endpoints, rooms.endpoints, report);
        Some(Caller {
            name: named.name.clone(),
            key_sha256: keys?,
            certificates: certificates?,
            plan: plan?,
            endpoints: endpoints?,
        })
    };
    tables.iter().map(caller).collect()
}

/// Credentials, none of which another caller has; `None` where something was reported.
fn own<T: Clone + Eq + Hash>(
    field: &Field<List<T>>,
    taken: &mut HashMap<T, (String, Span)>,
    caller: &str,
    report: &Report<'_>,
) -> Option<Vec<T>> {
    let list = match field {
        Field::Absent => return Some(Vec::new()),
        Field::Wrong => return None,
        Field::Given(list) => list,
    };
    if list.value.is_empty() {
        let hint = "leave it out, or list at least one".to_owned();
        report.add(Finding::error(list.span.clone(), list.path.clone(), "is empty").hint(hint));
    }
    let mut found = Vec::new();
    for at in list.value.iter().filter_map(Field::given) {
        match taken.entry(at.value.clone()) {
            Entry::Vacant(entry) => {
                entry.insert((caller.to_owned(), at.span.clone()));
                found.push(at.value.clone());
            }
            Entry::Occupied(entry) => {
                let (other, span) = entry.get();
                let (what, hint) = if other == caller {
                    ("is listed twice".to_owned(), None)
                } else {
                    let hint = "give each caller a credential of its own";
                    let line = report.line(span, &at.span);
                    (
                        format!("is also {other}'s, {line}: whom it proves is not certain"),
                        Some(hint.to_owned()),
                    )
                };
                report.add(Finding::error(at.span.clone(), at.path.clone(), what).hint(hint));
            }
        }
    }
    (found.len() == list.value.len()).then_some(found)
}

/// Where a caller may call; `None` where something was reported.
pub(super) fn endpoints(
    field: &Field<List<Name>>,
    names: &Names<'_>,
    report: &Report<'_>,
) -> Option<Option<Vec<usize>>> {
    let list = match field {
        Field::Absent => return Some(None),
        Field::Wrong => return None,
        Field::Given(list) => list,
    };
    if list.value.is_empty() {
        let hint = "leave it out: then the caller may call everywhere".to_owned();
        let what = "is empty: the caller could call nothing";
        report.add(Finding::error(list.span.clone(), list.path.clone(), what).hint(hint));
    }
    let mut places = Vec::new();
    for name in list.value.iter().filter_map(Field::given) {
        let Some(place) = names.resolve(name, report) else {
            continue;
        };
        if places.contains(&place) {
            let what = "is listed twice";
            report.add(Finding::error(name.span.clone(), name.path.clone(), what));
        } else {
            places.push(place);
        }
    }
    (places.len() == list.value.len()).then_some(Some(places))
}

/// An endpoint that asks for what nobody has, or keeps to itself what it does not look at.
pub(crate) fn demands(file: &File, report: &Report<'_>) {
    let nobody = file.callers.is_complete
        && file.callers.entries.is_empty()
        && file.issuers.is_complete
        && file.issuers.entries.is_empty();
    for named in file.endpoints.iter() {
        let (authenticate, forward) = (&named.value.authenticate, &named.value.forward_credential);
        let asks = authenticate.or(Authenticate::Off) != Authenticate::Off;
        if let Some(at) = authenticate.given()
            && asks
            && nobody
        {
            let what = "asks for a credential, and no caller has one";
            let hint = "add [caller.NAME]: `forecourt key new NAME` prints one; or [issuer.NAME]"
                .to_owned();
            report.add(Finding::error(at.span.clone(), at.path.clone(), what).hint(hint));
        }
        if let Some(at) = forward.given()
            && !at.value
            && !asks
            && !matches!(authenticate, Field::Wrong)
        {
            let what = "keeps back what was verified, and this endpoint verifies nothing";
            let hint = "add authenticate = \"required\" or \"optional\"".to_owned();
            report.add(Finding::error(at.span.clone(), at.path.clone(), what).hint(hint));
        }
    }
}

/// What is probably not meant.
pub(crate) fn warn(settings: &Settings, file: &File, report: &Report<'_>) {
    let warn = |span: &Span, path: &str, what: &str, hint: &str| {
        let finding = Finding::warning(span.clone(), path, what);
        report.add(finding.hint(hint.to_owned()));
    };
    let asks = |endpoint: &Endpoint| endpoint.authenticate != Authenticate::Off;
    let callers = file.callers.iter().map(|it| (&it.span, &it.path));
    let mut all = callers.chain(file.issuers.iter().map(|it| (&it.span, &it.path)));
    if let Some((span, path)) = all.next()
        && !settings.endpoints.iter().any(asks)
    {
        let what = "no endpoint asks for credentials: callers are not recognised";
        let hint = "add authenticate = \"required\" or \"optional\" to an [endpoint.NAME]";
        warn(span, path, what, hint);
        return;
    }
    let asks_for_certificates =
        |it: &Listener| it.tls.as_ref().is_some_and(|it| it.clients.is_some());
    let any_asks = settings.listeners.iter().any(asks_for_certificates);
    for named in file.callers.iter() {
        if let Some(at) = named.value.certificate.given()
            && !any_asks
        {
            let what = "is never shown: no listener asks clients for a certificate";
            let hint = "add client_ca and client_certificate to the tls of a listener";
            warn(&at.span, &at.path, what, hint);
        }
    }
    let callers = file.callers.iter().zip(&settings.known);
    let callers = callers.map(|(named, it)| (&named.value.endpoints, &it.endpoints));
    let issuers = file.issuers.iter().zip(&settings.issuers);
    let issuers = issuers.map(|(named, it)| (&named.value.endpoints, &it.endpoints));
    for (field, places) in callers.chain(issuers) {
        let names = field.given().into_iter();
        let names = names.flat_map(|list| list.value.iter().filter_map(Field::given));
        let places = places.iter().flatten();
        for (name, endpoint) in names.zip(places.filter_map(|at| settings.endpoints.get(*at))) {
            let at: &At<Name> = name;
            if !asks(endpoint) {
                let what = "asks for no credential: anybody may call there";
                let hint = "add authenticate = \"required\" to that endpoint";
                warn(&at.span, &at.path, what, hint);
            }
        }
    }
    let endpoints = file.endpoints.iter().zip(&settings.endpoints).enumerate();
    for (place, (named, endpoint)) in endpoints {
        let may = |endpoints: &Option<Vec<usize>>| {
            let endpoints = endpoints.as_ref();
            endpoints.is_none_or(|all| all.contains(&place))
        };
        let callers = settings.known.iter().map(|it| &it.endpoints);
        let mut all = callers.chain(settings.issuers.iter().map(|it| &it.endpoints));
        if let Some(at) = named.value.authenticate.given()
            && endpoint.authenticate == Authenticate::Required
            && !all.any(may)
        {
            let what = "lets nobody in: no caller may call this endpoint";
            let hint = "add it to the `endpoints` of a [caller.NAME] or [issuer.NAME]";
            warn(&at.span, &at.path, what, hint);
        }
    }
}
