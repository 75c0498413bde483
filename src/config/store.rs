//! Decides how a store is written: its URL, its further nodes, its password, what holds without it.
//!
//! Must never show a password: a URL is shown without its user.

use std::fmt;

use crate::config::read::{FromText, Wrong};
use crate::config::schema::Shape;
use crate::config::settings::Secret;
use crate::config::web::host_and_port;

/// The port of a store that names none.
const PORT: u16 = 6379;

/// Where a store is, without who we are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreUrl {
    /// TLS to the store.
    pub tls: bool,
    /// Host and port of the server, or of the first of several.
    pub node: Node,
    /// The number of the database.
    pub database: u32,
}

/// Host and port of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// A host name in lower case, an IPv4 address, or an IPv6 address without brackets.
    pub host: Box<str>,
    /// 1 to 65535.
    pub port: u16,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(f, "[{host}]:{port}")
        } else {
            write!(f, "{host}:{port}")
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        write!(f, "{scheme}://{}/{}", self.node, self.database)
    }
}

/// A URL as it is written, with who we are.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) url: StoreUrl,
    pub(crate) username: Option<Box<str>>,
    pub(crate) password: Option<Secret>,
}

impl FromText for Written {
    const EXPECTED: &'static str = "a URL such as \"redis://127.0.0.1:6379\"";
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, Wrong> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(
                Wrong::because("has no scheme").hint("redis://HOST:PORT, or rediss:// for TLS")
            );
        };
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            "unix" | "redis+unix" => {
                return Err(Wrong::because(
                    "is a socket of this machine: a store is shared",
                ));
            }
            _ => return Err(Wrong::because("is neither redis nor rediss")),
        };
        if rest.contains(['?', '#']) {
            return Err(Wrong::because("contains a query or a fragment")
                .hint("what a store needs to know are keys of [store.NAME]"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (username, password) = match user {
            None => (None, None),
            Some(user) => {
                let (name, password) = user.split_once(':').unwrap_or((user, ""));
                let (name, password) = (decoded(name)?, decoded(password)?);
                let name = (!name.is_empty()).then(|| name.into());
                let password = (!password.is_empty()).then(|| Secret::new(&password));
                (name, password)
            }
        };
        let database = match path {
            "" => 0,
            number if number.bytes().all(|byte| byte.is_ascii_digit()) => number
                .parse()
                .map_err(|_| Wrong::because("names a database that is too large"))?,
            _ => {
                return Err(Wrong::because("has a path that is no number")
                    .hint("the path is the number of the database: redis://HOST:PORT/1"));
            }
        };
        Ok(Self {
            url: StoreUrl {
                tls,
                node: node(place)?,
                database,
            },
            username,
            password,
        })
    }

    fn shape() -> Shape {
        let pattern = "([Rr][Ee][Dd][Ii][Ss]|[Vv][Aa][Ll][Kk][Ee][Yy])[Ss]?://[^/?#\\s]+(/[0-9]*)?";
        Shape::like("store_url", <Self as FromText>::EXPECTED, pattern)
    }
}

fn node(text: &str) -> Result<Node, Wrong> {
    let (host, port) = host_and_port(text, PORT)?;
    Ok(Node {
        host: host.into(),
        port,
    })
}

/// A part of a URL without its percent signs.
fn decoded(text: &str) -> Result<String, Wrong> {
    let wrong = || {
        Wrong::because("contains a `%` without two hexadecimal digits in its user or password")
            .hint("a literal `%` is written `%25`; or give them as `username` and `password`")
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        let code = after.get(..2).ok_or_else(wrong)?;
        bytes.push(u8::from_str_radix(code, 16).map_err(|_| wrong())?);
        rest = after.get(2..).unwrap_or_default();
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).map_err(|_| wrong())
}

impl FromText for Node {
    const EXPECTED: &'static str = "a host and port such as \"10.0.0.7:6379\"";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        if text.contains(['/', '@']) {
            return Err(Wrong::because("is more than a host and port")
                .hint("scheme, user and database stand in `url`, for all of them"));
        }
        node(text)
    }

    fn shape() -> Shape {
        Shape::like("node", <Self as FromText>::EXPECTED, "[^/@\\s]+")
    }
}

/// What proves to a store who we are.
#[derive(Clone, Debug)]
pub(crate) struct Password(pub(crate) Secret);

impl FromText for Password {
    const EXPECTED: &'static str = "a password in a string";
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, Wrong> {
        if text.is_empty() {
            return Err(Wrong::because("is empty").hint("leave it out"));
        }
        if text.contains(['\r', '\n']) {
            return Err(Wrong::because("contains a line break")
                .hint("a variable filled from a file often ends in one"));
        }
        Ok(Self(Secret::new(text)))
    }

    fn shape() -> Shape {
        Shape::filled()
    }
}
