//! Decides which keys `[issuer.NAME]` has and what kind of value each takes.

use std::time::Duration;

use crate::config::amount::NonZeroDuration;
use crate::config::read::{Field, List};
use crate::config::settings::Algorithm;
use crate::config::table::Table;
use crate::config::web::KeysAt;
use crate::config::word::{Filled, Name};

pub(crate) struct Issuer {
    pub(crate) issuer: Field<Filled>,
    pub(crate) audience: Field<List<Filled>>,
    pub(crate) jwks: Field<KeysAt>,
    pub(crate) ca: Field<Filled>,
    pub(crate) algorithms: Field<List<Algorithm>>,
    pub(crate) refresh: Field<NonZeroDuration>,
    pub(crate) leeway: Field<Duration>,
    pub(crate) caller_claim: Field<Filled>,
    pub(crate) plan_claim: Field<Filled>,
    pub(crate) plan: Field<Name>,
    pub(crate) endpoints: Field<List<Name>>,
}

impl Issuer {
    pub(super) fn take(mut table: Table<'_>) -> Self {
        let audience = table.one_or_list("audience");
        let issuer = Self {
            issuer: table.required("issuer"),
            audience: table.unless_misspelt(audience, "audience", &[]),
            jwks: table.required("jwks"),
            ca: table.field("ca"),
            algorithms: table.list("algorithms"),
            refresh: table.field("refresh"),
            leeway: table.field("leeway"),
            caller_claim: table.field("caller_claim"),
            plan_claim: table.field("plan_claim"),
            plan: table.field("plan"),
            endpoints: table.list("endpoints"),
        };
        table.finish();
        issuer
    }
}
