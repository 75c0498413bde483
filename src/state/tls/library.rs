//! Decides what is spoken: versions, application protocols, who verifies whom; and makes
//! configurations of the TLS library of it. Must never leave an upstream unverified.

use std::sync::{Arc, LazyLock};

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{NoServerSessionStorage, ProducesTickets, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, Error, RootCertStore, ServerConfig, SupportedProtocolVersion};

use super::names::Names;
use super::pair::Pair;

/// What listeners offer to speak, in the order of preference.
const TO_CLIENTS: &[&[u8]] = &[b"h2", b"http/1.1"];

/// The versions spoken, to both sides.
const VERSIONS: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

/// Where the cryptography comes from.
pub(super) fn provider() -> &'static Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(aws_lc_rs::default_provider()));
    &PROVIDER
}

/// For the handshakes of a listener.
pub(super) fn to_clients(
    names: Names,
    clients: Option<&(Arc<RootCertStore>, bool)>,
    ticketer: &Arc<dyn ProducesTickets>,
) -> Result<ServerConfig, Error> {
    let builder = ServerConfig::builder_with_provider(Arc::clone(provider()))
        .with_protocol_versions(VERSIONS)?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some((roots, is_required)) => {
            let roots = Arc::clone(roots);
            let verifier =
                WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider()));
            let verifier = if *is_required {
                verifier
            } else {
                verifier.allow_unauthenticated()
            };
            let verifier = verifier
                .build()
                .map_err(|error| Error::General(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(names));
    config.alpn_protocols = TO_CLIENTS.iter().map(|it| it.to_vec()).collect();
    // Sessions are in their tickets: nothing is stored, and every worker can resume them.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = Arc::clone(ticketer);
    Ok(config)
}

/// For the handshakes with an upstream.
pub(super) fn to_upstream(
    roots: &Arc<RootCertStore>,
    client: Option<&Pair>,
) -> Result<ClientConfig, Error> {
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider()))
        .with_protocol_versions(VERSIONS)?
        .with_root_certificates(Arc::clone(roots));
    // What is spoken is settled for each connection: the upstream's configuration says it.
    Ok(match client {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let one = SingleCertAndKey::from(CertifiedKey::clone(&pair.certified));
            builder.with_client_cert_resolver(Arc::new(one))
        }
    })
}
