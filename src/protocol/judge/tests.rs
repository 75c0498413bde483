//! What the header rules decide, case by case; `tests/fixtures/vectors` holds more.

use super::*;
use crate::protocol::headers::A2A_VERSION;
use crate::protocol::releases::find;
use http::HeaderValue;
use proptest::prelude::*;

const V3: &str = "https://autoagentprotocol.org/extensions/aap/v3.0";

fn contract(name: &str) -> Contract {
    let uri = "https://dealer.example/ext/aap/v2.0".parse().unwrap();
    let release = find(name).unwrap();
    release
        .contract(None)
        .or_else(|| release.contract(Some(uri)))
        .unwrap()
}

fn headers(versions: &[&[u8]], extensions: &[&[u8]]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for value in versions {
        map.append(A2A_VERSION, HeaderValue::from_bytes(value).unwrap());
    }
    for value in extensions {
        map.append(A2A_EXTENSIONS, HeaderValue::from_bytes(value).unwrap());
    }
    map
}

fn admit<'c>(contract: &'c Contract, headers: &HeaderMap) -> Activation<'c> {
    match judge(contract, Supplied::new(headers)) {
        Verdict::Admit(activation) => activation,
        Verdict::Refuse(refusal) => panic!("refused: {refusal:?}"),
    }
}

fn refuse(contract: &Contract, headers: &HeaderMap) -> Refusal {
    match judge(contract, Supplied::new(headers)) {
        Verdict::Refuse(refusal) => refusal,
        Verdict::Admit(activation) => panic!("admitted: {activation:?}"),
    }
}

#[test]
fn several_lines_are_named_in_the_refusal() {
    let refusal = refuse(&contract("aap/3.0"), &headers(&[b"1.0", b""], &[]));
    assert_eq!(
        refusal,
        Refusal::VersionNotSupported {
            requested: Some("1.0, 0.3".into()),
            served: ["1.0".parse().unwrap()].into(),
        }
    );
}

#[test]
fn an_absent_version_names_nothing() {
    let refusal = refuse(&contract("aap/2.0"), &headers(&[], &[]));
    assert!(matches!(
        refusal,
        Refusal::VersionNotSupported {
            requested: None,
            ..
        }
    ));
}

#[test]
fn white_space_around_supplied_values_does_not_travel() {
    let pinned = contract("aap/3.0");
    let padded = format!("\t{V3} ");
    let mut map = headers(
        &[b" 1.0.1\t"],
        &[b" https://a.example/v1 ", padded.as_bytes()],
    );
    let activation = admit(&pinned, &map);
    activation.apply(&mut map);
    let lines: Vec<_> = map
        .get_all(A2A_EXTENSIONS)
        .iter()
        .map(|it| it.as_bytes())
        .collect();
    assert_eq!(lines, [&b"https://a.example/v1"[..], V3.as_bytes()]);
    assert_eq!(map.get_all(A2A_VERSION).iter().next().unwrap(), "1.0.1");
}

#[test]
fn a_contract_pinned_to_0_3_takes_the_empty_value() {
    let mut pinned = contract("aap/3.0");
    pinned.a2a_version = "0.3".parse().unwrap();
    let mut map = headers(&[b""], &[]);
    let activation = admit(&pinned, &map);
    assert!(!activation.fills_version());
    activation.apply(&mut map);
    assert_eq!(map.get_all(A2A_VERSION).iter().next().unwrap(), "");
}

#[test]
fn a_reported_step_lets_the_request_through_as_it_came() {
    let pinned = contract("aap/3.0");
    let mut map = headers(&[b"0.3"], &[b"https://ext.example/v1"]);
    let before = map.clone();
    let mut would = Vec::new();
    let report = [Step::Version, Step::Extension].into_iter().collect();
    let verdict = judge_reporting(&pinned, Supplied::new(&map), report, |step, refusal| {
        would.push((step, refusal.outcome().label()));
    });
    let Verdict::Admit(activation) = verdict else {
        panic!("refused");
    };
    activation.apply(&mut map);
    assert_eq!(map, before);
    assert!(!activation.is_activated());
    assert_eq!(
        would,
        [
            (Step::Version, "version_not_supported"),
            (Step::Extension, "extension_required")
        ]
    );
}

mod ambiguous {
    use super::*;

