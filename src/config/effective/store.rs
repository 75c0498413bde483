//! Decides how a store is shown: what proves who we are is stars.

use super::{literal, named};
use crate::config::amount::spell_duration;
use crate::config::json::{Json, object, some};
use crate::config::settings::{Store, StoreTopology};

pub(super) fn store(store: &Store) -> (&str, Json) {
    let nodes = store.nodes.iter().map(ToString::to_string);
    let sentinel = match &store.topology {
        StoreTopology::Single | StoreTopology::Cluster => None,
        StoreTopology::Sentinel(master) => some(literal(master)),
    };
    let is_cluster = store.topology == StoreTopology::Cluster;
    let username = store.username.as_ref().and_then(|it| some(literal(it)));
    let shown = object([
        ("url", some(store.url.to_string())),
        (
            "nodes",
            (!store.nodes.is_empty()).then(|| Json::list(nodes)),
        ),
        ("cluster", is_cluster.then(|| true.into())),
        ("sentinel", sentinel),
        ("username", username),
        (
            "password",
            store.password.as_ref().and_then(|it| some(it.to_string())),
        ),
        ("ca", store.ca.as_ref().and_then(|it| some(named(it)))),
        ("timeout", some(spell_duration(store.timeout))),
        ("replicas", some(store.replicas.get())),
    ]);
    (&store.name, shown)
}
