//! Decides how everything else is written: numbers, switches, choices, names, header fields, files.

use std::num::{NonZeroU32, NonZeroUsize};

use http::{HeaderName, HeaderValue};

use crate::config::document::{Node, Value};
use crate::config::per::Dimension;
use crate::config::read::{FromNode, FromText, Wrong};
use crate::config::schema::Shape;
use crate::config::settings::{
    AccessFormat, Algorithm, Authenticate, ClientHeader, Identify, Level, LogFormat, OnStoreError,
    RateLimitHeaders, Secret,
};
use crate::config::suggest;
use crate::protocol::{Absence, Dialect, ExtensionUri, HttpStatus, Step, Version};

/// A name of something else in the file, or of a contract: any string, looked up later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) Box<str>);

impl FromText for Name {
    const EXPECTED: &'static str = "a name";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        Ok(Self(text.into()))
    }

    fn shape() -> Shape {
        Shape::text()
    }
}

/// A string that says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filled(pub(crate) Box<str>);

impl FromText for Filled {
    const EXPECTED: &'static str = "a string";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        if text.is_empty() {
            return Err(Wrong::because("is empty"));
        }
        if text.chars().any(char::is_control) {
            return Err(Wrong::because("contains a control character"));
        }
        Ok(Self(text.into()))
    }

    fn shape() -> Shape {
        Shape::filled()
    }
}

/// Whether clients need a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Demand {
    Optional,
    Required,
}

impl Demand {
    const ALL: [Self; 2] = [Self::Optional, Self::Required];

    const fn name(self) -> &'static str {
        match self {
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }
}

impl FromNode for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_node(node: &Node) -> Result<Self, Wrong> {
        match &node.value {
            Value::Boolean(boolean) => Ok(*boolean),
            Value::Text { text, expanded } => match (text.as_str(), expanded) {
                ("true", true) => Ok(true),
                ("false", true) => Ok(false),
                ("true" | "false", false) => Err(Wrong::kind().hint("leave the quotes out")),
                _ => Err(Wrong::kind()),
            },
            Value::Integer(_)
            | Value::Float
            | Value::Time
            | Value::Null
            | Value::List(_)
            | Value::Table(_)
            | Value::Failed => Err(Wrong::kind()),
        }
    }

    fn shape() -> Shape {
        Shape::boolean()
    }
}

/// An integer between two bounds, both included. Where it came from a variable it may stand in a
/// string, because that is where variables stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integer<const LEAST: u64, const MOST: u64>(pub(crate) u64);

impl<const LEAST: u64, const MOST: u64> FromNode for Integer<LEAST, MOST> {
    const EXPECTED: &'static str = "an integer";

    fn from_node(node: &Node) -> Result<Self, Wrong> {
        let number = match &node.value {
            Value::Integer(Some(number)) => *number,
            Value::Text { text, expanded } => match (text.parse(), expanded) {
                (Ok(number), true) => number,
                (Ok(_), false) => return Err(Wrong::kind().hint("leave the quotes out")),
                (Err(_), _) => return Err(Wrong::kind()),
            },
            Value::Integer(None) => return Err(Wrong::kind()),
            Value::Float
            | Value::Boolean(_)
            | Value::Time
            | Value::Null
            | Value::List(_)
            | Value::Table(_)
            | Value::Failed => return Err(Wrong::kind()),
        };
        if number < i128::from(LEAST) {
            return Err(Wrong::because(format!("is too small: at least {LEAST}")));
        }
        match u64::try_from(number) {
            Ok(number) if number <= MOST => Ok(Self(number)),
            Ok(_) | Err(_) => Err(Wrong::because(format!("is too large: at most {MOST}"))),
        }
    }

    fn shape() -> Shape {
        Shape::integer(LEAST, MOST)
    }
}

