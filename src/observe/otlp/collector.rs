//! Decides how a collector is spoken to: OTLP over HTTP, one request at a time, on a connection that is
//! kept. Must never show its headers: they hold credentials.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::environment::Destination;

/// The largest answer that is read, in bytes.
const LARGEST: usize = 64 << 10;

/// A collector, and the connection to it.
pub(super) struct Collector {
    to: Destination,
    tls: Option<TlsConnector>,
    open: Option<SendRequest<Message>>,
}

/// What is posted: two pieces, of which the second may be empty. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Message([Bytes; 2]);

impl Message {
    pub(super) const fn of(first: Bytes, second: Bytes) -> Self {
        Self([first, second])
    }
}

impl Body for Message {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.0.iter_mut().find(|piece| !piece.is_empty());
        Poll::Ready(next.map(|piece| Ok(Frame::data(std::mem::take(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// Why something was not taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// It may be taken later.
    #[error("{why}")]
    ForNow {
        /// Why.
        why: Box<str>,
        /// How long the collector asked to wait.
        after: Option<Duration>,
    },
    /// It never will be.
    #[error("{0}")]
    ForGood(Box<str>),
}

impl Refused {
    fn for_now(why: impl ToString) -> Self {
        Self::ForNow {
            why: why.to_string().into(),
            after: None,
        }
    }
}

impl Collector {
    /// Prepares to speak to a collector; nothing is connected yet.
    ///
    /// # Errors
    /// The roots that it is verified against cannot be read.
    pub(super) fn new(to: Destination) -> io::Result<Self> {
        let is_https = to.url.scheme_str() == Some("https");
        let tls = if is_https {
            Some(connector(&to)?)
        } else {
            None
        };
        Ok(Self {
            to,
            tls,
            open: None,
        })
    }

    /// Where it is.
    pub(super) fn url(&self) -> &http::Uri {
        &self.to.url
    }

    /// Posts one message and waits until it is taken. What came back is its answer.
    ///
    /// # Errors
    /// It was not taken.
    pub(super) async fn post(&mut self, message: Message) -> Result<Bytes, Refused> {
        let answer = timeout(self.to.timeout, self.exchange(message)).await;
        let answer = answer.unwrap_or_else(|_| Err(Refused::for_now("no answer in time")));
        if answer.is_err() {
            self.open = None;
        }
        answer
    }

    async fn exchange(&mut self, message: Message) -> Result<Bytes, Refused> {
        let mut kept = self.open.take();
        if let Some(sender) = &mut kept
            && sender.ready().await.is_err()
        {
            kept = None;
        }
        let mut sender = match kept {
            Some(sender) => sender,
            None => self.connect().await.map_err(Refused::for_now)?,
        };
        let request = self
            .request(message)
            .map_err(|error| Refused::ForGood(error.to_string().into()))?;
        let answer = sender
            .send_request(request)
            .await
            .map_err(Refused::for_now)?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, LARGEST).collect().await;
        let body = body.map_err(Refused::for_now)?.to_bytes();
        self.open = Some(sender);
        judged(&Response::from_parts(head, ())).map(|()| body)
    }

    fn request(&self, message: Message) -> http::Result<Request<Message>> {
        let url = &self.to.url;
        let target = url.path_and_query().map_or("/", |it| it.as_str());
        let authority = url.authority().map_or("", |it| it.as_str());
        let mut request = Request::builder().method(Method::POST).uri(target);
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.to.headers.clone());
            headers.insert(
                CONTENT_TYPE,
                HeaderValue::from_static("application/x-protobuf"),
            );
            let agent = concat!("forecourt/", env!("CARGO_PKG_VERSION"));
            headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        }
        request.header(HOST, authority).body(message)
    }

    async fn connect(&self) -> io::Result<SendRequest<Message>> {
        let url = &self.to.url;
        let host = url.host().unwrap_or_default();
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let port = url
            .port_u16()
            .unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        let socket = TcpStream::connect((&*host, port)).await?;
        socket.set_nodelay(true)?;
        match &self.tls {
            None => open(socket).await,
            Some(tls) => {
                let name = ServerName::try_from(host).map_err(io::Error::other)?;
                open(tls.connect(name, socket).await?).await
            }
        }
    }
}

async fn open<T>(transport: T) -> io::Result<SendRequest<Message>>
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(transport))
        .await
        .map_err(io::Error::other)?;
    // It ends with its sender.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

/// What an answer's status means (OTLP 1.x, "OTLP/HTTP Response").
fn judged(answer: &Response<()>) -> Result<(), Refused> {
    let status = answer.status();
    let why = || format!("answered {}", status.as_u16()).into_boxed_str();
    match status {
        _ if status.is_success() => Ok(()),
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => {
            let after = answer.headers().get_all(RETRY_AFTER).iter().next();
            let after = after.and_then(|it| it.to_str().ok()?.trim().parse().ok());
            Err(Refused::ForNow {
                why: why(),
                after: after.map(Duration::from_secs),
            })
        }
        _ => Err(Refused::ForGood(why())),
    }
}

fn connector(to: &Destination) -> io::Result<TlsConnector> {
    let mut roots = RootCertStore::empty();
    match &to.certificate {
        Some(path) => {
            let found = CertificateDer::pem_file_iter(path).map_err(io::Error::other)?;
            for certificate in found {
                let certificate = certificate.map_err(io::Error::other)?;
                roots.add(certificate).map_err(io::Error::other)?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(io::Error::other(
            "there is no root to verify the collector against",
        ));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
