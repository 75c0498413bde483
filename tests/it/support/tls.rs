//! Certificates made on the spot, and a client and a dealer that speak TLS.

use std::fs;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
};

use super::client::Client;
use super::wait::PATIENCE;

/// A certificate authority.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key.
pub struct Issued {
    pub certificate: Certificate,
    pub key: KeyPair,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap());
        Self {
            issuer: issuer.unwrap(),
        }
    }

    /// Its own certificate.
    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for these names and addresses.
    pub fn issue(&self, names: &[&str]) -> Issued {
        self.issue_with(names, |_| {})
    }

    /// The same, changed before it is signed.
    pub fn issue_with(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Issued {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Issued {
            certificate: params.signed_by(&key, &self.issuer).unwrap(),
            key,
        }
    }

    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        roots
    }
}

impl Issued {
    /// Writes `NAME.pem` and `NAME.key` into a directory, each by renaming it into place.
    pub fn write(&self, directory: &Path, name: &str) {
        put(
            &directory.join(format!("{name}.pem")),
            &self.certificate.pem(),
        );
        put(
            &directory.join(format!("{name}.key")),
            &self.key.serialize_pem(),
        );
    }

    pub fn der(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }

    pub fn private(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_slice(self.key.serialize_pem().as_bytes()).unwrap()
    }
}

/// Writes a file whole, or not at all.
pub fn put(path: &Path, text: &str) {
    let next = path.with_extension("next");
    fs::write(&next, text).unwrap();
    fs::rename(&next, path).unwrap();
}

/// How a client speaks TLS.
#[derive(Clone)]
pub struct Speaker {
    pub config: Arc<ClientConfig>,
}

/// A connection over TLS.
pub type Secure = StreamOwned<ClientConnection, TcpStream>;

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

impl Speaker {
    /// Trusts one authority, speaks both versions, offers `http/1.1`.
    pub fn trusting(authority: &Authority) -> Self {
        Self::new(
            authority,
            &[&rustls::version::TLS13, &rustls::version::TLS12],
            None,
        )
    }

    /// The same in one version.
    pub fn version(authority: &Authority, version: &'static SupportedProtocolVersion) -> Self {
        Self::new(authority, &[version], None)
    }

    /// The same with a certificate to show.
    pub fn showing(authority: &Authority, own: &Issued) -> Self {
        Self::new(
            authority,
            &[&rustls::version::TLS13, &rustls::version::TLS12],
            Some(own),
        )
    }

    pub fn new(
        authority: &Authority,
        versions: &[&'static SupportedProtocolVersion],
        own: Option<&Issued>,
    ) -> Self {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(authority.roots());
        let config = match own {
            None => builder.with_no_client_auth(),
            Some(own) => builder
                .with_client_auth_cert(vec![own.der()], own.private())
                .unwrap(),
        };
        let speaker = Self {
            config: Arc::new(config),
        };
        speaker.offering(&["http/1.1"])
    }

    /// Offers these application protocols.
    pub fn offering(&self, protocols: &[&str]) -> Self {
        let mut config = (*self.config).clone();
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        Self {
            config: Arc::new(config),
        }
    }

    /// Shakes hands, to the end as far as the client can tell.
    pub fn try_connect(&self, address: SocketAddr, name: &str) -> io::Result<Client<Secure>> {
        let socket = TcpStream::connect_timeout(&address, PATIENCE)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.config), name);
        let mut stream = StreamOwned::new(connection.map_err(io::Error::other)?, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        stream.flush()?;
        Ok(Client::over(stream))
    }

    #[track_caller]
    pub fn connect(&self, address: SocketAddr, name: &str) -> Client<Secure> {
        self.try_connect(address, name).unwrap()
    }
}

impl Client<Secure> {
    /// The certificate that the gateway showed.
    pub fn shown(&mut self) -> CertificateDer<'static> {
        let chain = self.stream().conn.peer_certificates().unwrap();
        chain.first().unwrap().clone().into_owned()
    }

    pub fn version(&mut self) -> ProtocolVersion {
        self.stream().conn.protocol_version().unwrap()
    }

    pub fn protocol(&mut self) -> Option<Vec<u8>> {
        self.stream().conn.alpn_protocol().map(<[u8]>::to_vec)
    }

    pub fn is_resumed(&mut self) -> bool {
        self.stream().conn.handshake_kind() == Some(rustls::HandshakeKind::Resumed)
    }
}
