//! Decides whose bucket a request falls into: a proven caller's, or the first configured source that
//! is present.
//!
//! Nothing here proves who somebody is; whoever was proven by other means has a bucket under their
//! name ([`Caller::proven`]). A header that nobody verified separates honest callers from each
//! other and no more, which is why an address quota should stand beside it. The value of a header
//! must never come out of this file again: only its fingerprint does.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use http::HeaderName;

use super::fingerprint::{Domain, Fingerprint};
use super::shared::{Digest, Meaning};
use crate::http1::Fields;

/// Where a caller's name may be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The value of this header. A request that repeats it is refused ([`repeated`]).
    Header(HeaderName),
    /// The client's address.
    Address,
}

/// Who is calling: proven, or as far as the configured sources say. Cheap to clone.
///
/// Shown by its [`name`](Caller::name), which is fit for a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    fingerprint: Fingerprint,
    known: Known,
    plan: Option<usize>,
    is_configured: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    Proven(Arc<str>),
    Header(HeaderName),
    Address(IpAddr),
    No,
}

/// The header among the sources that stands on more than one line, if there is one. Whom such a
/// request is from depends on who reads it: it is to be refused before it is identified.
#[must_use]
pub fn repeated<'s>(sources: &'s [Source], fields: &Fields) -> Option<&'s HeaderName> {
    sources.iter().find_map(|source| match source {
        Source::Header(name) => fields.named(name).nth(1).map(|_| name),
        Source::Address => None,
    })
}

/// Identifies the caller: the first source that is present wins.
///
/// A header that is absent, or that has nothing but spaces and tabs, names
/// nobody and the next source is asked. Spaces and tabs around a line do not count (HTTP/2 keeps
/// them, HTTP/1.1 does not: a caller must not get a second bucket by adding one). When no source
/// says anything, all such callers are one.
#[must_use]
pub fn identify(sources: &[Source], fields: &Fields, address: IpAddr) -> Caller {
    for source in sources {
        match source {
            Source::Header(name) => {
                if let Some(fingerprint) = by_header(name, fields) {
                    return Caller {
                        fingerprint,
                        known: Known::Header(name.clone()),
                        plan: None,
                        is_configured: false,
                    };
                }
            }
            Source::Address => {
                return Caller {
                    fingerprint: by_address(Domain::Caller, address),
                    known: Known::Address(address),
                    plan: None,
                    is_configured: false,
                };
            }
        }
    }
    Caller {
        fingerprint: Fingerprint::of(Domain::Nobody, []),
        known: Known::No,
        plan: None,
        is_configured: false,
    }
}

impl Caller {
    /// Somebody who has proven to be the one of this name. The bucket belongs to the name, whatever
    /// it was proven by. `plan`: the place of their plan in the configuration, where they have one.
    #[must_use]
    pub fn proven(name: Arc<str>, plan: Option<usize>) -> Self {
        Self {
            fingerprint: Fingerprint::of(Domain::Proven, [name.as_bytes()]),
            known: Known::Proven(name),
            plan,
            is_configured: false,
        }
    }

    /// The same, of somebody whom the configuration names: there are no more of these than it says.
    #[must_use]
    pub fn configured(name: Arc<str>, plan: Option<usize>) -> Self {
        Self {
            is_configured: true,
            ..Self::proven(name, plan)
        }
    }

    /// The keyed fingerprint of what names the caller.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// What names the caller in every process: for a store that several share. `fields` are those it
    /// was identified by.
    pub(super) fn digest(&self, fields: &Fields) -> Digest {
        match &self.known {
            Known::Proven(name) => Digest::of(Meaning::Proven, [name.as_bytes()]),
            Known::Header(name) => {
                let value = fields.named(name).next().unwrap_or_default();
                Digest::of(Meaning::Header, [name.as_str().as_bytes(), value])
            }
            Known::Address(address) => network_digest(Meaning::Caller, *address),
            Known::No => Digest::of(Meaning::Nobody, []),
        }
    }

    /// Whether the configuration names them, so that traffic cannot make up more of them.
    pub(super) const fn is_configured(&self) -> bool {
        self.is_configured
    }

    /// The place of their plan in the configuration. Whoever is not proven has none.
    #[must_use]
    pub const fn plan(&self) -> Option<usize> {
        self.plan
    }

