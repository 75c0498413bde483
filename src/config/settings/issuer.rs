//! Decides what a valid `[issuer.NAME]` is. Must never hold a key.

use std::time::Duration;

use super::{NamedFile, UpstreamTls};
use crate::config::web::KeysUrl;

/// `[issuer.NAME]`: whose signed tokens are believed.
#[derive(Clone, Debug, PartialEq)]
pub struct Issuer {
    /// Its name; callers are called `NAME/` and what the token calls them.
    pub name: Box<str>,
    /// `iss`, exactly.
    pub issuer: Box<str>,
    /// `aud`: one of these. Never empty.
    pub audience: Vec<Box<str>>,
    /// Where its keys are.
    pub jwks: Jwks,
    /// `alg`: one of these. Never empty. Default RS256 and ES256.
    pub algorithms: Vec<Algorithm>,
    /// How often keys at a URL are fetched: 1 s to 24 h. Default 10 min.
    pub refresh: Duration,
    /// How far clocks may be apart, whole seconds up to 5 min. Default 30 s.
    pub leeway: Duration,
    /// The claim that names the caller. Default `sub`.
    pub caller_claim: Box<str>,
    /// The claim that names the plan. `None`: all have the same.
    pub plan_claim: Option<Box<str>>,
    /// The plan of callers whose token names none that there is, as a place in
    /// [`Settings::plans`](super::Settings::plans).
    pub plan: Option<usize>,
    /// Where its callers may call, as places in [`Settings::endpoints`](super::Settings::endpoints);
    /// never empty. `None`: everywhere.
    pub endpoints: Option<Vec<usize>>,
}

/// Where an issuer's keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Jwks {
    /// In a file, which is followed.
    File(NamedFile),
    /// At a URL, which is fetched.
    Url {
        /// Where.
        url: KeysUrl,
        /// How it is spoken to over TLS: `Some` where the URL is `https`.
        tls: Option<UpstreamTls>,
    },
}

/// How a token is signed. None of these is symmetric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// Every choice.
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// The name in tokens, keys and configuration (RFC 7518, RFC 8037).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of a name, in exactly its spelling.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}
