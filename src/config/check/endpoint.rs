//! Decides what an endpoint is: its contracts, where their calls go, its quotas.

use crate::config::check::contract::{self, Meaning, resolve};
use crate::config::check::names::Names;
use crate::config::file;
use crate::config::read::{At, Field, List};
use crate::config::report::{Finding, Report, Span};
use crate::config::settings::{Authenticate, Endpoint, Pin, RateLimitHeaders};
use crate::config::suggest;
use crate::config::table::Named;
use crate::config::web::Host;
use crate::config::word::{Filled, Name};
use crate::protocol::{Contract, HttpStatus, Step, Steps, releases};

/// What an endpoint can name.
pub(crate) struct Rooms<'r> {
    pub(crate) quotas: Names<'r>,
    pub(crate) upstreams: Names<'r>,
    pub(crate) contracts: Names<'r>,
    /// The operator's own contracts, in the order of the file.
    pub(crate) own: &'r [Option<Contract>],
    pub(crate) report: &'r Report<'r>,
}

impl Rooms<'_> {
    fn problem(&self, span: &Span, path: &str, what: &str, hint: Option<&str>) {
        let finding = Finding::error(span.clone(), path, what);
        self.report.add(finding.hint(hint.map(str::to_owned)));
    }
}

/// One endpoint; `None` where something was reported.
pub(crate) fn check(named: &Named<file::Endpoint>, rooms: &Rooms<'_>) -> Option<Endpoint> {
    let file = &named.value;
    let contracts = contracts(named, rooms);
    let upstreams = upstreams(named, rooms);
    let quotas = quotas(&file.quotas, rooms);
    let report = steps(&file.report, rooms);
    if let Field::Given(_) = &file.contracts {
        selecting_steps(&file.report, rooms);
    }
    let methods = methods(&file.methods, rooms);
    let contracts = contracts?
        .into_iter()
        .zip(upstreams?)
        .map(|(contract, upstream)| Pin { contract, upstream });
    Some(Endpoint {
        name: named.name.clone(),
        host: file.host.or(Host::Any),
        path: file.path.given()?.value.0.clone(),
        contracts: contracts.collect(),
        authenticate: file.authenticate.or(Authenticate::Off),
        forward_credential: file.forward_credential.or(true),
        quotas,
        ratelimit_headers: file.ratelimit_headers.or(RateLimitHeaders::default()),
        http_status: file.http_status.or(HttpStatus::default()),
        report,
        methods,
    })
}

/// The contracts: the one that is pinned, or the several that make the endpoint ambiguous.
fn contracts(named: &Named<file::Endpoint>, rooms: &Rooms<'_>) -> Option<Vec<Contract>> {
    let file = &named.value;
    match (&file.contract, &file.contracts) {
        (contract, Field::Absent) => one(named, contract, rooms).map(|contract| vec![contract]),
        (Field::Absent, Field::Given(list)) => several(named, list, rooms),
        (Field::Absent, Field::Wrong) => None,
        (Field::Given(_) | Field::Wrong, Field::Given(at)) => {
            let hint = "`contract` pins one; `contracts` lists two or more";
            let what = "cannot stand beside `contract`";
            rooms.problem(&at.span, &at.path, what, Some(hint));
            None
        }
        (Field::Given(_) | Field::Wrong, Field::Wrong) => None,
    }
}

fn one(
    named: &Named<file::Endpoint>,
    contract: &Field<Name>,
    rooms: &Rooms<'_>,
) -> Option<Contract> {
    let overrides = &named.value.overrides;
    let meaning = match contract {
        Field::Wrong => return None,
        Field::Absent => Meaning::Release(releases::find(releases::DEFAULT)?),
        Field::Given(name) => resolve(name, &rooms.contracts, rooms.report)?,
    };
    let base = match meaning {
        Meaning::Own(place) => rooms.own.get(place)?.clone()?,
        Meaning::Release(release) => {
            let given = match &overrides.extension {
                Field::Wrong => return None,
                Field::Absent => None,
                Field::Given(at) => Some(at.value.clone()),
            };
            let Some(contract) = release.contract(given) else {
                let (span, path) = contract.given().map_or_else(
                    || (named.span.clone(), named.path.clone()),
                    |at| (at.span.clone(), at.path.clone()),
                );
                let what = "is a draft that publishes no extension URI";
                let hint = "give the one your callers use: extension = \"https://...\"";
                rooms.problem(&span, &path, what, Some(hint));
                return None;
            };
            contract
        }
    };
    Some(contract::with(base, overrides))
}

