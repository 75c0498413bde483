//! Decides which keys `[store.NAME]` has and what kind of value each takes.

use super::AtLeastOne;
use crate::config::amount::NonZeroDuration;
use crate::config::read::{Field, List};
use crate::config::store::{Node, Password, Written};
use crate::config::table::Table;
use crate::config::word::Filled;

pub(crate) struct Store {
    pub(crate) url: Field<Written>,
    pub(crate) nodes: Field<List<Node>>,
    pub(crate) cluster: Field<bool>,
    pub(crate) sentinel: Field<Filled>,
    pub(crate) username: Field<Filled>,
    pub(crate) password: Field<Password>,
    pub(crate) ca: Field<Filled>,
    pub(crate) timeout: Field<NonZeroDuration>,
    pub(crate) replicas: Field<AtLeastOne>,
}

pub(super) fn store(mut table: Table<'_>) -> Store {
    let store = Store {
        url: table.required("url"),
        nodes: table.list("nodes"),
        cluster: table.field("cluster"),
        sentinel: table.field("sentinel"),
        username: table.field("username"),
        password: table.field("password"),
        ca: table.field("ca"),
        timeout: table.field("timeout"),
        replicas: table.field("replicas"),
    };
    table.finish();
    store
}
