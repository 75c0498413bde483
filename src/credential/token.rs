//! Decides whether a JSON Web Token is believed: one signed by a key of its issuer, for us, now.
//!
//! RFC 7515, 7517 and 7519, narrowed as RFC 8725 advises. The algorithm must be one that the operator
//! lists, of a key whose type, `alg` and `use` agree; all of them are asymmetric. Nothing in a token
//! ever brings a key with it: `jwk`, `jku`, `x5u` and `x5c` are not looked at. What `crit` asks for is
//! not understood, so a token with it is refused. A token says which issuer's keys it is to be verified with,
//! and is then believed in nothing that they did not sign.
//!
//! Must never read a clock, and never show a token.

mod cache;
mod claims;
mod keyset;

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::crypto;
use serde::Deserialize;
use serde::de::IgnoredAny;

pub use crate::config::Algorithm;
pub use cache::{Cache, Print};
pub use claims::LONGEST_CALLER;
pub use keyset::{Keyset, Unusable};

use claims::Claims;

/// Longer tokens are not looked at, in bytes.
pub const LONGEST: usize = 8 * 1024;

/// How many keys a token is tried with, where several could have signed it.
const TRIED: usize = 4;

/// What an issuer's tokens are held to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `iss`, exactly.
    pub issuer: Box<str>,
    /// `aud`: one of these.
    pub audience: Box<[Box<str>]>,
    /// `alg`: one of these.
    pub algorithms: Box<[Algorithm]>,
    /// How far clocks may be apart, s.
    pub leeway: i64,
    /// The claim that names the caller.
    pub caller_claim: Box<str>,
    /// The claim that names the plan.
    pub plan_claim: Option<Box<str>>,
}

/// What a token says that is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Who is asking, in the issuer's words: 1 to 256 bytes without a control character.
    pub caller: Box<str>,
    /// The plan that it names, where it has the claim. Empty: it names none in a way that could be read.
    pub plan: Option<Box<str>>,
    /// From when it is valid, leeway included: s since 1970.
    pub not_before: i64,
    /// Until when it is valid, leeway included: s since 1970, the first at which it is not.
    pub expires: i64,
}

/// Why a token is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// It is no JWT, or longer than 8 KiB, or says something twice, or has no `exp`.
    Malformed,
    /// Nobody is configured whose `iss` it names.
    UnknownIssuer,
    /// Its algorithm is not listed, or is not that of the key it names.
    Algorithm,
    /// The issuer has no such key, as far as is known.
    UnknownKey,
    /// No key of the issuer signed it.
    BadSignature,
    /// It is for somebody else.
    WrongAudience,
    /// Its time is over.
    Expired,
    /// Its time is yet to come.
    NotYetValid,
    /// It does not say who is asking.
    NoCaller,
}

impl Bad {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::Malformed,
        Self::UnknownIssuer,
        Self::Algorithm,
        Self::UnknownKey,
        Self::BadSignature,
        Self::WrongAudience,
        Self::Expired,
        Self::NotYetValid,
        Self::NoCaller,
    ];

    /// As metrics and log lines spell it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownIssuer => "unknown_issuer",
            Self::Algorithm => "algorithm",
            Self::UnknownKey => "unknown_key",
            Self::BadSignature => "bad_signature",
            Self::WrongAudience => "wrong_audience",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::NoCaller => "no_caller",
        }
    }

    /// For the log.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Malformed => "the token cannot be read",
            Self::UnknownIssuer => "the token is of no issuer that is known",
            Self::Algorithm => "the token's algorithm is not taken",
            Self::UnknownKey => "the token's key is not known",
            Self::BadSignature => "the token's signature is bad",
            Self::WrongAudience => "the token is for another audience",
            Self::Expired => "the token is expired",
            Self::NotYetValid => "the token is not yet valid",
            Self::NoCaller => "the token names no caller",
        }
    }
}

impl Verified {
    /// Whether this is within its time.
    #[must_use]
    pub const fn is_valid(&self, now: i64) -> bool {
        self.not_before <= now && now < self.expires
    }
}

/// Whether this could be a JWT: three parts of base64url. What else stands behind `Bearer` is no token
/// of an issuer's.
#[must_use]
pub fn has_shape(token: &[u8]) -> bool {
    let is_part = |part: &[u8]| {
        let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        !part.is_empty() && part.iter().all(is_digit)
    };
    let mut parts = token.split(|byte| *byte == b'.');
    let three = [parts.next(), parts.next(), parts.next()];
    parts.next().is_none() && three.into_iter().all(|part| part.is_some_and(is_part))
}

