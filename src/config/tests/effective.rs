//! What is shown of settings: it can be read back, and no secret is in it.

use super::*;

/// Reads back what is shown, under the same name.
fn read_back(settings: &Settings, name: &Path) -> Settings {
    let shown = serde_json::to_string(settings).unwrap();
    match parse(&shown, Format::Json, name, &env) {
        Ok(again) => again,
        Err(problems) => panic!("{}: {shown}\n{problems}", name.display()),
    }
}

/// Settings without what cannot come back: the values of headers and the lines of warnings.
fn comparable(settings: Settings) -> Settings {
    let mut settings = settings;
    for upstream in &mut settings.upstreams {
        for (_, secret) in &mut upstream.headers {
            *secret = Secret::new("***");
        }
    }
    for store in &mut settings.stores {
        store.password = store.password.as_ref().map(|_| Secret::new("***"));
    }
    settings.warnings = Problems::default();
    settings
}

#[test]
fn what_is_shown_reads_back_as_the_same_settings() {
    let mut count = 0;
    let mut without_secrets = 0;
    for directory in ["config", "tests/fixtures/config/good"] {
        for entry in fs::read_dir(repository(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("forecourt.schema.json") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let tokens = |name: &str| match name {
                "LAKESIDE_TOKEN" | "HILLTOP_TOKEN" => Some("s3cret-token".to_owned()),
                name => env(name),
            };
            // Absolute, as for `run`: relative paths in the file are shown resolved.
            let settings = parse(&text, Format::of(&path), &path, &tokens).unwrap();
            let again = read_back(&settings, &path);
            let shown = serde_json::to_string(&settings).unwrap();
            assert!(!shown.contains("s3cret"), "{}: {shown}", path.display());
            assert_eq!(shown, serde_json::to_string(&again).unwrap());
            if settings.upstreams.iter().all(|it| it.headers.is_empty()) {
                without_secrets += 1;
            }
            assert_eq!(
                comparable(settings),
                comparable(again),
                "{}",
                path.display()
            );
            count += 1;
        }
    }
    assert_eq!((count, without_secrets), (23, 18));
}

#[test]
fn amounts_are_spelled_as_in_the_file() {
    let text = "[listener.a]\naddress = \"127.0.0.1:1\"\n[upstream.a]\nurl = \"HTTP://A:80/x/\"\n\
                connect_timeout = \"1500ms\"\nidle_timeout = \"5400s\"\nkeep_alive = \"0ms\"\n\
                headers = { x-key = \"s3cret\" }\n[endpoint.a]\npath = \"/\"\nupstream = \"a\"\n\
                methods = [\"$${NOT}\"]\nquotas = [\"q\"]\n[quota.q]\nper = [\"caller\"]\n\
                rate = \"0060/min\"\n[limits]\nbody = \"2048B\"\nheader_bytes = \"1024KiB\"\n";
    let settings = toml(text).unwrap();
    let shown = serde_json::to_value(&settings).unwrap();
    let upstream = &shown["upstream"]["a"];
    for (key, value) in [
        ("url", "http://a:80/x/"),
        ("connect_timeout", "1500ms"),
        ("response_timeout", "2m"),
        ("idle_timeout", "90m"),
        ("keep_alive", "0s"),
    ] {
        assert_eq!(upstream[key], value, "{key}");
    }
    assert_eq!(upstream["headers"]["x-key"], "***");
    assert_eq!(shown["quota"]["q"]["rate"], "1/s");
    assert_eq!(shown["quota"]["q"]["per"], "caller");
    assert_eq!(shown["limits"]["body"], "2KiB");
    assert_eq!(shown["limits"]["header_bytes"], "1MiB");
    assert_eq!(shown["endpoint"]["a"]["methods"][0], "$${NOT}");
    assert_eq!(
        read_back(&settings, Path::new("f")).endpoints,
        settings.endpoints
    );
}

#[test]
fn an_own_contract_is_shown_as_it_was_described_where_several_are_listed() {
    let text = "[listener.a]\naddress = \"127.0.0.1:1\"\n[upstream.a]\nurl = \"http://a\"\n\
                [contract.house]\nextension = \"https://a.example/v1\"\nabsent = \"refuse\"\n\
                [endpoint.one]\npath = \"/one\"\nupstream = \"a\"\ncontract = \"house\"\n\
                absent = \"infer\"\n[endpoint.two]\npath = \"/two\"\nupstream = \"a\"\n\
                contracts = [\"house\", \"aap/3.0\"]\n";
    let settings = toml(text).unwrap();
    let shown = serde_json::to_value(&settings).unwrap();
    assert_eq!(shown["contract"]["house"]["absent"], "refuse");
    assert_eq!(shown["endpoint"]["one"]["absent"], "infer");
    assert_eq!(
        read_back(&settings, Path::new("f")).endpoints,
        settings.endpoints
    );
}

proptest::proptest! {
    #[test]
    fn any_amount_reads_back(millis in 0_u64..31_536_000_000, bytes in 1_u64..1 << 40) {
        use crate::config::amount::{Size, spell_duration, spell_size};
        use crate::config::read::FromText;
        let duration = std::time::Duration::from_millis(millis);
        let again = std::time::Duration::from_text(&spell_duration(duration)).ok();
        proptest::prop_assert_eq!(again, Some(duration));
        let again = Size::from_text(&spell_size(bytes)).ok().map(|size| size.0);
        proptest::prop_assert_eq!(again, Some(bytes));
    }

    #[test]
    fn any_rate_reads_back(
        count in proptest::prop_oneof![1_u32..100_000, proptest::num::u32::ANY],
        unit in 0..4_usize,
    ) {
        use crate::config::amount::{Rate, spell_rate};
        use crate::config::read::FromText;
        let unit = ["s", "min", "h", "day"][unit];
        if let Ok(rate) = Rate::from_text(&format!("{count}/{unit}")) {
            let spelled = spell_rate(rate.interval());
            let again = Rate::from_text(&spelled).map(Rate::interval).ok();
            proptest::prop_assert_eq!(again, Some(rate.interval()), "{}", spelled);
        }
    }
}
