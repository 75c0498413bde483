//! Decides how what a caller supplied under the two headers is told in a log, and read back from it.
//!
//! No value of a header goes into a log: a version is told as `Major.Minor` where it is one, a list by
//! the releases whose URIs are in it and the number of other members. What is told is enough for
//! [`judge`](mod@super::judge) to decide by: a [`Noted`] supplies headers that mean the same to any release.

use crate::protocol::extension::members;
use crate::protocol::headers::{Supplied, Supplies, VersionLines};
use crate::protocol::releases::RELEASES;
use crate::protocol::version::major_minor;
use crate::protocol::{ExtensionUri, version};

/// The longest version that is told as it is, in bytes. The longer ones are nobody's.
const LONGEST: usize = 7;

/// One empty `A2A-Version`.
const EMPTY: &str = "empty";
/// More than one line of it.
const SEVERAL: &str = "several";
/// One that is no version.
const INVALID: &str = "invalid";
/// The endpoint's own extension, where it is no release's.
const PINNED: &str = "pinned";

/// What was supplied under the two headers, as far as a log tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    version: Version,
    extensions: Option<Listed>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Version {
    #[default]
    Absent,
    Empty,
    Several,
    Invalid,
    Named([u8; LONGEST], u8),
}

/// The members of `A2A-Extensions`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Listed {
    /// One bit for each release.
    releases: u8,
    pinned: bool,
    others: u16,
}

/// The lengths of the releases' URIs: the least and the most.
const LENGTHS: (usize, usize) = {
    let (mut least, mut most, mut at) = (usize::MAX, 0, 0);
    while let (_, [release, ..]) = RELEASES.split_at(at) {
        if let Some(uri) = release.extension {
            least = if uri.len() < least { uri.len() } else { least };
            most = if uri.len() > most { uri.len() } else { most };
        }
        at += 1;
        if at == RELEASES.len() {
            break;
        }
    }
    (least, most)
};

/// The place of the release that a member of a list names.
fn release(member: &[u8]) -> Option<usize> {
    if member.len() < LENGTHS.0 || member.len() > LENGTHS.1 {
        return None;
    }
    let is_named = |uri: Option<&str>| uri.is_some_and(|uri| uri.as_bytes() == member);
    RELEASES.iter().rposition(|it| is_named(it.extension))
}

impl Noted {
    /// Neither header.
    pub const NOTHING: Self = Self {
        version: Version::Absent,
        extensions: None,
    };

    /// Notes what a request supplied at an endpoint that is pinned to these extensions.
    #[must_use]
    pub fn of<'c, S: Supplies>(
        supplied: Supplied<'_, S>,
        pinned: impl Iterator<Item = &'c ExtensionUri> + Clone,
    ) -> Self {
        let version = match supplied.version() {
            VersionLines::Absent => Version::Absent,
            VersionLines::Several => Version::Several,
            VersionLines::One(line) => Version::of(line),
        };
        let extensions = supplied.extensions().map(|lines| {
            let mut listed = Listed::default();
            for member in lines.flat_map(members) {
                if let Some(place) = release(member) {
                    listed.releases |= 1 << place;
                } else if pinned.clone().any(|uri| uri.as_str().as_bytes() == member) {
                    listed.pinned = true;
                } else {
                    listed.others = listed.others.saturating_add(1);
                }
            }
            listed
        });
        Self {
            version,
            extensions,
        }
    }

    /// Reads what a log tells: the words of [`version`](Noted::version) and
    /// [`extensions`](Noted::extensions), and the number of [`others`](Noted::others). A word that is
    /// none of these counts among the others.
    #[must_use]
    pub fn read<'w>(
        version: Option<&str>,
        extensions: Option<impl Iterator<Item = &'w str>>,
        others: u16,
    ) -> Self {
        let version = match version {
            None => Version::Absent,
            Some(EMPTY) => Version::Empty,
            Some(SEVERAL) => Version::Several,
            Some(word) => Version::of(word.as_bytes()),
        };
        let extensions = extensions.map(|words| {
            let mut listed = Listed {
                others,
                ..Listed::default()
            };
            for word in words {
                match RELEASES.iter().position(|release| release.name == word) {
                    Some(place) => listed.releases |= 1 << place,
                    None if word == PINNED => listed.pinned = true,
                    None => listed.others = listed.others.saturating_add(1),
                }
            }
            listed
        });
        Self {
            version,
            extensions,
        }
    }

    /// The version: `Major.Minor`, `empty`, `several` or `invalid`; `None` where there was none.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        match &self.version {
            Version::Absent => None,
            Version::Empty => Some(EMPTY),
            Version::Several => Some(SEVERAL),
            Version::Invalid => Some(INVALID),
            Version::Named(text, length) => {
                let text = text.get(..usize::from(*length)).unwrap_or_default();
                Some(std::str::from_utf8(text).unwrap_or(INVALID))
            }
        }
    }

    /// The releases that are listed, oldest first, then `pinned` for the endpoint's own extension
    /// where it is no release's; `None` where there was no list.
    #[must_use]
    pub fn extensions(&self) -> Option<impl Iterator<Item = &'static str> + use<>> {
        let listed = self.extensions?;
        let releases = listed.named().map(|release| release.name);
        Some(releases.chain(listed.pinned.then_some(PINNED)))
    }

    /// How many other members the list has.
    #[must_use]
    pub fn others(&self) -> u16 {
        self.extensions.map_or(0, |listed| listed.others)
    }
}