    fn selected(versions: &[&[u8]], extensions: &[&[u8]]) -> Result<usize, Refusal> {
        let contracts = [contract("aap/1.2"), contract("aap/3.0"), {
            let mut old = contract("aap/1.0");
            old.a2a_version = "0.3".parse().unwrap();
            old
        }];
        let map = headers(versions, extensions);
        select(&contracts[0], contracts[1..].iter(), Supplied::new(&map)).map(
            |(index, activation)| {
                assert!(activation.is_activated());
                assert!(!activation.fills_version() && !activation.fills_extensions());
                index
            },
        )
    }

    const V12: &[u8] = b"https://autoagentprotocol.org/extensions/aap/v1.2";
    const V10: &[u8] = b"https://autoagentprotocol.org/extensions/a2a-automotive-retail/v1.0";

    #[test]
    fn the_supplied_uri_selects_within_the_version() {
        assert_eq!(selected(&[b"1.0"], &[V12]), Ok(0));
        assert_eq!(selected(&[b"1.0"], &[V3.as_bytes()]), Ok(1));
        assert_eq!(selected(&[b"0.3"], &[V10]), Ok(2));
        assert_eq!(selected(&[b""], &[V10, V12]), Ok(2));
        assert_eq!(selected(&[b"1.0"], &[V10, V12]), Ok(0));
    }

    #[test]
    fn nothing_is_inferred() {
        let none = selected(&[], &[V12]).unwrap_err();
        let Refusal::VersionNotSupported { requested, served } = none else {
            panic!("{none:?}");
        };
        assert_eq!(requested, None);
        assert_eq!(
            served.iter().map(Version::as_str).collect::<Vec<_>>(),
            ["1.0", "0.3"]
        );
        for (versions, extensions) in [
            (&[&b"1.0"[..]][..], &[][..]),
            (&[b"1.0"], &[&b""[..]]),
            (&[b"1.0"], &[V10]),
            (&[b"1.0"], &[V12, V3.as_bytes()]),
            (&[b"0.3"], &[V12]),
        ] {
            let Err(Refusal::ExtensionSupportRequired { uri }) = selected(versions, extensions)
            else {
                panic!("{versions:?} {extensions:?}");
            };
            assert_eq!(uri.as_str().as_bytes(), V12);
        }
        assert!(matches!(
            selected(&[b"1.0", b"1.0"], &[V12]),
            Err(Refusal::VersionNotSupported { .. })
        ));
    }
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(V3.as_bytes().to_vec()),
        Just(b"1.0".to_vec()),
        "[ \t,;0-9.vA-Za-z:/]{0,20}".prop_map(String::into_bytes),
        "[ ,]{0,2}https://autoagentprotocol\\.org/extensions/aap/v3\\.0[ ,a/]{0,2}"
            .prop_map(String::into_bytes),
    ]
}

proptest! {
    /// Supplied bytes are never altered, and a normalized request judged again is admitted
    /// unchanged.
    #[test]
    fn normalizing_is_idempotent_and_adds_only_what_is_absent(
        versions in prop::collection::vec(line(), 0..3),
        extensions in prop::collection::vec(line(), 0..4),
        release in prop::sample::select(&crate::protocol::releases::RELEASES[..]),
    ) {
        let pinned = contract(release.name);
        let as_slices = |lines: &[Vec<u8>]| lines.iter().map(Vec::clone).collect::<Vec<_>>();
        let (given_versions, given_extensions) = (as_slices(&versions), as_slices(&extensions));
        let mut map = headers(
            &given_versions.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            &given_extensions.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        );
        if let Verdict::Admit(activation) = judge(&pinned, Supplied::new(&map)) {
            activation.apply(&mut map);
            let sent: Vec<_> = map.get_all(A2A_EXTENSIONS).iter().map(|it| it.as_bytes().to_vec()).collect();
            if extensions.is_empty() {
                prop_assert_eq!(sent, vec![pinned.extension.as_str().as_bytes().to_vec()]);
            } else {
                let trimmed: Vec<_> = extensions.iter().map(|it| trim(it).to_vec()).collect();
                prop_assert_eq!(sent, trimmed);
            }
            let once = map.clone();
            let Verdict::Admit(again) = judge(&pinned, Supplied::new(&map)) else {
                return Err(TestCaseError::fail("refused the second time"));
            };
            prop_assert!(!again.fills_version() && !again.fills_extensions());
            again.apply(&mut map);
            prop_assert_eq!(map, once);
        }
    }
}
