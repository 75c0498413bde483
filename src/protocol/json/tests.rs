//! The scanner beside serde_json, on edges and on generated text.

use super::*;
use proptest::prelude::*;

fn accepts(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.value().is_ok() && scanner.end().is_ok()
}

fn serde_accepts(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[test]
fn agrees_with_serde_json_on_edges() {
    for text in [
        "null",
        "true",
        "false",
        "tru",
        "nul",
        "0",
        "-0",
        "01",
        "-",
        "1.",
        "1.0",
        ".5",
        "1e5",
        "1e",
        "1E+5",
        "1e+",
        "+1",
        "NaN",
        "\"\"",
        "\"",
        "\"a",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\x\"",
        "\"\t\"",
        "\"\u{7f}\"",
        "\"é🚗é🚗é\"",
        "[]",
        "[",
        "]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{}",
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":1 \"b\":2}",
        "{a:1}",
        "{\"a\":[{},[],{\"b\":[]}]}",
        "[[1],{\"a\":{}}]",
        "[}",
        "{]",
        "{\"a\":1]",
        "[1}",
        " \r\n\t1 ",
        "1 1",
        "1,",
        "",
        " ",
        "\u{feff}1",
        "\u{a0}1",
        "[1]\u{0}",
        "{,}",
        "{\"a\":1,,\"b\":2}",
        "  \t        1        \n   ",
        "{        \"a\"        :        1        }",
        "\"12345678\\",
        "\"1234567\u{1}\"",
        "\"12345678\u{1f}901234567\"",
    ] {
        assert_eq!(accepts(text), serde_accepts(text), "{text:?}");
    }
}

#[test]
fn nesting_is_bounded_at_the_stated_depth() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for (depth, fine) in [
            (127_usize, true),
            (128, true),
            (129, false),
            (100_000, false),
        ] {
            let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            assert_eq!(accepts(&text), fine, "{open} {depth}");
        }
    }
    assert!(accepts(&format!("[{}]", vec!["[[]]"; 1000].join(","))));
}

#[test]
fn raw_text_is_kept_and_decoded_on_demand() {
    let mut scanner = Scanner::new(" \"a\\u0062c\" ");
    let raw = scanner.value().unwrap();
    assert_eq!(raw.as_str(), "\"a\\u0062c\"");
    assert_eq!(raw.text().unwrap(), "abc");
    assert!(
        Scanner::new("\"\\ud800\"")
            .value()
            .unwrap()
            .text()
            .is_none()
    );
    assert!(Scanner::new("7").value().unwrap().text().is_none());
}

proptest! {
    #[test]
    fn agrees_with_serde_json(text in "[\\[\\]{}\",:\\\\0-9eE+\\-. a-ftrulnbs\u{1}é]{0,24}") {
        prop_assert_eq!(accepts(&text), serde_accepts(&text));
    }

    #[test]
    fn agrees_with_serde_json_on_mutated_documents(
        at in 0_usize..200, byte in any::<u8>(), cut in 0_usize..220
    ) {
        let document = r#"{"jsonrpc":"2.0","id":"r\u00e91","params":{"a":[1,-2.5e3,true,null,{"b":"x\\y"}],"long":"0123456789abcdef\"0123456789"},"method":"SendMessage"}"#;
        let mut bytes = document.as_bytes().to_vec();
        if let Some(place) = bytes.get_mut(at) { *place = byte; }
        bytes.truncate(cut);
        if let Ok(text) = std::str::from_utf8(&bytes) {
            prop_assert_eq!(accepts(text), serde_accepts(text));
        }
    }
}
