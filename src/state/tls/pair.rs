//! Decides whether a certificate and a key can serve together, and what the certificate says.
//!
//! Must never show a byte of a key, and must never hold a pair whose halves do not match.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::library::provider;
use crate::observe::Timestamp;

/// A certificate chain with its key, and what its first certificate says.
pub struct Pair {
    pub(super) certified: Arc<CertifiedKey>,
    /// The host names it is for, in lower case; `*.example.com` among them.
    pub names: Vec<Box<str>>,
    /// The addresses it is for.
    pub addresses: Vec<IpAddr>,
    /// From when it is valid.
    pub not_before: Timestamp,
    /// Until when.
    pub not_after: Timestamp,
    /// Its serial number, in hexadecimal.
    pub serial: Box<str>,
}

/// Why files cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// Which of the two files it is about.
    pub(super) half: Half,
    pub(super) what: Box<str>,
    pub(super) hint: Option<&'static str>,
}

/// One of the files of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Certificate,
    Key,
    /// There is but one file: it holds an issuer's keys.
    Keys,
}

impl Refused {
    pub(super) fn certificate(what: impl Into<Box<str>>) -> Self {
        Self {
            half: Half::Certificate,
            what: what.into(),
            hint: None,
        }
    }

    pub(super) fn keys(what: impl Into<Box<str>>) -> Self {
        Self {
            half: Half::Keys,
            ..Self::certificate(what)
        }
    }

    fn key(what: impl Into<Box<str>>) -> Self {
        Self {
            half: Half::Key,
            ..Self::certificate(what)
        }
    }

    fn hint(self, hint: &'static str) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let half = match self.half {
            Half::Certificate => "the certificate",
            Half::Key => "the key",
            Half::Keys => "the file",
        };
        write!(f, "{half} {}", self.what)
    }
}

impl Pair {
    /// Makes a pair of what the two files hold.
    pub(super) fn read(
        certificate: Result<&[u8], &str>,
        key: Result<&[u8], &str>,
    ) -> Result<Self, Refused> {
        let chain = chain(certificate)?;
        let key = key.map_err(|why| Refused::key(format!("cannot be read: {why}")))?;
        let key = private_key(key)?;
        let first = chain
            .first()
            .ok_or_else(|| Refused::certificate("is missing"))?;
        let said = Certificate::from_der(first)
            .map_err(|error| Refused::certificate(format!("cannot be understood: {error}")))?;
        let said = said.tbs_certificate();
        let key = provider().key_provider.load_private_key(key).map_err(|_| {
            Refused::key("is of a kind that is not supported")
                .hint("RSA from 2048 bits, ECDSA on P-256, P-384 or P-521, or Ed25519")
        })?;
        let (names, addresses) = subjects(said)?;
        let pair = Self {
            names,
            addresses,
            not_before: moment(said.validity().not_before.to_unix_duration()),
            not_after: moment(said.validity().not_after.to_unix_duration()),
            serial: said.serial_number().to_string().into(),
            certified: Arc::new(CertifiedKey::new(chain, key)),
        };
        match pair.certified.keys_match() {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(pair),
            Err(Error::InconsistentKeys(_)) => {
                Err(Refused::key("does not belong to the certificate"))
            }
            Err(error) => Err(Refused::certificate(format!(
                "cannot be understood: {error}"
            ))),
        }
    }

    /// Whether it is past its time.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        self.not_after < now
    }

    /// What it is called where one name must do.
    #[must_use]
    pub fn name(&self) -> String {
        match (self.names.first(), self.addresses.first()) {
            (Some(name), _) => name.to_string(),
            (None, Some(address)) => address.to_string(),
            (None, None) => format!("serial {}", self.serial),
        }
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair")
            .field("names", &self.names)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

/// Every certificate of a PEM file.
pub(super) fn chain(content: Result<&[u8], &str>) -> Result<Vec<CertificateDer<'static>>, Refused> {
    let bytes = content.map_err(|why| Refused::certificate(format!("cannot be read: {why}")))?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let chain = chain.map_err(|error| Refused::certificate(format!("is broken: {error}")))?;
    if !chain.is_empty() {
        return Ok(chain);
    }
    let refused = Refused::certificate("file holds no certificate in PEM form");
    Err(if has(bytes, "PRIVATE KEY-----") {
        refused.hint("it holds a key: the two files may have changed places")
    } else {
        refused.hint("such a file has a line -----BEGIN CERTIFICATE-----")
    })
}

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "the library's errors, of which few are told apart"
)]
fn private_key(bytes: &[u8]) -> Result<PrivateKeyDer<'static>, Refused> {
    if has(bytes, "BEGIN ENCRYPTED PRIVATE KEY") || has(bytes, "Proc-Type: 4,ENCRYPTED") {
        return Err(Refused::key("is encrypted").hint(
            "there is nobody to ask for a passphrase: decrypt it with openssl pkey, and keep the \
             file readable for the gateway alone",
        ));
    }
    PrivateKeyDer::from_pem_slice(bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => Refused::key("file holds no private key in PEM form")
            .hint("such a file has a line -----BEGIN PRIVATE KEY-----"),
        // The library's words may quote the line.
        _ => Refused::key("is broken"),
    })
}

fn has(bytes: &[u8], mark: &str) -> bool {
    memchr::memmem::find(bytes, mark.as_bytes()).is_some()
}

/// The names and addresses that a certificate is for.
fn subjects(said: &x509_cert::TbsCertificate) -> Result<(Vec<Box<str>>, Vec<IpAddr>), Refused> {
    let found = said
        .get_extension::<SubjectAltName>()
        .map_err(|error| Refused::certificate(format!("has unreadable names: {error}")))?;
    let (mut names, mut addresses) = (Vec::new(), Vec::new());
    for name in found.iter().flat_map(|(_, names)| &names.0) {
        if let GeneralName::DnsName(name) = name {
            names.push(name.as_str().to_ascii_lowercase().into());
        } else if let GeneralName::IpAddress(bytes) = name {
            let bytes = bytes.as_bytes();
            let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
            let v6 = || <[u8; 16]>::try_from(bytes).map(IpAddr::from);
            addresses.extend(v4.or_else(|_| v6()));
        }
    }
    Ok((names, addresses))
}

fn moment(since: Duration) -> Timestamp {
    let second = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
}
