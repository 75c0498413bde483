//! Decides how commands talk to a running gateway: one request to its admin socket, and the whole
//! answer.
//!
//! Whatever else the environment says, no proxy is asked: the admin socket is reached directly or not
//! at all.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a gateway may take for an answer. A reload that compiles thousands of endpoints, or a look
/// into slow stores, takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The largest answer, in bytes.
const LARGEST: usize = 64 << 20;

/// Which gateway is meant.
#[derive(Debug, clap::Args)]
pub(super) struct Remote {
    /// The admin socket of the running gateway.
    #[arg(
        long = "admin",
        value_name = "URL",
        env = "FORECOURT_ADMIN",
        default_value = "http://127.0.0.1:9901",
        value_parser = admin_url
    )]
    admin: Uri,
}

/// What a gateway answered.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unanswered {
    /// Nobody is there.
    #[error("no gateway answers at {admin}: {why}")]
    Unreachable {
        /// The admin socket.
        admin: Uri,
        /// The reason.
        why: Box<str>,
    },
    /// This process cannot ask.
    #[error("cannot ask: {0}")]
    Here(Box<str>),
}

fn admin_url(text: &str) -> Result<Uri, &'static str> {
    let wrong = "expected a URL like http://127.0.0.1:9901";
    let url: Uri = text.parse().map_err(|_| wrong)?;
    let has_path = !matches!(url.path(), "" | "/") || url.query().is_some();
    let is_plain = url.scheme_str() == Some("http") && url.host().is_some_and(|it| !it.is_empty());
    if is_plain && !has_path && !text.contains('@') {
        Ok(url)
    } else {
        Err(wrong)
    }
}

impl Remote {
    /// Sends one request and waits for the whole answer.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn ask(
        &self,
        method: Method,
        target: &str,
        body: Vec<u8>,
    ) -> Result<Answered, Unanswered> {
        let here = |error: &dyn fmt::Display| Unanswered::Here(error.to_string().into());
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header(HOST, self.authority())
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| here(&error))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| here(&error))?;
        runtime
            .block_on(async { timeout(PATIENCE, self.exchange(request)).await })
            .unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs()).into()))
            .map_err(|why| Unanswered::Unreachable {
                admin: self.admin.clone(),
                why: why.to_string().into(),
            })
    }

    fn authority(&self) -> &str {
        self.admin.authority().map_or("", |it| it.as_str())
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Answered, Box<dyn std::error::Error + Send + Sync>> {
        let host = self.admin.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.admin.port_u16().unwrap_or(80);
        let socket = TcpStream::connect((host, port)).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        let asking = async {
            let answer = sender.send_request(request).await?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), LARGEST).collect().await?;
            Ok(Answered {
                status,
                body: body.to_bytes(),
            })
        };
        tokio::pin!(asking);
        tokio::select! {
            biased;
            answer = &mut asking => answer,
            // It may end right after it has handed the whole answer over.
            _ = connection => asking.await,
        }
    }
}

impl Answered {
    /// The body as text.
    pub(super) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// The body as a value.
    pub(super) fn read<'a, T: serde::Deserialize<'a>>(&'a self) -> Option<T> {
        serde_json::from_slice(&self.body).ok()
    }

    /// What it says to people: itself, or its `text` where it is JSON.
    pub(super) fn said(&self) -> String {
        #[derive(serde::Deserialize)]
        struct Said {
            text: String,
        }
        self.read::<Said>()
            .map_or_else(|| self.text().into_owned(), |said| said.text)
    }
}

/// For an answer that no command expects.
impl fmt::Display for Answered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the gateway answered {}: {}",
            self.status,
            self.text().trim_end()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_is_taken() {
        for fine in [
            "http://127.0.0.1:9901",
            "http://[::1]:9901/",
            "http://localhost",
        ] {
            assert!(admin_url(fine).is_ok(), "{fine}");
        }
        for wrong in [
            "",
            "127.0.0.1:9901",
            "https://127.0.0.1:9901",
            "http://",
            "http://a/b",
            "http://a?b",
            "http://user:secret@127.0.0.1:9901",
        ] {
            assert!(admin_url(wrong).is_err(), "{wrong}");
        }
    }
}
