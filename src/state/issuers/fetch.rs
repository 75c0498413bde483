//! Decides when the keys at an issuer's URL are fetched, and what of an answer is taken.
//!
//! At the start, then every `refresh` with a tenth of jitter, sooner after a failure, and when a token
//! names an unknown key. Only a 200 counts, of at most 1 MiB, within ten seconds; a redirect is not
//! followed, wherever it leads. Must never hold up a request, a start or a reload: this runs on the
//! control thread, beside them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{Instant, sleep, timeout};

use super::keys::{Keys, Read, Source};
use crate::credential::token::Keyset;
use crate::http1::Lines;
use crate::observe::WallClock;
use crate::state::Reloader;
use crate::upstream::{Pools, Request};

/// How long a fetch may take in all.
const LONGEST: Duration = Duration::from_secs(10);

/// How soon a failed fetch is tried again at first; then half as often each time.
const SOON: Duration = Duration::from_secs(5);

/// The largest answer, in bytes.
const LARGEST: usize = 1 << 20;

/// Fetches the keys of all issuers that have a URL, for ever.
pub async fn follow(reloader: Arc<Reloader>, wall: Arc<dyn WallClock>) {
    let keyring = reloader.keyring();
    let mut followed: Vec<(Arc<Keys>, AbortHandle)> = Vec::new();
    loop {
        let wanted = keyring.fetched();
        followed.retain(|(keys, task)| {
            let is_wanted = wanted.iter().any(|it| Arc::ptr_eq(it, keys));
            if !is_wanted {
                task.abort();
            }
            is_wanted
        });
        for keys in wanted {
            if !followed.iter().any(|(it, _)| Arc::ptr_eq(it, &keys)) {
                let task = spawn_local(refresh(Arc::clone(&keys), Arc::clone(&wall)));
                followed.push((keys, task.abort_handle()));
            }
        }
        keyring.changed().await;
    }
}

/// Keeps one issuer's keys fresh.
async fn refresh(keys: Arc<Keys>, wall: Arc<dyn WallClock>) {
    let Some(source) = keys.source() else { return };
    let pools = Pools::default();
    let mut failures = 0_u32;
    loop {
        let fetched = timeout(LONGEST, fetch(&pools, source)).await;
        let fetched = fetched.unwrap_or_else(|_| Err("took longer than 10 s".into()));
        failures = match &fetched {
            Ok(keyset) => {
                if !keys.current().is_same(keyset) {
                    let (count, left_out) = (keyset.len(), keyset.left_out());
                    tracing::info!(issuer = &*source.issuer, count, left_out, "keys fetched");
                }
                0
            }
            Err(error) => {
                let kept = keys.current().len();
                tracing::warn!(
                    issuer = &*source.issuer,
                    error,
                    kept,
                    "keys cannot be fetched; those that were stay in force"
                );
                failures.saturating_add(1)
            }
        };
        keys.take(fetched, wall.now());
        tokio::select! {
            () = sleep(pause(source.refresh, failures, fastrand::f64())) => {}
            () = keys.wanted.notified() => {}
        }
    }
}

/// How long until the next fetch. `random` is from 0 to 1.
fn pause(refresh: Duration, failures: u32, random: f64) -> Duration {
    let pause = match failures.checked_sub(1) {
        None => refresh,
        Some(more) => SOON.saturating_mul(1 << more.min(16)).min(refresh),
    };
    // Gateways that were started together do not come together.
    pause.mul_f64(0.9 + 0.2 * random)
}

async fn fetch(pools: &Pools, source: &Source) -> Read {
    let mut lines = Lines::new();
    lines.push(b"host", source.upstream.authority.as_bytes());
    lines.push(b"accept", b"application/jwk-set+json, application/json");
    let agent = concat!("forecourt/", env!("CARGO_PKG_VERSION"));
    lines.push(b"user-agent", agent.as_bytes());
    let request = Request {
        method: &Method::GET,
        target: &source.target,
        lines: &lines,
        body: &Bytes::new(),
    };
    let reply = pools
        .exchange(&source.upstream, request, Instant::now())
        .await
        .map_err(|fault| fault.to_string())?;
    if reply.status != StatusCode::OK {
        let hint = if reply.status.is_redirection() {
            ", and redirects are not followed"
        } else {
            ""
        };
        return Err(format!("answered {}{hint}", reply.status.as_u16()).into());
    }
    let body = Limited::new(reply.body, LARGEST).collect().await;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    let keyset = Keyset::parse(&body).map_err(|error| format!("what came {error}"))?;
    Ok(Arc::new(keyset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_tried_again_sooner_and_then_more_seldom() {
        let refresh = Duration::from_secs(600);
        let pauses: Vec<_> = (0..12)
            .map(|failures| pause(refresh, failures, 0.5).as_secs())
            .collect();
        assert_eq!(
            pauses,
            [600, 5, 10, 20, 40, 80, 160, 320, 600, 600, 600, 600]
        );
        assert_eq!(pause(refresh, u32::MAX, 0.5), refresh);
        // Never later than it would have been anyway.
        assert_eq!(pause(Duration::from_secs(1), 1, 0.5).as_secs(), 1);
        let (least, most) = (pause(refresh, 0, 0.0), pause(refresh, 0, 1.0));
        assert_eq!((least.as_secs(), most.as_secs()), (540, 660));
    }
}
