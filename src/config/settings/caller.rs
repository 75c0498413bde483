//! Decides what a valid `[caller.NAME]` is. Must never hold a key: only what a key is recognised by.

use std::fmt;

/// `[caller.NAME]`: somebody who can prove who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its name. Its buckets belong to the name, whatever it is proven by.
    pub name: Box<str>,
    /// The SHA-256 of its API keys. No two callers share one.
    pub key_sha256: Vec<KeySha256>,
    /// What its client certificates are recognised by: any of these. No two callers share one.
    pub certificates: Vec<CertificateName>,
    /// Its plan, as a place in [`Settings::plans`](super::Settings::plans). Default none.
    pub plan: Option<usize>,
    /// Where it may call, as places in [`Settings::endpoints`](super::Settings::endpoints); never
    /// empty. `None`: everywhere.
    pub endpoints: Option<Vec<usize>>,
}

/// The SHA-256 of an API key. It is no key and no way back to a random one, but is shown only where
/// the configuration is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeySha256(pub [u8; 32]);

impl fmt::Debug for KeySha256 {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

impl fmt::Display for KeySha256 {
    /// 64 hexadecimal digits.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        hexadecimal(&self.0, out)
    }
}

/// What a client certificate is recognised by: a subject alternative name, or its fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CertificateName {
    /// A host name, in lower case.
    Dns(Box<str>),
    /// A URI, as it is written.
    Uri(Box<str>),
    /// A mailbox, what follows the `@` in lower case.
    Email(Box<str>),
    /// The SHA-256 of the certificate in DER.
    Sha256([u8; 32]),
}

impl CertificateName {
    /// A host name in any case.
    #[must_use]
    pub fn dns(name: &str) -> Self {
        Self::Dns(name.to_ascii_lowercase().into())
    }

    /// A URI.
    #[must_use]
    pub fn uri(uri: &str) -> Self {
        Self::Uri(uri.into())
    }

    /// A mailbox, whose host is the same in any case (RFC 5280 section 7.5).
    #[must_use]
    pub fn email(mailbox: &str) -> Self {
        Self::Email(match mailbox.rsplit_once('@') {
            Some((local, host)) => format!("{local}@{}", host.to_ascii_lowercase()).into(),
            None => mailbox.into(),
        })
    }
}

impl fmt::Display for CertificateName {
    /// As a configuration writes it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) => write!(out, "dns:{name}"),
            Self::Uri(uri) => write!(out, "uri:{uri}"),
            Self::Email(mailbox) => write!(out, "email:{mailbox}"),
            Self::Sha256(digest) => {
                out.write_str("sha256:")?;
                hexadecimal(digest, out)
            }
        }
    }
}

fn hexadecimal(bytes: &[u8; 32], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

/// Whether an endpoint asks who is calling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Authenticate {
    /// Credentials are not looked at.
    #[default]
    Off,
    /// A call without a credential goes on; one with a bad credential does not.
    Optional,
    /// Nobody calls without a good credential.
    Required,
}

impl Authenticate {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Off, Self::Optional, Self::Required];

    /// The name used in configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }
}