    /// A name fit for a log: that of a proven caller, `address 192.0.2.7`, `x-api-key#1a2b3c4d` or
    /// `nobody`, never the key itself. The eight digits are stable within the process.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match &self.known {
            Known::Proven(name) => Cow::Borrowed(name),
            Known::Header(name) => named(name.as_str(), self.fingerprint.short()).into(),
            Known::Address(address) => match network(*address) {
                IpAddr::V4(address) => format!("address {address}").into(),
                IpAddr::V6(prefix) => format!("address {prefix}/64").into(),
            },
            Known::No => Cow::Borrowed("nobody"),
        }
    }
}

/// `x-api-key#1a2b3c4d`, without the machinery of `fmt`: this is on the path of every request.
fn named(header: &str, digits: u32) -> String {
    let mut name = String::with_capacity(header.len() + 9);
    name.push_str(header);
    name.push('#');
    for place in (0..8).rev() {
        let digit = digits >> (4 * place) & 0xf;
        name.extend(char::from_digit(digit, 16));
    }
    name
}

impl fmt::Display for Caller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name())
    }
}

fn by_header(name: &HeaderName, fields: &Fields) -> Option<Fingerprint> {
    let value = fields.named(name).next()?;
    let parts = [name.as_str().as_bytes(), value];
    (!value.is_empty()).then(|| Fingerprint::of(Domain::Header, parts))
}

pub(super) fn by_address(domain: Domain, address: IpAddr) -> Fingerprint {
    match network(address) {
        IpAddr::V4(address) => Fingerprint::of(domain, [address.octets().as_slice()]),
        IpAddr::V6(prefix) => Fingerprint::of(domain, [prefix.octets().as_slice()]),
    }
}

/// What names an address's network in every process.
pub(super) fn address_digest(address: IpAddr) -> Digest {
    network_digest(Meaning::Address, address)
}

/// The same, as what is meant.
pub(super) fn network_digest(meaning: Meaning, address: IpAddr) -> Digest {
    match network(address) {
        IpAddr::V4(address) => Digest::of(meaning, [address.octets().as_slice()]),
        IpAddr::V6(prefix) => Digest::of(meaning, [prefix.octets().as_slice()]),
    }
}

