//! The shape of `[admin]`.

use std::net::SocketAddr;

use crate::config::read::{Field, List};
use crate::config::settings::KeySha256;
use crate::config::table::Table;

pub(crate) struct Admin {
    pub(crate) address: Field<SocketAddr>,
    pub(crate) token_sha256: Field<List<KeySha256>>,
}

impl Admin {
    pub(super) fn take(mut table: Table<'_>) -> Self {
        let admin = Self {
            address: table.field("address"),
            token_sha256: table.one_or_list("token_sha256"),
        };
        table.finish();
        admin
    }
}
