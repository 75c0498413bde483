//! Decides what all credentials of one request prove together.
//!
//! See the room's rule on several of them. Looking is done in one pass and keeps nothing: a request
//! with a good key costs one hash and no memory. Must never take one of two lines of a header.

use http::HeaderName;

use super::certificate::{Certificate, Certificates, Shows};
use super::key::{Digest, Keys};
use super::{Carriers, Flaw, Proof, Verdict, Who};
use crate::config::Caller;
use crate::http1::{Fields, Known};

/// Every caller that is known, ready to be recognised.
#[derive(Clone, Debug)]
pub struct Callers {
    key_header: HeaderName,
    keys: Keys,
    certificates: Certificates,
}

impl Callers {
    /// Callers as configured, whose keys stand in this header or as a bearer token.
    #[must_use]
    pub fn compile(callers: &[Caller], key_header: HeaderName) -> Self {
        let (mut keys, mut certificates) = (Keys::default(), Certificates::default());
        for (place, caller) in callers.iter().enumerate() {
            for digest in &caller.key_sha256 {
                keys.add(Digest::from(digest.0), place);
            }
            for name in &caller.certificates {
                certificates.add(name.clone(), place);
            }
        }
        Self {
            key_header,
            keys,
            certificates,
        }
    }

    /// The header in which API keys stand.
    #[must_use]
    pub const fn key_header(&self) -> &HeaderName {
        &self.key_header
    }

    /// Whom a certificate shows. The same for all requests of a connection.
    #[must_use]
    pub fn recognise(&self, certificate: &Certificate) -> Shows {
        self.certificates.find(certificate)
    }

    /// What the credentials of a request prove, on a connection whose certificate shows this.
    ///
    /// An empty key is a bad one: whoever sends it meant to send another. Of `Authorization` only
    /// the scheme `Bearer`, in any case, is looked at; any other is somebody else's matter.
    ///
    /// `token` judges what follows `Bearer`, where that is a token of an issuer's; `None`: it is none.
    pub fn examine(
        &self,
        fields: &Fields,
        shows: Shows,
        token: impl FnOnce(&[u8]) -> Option<Result<Who, &'static str>>,
    ) -> Verdict {
        let mut keys = fields.named(&self.key_header);
        let mut lines = fields.all(Known::Authorization);
        let (key, bearer) = (keys.next(), lines.next().and_then(bearer));
        if keys.next().is_some() || lines.next().is_some() {
            return Verdict::Repeated;
        }
        let by = Carriers {
            key_header: key.is_some(),
            bearer: bearer.is_some(),
        };
        let bad = |why| {
            Verdict::Bad(Flaw {
                why,
                is_bearer: by.bearer,
            })
        };
        let mut proven = match shows {
            Shows::Nobody => None,
            Shows::Caller(place) => Some(Who::Caller(place)),
            Shows::Several => return bad("the certificate is of several callers"),
        };
        let by_key = key.map(|key| self.by_key(key));
        // An API key can stand there as well.
        let by_bearer = bearer.map(|line| token(line).unwrap_or_else(|| self.by_key(line)));
        for found in [by_key, by_bearer].into_iter().flatten() {
            proven = match (proven, found) {
                (_, Err(why)) => return bad(why),
                (Some(before), Ok(who)) if before != who => {
                    return bad("its credentials are of different callers");
                }
                (_, Ok(who)) => Some(who),
            };
        }
        proven.map_or(Verdict::Absent, |who| Verdict::Proven(Proof { who, by }))
    }

    fn by_key(&self, key: &[u8]) -> Result<Who, &'static str> {
        self.keys.find(key).map(Who::Caller)
    }
}

