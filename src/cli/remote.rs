//! Decides how commands talk to a running gateway: one request to its admin socket, and the whole
//! answer.
//!
//! Whatever else the environment says, no proxy is asked: the admin socket is reached directly or not
//! at all. A token is read from a file or the environment, and must never be shown.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::credential::fresh;
use crate::credential::key::LONGEST;

/// How long a gateway may take for an answer. A reload that compiles thousands of endpoints, or a look
/// into slow stores, takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The largest answer, in bytes.
const LARGEST: usize = 64 << 20;

/// Where a token stands when no file is named.
const TOKEN: &str = "FORECOURT_ADMIN_TOKEN";

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
    /// The file with the token that the admin socket asks for. Without it the variable
    /// `FORECOURT_ADMIN_TOKEN` is looked at; a token is never an argument, which others can read.
    #[arg(
        long = "admin-token-file",
        value_name = "FILE",
        env = "FORECOURT_ADMIN_TOKEN_FILE"
    )]
    token_file: Option<PathBuf>,
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
    /// Nobody is there, or went before it answered.
    #[error("no gateway answers at {admin}: {why}")]
    Unreachable {
        /// The admin socket.
        admin: Uri,
        /// The reason.
        why: Box<str>,
    },
    /// Somebody is there, and takes too long.
    #[error("no gateway answers at {admin} within {within:?}")]
    Late {
        /// The admin socket.
        admin: Uri,
        /// How long it was waited.
        within: Duration,
    },
    /// This process cannot ask.
    #[error("cannot ask: {0}")]
    Here(Box<str>),
}

/// As much of a file as a token can be, and a byte more.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(LONGEST + 3).unwrap_or(u64::MAX);
    File::open(file)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn admin_url(text: &str) -> Result<Uri, &'static str> {
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
    /// The gateway at this admin socket.
    pub(super) const fn at(admin: Uri) -> Self {
        Self {
            admin,
            token_file: None,
        }
    }

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
        self.ask_within(PATIENCE, method, target, body)
    }

    /// The same within this time.
    ///
    /// # Errors
    /// When there is no answer until then.
    pub(super) fn ask_within(
        &self,
        within: Duration,
        method: Method,
        target: &str,
        body: Vec<u8>,
    ) -> Result<Answered, Unanswered> {
        let here = |error: &dyn fmt::Display| Unanswered::Here(error.to_string().into());
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header(HOST, self.authority())
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| here(&error))?;
        if let Some(token) = self.token()? {
            request.headers_mut().insert(AUTHORIZATION, token);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| here(&error))?;
        let admin = self.admin.clone();
        match runtime.block_on(async { timeout(within, self.exchange(request)).await }) {
            Ok(Ok(answered)) => Ok(answered),
            Ok(Err(why)) => Err(Unanswered::Unreachable {
                admin,
                why: why.to_string().into(),
            }),
            Err(_) => Err(Unanswered::Late { admin, within }),
        }
    }

    /// The value of `Authorization`, where there is a token.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    fn token(&self) -> Result<Option<HeaderValue>, Unanswered> {
        let (bytes, from) = match &self.token_file {
            Some(file) => match read(file) {
                Ok(bytes) => (bytes, file.display().to_string()),
                Err(error) => {
                    let why = format!("the token in {}: {error}", file.display());
                    return Err(Unanswered::Here(why.into()));
                }
            },
            None => match std::env::var_os(TOKEN) {
                Some(value) if !value.is_empty() => (value.into_encoded_bytes(), TOKEN.to_owned()),
                Some(_) | None => return Ok(None),
            },
        };
        // The end of the line is not the token's.
        let token = fresh::fit(bytes.trim_ascii_end());
        let value = token.and_then(|token| {
            HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| "no header can carry it")
        });
        let mut value =
            value.map_err(|why| Unanswered::Here(format!("the token in {from}: {why}").into()))?;
        value.set_sensitive(true);
        Ok(Some(value))
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