impl Version {
    fn of(line: &[u8]) -> Self {
        let line = version::trim(line);
        if line.is_empty() {
            return Self::Empty;
        }
        let Some(named) = major_minor(line) else {
            return Self::Invalid;
        };
        let mut text = [0; LONGEST];
        match (text.get_mut(..named.len()), u8::try_from(named.len())) {
            (Some(room), Ok(length)) => {
                room.copy_from_slice(named);
                Self::Named(text, length)
            }
            _ => Self::Invalid,
        }
    }
}

impl Listed {
    fn named(self) -> impl Iterator<Item = &'static super::releases::Release> {
        let all = RELEASES.iter().enumerate();
        all.filter(move |(place, _)| self.releases & 1 << place != 0)
            .map(|(_, release)| release)
    }
}

/// Lines that mean the same as those that were supplied, to whoever pins a release.
impl Supplies for Noted {
    fn versions(&self) -> impl Iterator<Item = &[u8]> {
        let line = match self.version {
            Version::Empty => Some(&b""[..]),
            Version::Absent | Version::Several | Version::Invalid | Version::Named(..) => {
                self.version().map(str::as_bytes)
            }
        };
        let again = line.filter(|_| self.version == Version::Several);
        line.into_iter().chain(again)
    }

    fn extensions(&self) -> impl Iterator<Item = &[u8]> {
        let listed = self.extensions.into_iter();
        listed.flat_map(|listed| {
            let named = listed.named().filter_map(|release| release.extension);
            // Whatever else it lists, there was a list.
            std::iter::once(&b""[..]).chain(named.map(str::as_bytes))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Contract, Verdict, judge};
    use http::{HeaderMap, HeaderName, HeaderValue};
    use proptest::prelude::*;

    const V3: &str = "https://autoagentprotocol.org/extensions/aap/v3.0";

    fn headers(versions: &[&str], extensions: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, lines) in [("a2a-version", versions), ("a2a-extensions", extensions)] {
            for line in lines {
                let value = HeaderValue::from_bytes(line.as_bytes()).unwrap();
                headers.append(HeaderName::from_static(name), value);
            }
        }
        headers
    }

    fn noted(versions: &[&str], extensions: &[&str], pinned: &str) -> Noted {
        let pinned: ExtensionUri = pinned.parse().unwrap();
        let headers = headers(versions, extensions);
        Noted::of(Supplied::new(&headers), [&pinned].into_iter())
    }

    fn words(noted: &Noted) -> Option<Vec<&'static str>> {
        noted.extensions().map(Iterator::collect)
    }

