//! Decides what an issuer is: whose tokens, for whom, signed how, with keys from where.

use std::path::Path;
use std::time::Duration;

use crate::config::amount::NonZeroDuration;
use crate::config::file::{self, File};
use crate::config::read::{At, Field, List};
use crate::config::report::{Finding, Report};
use crate::config::settings::{Algorithm, Issuer, Jwks, UpstreamTls};
use crate::config::table::{Named, Tables};
use crate::config::web::KeysAt;
use crate::config::word::Filled;

use super::caller;
use super::files::Files;

/// How often keys may be fetched, and how seldom.
const REFRESH: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(24 * 3600);

/// Clocks that are further apart than this are wrong.
const MOST_LEEWAY: Duration = Duration::from_secs(300);

/// The longest `iss` and `aud`, in bytes.
const LONGEST: usize = 512;

/// The issuers, in the order of the file; `None` where something was reported.
pub(crate) fn check(
    file: &File,
    askers: &caller::Rooms<'_>,
    directory: &Path,
    report: &Report<'_>,
) -> Vec<Option<Issuer>> {
    let rooms = Rooms {
        files: Files { directory, report },
        askers,
        has_plans: !file.plans.is_complete || !file.plans.entries.is_empty(),
    };
    same_issuer(&file.issuers, report);
    let issuers = file.issuers.iter();
    issuers.map(|named| issuer(named, &rooms)).collect()
}

/// What an issuer can name.
struct Rooms<'r, 't> {
    files: Files<'r, 't>,
    askers: &'r caller::Rooms<'r>,
    has_plans: bool,
}

fn issuer(named: &Named<file::Issuer>, rooms: &Rooms<'_, '_>) -> Option<Issuer> {
    let files = rooms.files;
    let file = &named.value;
    let report = files.report;
    let audience = audience(named, report);
    let algorithms = algorithms(&file.algorithms, report);
    let refresh = refresh(file, report);
    let leeway = leeway(&file.leeway, report);
    let jwks = jwks(file, files);
    let plan = match &file.plan {
        Field::Absent => Some(None),
        Field::Wrong => None,
        Field::Given(name) => rooms.askers.plans.resolve(name, report).map(Some),
    };
    let endpoints = caller::endpoints(&file.endpoints, rooms.askers.endpoints, report);
    if let (Some(at), false) = (file.plan_claim.given(), rooms.has_plans) {
        let what = "names plans, and there is no [plan.NAME]";
        report.add(Finding::warning(at.span.clone(), at.path.clone(), what));
    }
    if let Some(at) = file.issuer.given() {
        short(at, report);
    }
    Some(Issuer {
        name: named.name.clone(),
        issuer: file.issuer.given()?.value.0.clone(),
        audience: audience?,
        jwks: jwks?,
        algorithms: algorithms?,
        refresh,
        leeway,
        caller_claim: file.caller_claim.or(Filled("sub".into())).0,
        plan_claim: file.plan_claim.value().map(|claim| claim.0),
        plan: plan?,
        endpoints: endpoints?,
    })
}

/// Which issuer's keys a token is verified with, `iss` says: it must be one.
fn same_issuer(tables: &Tables<file::Issuer>, report: &Report<'_>) {
    let mut seen: Vec<(&At<Filled>, &str)> = Vec::new();
    for named in tables.iter() {
        let Some(at) = named.value.issuer.given() else {
            continue;
        };
        match seen.iter().find(|(other, _)| other.value == at.value) {
            None => seen.push((at, &named.path)),
            Some((other, path)) => {
                let line = report.line(&other.span, &at.span);
                let what = format!("is the `iss` of {path} on {line} as well");
                let hint = "a token says by `iss` whose keys verify it: one table for each";
                let finding = Finding::error(at.span.clone(), at.path.clone(), what);
                report.add(finding.hint(hint.to_owned()));
            }
        }
    }
}

/// Whom tokens must be for. A token for anybody is a token of another service.
fn audience(named: &Named<file::Issuer>, report: &Report<'_>) -> Option<Vec<Box<str>>> {
    const HINT: &str = "audience takes what tokens for this gateway have as `aud`, such as \
                        [\"forecourt\"]: without it, a token for any other service would do";
    let missing = |span, path: &str, what: &str| {
        let finding = Finding::error(span, path, what);
        report.add(finding.hint(HINT.to_owned()));
    };
    let list = match &named.value.audience {
        Field::Wrong => return None,
        Field::Absent => {
            missing(named.span.clone(), &named.path, "audience is missing");
            return None;
        }
        Field::Given(list) => list,
    };
    if list.value.is_empty() {
        missing(list.span.clone(), &list.path, "is empty");
        return None;
    }
    let all = once(list, report)?;
    for at in list.value.iter().filter_map(Field::given) {
        short(at, report);
    }
    Some(all.into_iter().map(|it| it.0).collect())
}

