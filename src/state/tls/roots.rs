//! Decides whose certificates are believed: those of a file, or those of the system.

use std::sync::Arc;

use rustls::RootCertStore;

use super::pair::{Refused, chain};

/// The roots in a PEM file; each of them must be usable.
pub(super) fn read(content: Result<&[u8], &str>) -> Result<Arc<RootCertStore>, Refused> {
    let mut roots = RootCertStore::empty();
    for (index, certificate) in chain(content)?.into_iter().enumerate() {
        roots.add(certificate).map_err(|error| {
            let number = index + 1;
            Refused::certificate(format!("number {number} in the file is no root: {error}"))
        })?;
    }
    Ok(Arc::new(roots))
}

/// The roots that the system trusts. `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
pub(super) fn system() -> Result<Arc<RootCertStore>, Refused> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (taken, ignored) = roots.add_parsable_certificates(found.certs);
    if taken > 0 {
        tracing::debug!(taken, ignored, "system roots read");
        return Ok(Arc::new(roots));
    }
    let why = found
        .errors
        .first()
        .map_or_else(String::new, |error| format!(": {error}"));
    Err(Refused::certificate(format!(
        "cannot be verified: the system trusts no root{why}"
    )))
}
