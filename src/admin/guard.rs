//! Decides who may see inside and drive the gateway.
//!
//! Where `[admin] token_sha256` names tokens, whoever has one, and nobody else: by any name, from
//! anywhere, a browser too. Without one, only where the socket is on loopback, and only whoever reached it
//! by its address. A browser on an operator's machine reaches loopback as well: a page of a stranger can
//! send it requests, and can have its own host name resolve to 127.0.0.1 to read the answers (DNS
//! rebinding). Such a page can neither leave out `Origin` on a POST, nor put an address into `Host`, nor
//! send an `Authorization` of its own to an origin that does not let it.
//!
//! Must never tell a token, nor by the time it takes how near a wrong one came.

use std::net::IpAddr;
use std::time::Duration;

use http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::Instant;

use super::answer::{Answer, text};
use super::attempts::Attempts;
use crate::config::KeySha256;
use crate::credential::key::{Digest, LONGEST};
use crate::observe::AdminRefusal;

/// Where a browser says whose page sent a request.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Who is let in where.
#[derive(Debug)]
pub(super) struct Guard<'g> {
    /// What operators are known by. Empty: by where they come from.
    pub(super) tokens: &'g [KeySha256],
    /// Whether the socket is on loopback.
    pub(super) is_local: bool,
    /// What was tried.
    pub(super) attempts: &'g Attempts,
}

impl Guard<'_> {
    /// Whether an operator sent this.
    ///
    /// # Errors
    /// Why it is not certain.
    pub(super) fn operator(&self, headers: &HeaderMap, peer: IpAddr) -> Result<(), Refused> {
        if self.tokens.is_empty() {
            self.reached(headers)?;
            return match comes_from_another_site(headers) {
                true => Err(AdminRefusal::Browser.into()),
                false => Ok(()),
            };
        }
        let Some(token) = bearer(headers) else {
            return Err(AdminRefusal::Absent.into());
        };
        let now = Instant::now();
        if let Some(wait) = self.attempts.wait(peer, now) {
            return Err(Refused {
                why: AdminRefusal::TooMany,
                wait: Some(wait),
            });
        }
        if self.knows(token) {
            return Ok(());
        }
        self.attempts.failed(peer, now);
        tracing::warn!(%peer, "a wrong token on the admin socket");
        Err(AdminRefusal::Wrong.into())
    }

    /// Whether the page can be shown, which holds nothing and asks for the token itself.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn page(&self, headers: &HeaderMap) -> Result<(), Refused> {
        match self.tokens {
            [] => self.reached(headers),
            [..] => Ok(()),
        }
    }

    fn reached(&self, headers: &HeaderMap) -> Result<(), Refused> {
        if !self.is_local {
            return Err(AdminRefusal::Unprotected.into());
        }
        match is_by_address(headers) && !headers.contains_key(ORIGIN) {
            true => Ok(()),
            false => Err(AdminRefusal::Browser.into()),
        }
    }

    /// Compares with all of them, each whole.
    fn knows(&self, token: &[u8]) -> bool {
        if token.len() > LONGEST {
            return false;
        }
        let digest = Digest::of(token);
        let tokens = self.tokens.iter();
        tokens.fold(false, |known, it| known | (Digest::from(it.0) == digest))
    }
}

/// Why somebody was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) why: AdminRefusal,
    /// After which it will be looked at again.
    wait: Option<Duration>,
}

impl From<AdminRefusal> for Refused {
    fn from(why: AdminRefusal) -> Self {
        Self { why, wait: None }
    }
}

impl Refused {
    /// What is said of it.
    pub(super) fn answer(self) -> Answer {
        let (status, what) = match self.why {
            AdminRefusal::Browser => (
                StatusCode::FORBIDDEN,
                "only from the command line, by address; a browser may see the page at / by address\n",
            ),
            AdminRefusal::Unprotected => (
                StatusCode::FORBIDDEN,
                "others reach this socket, and no token tells operators from them: configure [admin] \
                 token_sha256 (`forecourt key admin` makes one), or have [admin] address on loopback\n",
            ),
            AdminRefusal::Absent => (
                StatusCode::UNAUTHORIZED,
                "needs `Authorization: Bearer TOKEN`, a token of [admin] token_sha256\n",
            ),
            AdminRefusal::Wrong => (
                StatusCode::UNAUTHORIZED,
                "the token is none of [admin] token_sha256\n",
            ),
            AdminRefusal::TooMany => (
                StatusCode::TOO_MANY_REQUESTS,
                "too many wrong tokens came from this address: none is looked at for a while\n",
            ),
        };
        let mut answer = text(status, what);
        let challenge = match self.why {
            AdminRefusal::Absent => Some("Bearer realm=\"forecourt admin\""),
            AdminRefusal::Wrong => {
                Some("Bearer realm=\"forecourt admin\", error=\"invalid_token\"")
            }
            AdminRefusal::Browser | AdminRefusal::Unprotected | AdminRefusal::TooMany => None,
        };
        let headers = answer.headers_mut();
        if let Some(challenge) = challenge {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if let Some(wait) = self.wait {
            headers.insert(RETRY_AFTER, (wait.as_secs() + 1).into());
        }
        answer
    }
}

/// The one token that a request carries.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (all.next(), all.next()) else {
        return None;
    };
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

/// Whether its one `Host` is an address or `localhost`, which no foreign name can be rebound to.
fn is_by_address(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default(),
        _ => return false,
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    let literal = name.trim_start_matches('[').trim_end_matches(']');
    literal.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

/// Whether a browser says that another site's page sent this: an image or a script, which has no
/// `Origin`.
fn comes_from_another_site(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
    sites.any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"))
}

#[cfg(test)]
mod tests;
