//! Decides how the place of an issuer's keys is written: a URL, which may have a query, or a file.
//!
//! Must never take keys in clear from another machine: whoever is on the way could sign.

use std::fmt;
use std::net::IpAddr;

use super::UpstreamUrl;
use crate::config::read::{FromText, Wrong};
use crate::config::schema::Shape;
use crate::config::word::Filled;

/// Where keys are fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeysUrl {
    /// The URL up to its query.
    pub base: UpstreamUrl,
    /// What follows `?`, where there is one.
    pub query: Option<Box<str>>,
}

/// `jwks`, as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeysAt {
    File(Filled),
    Url(KeysUrl),
}

impl KeysUrl {
    /// What is asked for: path and query.
    #[must_use]
    pub fn target(&self) -> String {
        let path = self.base.target("");
        match &self.query {
            None => path,
            Some(query) => format!("{path}?{query}"),
        }
    }
}

impl fmt::Display for KeysUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.base.fmt(f)?;
        match &self.query {
            None => Ok(()),
            Some(query) => write!(f, "?{query}"),
        }
    }
}

impl FromText for KeysAt {
    const EXPECTED: &'static str =
        "a file such as \"keys.json\", or a URL such as \"https://idp.example.com/jwks.json\"";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        if !text.contains("://") {
            return Filled::from_text(text).map(Self::File);
        }
        let (base, query) = match text.split_once('?') {
            None => (text, None),
            Some((base, query)) => (base, Some(query)),
        };
        if text.contains('#') {
            return Err(Wrong::because("contains a fragment").hint("leave it out"));
        }
        let is_query_byte = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
        if query.is_some_and(|query| !query.bytes().all(is_query_byte)) {
            return Err(
                Wrong::because("contains a character that cannot stand in a query")
                    .hint("such characters are written percent-encoded, in UTF-8"),
            );
        }
        if base.ends_with("/.well-known/openid-configuration") {
            return Err(Wrong::because("is a discovery document, not keys")
                .hint("write the URL that stands in it as `jwks_uri`"));
        }
        if base.contains('@') {
            return Err(Wrong::because("contains a user name or password")
                .hint("keys are public: they are fetched without one"));
        }
        let base = UpstreamUrl::from_text(base)?;
        if !base.https && !is_here(&base.host) {
            return Err(Wrong::because(
                "fetches keys in clear: whoever is on the way could sign tokens",
            )
            .hint("write https; http is for this machine alone, such as 127.0.0.1"));
        }
        Ok(Self::Url(KeysUrl {
            base,
            query: query.map(Into::into),
        }))
    }

    fn shape() -> Shape {
        Shape::filled()
    }
}

/// Whether a host is this machine.
fn is_here(host: &str) -> bool {
    host.parse().map_or(host == "localhost", |address: IpAddr| {
        address.to_canonical().is_loopback()
    })
}
