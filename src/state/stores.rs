//! Decides which stores a configuration needs, and which of an endpoint's quotas each of them keeps.
//!
//! A store whose configuration did not change is taken over from the previous snapshot, with its
//! connection and with what it granted. Opening one does not wait for it.

use std::sync::Arc;

use super::snapshot::{Shared, Snapshot};
use crate::config::{self, Settings};
use crate::limit::Rule;
use crate::limit::shared::{Failure, Group, Link, Member, Meters, Parts, Roots, Store, Topology};

/// The stores of the settings, in their order.
pub(super) fn open(
    settings: &Settings,
    shared: &Shared,
    previous: Option<&Snapshot>,
) -> Vec<Arc<Store>> {
    let stores = settings.stores.iter();
    stores
        .map(|wanted| carried_over(wanted, previous).unwrap_or_else(|| opened(wanted, shared)))
        .collect()
}

/// What of an endpoint's quotas, whose rules these are in their order, is kept in which store.
pub(super) fn groups(
    endpoint: &config::Endpoint,
    rules: &[Rule],
    settings: &Settings,
    stores: &[Arc<Store>],
) -> Box<[Group]> {
    let member = |store: usize, place: usize, rule: &Rule| {
        let quota = settings.quotas.get(*endpoint.quotas.get(place)?)?;
        let kept = quota.kept.filter(|kept| kept.store == store)?;
        Some(Member {
            place,
            rule: rule.clone(),
            on_error: kept.on_error,
        })
    };
    let each = stores.iter().zip(&settings.stores).enumerate();
    let groups = each.filter_map(|(at, (store, configured))| {
        let rules = rules.iter().enumerate();
        let members: Vec<_> = rules
            .filter_map(|(place, rule)| member(at, place, rule))
            .collect();
        let store = Arc::clone(store);
        (!members.is_empty())
            .then(|| Group::compile(store, configured.replicas, &members, &endpoint.name))
    });
    groups.collect()
}

/// Closes those stores that are no longer needed.
pub(super) fn close_others(before: &[Arc<Store>], kept: &[Arc<Store>]) {
    for store in before {
        if !kept.iter().any(|other| Arc::ptr_eq(store, other)) {
            store.close();
        }
    }
}

/// Drops the series of a store that is no longer configured.
pub(super) fn forget(name: &str, shared: &Shared) {
    shared
        .metrics
        .forget_store(name, &Failure::ALL.map(Failure::label));
}

fn carried_over(wanted: &config::Store, previous: Option<&Snapshot>) -> Option<Arc<Store>> {
    let previous = previous?;
    let stores = previous.settings.stores.iter().zip(&previous.stores);
    let mut stores = stores.filter(|(before, _)| *before == wanted);
    stores.next().map(|(_, opened)| Arc::clone(opened))
}

fn opened(wanted: &config::Store, shared: &Shared) -> Arc<Store> {
    let url = &wanted.url;
    let roots = || match &wanted.ca {
        None => Roots::System,
        Some(file) => Roots::File(file.path.clone()),
    };
    let link = Link {
        host: url.node.host.clone(),
        port: url.node.port,
        nodes: wanted
            .nodes
            .iter()
            .map(|node| (node.host.clone(), node.port))
            .collect(),
        topology: match &wanted.topology {
            config::StoreTopology::Single => Topology::Single,
            config::StoreTopology::Cluster => Topology::Cluster,
            config::StoreTopology::Sentinel(master) => Topology::Sentinel(master.clone()),
        },
        tls: url.tls.then(roots),
        username: wanted.username.clone(),
        password: wanted.password.as_ref().map(|it| it.expose().into()),
        database: url.database,
    };
    let meters = shared
        .metrics
        .store(&wanted.name, &Failure::ALL.map(Failure::label));
    let mut errors = meters.errors.iter().cloned();
    let parts = Parts {
        name: wanted.name.clone(),
        link,
        timeout: wanted.timeout,
        clock: Arc::clone(&shared.clock),
        meters: Meters {
            degraded: meters.degraded.clone(),
            calls: meters.calls.clone(),
            failed: std::array::from_fn(|_| errors.next().unwrap_or_default()),
            took: Arc::new(move |took| meters.answered(took)),
        },
    };
    Arc::new(Store::open(parts, shared.stores.handle()))
}
