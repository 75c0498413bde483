//! Decides how a connection to an upstream becomes a TLS one: under which name it is verified, and
//! with what configuration at this moment. Must never go on in clear.

use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How one upstream is spoken to over TLS. What it is verified by can be replaced at any time;
/// connections that are open stay as they are.
#[derive(Debug)]
pub struct Secure {
    name: ServerName<'static>,
    config: ArcSwap<ClientConfig>,
}

impl Secure {
    /// The upstream must show a certificate for this name.
    #[must_use]
    pub fn new(name: ServerName<'static>, config: Arc<ClientConfig>) -> Self {
        Self {
            name,
            config: ArcSwap::new(config),
        }
    }

    /// New connections are made with this from now on.
    pub fn replace(&self, config: Arc<ClientConfig>) {
        self.config.store(config);
    }

    /// Shakes hands, and offers to speak nothing but HTTP/2 or nothing but HTTP/1.1.
    pub(super) async fn connect(
        &self,
        socket: TcpStream,
        http2: bool,
    ) -> io::Result<TlsStream<TcpStream>> {
        let offer: &[u8] = if http2 { b"h2" } else { b"http/1.1" };
        let connector = TlsConnector::from(self.config.load_full());
        let connector = connector.with_alpn(vec![offer.to_vec()]);
        connector.connect(self.name.clone(), socket).await
    }
}
