//! A certificate made at run time, and the client that trusts it: every proxy shows the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use super::Failure;

/// Where the parts of it are.
#[derive(Clone)]
pub(crate) struct Certificate {
    pub(crate) pem: PathBuf,
    pub(crate) key: PathBuf,
    /// Certificate and key in one file, for HAProxy.
    pub(crate) both: PathBuf,
    pub(crate) der: PathBuf,
}

/// Makes one (ECDSA P-256) in `directory`.
pub(crate) fn make(directory: &Path) -> Result<Certificate, Failure> {
    let names = ["lakeside.example.com", "localhost", "127.0.0.1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names)?;
    let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let file = |name: &str, bytes: &[u8]| -> Result<PathBuf, Failure> {
        let path = directory.join(name);
        fs::write(&path, bytes)?;
        Ok(path)
    };
    Ok(Certificate {
        both: file("both.pem", format!("{pem}{key}").as_bytes())?,
        pem: file("certificate.pem", pem.as_bytes())?,
        key: file("key.pem", key.as_bytes())?,
        der: file("certificate.der", made.cert.der())?,
    })
}

/// TLS 1.3 and HTTP/1.1, a full handshake each time.
pub(crate) fn trusting(der: &Path) -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(fs::read(der)?))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}