    #[test]
    fn a_version_is_told_in_its_normal_form_or_not_at_all() {
        for (lines, told) in [
            (&[][..], None),
            (&[""], Some("empty")),
            (&[" \t"], Some("empty")),
            (&["1.0"], Some("1.0")),
            (&[" 1.0.3 "], Some("1.0")),
            (&["0.3"], Some("0.3")),
            (&["123.456"], Some("123.456")),
            (&["1234.5678"], Some("invalid")),
            (&["v1.0"], Some("invalid")),
            (&["Bearer secret"], Some("invalid")),
            (&["1.0", "1.0"], Some("several")),
        ] {
            assert_eq!(noted(lines, &[], V3).version(), told, "{lines:?}");
        }
    }

    #[test]
    fn a_list_is_told_by_its_releases_and_the_number_of_others() {
        let own = "https://dealer.example/own/v1";
        let both = format!("{V3}, https://autoagentprotocol.org/extensions/aap/v1.2");
        for (lines, pinned, told, others) in [
            (&[][..], V3, None, 0),
            (&[""], V3, Some(vec![]), 0),
            (&[V3], V3, Some(vec!["aap/3.0"]), 0),
            (&[&*both], V3, Some(vec!["aap/1.2", "aap/3.0"]), 0),
            (&[V3, "secret, more", own], V3, Some(vec!["aap/3.0"]), 3),
            (&[own, "x"], own, Some(vec!["pinned"]), 1),
        ] {
            let noted = noted(&[], lines, pinned);
            assert_eq!((words(&noted), noted.others()), (told, others), "{lines:?}");
        }
        let every: Vec<_> = RELEASES.iter().filter_map(|it| it.extension).collect();
        let noted = noted(&[], &every, V3);
        assert_eq!(words(&noted).unwrap().len(), every.len());
    }

    fn contracts() -> impl Iterator<Item = Contract> {
        RELEASES.iter().filter_map(|release| release.contract(None))
    }

    proptest! {
        /// What a log tells is judged as the headers were, by every release, and reads back as it was.
        #[test]
        fn what_is_noted_is_judged_alike(
            versions in prop::collection::vec(
                prop_oneof![
                    Just("1.0".to_owned()), Just("0.3".to_owned()), Just(String::new()),
                    Just("1.0.7".to_owned()), "[0-9v]{1,3}[.][0-9]{1,6}", "[!-~]{0,9}",
                ],
                0..3,
            ),
            extensions in prop::collection::vec(
                prop::collection::vec(
                    prop_oneof![
                        prop::sample::select(
                            RELEASES.iter().filter_map(|it| it.extension).collect::<Vec<_>>()
                        ).prop_map(str::to_owned),
                        "[!-+--~]{0,60}",
                    ],
                    0..3,
                ).prop_map(|members| members.join(",")),
                0..3,
            ),
        ) {
            let headers = headers(
                &versions.iter().map(String::as_str).collect::<Vec<_>>(),
                &extensions.iter().map(String::as_str).collect::<Vec<_>>(),
            );
            let pinned: ExtensionUri = V3.parse().unwrap();
            let noted = Noted::of(Supplied::new(&headers), [&pinned].into_iter());
            for contract in contracts() {
                let real = judge(&contract, Supplied::new(&headers));
                let told = judge(&contract, Supplied::new(&noted));
                match (&real, &told) {
                    (Verdict::Admit(real), Verdict::Admit(told)) => prop_assert_eq!(real, told),
                    (Verdict::Refuse(real), Verdict::Refuse(told)) => {
                        prop_assert_eq!(real.outcome(), told.outcome());
                    }
                    _ => prop_assert!(false, "{:?} {:?} {:?}", contract.name, real, told),
                }
            }
            let again = Noted::read(noted.version(), noted.extensions(), noted.others());
            prop_assert_eq!(again, noted);
        }
    }
}
