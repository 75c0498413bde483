//! Decides which keys `[quota.NAME]` and `[plan.NAME]` have and what kind of value each takes.
//!
//! Must never hold a rule that looks at two keys: those are in `check`.

use super::{AtLeastOne, Pairs};
use crate::config::amount::Rate;
use crate::config::per::Dimension;
use crate::config::read::{Field, List};
use crate::config::settings::OnStoreError;
use crate::config::table::{Table, Tables};
use crate::config::word::{Filled, Name};

pub(crate) struct Quota {
    pub(crate) per: Field<List<Dimension>>,
    pub(crate) allowance: Allowance,
    pub(crate) shared: Field<bool>,
    pub(crate) skills: Field<List<Filled>>,
    pub(crate) methods: Field<List<Filled>>,
    pub(crate) cost: Pairs<AtLeastOne>,
    pub(crate) store: Field<Name>,
    pub(crate) on_store_error: Field<OnStoreError>,
}

/// How much a quota lets through: what stands in a quota, and what a plan puts in its place.
pub(crate) struct Allowance {
    pub(crate) rate: Field<Rate>,
    pub(crate) burst: Field<AtLeastOne>,
    pub(crate) concurrent: Field<AtLeastOne>,
}

pub(crate) struct Plan {
    pub(crate) quotas: Tables<Allowance>,
}

pub(super) fn quota(mut table: Table<'_>) -> Quota {
    let per = table.one_or_list("per");
    let per = table.unless_misspelt(per, "per", &[]);
    let mut allowance = allowance(&mut table);
    allowance.rate = table.unless_misspelt(allowance.rate, "rate", &["concurrent"]);
    let quota = Quota {
        per,
        allowance,
        shared: table.field("shared"),
        skills: table.list("skills"),
        methods: table.list("methods"),
        cost: table.pairs("cost", "`cost`"),
        store: table.field("store"),
        on_store_error: table.field("on_store_error"),
    };
    table.finish();
    quota
}

fn allowance(table: &mut Table<'_>) -> Allowance {
    Allowance {
        rate: table.field("rate"),
        burst: table.field("burst"),
        concurrent: table.field("concurrent"),
    }
}

pub(super) fn plan(mut table: Table<'_>) -> Plan {
    let plan = Plan {
        quotas: table.named("quotas", "`quotas`", |mut table| {
            let read = allowance(&mut table);
            table.finish();
            read
        }),
    };
    table.finish();
    plan
}
