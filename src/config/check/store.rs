//! Decides what a store is: where, of what kind, and who we are to it.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use crate::config::amount::NonZeroDuration;
use crate::config::file;
use crate::config::read::{At, Field};
use crate::config::report::{Finding, Report};
use crate::config::settings::{Kept, OnStoreError, Store, StoreTopology};
use crate::config::store::Node;
use crate::config::table::{Named, Tables};

use super::files::Files;
use super::names::Names;

/// The stores, in the order of the file; `None` where something was reported.
pub(crate) fn check(
    tables: &Tables<file::Store>,
    directory: &Path,
    report: &Report<'_>,
) -> Vec<Option<Store>> {
    let files = Files { directory, report };
    tables.iter().map(|named| store(named, files)).collect()
}

fn store(named: &Named<file::Store>, files: Files<'_, '_>) -> Option<Store> {
    let file = &named.value;
    let problem = |at: (&std::ops::Range<usize>, &str), what: &str, hint: &str| {
        let finding = Finding::error(at.0.clone(), at.1, what).hint(hint.to_owned());
        files.report.add(finding);
    };
    let is_cluster = file.cluster.or(false);
    let topology = match (is_cluster, file.sentinel.given()) {
        (false, None) => StoreTopology::Single,
        (true, None) => StoreTopology::Cluster,
        (false, Some(at)) => StoreTopology::Sentinel(at.value.0.clone()),
        (true, Some(at)) => {
            let what = "contradicts cluster = true: a cluster fails over by itself";
            problem((&at.span, &at.path), what, "remove one of them");
            StoreTopology::Cluster
        }
    };
    let nodes = nodes(&file.nodes);
    if let Some(at) = file.nodes.given()
        && topology == StoreTopology::Single
        && file.cluster.value().is_none_or(|it| !it)
        && file.sentinel.is_absent()
    {
        let what = "names further servers, and a single server is all there is";
        let hint = "add cluster = true, or sentinel = \"NAME\"";
        problem((&at.span, &at.path), what, hint);
    }
    let url = file.url.given();
    if let Some(at) = url {
        if is_cluster && at.value.url.database > 0 {
            let what = "names a database, and a cluster has only the one";
            problem((&at.span, &at.path), what, "leave the number out");
        }
        if let Some(ca) = file.ca.given()
            && !at.value.url.tls
        {
            let what = "is for TLS, and the URL is in clear";
            problem((&ca.span, &ca.path), what, "write url = \"rediss://..\"");
        }
        let twice = "is given twice: the URL names one as well";
        if let Some(name) = file.username.given()
            && at.value.username.is_some()
        {
            problem((&name.span, &name.path), twice, "leave it out of the URL");
        }
        if let Some(password) = file.password.given()
            && at.value.password.is_some()
        {
            problem(
                (&password.span, &password.path),
                twice,
                "leave it out of the URL",
            );
        }
    }
    let username = file.username.value().map(|it| it.0);
    let username = username.or_else(|| url?.value.username.clone());
    let password = file.password.value().map(|it| it.0);
    let password = password.or_else(|| url?.value.password.clone());
    if let (Some(at), None, true) = (
        file.username.given(),
        &password,
        file.password.is_absent() && url.is_some(),
    ) {
        let what = "has no password";
        problem(
            (&at.span, &at.path),
            what,
            "add password = \"${STORE_PASSWORD}\"",
        );
    }
    Some(Store {
        name: named.name.clone(),
        url: url?.value.url.clone(),
        nodes,
        topology,
        username,
        password,
        ca: files.one(&file.ca),
        timeout: file
            .timeout
            .or(NonZeroDuration(Duration::from_millis(10)))
            .0,
        replicas: match &file.replicas {
            Field::Absent => NonZeroU32::MIN,
            Field::Wrong => return None,
            Field::Given(at) => at.value.requests()?,
        },
    })
}

fn nodes(field: &Field<Vec<Field<Node>>>) -> Vec<Node> {
    let list = field.given().into_iter().flat_map(|list| &list.value);
    list.filter_map(Field::value).collect()
}

/// Which store a quota is kept in, and what holds without it; `Err` where something was reported.
pub(super) fn kept(
    file: &file::Quota,
    stores: &Names<'_>,
    report: &Report<'_>,
) -> Result<Option<Kept>, ()> {
    let name = match &file.store {
        Field::Given(at) => at,
        Field::Wrong => return Err(()),
        Field::Absent => {
            let Some(at) = file.on_store_error.given() else {
                return Ok(None);
            };
            let At { span, path, .. } = at;
            let what = "is for quotas in a store, and this process counts this one";
            let hint = "add store = \"NAME\", or leave it out".to_owned();
            report.add(Finding::error(span.clone(), path, what).hint(hint));
            return Err(());
        }
    };
    let store = stores.resolve(name, report).ok_or(())?;
    if let Some(at) = file.allowance.concurrent.given() {
        let what =
            "cannot be kept in a store: a gateway that ends would never give its places back";
        let hint = "leave `store` out; each process then counts its own requests".to_owned();
        report.add(Finding::error(at.span.clone(), at.path.clone(), what).hint(hint));
        return Err(());
    }
    Ok(Some(Kept {
        store,
        on_error: file.on_store_error.or(OnStoreError::default()),
    }))
}
