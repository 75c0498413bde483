//! Certificates made on the spot, and a client and a dealer that speak TLS.

use std::fs;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, ProtocolVersion, RootCertStore,
    ServerConfig, SignatureScheme, StreamOwned, SupportedProtocolVersion,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use super::call::{call, post};
use super::client::Client;
use super::gateway::PRELUDE;
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
    /// Issued by itself.
    pub fn self_signed(names: &[&str], is_authority: bool) -> Self {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = match is_authority {
            true => IsCa::Ca(BasicConstraints::Unconstrained),
            false => IsCa::ExplicitNoCa,
        };
        let key = KeyPair::generate().unwrap();
        Self {
            certificate: params.self_signed(&key).unwrap(),
            key,
        }
    }

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

/// Certificates in a directory of their own.
pub struct Place {
    pub directory: tempfile::TempDir,
    pub authority: Authority,
}

impl Place {
    pub fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            authority: Authority::new("roots of the tests"),
        }
    }

    /// Issues a certificate for these names and writes it under this one.
    pub fn issue(&self, name: &str, names: &[&str]) -> Issued {
        let issued = self.authority.issue(names);
        issued.write(self.directory.path(), name);
        issued
    }

    /// The path of a file, as it stands in a configuration.
    pub fn at(&self, file: &str) -> String {
        self.directory.path().join(file).display().to_string()
    }

    /// The keys of a pair.
    pub fn pair(&self, name: &str) -> String {
        let (certificate, key) = (format!("{name}.pem"), format!("{name}.key"));
        format!(
            "certificate = \"{}\", key = \"{}\"",
            self.at(&certificate),
            self.at(&key)
        )
    }
}

