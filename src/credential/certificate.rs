//! Decides whom a client certificate shows: by a name in it, or by its fingerprint.
//!
//! The chain was verified by TLS before; here only what the end entity's certificate says is compared.
//! Names are compared whole: `*` in a certificate is a letter like others. Must never be asked about a
//! certificate that TLS has not verified.

use std::collections::HashMap;

use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::key::Digest;
use crate::config::CertificateName;

/// What a verified client certificate says of its holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Its fingerprint first, then its names.
    names: Box<[CertificateName]>,
}

/// Whom a certificate shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shows {
    /// Nobody who is configured; or there is none.
    #[default]
    Nobody,
    /// The caller at this place of the configuration.
    Caller(usize),
    /// Two or more callers by different names of it.
    Several,
}

impl Certificate {
    /// Reads a certificate in DER. One whose names cannot be read has its fingerprint alone.
    #[must_use]
    pub fn read(der: &[u8]) -> Self {
        let fingerprint = CertificateName::Sha256(*Digest::of(der).bytes());
        let mut names = vec![fingerprint];
        names.extend(subjects(der));
        Self {
            names: names.into(),
        }
    }
}

/// The alternative names of the holder that a configuration can name.
#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "the library's kinds of names, of which few are told apart"
)]
fn subjects(der: &[u8]) -> Vec<CertificateName> {
    let Ok(certificate) = x509_cert::Certificate::from_der(der) else {
        return Vec::new();
    };
    let said = certificate.tbs_certificate();
    let Ok(Some((_, names))) = said.get_extension::<SubjectAltName>() else {
        return Vec::new();
    };
    let names = names.0.iter().filter_map(|name| match name {
        GeneralName::DnsName(name) => Some(CertificateName::dns(name.as_str())),
        GeneralName::UniformResourceIdentifier(uri) => Some(CertificateName::uri(uri.as_str())),
        GeneralName::Rfc822Name(name) => Some(CertificateName::email(name.as_str())),
        _ => None,
    });
    names.collect()
}

/// Whose each certificate is, by place of the caller.
#[derive(Clone, Debug, Default)]
pub(super) struct Certificates(HashMap<CertificateName, usize>);

impl Certificates {
    pub(super) fn add(&mut self, name: CertificateName, caller: usize) {
        self.0.insert(name, caller);
    }

    pub(super) fn find(&self, certificate: &Certificate) -> Shows {
        let mut shows = Shows::Nobody;
        for place in certificate.names.iter().filter_map(|it| self.0.get(it)) {
            shows = match shows {
                Shows::Nobody => Shows::Caller(*place),
                Shows::Caller(before) if before == *place => shows,
                Shows::Caller(_) | Shows::Several => Shows::Several,
            };
        }
        shows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, SanType};

    fn issued(names: Vec<SanType>) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = names;
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    fn certificates() -> Certificates {
        let mut certificates = Certificates::default();
        certificates.add(CertificateName::dns("agent.acme.example"), 0);
        certificates.add(CertificateName::uri("spiffe://acme.example/agent"), 0);
        certificates.add(CertificateName::email("Agent@beta.example"), 1);
        certificates
    }

    #[test]
    fn any_configured_name_shows_its_caller() {
        let certificates = certificates();
        let text = |text: &str| text.to_owned().try_into().unwrap();
        for (names, shows) in [
            (vec![], Shows::Nobody),
            (
                vec![SanType::DnsName(text("Agent.ACME.example"))],
                Shows::Caller(0),
            ),
            (
                vec![
                    SanType::DnsName(text("other.example")),
                    SanType::URI(text("spiffe://acme.example/agent")),
                    SanType::DnsName(text("agent.acme.example")),
                ],
                Shows::Caller(0),
            ),
            (
                vec![SanType::Rfc822Name(text("Agent@BETA.example"))],
                Shows::Caller(1),
            ),
            // Neither folded nor a pattern, nor taken for a name of another kind.
            (
                vec![SanType::Rfc822Name(text("agent@beta.example"))],
                Shows::Nobody,
            ),
            (
                vec![SanType::URI(text("spiffe://acme.example/AGENT"))],
                Shows::Nobody,
            ),
            (
                vec![SanType::DnsName(text("*.acme.example"))],
                Shows::Nobody,
            ),
            (
                vec![SanType::URI(text("agent.acme.example"))],
                Shows::Nobody,
            ),
            (
                vec![
                    SanType::DnsName(text("agent.acme.example")),
                    SanType::Rfc822Name(text("Agent@beta.example")),
                ],
                Shows::Several,
            ),
        ] {
            let certificate = Certificate::read(&issued(names.clone()));
            assert_eq!(certificates.find(&certificate), shows, "{names:?}");
        }
    }

    #[test]
    fn a_fingerprint_shows_one_certificate_and_no_other() {
        let (one, other) = (issued(vec![]), issued(vec![]));
        let mut certificates = Certificates::default();
        certificates.add(CertificateName::Sha256(*Digest::of(&one).bytes()), 3);
        let find = |der: &[u8]| certificates.find(&Certificate::read(der));
        assert_eq!(find(&one), Shows::Caller(3));
        assert_eq!(find(&other), Shows::Nobody);
        assert_eq!(find(b"no certificate"), Shows::Nobody);
    }
}
