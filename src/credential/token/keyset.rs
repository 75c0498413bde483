//! Decides which keys of a JSON Web Key Set can verify tokens (RFC 7517, RFC 7518 section 6).
//!
//! A key that cannot is left out: sets hold keys for encryption, and of kinds that others use. A
//! symmetric key is never taken, whoever publishes it. Must never say what stands in a set that is
//! none: it may be a file of another kind.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::DecodingKey;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::Algorithm;

/// Larger sets are not read, in bytes.
const LARGEST: usize = 1 << 20;

/// Most keys of a set.
const MOST: usize = 256;

/// An issuer's keys.
pub struct Keyset {
    serial: u64,
    print: [u8; 32],
    keys: Box<[Key]>,
    left_out: usize,
}

struct Key {
    id: Option<Box<str>>,
    kind: Kind,
    /// The one algorithm it is for, where it says so.
    algorithm: Option<Algorithm>,
    key: DecodingKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// Why a text is no set of keys that tokens could be verified with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable(Box<str>);

impl Keyset {
    /// A set without a key: what is known of an issuer before anything came of it.
    #[must_use]
    pub fn none() -> Self {
        Self {
            serial: next(),
            print: [0; 32],
            keys: [].into(),
            left_out: 0,
        }
    }

    /// Reads a set.
    ///
    /// # Errors
    /// It is none, or none of its keys can be used.
    pub fn parse(text: &[u8]) -> Result<Self, Unusable> {
        #[derive(Deserialize)]
        struct Set<'s> {
            #[serde(borrow)]
            keys: Vec<&'s RawValue>,
        }
        let unusable = |why: String| Unusable(why.into());
        if text.len() > LARGEST {
            return Err(unusable("is larger than 1 MiB".to_owned()));
        }
        let set: Set<'_> = serde_json::from_slice(text).map_err(|error| {
            // The library's own words may quote what stands there.
            let (line, column) = (error.line(), error.column());
            unusable(if error.is_data() {
                format!("is no JSON Web Key Set: an object with a list `keys` (line {line})")
            } else {
                format!("is no JSON (line {line}, column {column})")
            })
        })?;
        if set.keys.len() > MOST {
            return Err(unusable(format!("holds more than {MOST} keys")));
        }
        let mut keys = Vec::new();
        let mut first = None;
        for (place, raw) in set.keys.iter().enumerate() {
            match key(raw.get()) {
                Ok(key) => keys.push(key),
                Err(why) => _ = first.get_or_insert((place + 1, why)),
            }
        }
        if keys.is_empty() {
            return Err(unusable(match first {
                None => "holds no key".to_owned(),
                Some((place, why)) => {
                    format!("holds no key that can verify a token: number {place} {why}")
                }
            }));
        }
        Ok(Self {
            serial: next(),
            print: Sha256::digest(text).into(),
            left_out: set.keys.len() - keys.len(),
            keys: keys.into(),
        })
    }

    /// Tells this set from any other that was read.
    #[must_use]
    pub const fn serial(&self) -> u64 {
        self.serial
    }

    /// Whether the other was read from the same bytes.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.print == other.print
    }

    /// How many keys can be used.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many keys cannot be used.
    #[must_use]
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// Whether a key is called this.
    pub(super) fn has(&self, id: &str) -> bool {
        self.keys.iter().any(|key| key.id.as_deref() == Some(id))
    }

    /// The keys that may have signed a token with this `kid` and algorithm.
    pub(super) fn fitting(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &DecodingKey> {
        let fits = move |key: &&Key| {
            Kind::of(algorithm) == key.kind
                && key.algorithm.is_none_or(|it| it == algorithm)
                && id.is_none_or(|id| key.id.as_deref() == Some(id))
        };
        self.keys.iter().filter(fits).map(|it| &it.key)
    }
}

impl Kind {
    const fn of(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Rs256
            | Algorithm::Rs384
            | Algorithm::Rs512
            | Algorithm::Ps256
            | Algorithm::Ps384
            | Algorithm::Ps512 => Self::Rsa,
            Algorithm::Es256 => Self::P256,
            Algorithm::Es384 => Self::P384,
            Algorithm::EdDsa => Self::Ed25519,
        }
    }
}

fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What of a key is looked at.
#[derive(Deserialize)]
struct Jwk<'k> {
    #[serde(borrow)]
    kty: Cow<'k, str>,
    #[serde(borrow, default, rename = "use")]
    purpose: Option<Cow<'k, str>>,
    #[serde(borrow, default)]
    key_ops: Option<Vec<Cow<'k, str>>>,
    #[serde(borrow, default)]
    alg: Option<Cow<'k, str>>,
    #[serde(borrow, default)]
    kid: Option<Cow<'k, str>>,
    #[serde(borrow, default)]
    crv: Option<Cow<'k, str>>,
    #[serde(borrow, default)]
    n: Option<Cow<'k, str>>,
    #[serde(borrow, default)]
    e: Option<Cow<'k, str>>,
    #[serde(borrow, default)]
    x: Option<Cow<'k, str>>,
    #[serde(borrow, default)]
    y: Option<Cow<'k, str>>,
}

/// A key, or why it cannot verify a token.
fn key(text: &str) -> Result<Key, &'static str> {
    let jwk: Jwk<'_> = serde_json::from_str(text).map_err(|_| "is no JSON Web Key")?;
    if jwk.purpose.as_deref().is_some_and(|it| it != "sig") {
        return Err("is not for signatures (`use`)");
    }
    if let Some(operations) = &jwk.key_ops
        && !operations.iter().any(|it| it == "verify")
    {
        return Err("is not to verify with (`key_ops`)");
    }
    let (kind, key) = match (&*jwk.kty, jwk.crv.as_deref()) {
        ("oct", _) => return Err("is symmetric: whoever can verify with it could sign"),
        ("RSA", _) => (Kind::Rsa, rsa(&jwk)?),
        ("EC", Some("P-256")) => (Kind::P256, point(&jwk, 32)?),
        ("EC", Some("P-384")) => (Kind::P384, point(&jwk, 48)?),
        ("OKP", Some("Ed25519")) => {
            let x = bytes(jwk.x.as_deref()).filter(|it| it.len() == 32);
            let x = x.ok_or("has no public key of 32 bytes in `x`")?;
            (Kind::Ed25519, DecodingKey::from_ed_der(&x))
        }
        _ => return Err("is of a kind that is not supported (`kty`, `crv`)"),
    };
    let algorithm = match jwk.alg.as_deref() {
        None => None,
        Some(name) => {
            let named = Algorithm::named(name).filter(|it| Kind::of(*it) == kind);
            Some(named.ok_or("has an `alg` that is not supported, or not of its kind")?)
        }
    };
    Ok(Key {
        id: jwk.kid.as_deref().map(Into::into),
        kind,
        algorithm,
        key,
    })
}

fn rsa(jwk: &Jwk<'_>) -> Result<DecodingKey, &'static str> {
    const WRONG: &str = "has no modulus and exponent in `n` and `e`";
    let n = bytes(jwk.n.as_deref()).ok_or(WRONG)?;
    let e = bytes(jwk.e.as_deref()).ok_or(WRONG)?;
    let start = n.iter().take_while(|byte| **byte == 0).count();
    let n = n.get(start..).unwrap_or_default();
    let bits = n.len() * 8 - n.first().map_or(0, |byte| byte.leading_zeros() as usize);
    if !(2048..=8192).contains(&bits) {
        return Err("is not of 2048 to 8192 bits");
    }
    // An exponent that is even or 1 would make a signature of any bytes.
    let is_odd = e.last().is_some_and(|last| last % 2 == 1);
    let is_one = e
        .split_last()
        .is_some_and(|(last, rest)| *last == 1 && rest.iter().all(|byte| *byte == 0));
    if !is_odd || is_one {
        return Err("has an exponent that proves nothing");
    }
    Ok(DecodingKey::from_rsa_raw_components(n, &e))
}

/// A point of a curve, as RFC 5480 writes it without compression.
fn point(jwk: &Jwk<'_>, length: usize) -> Result<DecodingKey, &'static str> {
    const WRONG: &str = "has no point of its curve in `x` and `y`";
    let x = bytes(jwk.x.as_deref()).filter(|it| it.len() == length);
    let y = bytes(jwk.y.as_deref()).filter(|it| it.len() == length);
    let (x, y) = x.zip(y).ok_or(WRONG)?;
    let point = [&[4], x.as_slice(), y.as_slice()].concat();
    Ok(DecodingKey::from_ec_der(&point))
}

fn bytes(text: Option<&str>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text?).ok()
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

impl fmt::Debug for Keyset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyset")
            .field("serial", &self.serial)
            .field("keys", &self.keys.len())
            .finish_non_exhaustive()
    }
}
