//! The shape of `[reload]`.

use std::time::Duration;

use super::AtLeastOne;
use crate::config::amount::Percent;
use crate::config::read::Field;
use crate::config::table::Table;
use crate::config::word::Integer;

pub(crate) struct Reload {
    pub(crate) keep: Field<Integer<1, 100>>,
    pub(crate) guard: Option<Guard>,
}

pub(crate) struct Guard {
    pub(crate) window: Field<Duration>,
    pub(crate) ratio: Field<Percent>,
    pub(crate) min_requests: Field<AtLeastOne>,
}

impl Reload {
    pub(super) fn take(mut table: Table<'_>) -> Self {
        let keep = table.field("keep");
        let guard = table.table("rollback_on_errors", "`rollback_on_errors`");
        let guard = guard.map(|mut table| {
            let guard = Guard {
                window: table.field("window"),
                ratio: table.field("ratio"),
                min_requests: table.field("min_requests"),
            };
            table.finish();
            guard
        });
        table.finish();
        Self { keep, guard }
    }
}