/// What follows the scheme `Bearer`; `None` where the scheme is another.
fn bearer(line: &[u8]) -> Option<&[u8]> {
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t'));
    let (scheme, rest) = line.split_at_checked(end.unwrap_or(line.len()))?;
    scheme
        .eq_ignore_ascii_case(b"bearer")
        .then(|| rest.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};
    use proptest::prelude::*;

    use crate::config::{CertificateName, KeySha256};

    fn caller(name: &str, keys: &[&str], certificate: &str) -> Caller {
        let digest = |key: &&str| KeySha256(*Digest::of(key.as_bytes()).bytes());
        Caller {
            name: name.into(),
            key_sha256: keys.iter().map(digest).collect(),
            certificates: vec![CertificateName::dns(certificate)],
            plan: None,
            endpoints: None,
        }
    }

    fn examine(lines: &[(&'static str, &str)], shows: Shows) -> Verdict {
        let known = [
            caller("acme", &["k-1", "k-2"], "acme.example"),
            caller("beta", &["k-3"], "beta.example"),
        ];
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let callers = Callers::compile(&known, HeaderName::from_static("x-api-key"));
        callers.examine(&Fields::from(&map), shows, |_| None)
    }

    fn proven(place: usize, key_header: bool, bearer: bool) -> Verdict {
        Verdict::Proven(Proof {
            who: Who::Caller(place),
            by: Carriers { key_header, bearer },
        })
    }

    #[track_caller]
    fn is_bad(lines: &[(&'static str, &str)], shows: Shows, is_bearer: bool) {
        match examine(lines, shows) {
            Verdict::Bad(flaw) => assert_eq!(flaw.is_bearer, is_bearer, "{lines:?}"),
            other @ (Verdict::Absent | Verdict::Proven(_) | Verdict::Repeated) => {
                panic!("{lines:?}: {other:?}")
            }
        }
    }

    #[test]
    fn a_key_stands_in_its_header_or_as_a_bearer() {
        let nobody = Shows::Nobody;
        assert_eq!(examine(&[], nobody), Verdict::Absent);
        let key = [("x-api-key", " k-2\t")];
        assert_eq!(examine(&key, nobody), proven(0, true, false));
        for line in ["Bearer k-3", "bearer  k-3", "BEARER k-3 ", "bEARER\tk-3"] {
            let verdict = examine(&[("authorization", line)], nobody);
            assert_eq!(verdict, proven(1, false, true), "{line}");
        }
        for line in ["Basic k-3", "k-3", "Bearerk-3", "", "DPoP k-3"] {
            let verdict = examine(&[("authorization", line)], nobody);
            assert_eq!(verdict, Verdict::Absent, "{line}");
        }
        let elsewhere = [
            ("x-api-keys", "k-1"),
            ("x_api_key", "k-1"),
            ("api-key", "k-1"),
        ];
        assert_eq!(examine(&elsewhere, nobody), Verdict::Absent);
    }

    #[test]
    fn what_is_carried_and_wrong_is_bad() {
        let nobody = Shows::Nobody;
        for key in ["", "K-1", "k-1,k-1", "\"k-1\"", "k-", "Bearer k-1"] {
            is_bad(&[("x-api-key", key)], nobody, false);
        }
        for line in [
            "Bearer",
            "Bearer ",
            "Bearer K-1",
            "Bearer k-1 k-1",
            "Bearer Bearer k-1",
        ] {
            is_bad(&[("authorization", line)], nobody, true);
        }
        let long = format!("Bearer {}", "k".repeat(5000));
        is_bad(&[("authorization", &long)], nobody, true);
    }

    #[test]
    fn all_that_is_carried_must_prove_the_same() {
        let both = |key, line| [("x-api-key", key), ("authorization", line)];
        let nobody = Shows::Nobody;
        // Two keys of one caller are one caller.
        let same = both("k-1", "Bearer k-2");
        assert_eq!(examine(&same, nobody), proven(0, true, true));
        assert_eq!(examine(&same, Shows::Caller(0)), proven(0, true, true));
        assert_eq!(examine(&[], Shows::Caller(1)), proven(1, false, false));
        let other_scheme = both("k-1", "Basic eDp5");
        assert_eq!(examine(&other_scheme, nobody), proven(0, true, false));
        is_bad(&both("k-1", "Bearer k-3"), nobody, true);
        is_bad(&both("k-1", "Bearer wrong"), nobody, true);
        is_bad(&both("wrong", "Bearer k-3"), nobody, true);
        is_bad(&[("x-api-key", "k-1")], Shows::Caller(1), false);
        is_bad(&[("x-api-key", "wrong")], Shows::Caller(0), false);
        is_bad(&[], Shows::Several, false);
        is_bad(&[("x-api-key", "k-1")], Shows::Several, false);
    }

    #[test]
    fn a_second_line_is_never_passed_over() {
        for lines in [
            [("x-api-key", "k-1"), ("x-api-key", "k-1")],
            [
                ("authorization", "Bearer k-1"),
                ("authorization", "Bearer k-1"),
            ],
            [
                ("authorization", "Basic eDp5"),
                ("authorization", "Bearer k-1"),
            ],
            [("authorization", "Bearer k-1"), ("authorization", "")],
        ] {
            let verdict = examine(&lines, Shows::Caller(0));
            assert_eq!(verdict, Verdict::Repeated, "{lines:?}");
        }
    }

    /// The owner of a key, by place.
    fn owner(key: &str) -> Option<usize> {
        [("k-1", 0), ("k-2", 0), ("k-3", 1)]
            .iter()
            .find_map(|(own, place)| (*own == key).then_some(*place))
    }

    fn near_a_key() -> impl Strategy<Value = String> {
        prop_oneof![
            3 => prop::sample::select(vec!["k-1", "k-2", "k-3"]).prop_map(str::to_owned),
            1 => "[ kK123,=-]{0,6}",
            1 => "[ -~]{0,12}",
        ]
    }

    proptest! {
        /// Nobody is proven but by keys that are theirs, whatever else there is.
        #[test]
        fn whoever_is_proven_owns_all_that_is_carried(
            key in prop::option::of(near_a_key()),
            line in prop::option::of((
                prop::sample::select(vec!["Bearer ", "bearer\t", "BEARER  ", "Basic ", "Bearer", ""]),
                near_a_key(),
            )),
            shows in prop::sample::select(vec![
                Shows::Nobody, Shows::Caller(0), Shows::Caller(1), Shows::Several,
            ]),
        ) {
            let line = line.map(|(scheme, rest)| format!("{scheme}{rest}"));
            let mut carried = Vec::new();
            carried.extend(key.as_deref().map(|key| owner(key.trim())));
            if let Some(line) = line.as_deref().map(str::trim) {
                let (scheme, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
                if scheme.eq_ignore_ascii_case("bearer") {
                    carried.push(owner(rest.trim()));
                }
            }
            match shows {
                Shows::Nobody => {}
                Shows::Caller(place) => carried.push(Some(place)),
                Shows::Several => carried.push(None),
            }
            let mut lines = Vec::new();
            lines.extend(key.as_deref().map(|key| ("x-api-key", key)));
            lines.extend(line.as_deref().map(|line| ("authorization", line)));
            match (examine(&lines, shows), carried.first()) {
                (Verdict::Absent, None) => {}
                (Verdict::Proven(Proof { who: Who::Caller(place), .. }), Some(_)) => {
                    prop_assert!(carried.iter().all(|it| *it == Some(place)));
                }
                (Verdict::Bad(_), Some(first)) => {
                    prop_assert!(first.is_none() || carried.iter().any(|it| it != first));
                }
                (other, _) => prop_assert!(false, "{:?}", other),
            }
        }
    }
}