impl<const LEAST: u64, const MOST: u64> Integer<LEAST, MOST> {
    /// As a count of things in memory.
    pub(crate) fn count(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// As a count of things of which there is at least one.
    pub(crate) fn some(self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(self.count())
    }

    /// As a count of requests.
    pub(crate) fn requests(self) -> Option<NonZeroU32> {
        u32::try_from(self.0).ok().and_then(NonZeroU32::new)
    }
}

/// One of a few words.
fn choose<T: Copy>(
    text: &str,
    all: impl IntoIterator<Item = T>,
    name: impl Fn(T) -> &'static str,
) -> Result<T, Wrong> {
    let all: Vec<T> = all.into_iter().collect();
    if let Some(found) = all.iter().find(|choice| name(**choice) == text) {
        return Ok(*found);
    }
    let names = all.iter().map(|choice| name(*choice));
    Err(match suggest::nearest(text, names) {
        Some(word) => Wrong::kind().hint(format!("did you mean {word:?}?")),
        None => Wrong::kind(),
    })
}

macro_rules! choice {
    ($type:ty, $expected:literal, $all:expr, $name:expr) => {
        impl FromText for $type {
            const EXPECTED: &'static str = $expected;

            fn from_text(text: &str) -> Result<Self, Wrong> {
                choose(text, $all, $name)
            }

            fn shape() -> Shape {
                Shape::words($all.map($name))
            }
        }
    };
}

choice!(
    Level,
    "\"error\", \"warn\", \"info\", \"debug\" or \"trace\"",
    Level::ALL,
    Level::name
);
choice!(
    Demand,
    "\"optional\" or \"required\"",
    Demand::ALL,
    Demand::name
);
choice!(
    Authenticate,
    "\"off\", \"optional\" or \"required\"",
    Authenticate::ALL,
    Authenticate::name
);
choice!(
    AccessFormat,
    "\"json\" or \"combined\"",
    AccessFormat::ALL,
    AccessFormat::name
);
choice!(
    LogFormat,
    "\"json\" or \"text\"",
    LogFormat::ALL,
    LogFormat::name
);
choice!(
    Dimension,
    "\"caller\", \"endpoint\", \"address\", \"tenant\", \"skill\" or \"all\"",
    Dimension::ALL,
    Dimension::name
);
choice!(
    Dialect,
    "\"bare\", \"tagged\" or \"wrapped\"",
    Dialect::ALL,
    Dialect::name
);
choice!(
    HttpStatus,
    "\"split\", \"mapped\" or \"ok\"",
    HttpStatus::ALL,
    HttpStatus::name
);
choice!(
    RateLimitHeaders,
    "\"draft\", \"x-ratelimit\" or \"off\"",
    RateLimitHeaders::ALL,
    RateLimitHeaders::name
);
choice!(
    OnStoreError,
    "\"local\", \"allow\" or \"deny\"",
    OnStoreError::ALL,
    OnStoreError::name
);
choice!(
    ClientHeader,
    "\"x-forwarded-for\" or \"forwarded\"",
    ClientHeader::ALL,
    ClientHeader::name
);
choice!(
    Step,
    "one of the steps version, extension, quota, tenant, capability, media, payload",
    Step::ALL,
    Step::name
);
choice!(
    Absence,
    "\"infer\" or \"refuse\"",
    Absence::ALL,
    Absence::name
);

impl FromText for Algorithm {
    const EXPECTED: &'static str =
        "one of the algorithms RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        if text.eq_ignore_ascii_case("none") {
            return Err(Wrong::because("is no signature at all").hint("leave it out"));
        }
        if ["HS256", "HS384", "HS512"].contains(&text) {
            return Err(
                Wrong::because("is symmetric: whoever can verify a token could sign one")
                    .hint("have the issuer sign with RS256, ES256 or EdDSA"),
            );
        }
        choose(text, Self::ALL, Self::name)
    }

    fn shape() -> Shape {
        Shape::words(Self::ALL.map(Self::name))
    }
}

impl FromText for Version {
    const EXPECTED: &'static str = "an A2A version such as \"1.0\"";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        text.parse()
            .map_err(|error: crate::protocol::version::VersionError| {
                Wrong::because(format!("is no version to pin: {error}"))
            })
    }

    fn shape() -> Shape {
        let number = "(0|[1-9][0-9]*)";
        Shape::like(
            "version",
            <Self as FromText>::EXPECTED,
            &format!("{number}\\.{number}"),
        )
    }
}

impl FromText for ExtensionUri {
    const EXPECTED: &'static str =
        "an absolute URI such as \"https://autoagentprotocol.org/extensions/aap/v3.0\"";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        text.parse()
            .map_err(|error: crate::protocol::extension::ExtensionError| {
                Wrong::because(format!("is no URI to pin: {error}"))
            })
    }

    fn shape() -> Shape {
        let pattern = "[A-Za-z][A-Za-z0-9+.-]*://[^/?#,\\s][^,\\s]*";
        Shape::like("extension", <Self as FromText>::EXPECTED, pattern)
    }
}

impl FromText for Identify {
    const EXPECTED: &'static str = "\"header:NAME\" or \"address\"";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        if text == "address" {
            return Ok(Self::Address);
        }
        match text.strip_prefix("header:") {
            Some(name) => Ok(Self::Header(header_name(name)?)),
            None if HeaderName::from_bytes(text.as_bytes()).is_ok() => {
                Err(Wrong::kind().hint_showing(format!("a header is written \"header:{text}\"")))
            }
            None => Err(Wrong::kind()),
        }
    }

    fn shape() -> Shape {
        let pattern = "address|header:[A-Za-z0-9!#$%&'*+.^_`|~-]+";
        Shape::like("source", <Self as FromText>::EXPECTED, pattern)
    }
}

/// A field name.
pub(crate) fn header_name(name: &str) -> Result<HeaderName, Wrong> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        Wrong::because("is no header name")
            .hint("letters, digits and hyphens, such as `x-api-key`; no spaces, no colon")
    })
}

impl FromText for Secret {
    const EXPECTED: &'static str = "a header value in a string";
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, Wrong> {
        if text.is_empty() {
            return Err(Wrong::because("is empty").hint("leave the header out"));
        }
        if text.contains(['\r', '\n']) {
            return Err(Wrong::because("contains a line break")
                .hint("a variable filled from a file often ends in one"));
        }
        if text.trim_matches([' ', '\t']).len() != text.len() {
            return Err(Wrong::because("begins or ends with a space"));
        }
        if !text.is_ascii() || HeaderValue::from_str(text).is_err() {
            return Err(
                Wrong::because("contains a character that cannot stand in a header")
                    .hint("visible ASCII characters, spaces and tabs"),
            );
        }
        Ok(Self::new(text))
    }

    fn shape() -> Shape {
        Shape::filled()
    }
}