fn algorithms(field: &Field<List<Algorithm>>, report: &Report<'_>) -> Option<Vec<Algorithm>> {
    match field {
        Field::Wrong => None,
        Field::Absent => Some(vec![Algorithm::Rs256, Algorithm::Es256]),
        Field::Given(list) if list.value.is_empty() => {
            let hint = "leave it out, or write algorithms = [\"RS256\", \"ES256\"]".to_owned();
            let what = "is empty: no token could be verified";
            report.add(Finding::error(list.span.clone(), list.path.clone(), what).hint(hint));
            None
        }
        Field::Given(list) => once(list, report),
    }
}

/// The values of a list, each of which stands there once; `None` where one was reported before.
fn once<T: Clone + PartialEq>(list: &At<List<T>>, report: &Report<'_>) -> Option<Vec<T>> {
    let mut all: Vec<T> = Vec::new();
    for at in list.value.iter().filter_map(Field::given) {
        if all.contains(&at.value) {
            let what = "is listed twice";
            report.add(Finding::error(at.span.clone(), at.path.clone(), what));
        }
        all.push(at.value.clone());
    }
    (all.len() == list.value.len()).then_some(all)
}

fn short(at: &At<Filled>, report: &Report<'_>) {
    if at.value.0.len() > LONGEST {
        let what = format!("is longer than {LONGEST} bytes");
        report.add(Finding::error(at.span.clone(), at.path.clone(), what));
    }
}

fn refresh(file: &file::Issuer, report: &Report<'_>) -> Duration {
    if let Some(at) = file.refresh.given() {
        let what = if matches!(file.jwks.given().map(|at| &at.value), Some(KeysAt::File(_))) {
            let hint = "a file is followed: its keys are read as soon as it changes";
            Some(("is for a URL, and `jwks` is a file", hint))
        } else if REFRESH.contains(&at.value.0) {
            None
        } else {
            let hint = "an unknown key is fetched without waiting for it";
            Some(("is out of bounds: \"1s\" to \"24h\"", hint))
        };
        if let Some((what, hint)) = what {
            let finding = Finding::error(at.span.clone(), at.path.clone(), what);
            report.add(finding.hint(hint.to_owned()));
        }
    }
    file.refresh.or(NonZeroDuration(Duration::from_secs(600))).0
}

fn leeway(field: &Field<Duration>, report: &Report<'_>) -> Duration {
    if let Some(at) = field.given() {
        let what = if at.value > MOST_LEEWAY {
            Some("is out of bounds: \"0s\" to \"5m\"")
        } else if at.value.subsec_nanos() > 0 {
            Some("is no number of whole seconds, which tokens count in")
        } else {
            None
        };
        if let Some(what) = what {
            report.add(Finding::error(at.span.clone(), at.path.clone(), what));
        }
    }
    field.or(Duration::from_secs(30))
}

/// Where the keys are; `None` where something was reported.
fn jwks(file: &file::Issuer, files: Files<'_, '_>) -> Option<Jwks> {
    let at = file.jwks.given()?;
    let tls = match &at.value {
        KeysAt::Url(url) if url.base.https => Some(UpstreamTls {
            server_name: url.base.host.trim_end_matches('.').into(),
            place: files.place(&at.span, &at.path),
            ca: files.one(&file.ca),
            client: None,
        }),
        KeysAt::Url(_) | KeysAt::File(_) => None,
    };
    if let (None, Some(ca)) = (&tls, file.ca.given()) {
        let what = "is for TLS, and `jwks` is no https URL";
        files
            .report
            .add(Finding::error(ca.span.clone(), ca.path.clone(), what));
    }
    Some(match &at.value {
        KeysAt::File(path) => Jwks::File(files.named(&At {
            value: path.clone(),
            span: at.span.clone(),
            path: at.path.clone(),
        })),
        KeysAt::Url(url) => Jwks::Url {
            url: url.clone(),
            tls,
        },
    })
}
