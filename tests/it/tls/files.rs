//! What `check` and `run` say of the files that a configuration names.

use std::fs;

use crate::support::gateway::dealer_at;
use crate::support::process::run;
use crate::support::tls::{Authority, Issued, Place, put, secured};

/// Writes a configuration beside the certificates, and checks it.
fn check(place: &Place, tls: &str, rest: &str) -> (Option<i32>, String) {
    let nobody = "127.0.0.1:9".parse().unwrap();
    let path = place.directory.path().join("forecourt.toml");
    let text = secured(tls, &format!("{rest}\n{}", dealer_at(nobody, "", "")));
    fs::write(&path, text).unwrap();
    let ended = run(&["check", path.to_str().unwrap()]);
    (ended.code, ended.stderr)
}

fn late(place: &Place, name: &str) -> Issued {
    let issued = place.authority.issue_with(&["gw.example"], |params| {
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    });
    issued.write(place.directory.path(), name);
    issued
}

#[test]
fn good_files_are_good() {
    let place = Place::new();
    place.issue("usual", &["gw.example"]);
    let chain = place.authority.issue(&["chain.example"]);
    let file = |name: &str| place.directory.path().join(name);
    // With what it was issued by, words before it, and the key in the same file.
    let combined = format!(
        "subject=chain\n{}{}{}",
        chain.certificate.pem(),
        place.authority.pem(),
        chain.key.serialize_pem()
    );
    put(&file("both.pem"), &combined);
    put(&file("ca.pem"), &place.authority.pem());
    let tls = format!(
        "{}, certificates = [{{ certificate = \"both.pem\", key = \"both.pem\" }}], \
         client_ca = \"ca.pem\", client_certificate = \"optional\"",
        place.pair("usual")
    );
    let upstream = "[upstream.secure]\nurl = \"https://agent.internal\"\nca = \"ca.pem\"\n\
                    client_certificate = \"both.pem\"\nclient_key = \"both.pem\"\n\
                    [endpoint.secure]\npath = \"/s\"\nupstream = \"secure\"";
    assert_eq!(check(&place, &tls, upstream), (Some(0), String::new()));
}