/// A whole configuration whose listener has this `tls` table.
pub fn secured(tls: &str, rest: &str) -> String {
    let address = "[listener.public]\naddress = \"127.0.0.1:0\"\n";
    let prelude = PRELUDE
        .replace("workers = 1", "workers = 2")
        .replace(address, &format!("{address}tls = {{ {tls} }}\n"));
    format!("{prelude}{rest}")
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

    /// Believes whatever it is shown.
    pub fn trusting_anyone() -> Self {
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Gullible))
            .with_no_client_auth();
        Self {
            config: Arc::new(config),
        }
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
        self.try_connect_after(b"", address, name)
    }

    /// The same, after these bytes in clear.
    pub fn try_connect_after(
        &self,
        before: &[u8],
        address: SocketAddr,
        name: &str,
    ) -> io::Result<Client<Secure>> {
        let mut socket = TcpStream::connect_timeout(&address, PATIENCE)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        socket.write_all(before)?;
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

/// Whether a call goes through: in TLS 1.3 a client learns only with the answer that its certificate
/// was not believed.
pub fn is_let_in(speaker: &Speaker, address: SocketAddr, name: &str) -> bool {
    let Ok(mut client) = speaker.try_connect(address, name) else {
        return false;
    };
    if client.try_send(post(call("1"))).is_err() {
        return false;
    }
    matches!(client.try_answer(), Ok(Some(answer)) if answer.status == 200)
}

#[derive(Debug)]
struct Gullible;

impl ServerCertVerifier for Gullible {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// What ends TLS in front of a scripted dealer. Its certificate can be changed at any time.
pub struct Front {
    pub address: SocketAddr,
    config: Arc<Mutex<Arc<ServerConfig>>>,
    seen: Arc<Mutex<Vec<Greeting>>>,
    _runtime: tokio::runtime::Runtime,
}

/// What a client of a [`Front`] said in its handshake.
#[derive(Clone, Debug, Default)]
pub struct Greeting {
    pub name: Option<String>,
    pub protocol: Option<Vec<u8>>,
    pub certificate: Option<CertificateDer<'static>>,
}

/// How TLS ends when the dealer behind it has closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Politely,
    /// The connection closes without the message that ends a session.
    Truncated,
    /// A fatal alert is sent, then the connection closes.
    Alerting,
    /// Bytes that are no TLS are sent.
    Garbling,
}

impl Ending {
    async fn pass(
        self,
        mut stream: tokio_rustls::server::TlsStream<tokio::net::TcpStream>,
        mut dealer: tokio::net::TcpStream,
    ) {
        if self == Self::Politely {
            drop(tokio::io::copy_bidirectional(&mut stream, &mut dealer).await);
            return;
        }
        let (mut asked, mut told) = ([0; 16 * 1024], [0; 16 * 1024]);
        loop {
            tokio::select! {
                biased;
                read = dealer.read(&mut told) => match read {
                    Ok(count) if count > 0 => {
                        stream.write_all(&told[..count]).await.unwrap();
                        stream.flush().await.unwrap();
                    }
                    _ => break,
                },
                read = stream.read(&mut asked) => match read {
                    Ok(count) if count > 0 => dealer.write_all(&asked[..count]).await.unwrap(),
                    _ => return,
                },
            }
        }
        let (socket, session) = stream.get_mut();
        let mut last = Vec::new();
        match self {
            Self::Politely | Self::Truncated => {}
            Self::Alerting => {
                // What it cannot decrypt makes it say so.
                let _ = session
                    .read_tls(&mut &b"\x17\x03\x03\x00\x20 thirty-two bytes of what is none"[..]);
                assert!(session.process_new_packets().is_err());
                session.write_tls(&mut last).unwrap();
                assert!(!last.is_empty());
            }
            Self::Garbling => {
                last.extend_from_slice(b"\x17\x03\x03\x00\x20 thirty-two bytes of what is none")
            }
        }
        socket.write_all(&last).await.unwrap();
        socket.shutdown().await.unwrap();
    }
}

impl Front {
    /// In front of this address; with `clients`, a certificate of theirs is required.
    pub fn new(behind: SocketAddr, own: &Issued, clients: Option<&Authority>) -> Self {
        Self::with(behind, own, clients, Ending::Politely)
    }

    /// The same with another way of ending.
    pub fn ending(behind: SocketAddr, own: &Issued, ending: Ending) -> Self {
        Self::with(behind, own, None, ending)
    }

    fn with(behind: SocketAddr, own: &Issued, clients: Option<&Authority>, ending: Ending) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let config = Arc::new(Mutex::new(Self::config(own, clients)));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let (now, noted) = (Arc::clone(&config), Arc::clone(&seen));
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let acceptor = TlsAcceptor::from(Arc::clone(&now.lock()));
                let noted = Arc::clone(&noted);
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(socket).await else {
                        return;
                    };
                    let connection = stream.get_ref().1;
                    let chain = connection.peer_certificates();
                    noted.lock().push(Greeting {
                        name: connection.server_name().map(str::to_owned),
                        protocol: connection.alpn_protocol().map(<[u8]>::to_vec),
                        certificate: chain.and_then(|it| it.first().cloned()),
                    });
                    if let Ok(dealer) = tokio::net::TcpStream::connect(behind).await {
                        dealer.set_nodelay(true).unwrap();
                        ending.pass(stream, dealer).await;
                    }
                });
            }
        });
        Self {
            address,
            config,
            seen,
            _runtime: runtime,
        }
    }

    /// Agrees to these protocols from now on; to none at all, where none is given.
    pub fn agree_to(&self, protocols: &[&str]) {
        let mut config = self.config.lock();
        let mut next = (**config).clone();
        next.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        *config = Arc::new(next);
    }

    fn config(own: &Issued, clients: Option<&Authority>) -> Arc<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let roots = Arc::new(clients.roots());
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let mut config = builder
            .with_single_cert(vec![own.der()], own.private())
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }

    /// Shows another certificate from now on.
    pub fn show(&self, own: &Issued) {
        *self.config.lock() = Self::config(own, None);
    }

    /// Everybody who shook hands, in order.
    pub fn seen(&self) -> Vec<Greeting> {
        self.seen.lock().clone()
    }
}