fn several(
    named: &Named<file::Endpoint>,
    list: &At<List<Name>>,
    rooms: &Rooms<'_>,
) -> Option<Vec<Contract>> {
    let hint = match list.value.len() {
        0 => Some("leave it out for the newest contract"),
        1 => Some("one contract is pinned with `contract`; then absent headers can be inferred"),
        _ => None,
    };
    if hint.is_some() {
        let what = "needs two contracts or more";
        rooms.problem(&list.span, &list.path, what, hint);
    }
    no_overrides(named, rooms);
    let mut found: Vec<(Contract, &At<Name>)> = Vec::new();
    for name in list.value.iter().filter_map(Field::given) {
        let contract = match resolve(name, &rooms.contracts, rooms.report) {
            None => continue,
            Some(Meaning::Own(place)) => rooms.own.get(place).cloned().flatten(),
            Some(Meaning::Release(release)) => {
                let contract = release.contract(None);
                if contract.is_none() {
                    let what = "is a draft that publishes no extension URI";
                    let hint =
                        "describe it as [contract.NAME] with its extension, and list that name";
                    rooms.problem(&name.span, &name.path, what, Some(hint));
                }
                contract
            }
        };
        let Some(contract) = contract else { continue };
        let same = found.iter().find(|(other, _)| {
            other.a2a_version == contract.a2a_version && other.extension == contract.extension
        });
        if let Some((other, _)) = same {
            let (what, hint) = if other.name == contract.name {
                ("is listed twice".to_owned(), None)
            } else {
                let what = format!(
                    "has the A2A version and extension URI of {:?}: no call could select it",
                    other.name
                );
                (what, Some("contracts are told apart by these two"))
            };
            rooms.problem(&name.span, &name.path, &what, hint);
        }
        found.push((contract, name));
    }
    let is_whole = found.len() == list.value.len();
    is_whole.then(|| found.into_iter().map(|(contract, _)| contract).collect())
}

/// Columns of which contract? Each has its own.
fn no_overrides(named: &Named<file::Endpoint>, rooms: &Rooms<'_>) {
    let columns = &named.value.overrides;
    let given = [
        columns.a2a_version.given().map(|at| (&at.span, &at.path)),
        columns.extension.given().map(|at| (&at.span, &at.path)),
        columns.absent.given().map(|at| (&at.span, &at.path)),
        columns
            .require_extension
            .given()
            .map(|at| (&at.span, &at.path)),
    ];
    for (span, path) in given.into_iter().flatten() {
        let what = "cannot stand beside `contracts`: each contract has its own";
        let hint = "describe the contract as [contract.NAME] and list that name";
        rooms.problem(span, path, what, Some(hint));
    }
}

/// For each contract in its order, the upstream of its calls.
fn upstreams(named: &Named<file::Endpoint>, rooms: &Rooms<'_>) -> Option<Vec<usize>> {
    let file = &named.value;
    let names: Vec<Option<&Name>> = match &file.contracts {
        Field::Given(list) => {
            let names = list
                .value
                .iter()
                .map(|name| name.given().map(|at| &at.value));
            names.collect()
        }
        Field::Absent | Field::Wrong => vec![None],
    };
    let common = file
        .upstream
        .given()
        .and_then(|name| rooms.upstreams.resolve(name, rooms.report));
    let by_contract = by_contract(file, &names, rooms);
    let own = |name: &Option<&Name>| {
        by_contract
            .iter()
            .find(|(key, _)| name.is_some_and(|n| n.0 == *key))
    };
    let is_covered = names.iter().all(|name| own(name).is_some());
    let may_be_covered =
        matches!(file.upstreams, Field::Wrong) || matches!(file.contracts, Field::Wrong);
    if file.upstream.is_absent() && !is_covered && !may_be_covered {
        let known = rooms.upstreams.only();
        let hint = known.map_or_else(
            || "name one of the [upstream.NAME] tables".to_owned(),
            |name| format!("write upstream = {name:?}"),
        );
        let what = "upstream is missing";
        rooms.problem(&named.span, &named.path, what, Some(&hint));
    }
    names
        .iter()
        .map(|name| match own(name) {
            Some((_, place)) => *place,
            None => common,
        })
        .collect()
}

