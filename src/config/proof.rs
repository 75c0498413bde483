//! Decides how what proves a caller is written: digests of keys, names of certificates, the header
//! keys stand in.
//!
//! A value that should be a digest may be the key itself, by mistake: it must never be repeated.

use http::HeaderName;

use crate::config::read::{FromText, Wrong};
use crate::config::schema::Shape;
use crate::config::settings::{CertificateName, KeySha256};
use crate::config::word::header_name;

impl FromText for KeySha256 {
    const EXPECTED: &'static str = "the SHA-256 of a key, 64 hexadecimal digits";
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, Wrong> {
        digest(text).map(Self).ok_or_else(|| {
            Wrong::because("is not the SHA-256 of a key, 64 hexadecimal digits").hint(
                "`forecourt key new NAME` prints a new key and this; `forecourt key hash` reads a \
                 key you have",
            )
        })
    }

    fn shape() -> Shape {
        Shape::like(
            "key_sha256",
            <Self as FromText>::EXPECTED,
            "[0-9A-Fa-f]{64}",
        )
    }
}

impl FromText for CertificateName {
    const EXPECTED: &'static str = "\"dns:NAME\", \"uri:URI\", \"email:MAILBOX\" or \"sha256:FINGERPRINT\" of a \
         client certificate";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        let (kind, name) = text.split_once(':').ok_or_else(Wrong::kind)?;
        let is_plain = |byte| matches!(byte, b'!'..=b'~');
        if name.is_empty() || !name.bytes().all(is_plain) {
            return Err(Wrong::because("has no name that a certificate can carry")
                .hint("visible ASCII characters, as the certificate has them"));
        }
        match kind {
            "dns" if name.contains('*') => Err(Wrong::because(
                "is compared whole: a `*` stands for nothing but itself",
            )
            .hint("give each name by itself")),
            "dns" => Ok(Self::dns(name)),
            "uri" if name.contains(':') => Ok(Self::uri(name)),
            "uri" => Err(Wrong::because("is no URI: it has no scheme")
                .hint("such as \"uri:spiffe://acme.example/agent\"")),
            "email" => {
                match name.rsplit_once('@') {
                    Some((local, host)) if !local.is_empty() && !host.is_empty() => {
                        Ok(Self::email(name))
                    }
                    Some(_) | None => Err(Wrong::because("is no mailbox")
                        .hint("such as \"email:agent@acme.example\"")),
                }
            }
            // As tools print it, with a colon between bytes or without.
            "sha256" => digest(&name.replace(':', ""))
                .map(Self::Sha256)
                .ok_or_else(|| {
                    Wrong::because("is no fingerprint: 64 hexadecimal digits")
                        .hint("`openssl x509 -noout -fingerprint -sha256 -in FILE` prints it")
                }),
            _ => Err(Wrong::kind()),
        }
    }

    fn shape() -> Shape {
        let pattern = "dns:[!-)+-~]+|uri:[!-~]*:[!-~]*|email:[!-~]+@[!-~]+|\
                       sha256:[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){31}";
        Shape::like("certificate", <Self as FromText>::EXPECTED, pattern)
    }
}

/// 32 bytes in hexadecimal digits of either case.
fn digest(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let digits = text.as_bytes().chunks_exact(2);
    if text.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits) {
        let pair = std::str::from_utf8(pair).ok()?;
        if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

/// The header in which API keys stand.
#[derive(Clone, Debug)]
pub(crate) struct KeyHeader(pub(crate) HeaderName);

impl FromText for KeyHeader {
    const EXPECTED: &'static str = "a header name such as \"x-api-key\"";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        /// Headers that say something else, or that a proxy on the way may write.
        const TAKEN: [&str; 24] = [
            "a2a-extensions",
            "a2a-version",
            "accept",
            "connection",
            "content-encoding",
            "content-length",
            "content-type",
            "date",
            "expect",
            "forwarded",
            "host",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "proxy-connection",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "user-agent",
            "via",
            "x-real-ip",
            "x-request-id",
            "cookie",
        ];
        let name = header_name(text)?;
        if name == http::header::AUTHORIZATION {
            return Err(
                Wrong::because("is looked at in any case: `Bearer` and a key")
                    .hint("name another header, or leave key_header out"),
            );
        }
        if TAKEN.contains(&name.as_str()) || name.as_str().starts_with("x-forwarded-") {
            return Err(Wrong::because("is a header with a meaning of its own"));
        }
        Ok(Self(name))
    }

    fn shape() -> Shape {
        Shape::like(
            "header",
            <Self as FromText>::EXPECTED,
            "[A-Za-z0-9!#$%&'*+.^_`|~-]+",
        )
    }
}