#[test]
fn every_bad_file_is_a_problem_with_its_place() {
    let place = Place::new();
    let usual = place.issue("usual", &["gw.example"]);
    place.issue("twin", &["other.example", "GW.example"]);
    place.issue("nameless", &["127.0.0.1"]);
    let file = |name: &str| place.directory.path().join(name);
    put(&file("noise.pem"), "not a certificate\n");
    put(&file("empty.pem"), "");
    put(
        &file("broken.pem"),
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    put(
        &file("half.pem"),
        &usual.certificate.pem()[..usual.certificate.pem().len() / 2],
    );
    put(
        &file("encrypted.key"),
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n",
    );
    put(
        &file("legacy.key"),
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nMIIB\n\
         -----END RSA PRIVATE KEY-----\n",
    );
    put(
        &file("strange.key"),
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    );
    fs::create_dir(file("directory")).unwrap();
    fs::write(file("huge.pem"), vec![b'#'; (1 << 20) + 1]).unwrap();
    let pair =
        |certificate: &str, key: &str| format!("certificate = \"{certificate}\", key = \"{key}\"");
    let more = |other: &str| format!("{}, certificates = [{{ {other} }}]", place.pair("usual"));
    let roots = |file: &str| {
        format!(
            "{}, client_ca = \"{file}\", client_certificate = \"required\"",
            place.pair("usual")
        )
    };
    for (tls, key, what) in [
        (
            pair("gone.pem", "usual.key"),
            "tls.certificate",
            "cannot be read: No such file",
        ),
        (
            pair("directory", "usual.key"),
            "tls.certificate",
            "not a regular file",
        ),
        (
            pair("huge.pem", "usual.key"),
            "tls.certificate",
            "larger than 1 MiB",
        ),
        (
            pair("noise.pem", "usual.key"),
            "tls.certificate",
            "holds no certificate in PEM form",
        ),
        (
            pair("empty.pem", "usual.key"),
            "tls.certificate",
            "holds no certificate in PEM form",
        ),
        (
            pair("usual.key", "usual.pem"),
            "tls.certificate",
            "may have changed places",
        ),
        (
            pair("broken.pem", "usual.key"),
            "tls.certificate",
            "cannot be understood",
        ),
        (
            pair("half.pem", "usual.key"),
            "tls.certificate",
            "is broken",
        ),
        (
            pair("usual.pem", "gone.key"),
            "tls.key",
            "cannot be read: No such file",
        ),
        (
            pair("usual.pem", "usual.pem"),
            "tls.key",
            "holds no private key in PEM form",
        ),
        (
            pair("usual.pem", "encrypted.key"),
            "tls.key",
            "is encrypted",
        ),
        (pair("usual.pem", "legacy.key"), "tls.key", "is encrypted"),
        (
            pair("usual.pem", "strange.key"),
            "tls.key",
            "of a kind that is not supported",
        ),
        (
            pair("usual.pem", "twin.key"),
            "tls.key",
            "does not belong to the certificate",
        ),
        (
            more(&place.pair("nameless")),
            "tls.certificates[0].certificate",
            "names no host: no client could ask for it",
        ),
        (
            more(&place.pair("twin")),
            "tls.certificates[0].certificate",
            "is for gw.example, and so is",
        ),
        (
            roots("gone.pem"),
            "tls.client_ca",
            "cannot be read: No such file",
        ),
        (
            roots("usual.key"),
            "tls.client_ca",
            "holds no certificate in PEM form",
        ),
        (
            roots("broken.pem"),
            "tls.client_ca",
            "number 1 in the file is no root",
        ),
    ] {
        let (code, told) = check(&place, &tls, "");
        assert_eq!(code, Some(78), "{tls}: {told}");
        assert_eq!(told.matches("forecourt.toml:").count(), 1, "{told}");
        let first = told.lines().next().unwrap();
        assert!(
            first.contains(&format!("listener.public.{key}: ")),
            "{told}"
        );
        assert!(first.contains("toml:6:"), "not on its line: {told}");
        assert!(told.contains(what), "{what} not in {told}");
        // The line of a key is never quoted.
        assert!(!told.contains("MIIB") && !told.contains("AAAA"), "{told}");
    }
}

#[test]
fn all_problems_come_at_once_and_run_refuses_them_too() {
    let place = Place::new();
    let upstream = "[upstream.secure]\nurl = \"https://agent.internal\"\nca = \"gone-ca.pem\"\n\
                    client_certificate = \"gone.pem\"\nclient_key = \"gone.key\"\n\
                    [endpoint.secure]\npath = \"/s\"\nupstream = \"secure\"";
    let tls = "certificate = \"a.pem\", key = \"a.key\", client_ca = \"b.pem\", \
               client_certificate = \"optional\"";
    let (code, told) = check(&place, tls, upstream);
    assert_eq!(code, Some(78));
    let keys: Vec<_> = told
        .lines()
        .filter_map(|line| line.split(": ").nth(1).filter(|_| line.contains("toml:")))
        .collect();
    assert_eq!(
        keys,
        [
            "listener.public.tls.certificate",
            "listener.public.tls.client_ca",
            "upstream.secure.ca",
            "upstream.secure.client_certificate",
        ],
        "{told}"
    );
    let path = place.at("forecourt.toml");
    let ended = run(&["run", "-c", &path]);
    assert_eq!(ended.code, Some(78));
    assert_eq!(ended.stderr, told);
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    let place = Place::new();
    late(&place, "late");
    let early = place.authority.issue_with(&["gw.example"], |params| {
        params.not_before = rcgen::date_time_ymd(4000, 1, 1);
    });
    early.write(place.directory.path(), "early");
    place.issue("nameless", &[]);
    for (name, what) in [
        ("late", "expired at 2020-01-01"),
        ("early", "is valid from 4000-01-01"),
        (
            "nameless",
            "names no host: clients that verify it turn away",
        ),
    ] {
        let (code, told) = check(&place, &place.pair(name), "");
        assert_eq!(code, Some(0), "{told}");
        assert!(
            told.contains("warning: listener.public.tls.certificate: "),
            "{told}"
        );
        assert!(told.contains(what), "{told}");
    }
}

#[test]
fn a_system_without_roots_is_a_problem() {
    let place = Place::new();
    place.issue("usual", &["gw.example"]);
    let upstream = "[upstream.secure]\nurl = \"https://agent.internal\"\n\
                    [endpoint.secure]\npath = \"/s\"\nupstream = \"secure\"";
    let (_, _) = check(&place, &place.pair("usual"), upstream);
    let path = place.at("forecourt.toml");
    let empty = place.at("empty.pem");
    fs::write(&empty, "").unwrap();
    put(
        &place.directory.path().join("roots.pem"),
        &Authority::new("system").pem(),
    );
    for (roots, code) in [(&empty, 78), (&place.at("roots.pem"), 0)] {
        let ended = crate::support::process::run_with(&["check", &path], "SSL_CERT_FILE", roots);
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        if code == 78 {
            assert!(
                ended.stderr.contains("upstream.secure.url"),
                "{}",
                ended.stderr
            );
            assert!(
                ended.stderr.contains("the system trusts no root"),
                "{}",
                ended.stderr
            );
        }
    }
}