/// The network one client is taken to own: an IPv4 address (also one that is written as IPv6), or
/// the first 64 bits of an IPv6 address, of which any subscriber has 2^64 to choose from.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let prefix = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};
    use proptest::prelude::*;

    fn sources() -> [Source; 3] {
        [
            Source::Header(HeaderName::from_static("x-api-key")),
            Source::Header(HeaderName::from_static("authorization")),
            Source::Address,
        ]
    }

    fn headers(lines: &[(&'static str, &'static str)]) -> Fields {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, HeaderValue::from_static(value));
        }
        Fields::from(&map)
    }

    fn name(lines: &[(&'static str, &'static str)], address: &str) -> String {
        identify(&sources(), &headers(lines), address.parse().unwrap()).to_string()
    }

    fn print(lines: &[(&'static str, &'static str)]) -> Fingerprint {
        identify(&sources(), &headers(lines), [192, 0, 2, 7].into()).fingerprint()
    }

    #[test]
    fn the_first_present_source_wins() {
        let both = [("authorization", "Bearer t"), ("x-api-key", "secret")];
        assert!(name(&both, "192.0.2.7").starts_with("x-api-key#"));
        assert!(name(&both[..1], "192.0.2.7").starts_with("authorization#"));
        assert_eq!(name(&[], "192.0.2.7"), "address 192.0.2.7");
        assert_eq!(
            name(&[("x-api-key", " \t")], "192.0.2.7"),
            "address 192.0.2.7"
        );
    }

    #[test]
    fn the_name_is_eight_digits_and_never_the_key() {
        let shown = name(&[("x-api-key", "secret")], "192.0.2.7");
        let digits = shown.strip_prefix("x-api-key#").unwrap();
        assert_eq!(digits.len(), 8);
        assert!(digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_eq!(shown, name(&[("x-api-key", "secret")], "198.51.100.1"));
        assert_ne!(shown, name(&[("x-api-key", "secret2")], "192.0.2.7"));
    }

    #[test]
    fn a_repeated_source_is_found_whatever_its_place() {
        let sources = sources();
        let found = |lines: &[(&'static str, &'static str)]| {
            repeated(&sources, &headers(lines)).map(|name| name.as_str().to_owned())
        };
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[("x-api-key", "a"), ("authorization", "b")]), None);
        assert_eq!(found(&[("x-other", "a"), ("x-other", "b")]), None);
        let twice = [
            ("x-api-key", "k"),
            ("authorization", "a"),
            ("authorization", "a"),
        ];
        assert_eq!(found(&twice).as_deref(), Some("authorization"));
    }

    #[test]
    fn spaces_around_a_key_make_no_second_caller() {
        assert_eq!(
            print(&[("x-api-key", "k")]),
            print(&[("x-api-key", "\t k ")])
        );
    }

    #[test]
    fn the_same_value_under_another_header_is_another_caller() {
        assert_ne!(
            print(&[("x-api-key", "k")]),
            print(&[("authorization", "k")])
        );
    }

    #[test]
    fn without_any_source_everybody_is_the_same_nobody() {
        let only = [Source::Header(HeaderName::from_static("x-api-key"))];
        let one = identify(&only, &Fields::default(), [192, 0, 2, 7].into());
        let two = identify(&only, &Fields::default(), [192, 0, 2, 8].into());
        assert_eq!(one.fingerprint(), two.fingerprint());
        assert_eq!(one.to_string(), "nobody");
        assert_eq!(
            one,
            identify(&[], &Fields::default(), [192, 0, 2, 7].into())
        );
    }

    #[test]
    fn a_proven_caller_is_its_name_and_nobody_elses_bucket() {
        let acme = Caller::proven("acme".into(), None);
        assert_eq!((&*acme.name(), acme.plan()), ("acme", None));
        let planned = Caller::proven("acme".into(), Some(1));
        assert_eq!(planned.plan(), Some(1));
        assert_eq!(acme.fingerprint(), planned.fingerprint());
        let other = Caller::proven("acme2".into(), None);
        assert_ne!(acme.fingerprint(), other.fingerprint());
        // Not even by a header of the same bytes.
        assert_ne!(acme.fingerprint(), print(&[("x-api-key", "acme")]));
        assert_eq!(
            identify(&[], &Fields::default(), [192, 0, 2, 7].into()).plan(),
            None
        );
    }

    #[test]
    fn an_address_is_its_network() {
        assert_eq!(name(&[], "::ffff:192.0.2.7"), "address 192.0.2.7");
        assert_eq!(
            name(&[], "2001:db8:1:2:3:4:5:6"),
            "address 2001:db8:1:2::/64"
        );
        let subject = |address: &str| {
            let address = address.parse().unwrap();
            by_address(Domain::Address, address)
        };
        assert_eq!(subject("2001:db8::1"), subject("2001:db8::2"));
        assert_ne!(subject("2001:db8::1"), subject("2001:db8:0:1::1"));
        assert_ne!(subject("192.0.2.7"), subject("192.0.2.8"));
        assert_eq!(subject("192.0.2.7"), subject("::ffff:192.0.2.7"));
    }

    proptest! {
        /// An IPv6 subscriber has 2^64 addresses, and one bucket; the next has another.
        #[test]
        fn all_of_a_64_are_one_and_no_two_64_are(one in any::<u128>(), other in any::<u128>()) {
            let low = u128::from(u64::MAX);
            let inside = (one & !low) | (other & low);
            let [one, inside, other] = [one, inside, other].map(|bits| IpAddr::V6(bits.into()));
            // What is IPv4 in another spelling is judged below.
            prop_assume!(![one, inside, other].iter().any(|it| it.to_canonical().is_ipv4()));
            prop_assert_eq!(by(one), by(inside));
            let same = network(one) == network(other);
            prop_assert_eq!(by(one) == by(other), same);
            let caller = identify(&[Source::Address], &Fields::default(), one);
            let name = caller.name();
            let prefix = name.strip_prefix("address ").and_then(|it| it.strip_suffix("/64"));
            let prefix: Ipv6Addr = prefix.unwrap().parse().unwrap();
            prop_assert_eq!(by(prefix.into()), by(one));
        }

        /// IPv4 is one address each, in either spelling.
        #[test]
        fn ipv4_is_the_same_in_both_spellings(one in any::<u32>(), other in any::<u32>()) {
            let [one, other] = [one, other].map(std::net::Ipv4Addr::from);
            let mapped = |address: std::net::Ipv4Addr| IpAddr::V6(address.to_ipv6_mapped());
            prop_assert_eq!(by(one.into()), by(mapped(one)));
            prop_assert_eq!(by(one.into()) == by(mapped(other)), one == other);
        }
    }

    /// The buckets of an address: as a caller's, and as an address's.
    fn by(address: IpAddr) -> (Fingerprint, Fingerprint) {
        let caller = identify(&[Source::Address], &Fields::default(), address);
        (caller.fingerprint(), by_address(Domain::Address, address))
    }
}
