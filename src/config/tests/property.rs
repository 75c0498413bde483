//! What holds for every text: no panic, no injection, amounts that mean what they say.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::config::amount::{Rate, Size};
use crate::config::read::FromText;

/// Texts that look like configuration more often than chance would have it.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("[endpoint.a]\n".to_owned()),
        Just("[[upstream]]\n".to_owned()),
        Just("[upstream.\"é\"]\nheaders = { x = \"y\" }\n".to_owned()),
        Just("{\"listener\": {\"a\": {\"address\": ".to_owned()),
        Just("path = \"/${UNSET:-a}${\"\n".to_owned()),
        Just("url = 'http://x:y@z'\n".to_owned()),
        Just("}}]\"".to_owned()),
        "[a-z_]{1,8} = [0-9\"'\\[{$.-]{0,6}\n?",
        "\\PC{0,12}",
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in pieces()) {
        for format in [Format::Toml, Format::Json] {
            if let Err(problems) = parse(&text, format, Path::new("f"), &env) {
                prop_assert!(!problems.is_empty());
                prop_assert!(!problems.to_string().is_empty());
            }
        }
    }

    #[test]
    fn a_good_file_cut_or_changed_anywhere_does_not_panic(at in 0usize..4000, byte in any::<char>()) {
        for name in ["design-both.toml", "design-both.json", "variables.toml"] {
            let path = repository("tests/fixtures/config/good").join(name);
            let text = fs::read_to_string(&path).unwrap();
            let mut at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let (before, after) = text.split_at(at);
            let _ = parse(before, Format::of(&path), &path, &env);
            let _ = parse(&format!("{before}{byte}{after}"), Format::of(&path), &path, &env);
        }
    }

    #[test]
    fn a_variable_never_changes_the_structure(value in any::<String>()) {
        let text = "[listener.a]\naddress = \"127.0.0.1:1\"\n[upstream.a]\nurl = \"http://a\"\n\
                    [endpoint.a]\npath = \"/\"\nupstream = \"a\"\nmethods = [\"m${V}\"]\n";
        let env = |_: &str| Some(value.clone());
        match parse(text, Format::Toml, Path::new("f"), &env) {
            Ok(settings) => {
                let methods = settings.endpoints[0].methods.clone().unwrap();
                prop_assert_eq!(methods, vec![format!("m{value}").into_boxed_str()]);
                prop_assert_eq!(settings.endpoints.len(), 1);
            }
            Err(problems) => {
                prop_assert_eq!(problems.len(), 1);
                let path = &*problems.iter().next().unwrap().path;
                prop_assert_eq!(path, "endpoint.a.methods[0]");
            }
        }
    }

    #[test]
    fn a_secret_is_in_no_problem(secret in "[A-Z]{12}", at in 0usize..400, byte in any::<char>()) {
        let text = format!(
            "[upstream.a]\nurl = \"http://a\"\nheaders = {{ x-key = \"{secret}\", te = \"{secret}\" }}\n\
             [upstream.b.headers]\nauthorization = \"Bearer {secret}\"\nhost = \"{secret}\"\n"
        );
        let mut at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let inside = |offset: usize| text.match_indices(&secret).any(|(s, _)| s <= offset && offset < s + 13);
        prop_assume!(!inside(at));
        let (before, after) = text.split_at(at);
        for text in [text.clone(), format!("{before}{byte}{after}")] {
            let problems = toml(&text).unwrap_err().to_string();
            prop_assert!(!problems.contains(&secret), "{}", problems);
        }
    }

    #[test]
    fn durations_mean_what_they_say(count in 0u64..8760, unit in 0usize..4) {
        let (name, millis) = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)][unit];
        let read = Duration::from_text(&format!("{count}{name}")).ok();
        prop_assert_eq!(read, Some(Duration::from_millis(count * millis)));
    }

    #[test]
    fn sizes_mean_what_they_say(count in 1u64..1 << 32, unit in 0usize..4) {
        let (name, shift) = [("B", 0), ("KiB", 10), ("MiB", 20), ("GiB", 30)][unit];
        let read = Size::from_text(&format!("{count}{name}")).ok().map(|size| size.0);
        prop_assert_eq!(read, Some(count << shift));
    }

    #[test]
    fn rates_mean_what_they_say(count in 1u32..=1_000_000_000, unit in 0usize..4) {
        let (name, seconds) = [("s", 1u64), ("min", 60), ("h", 3600), ("day", 86_400)][unit];
        let rate = Rate::from_text(&format!("{count}/{name}")).unwrap_or_else(|_| panic!());
        let nanos = u128::from(seconds) * 1_000_000_000 / u128::from(count);
        prop_assert_eq!(rate.interval().as_nanos(), nanos);
        prop_assert!(nanos >= 1);
    }
}
