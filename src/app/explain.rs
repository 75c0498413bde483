//! Decides how a request is explained by a file, without a gateway: as a gateway would that has just
//! started with it. Must never open a socket.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::load::{Loaded, Options, load};
use crate::config::Problems;
use crate::proxy::explain::{Explanation, Ground, Question, Unasked, explain};
use crate::state::Readiness;
use crate::state::twin::{apart, twin};

/// Why a request cannot be explained by a file.
#[derive(Debug, thiserror::Error)]
pub enum Unexplained {
    /// The configuration has problems.
    #[error("{0}")]
    Config(Problems),
    /// The question is none.
    #[error(transparent)]
    Question(#[from] Unasked),
    /// This process cannot ask.
    #[error("cannot ask: {0}")]
    Here(#[from] std::io::Error),
}

/// Says what a gateway would do with a request of this client at this listener (`None`: the first), to
/// the byte.
///
/// # Errors
/// Why that cannot be said.
pub fn explained(
    options: &Options,
    request: Bytes,
    client: IpAddr,
    listener: Option<&str>,
) -> Result<Explanation, Unexplained> {
    let Loaded {
        settings, keyring, ..
    } = load(options).map_err(Unexplained::Config)?;
    let shared = apart(&options.clock, 0);
    let snapshot = Arc::new(twin(&settings, 1, &shared, &keyring));
    let readiness = Arc::new(Readiness::default());
    readiness.set_ready(true);
    let ground = Ground {
        snapshot: &snapshot,
        shared: &shared,
        keyring: &keyring,
        readiness: &readiness,
        wall: &options.wall,
    };
    let question = Question {
        request,
        client,
        listener: listener.map(Into::into),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(explain(&ground, question))?)
}