/// The issuer that a token names, which says with whose keys it is to be verified and nothing else.
///
/// # Errors
/// `Malformed`.
pub fn issuer(token: &[u8]) -> Result<String, Bad> {
    #[derive(Deserialize)]
    struct Named {
        iss: String,
    }
    let parts = Parts::of(token)?;
    let payload = decoded(parts.payload)?;
    let named: Named = serde_json::from_slice(&payload).map_err(|_| Bad::Malformed)?;
    Ok(named.iss)
}

/// Decides whether a token is believed at this time: s since 1970.
///
/// # Errors
/// Why not. Nothing that it says may be used then.
pub fn verify(token: &[u8], keyset: &Keyset, rules: &Rules, now: i64) -> Result<Verified, Bad> {
    let parts = Parts::of(token)?;
    let bytes = decoded(parts.header)?;
    let header: Header<'_> = serde_json::from_slice(&bytes).map_err(|_| Bad::Malformed)?;
    if header.crit.is_some() || !header.is_of_access() {
        return Err(Bad::Malformed);
    }
    let algorithm = Algorithm::named(&header.alg).ok_or(Bad::Algorithm)?;
    if !rules.algorithms.contains(&algorithm) {
        return Err(Bad::Algorithm);
    }
    let kid = header.kid.as_deref();
    let mut keys = keyset.fitting(kid, algorithm).peekable();
    if keys.peek().is_none() {
        return Err(match kid {
            Some(kid) if !keyset.has(kid) => Bad::UnknownKey,
            Some(_) | None => Bad::Algorithm,
        });
    }
    let is_signed = keys.take(TRIED).any(|key| {
        let verified = crypto::verify(parts.signature, parts.message, key, library(algorithm));
        verified.unwrap_or(false)
    });
    if !is_signed {
        return Err(Bad::BadSignature);
    }
    let payload = decoded(parts.payload)?;
    let claims: Claims = serde_json::from_slice(&payload).map_err(|_| Bad::Malformed)?;
    claims.judge(rules, now)
}

/// A token's parts as it has them.
struct Parts<'t> {
    header: &'t str,
    payload: &'t str,
    signature: &'t str,
    /// What is signed: header and payload with the dot between them.
    message: &'t [u8],
}

impl<'t> Parts<'t> {
    fn of(token: &'t [u8]) -> Result<Self, Bad> {
        if token.len() > LONGEST || !has_shape(token) {
            return Err(Bad::Malformed);
        }
        let text = std::str::from_utf8(token).map_err(|_| Bad::Malformed)?;
        let (message, signature) = text.rsplit_once('.').ok_or(Bad::Malformed)?;
        let (header, payload) = message.split_once('.').ok_or(Bad::Malformed)?;
        Ok(Self {
            header,
            payload,
            signature,
            message: message.as_bytes(),
        })
    }
}

/// What of a header is looked at. Whatever else stands in it must be ignored (RFC 7515, 4).
#[derive(Deserialize)]
struct Header<'h> {
    #[serde(borrow)]
    alg: Cow<'h, str>,
    #[serde(borrow, default)]
    kid: Option<Cow<'h, str>>,
    #[serde(borrow, default)]
    typ: Option<Cow<'h, str>>,
    #[serde(default)]
    crit: Option<IgnoredAny>,
}

impl Header<'_> {
    /// Whether it may be a token to show: those of other types are signed with the same keys, and are
    /// for something else (RFC 8725, 3.11).
    fn is_of_access(&self) -> bool {
        let Some(typ) = self.typ.as_deref() else {
            return true;
        };
        let typ = match typ.split_at_checked("application/".len()) {
            Some((start, rest)) if start.eq_ignore_ascii_case("application/") => rest,
            _ => typ,
        };
        typ.eq_ignore_ascii_case("jwt") || typ.eq_ignore_ascii_case("at+jwt")
    }
}

fn decoded(part: &str) -> Result<Vec<u8>, Bad> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| Bad::Malformed)
}

/// The library's word for an algorithm. None of them is symmetric.
const fn library(algorithm: Algorithm) -> jsonwebtoken::Algorithm {
    match algorithm {
        Algorithm::Rs256 => jsonwebtoken::Algorithm::RS256,
        Algorithm::Rs384 => jsonwebtoken::Algorithm::RS384,
        Algorithm::Rs512 => jsonwebtoken::Algorithm::RS512,
        Algorithm::Ps256 => jsonwebtoken::Algorithm::PS256,
        Algorithm::Ps384 => jsonwebtoken::Algorithm::PS384,
        Algorithm::Ps512 => jsonwebtoken::Algorithm::PS512,
        Algorithm::Es256 => jsonwebtoken::Algorithm::ES256,
        Algorithm::Es384 => jsonwebtoken::Algorithm::ES384,
        Algorithm::EdDsa => jsonwebtoken::Algorithm::EdDSA,
    }
}

#[cfg(test)]
mod tests;