/// `upstreams`: contract and place of the upstream, `None` where that was reported.
fn by_contract(
    file: &file::Endpoint,
    names: &[Option<&Name>],
    rooms: &Rooms<'_>,
) -> Vec<(Box<str>, Option<usize>)> {
    let Some(pairs) = file.upstreams.given() else {
        return Vec::new();
    };
    if file.contracts.is_absent() {
        let what = "chooses by contract, and this endpoint has one";
        let hint = "write upstream = \"...\"";
        rooms.problem(&pairs.span, &pairs.path, what, Some(hint));
        return Vec::new();
    }
    let mut found = Vec::new();
    for (key, name) in &pairs.value {
        let known = names.iter().flatten().map(|name| &*name.0);
        let is_listed = known.clone().any(|name| name == key.value);
        if !is_listed && names.iter().all(Option::is_some) {
            let hint = suggest::hint(&key.value, known);
            let what = "is none of this endpoint's contracts";
            rooms.problem(&key.span, &key.path, what, hint.as_deref());
        }
        let place = name
            .given()
            .and_then(|name| rooms.upstreams.resolve(name, rooms.report));
        found.push((key.value.as_str().into(), place));
    }
    found
}

fn quotas(field: &Field<List<Name>>, rooms: &Rooms<'_>) -> Vec<usize> {
    let mut places = Vec::new();
    for name in elements(field) {
        let Some(place) = rooms.quotas.resolve(name, rooms.report) else {
            continue;
        };
        if places.contains(&place) {
            rooms.problem(&name.span, &name.path, "is listed twice", None);
        } else {
            places.push(place);
        }
    }
    places
}

fn steps(field: &Field<List<Step>>, rooms: &Rooms<'_>) -> Steps {
    let mut steps = Steps::NONE;
    for step in elements(field) {
        if steps.contains(step.value) {
            rooms.problem(&step.span, &step.path, "is listed twice", None);
        }
        steps.insert(step.value);
    }
    steps
}

/// The steps that select one of several contracts cannot be left out.
fn selecting_steps(field: &Field<List<Step>>, rooms: &Rooms<'_>) {
    for step in elements(field) {
        if matches!(step.value, Step::Version | Step::Extension) {
            let what = "cannot only be reported: it selects one of the `contracts`";
            let hint = "pin one `contract`, or leave the step out of `report`";
            rooms.problem(&step.span, &step.path, what, Some(hint));
        }
    }
}

fn methods(field: &Field<List<Filled>>, rooms: &Rooms<'_>) -> Option<Vec<Box<str>>> {
    let list = field.given()?;
    if list.value.is_empty() {
        let what = "is empty: no call could be answered";
        let hint = "leave it out to serve every method";
        rooms.problem(&list.span, &list.path, what, Some(hint));
    }
    let mut methods: Vec<Box<str>> = Vec::new();
    for method in elements(field) {
        if methods.contains(&method.value.0) {
            rooms.problem(&method.span, &method.path, "is listed twice", None);
        } else {
            methods.push(method.value.0.clone());
        }
    }
    Some(methods)
}

/// The elements of a list that are what they should be.
fn elements<T>(field: &Field<List<T>>) -> impl Iterator<Item = &At<T>> {
    field
        .given()
        .into_iter()
        .flat_map(|list| list.value.iter().filter_map(Field::given))
}
