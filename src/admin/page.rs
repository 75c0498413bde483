//! Decides what a browser is shown: one page, which asks `/status` for everything it shows.
//!
//! The page is made of three files of ours and holds nothing of the inside. Its policy lets it run its
//! own script and style, known by their digests, draw its icon, and ask this socket; nothing else: what a
//! caller or a dealer calls itself can at worst be a strange text. Must never hold a value.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{
    ACCEPT, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, VARY,
};
use http::{HeaderMap, StatusCode};
use sha2::{Digest as _, Sha256};

use super::answer::{Answer, whole};

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Where the style and the script go.
const STYLE_HERE: &str = "{{style}}";
const SCRIPT_HERE: &str = "{{script}}";

const CROSS_ORIGIN_OPENER_POLICY: HeaderName =
    HeaderName::from_static("cross-origin-opener-policy");

/// What a browser is sent.
struct Made {
    body: Bytes,
    policy: HeaderValue,
}

static MADE: LazyLock<Made> = LazyLock::new(|| {
    let body = HTML.replace(STYLE_HERE, STYLE).replace(SCRIPT_HERE, SCRIPT);
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        digest(SCRIPT),
        digest(STYLE)
    );
    Made {
        body: body.into(),
        // Not reached: it is ASCII. Nothing would run.
        policy: HeaderValue::try_from(policy)
            .unwrap_or(HeaderValue::from_static("default-src 'none'")),
    }
});

/// As a policy names a script or style in the page.
fn digest(text: &str) -> String {
    BASE64_STANDARD.encode(Sha256::digest(text))
}

pub(super) fn show() -> Answer {
    let type_ = HeaderValue::from_static("text/html; charset=utf-8");
    let mut answer = whole(StatusCode::OK, type_, MADE.body.clone());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, MADE.policy.clone());
    let same_origin = HeaderValue::from_static("same-origin");
    headers.insert(CROSS_ORIGIN_OPENER_POLICY, same_origin);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    answer
}

/// Whether a page is liked better than JSON. Who likes both alike, as `curl` does, is a program.
pub(super) fn is_preferred(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter();
    let lines: Vec<_> = lines.filter_map(|it| it.to_str().ok()).collect();
    let wish = |kind, name| weight(&lines, kind, name);
    wish("text", "html") > wish("application", "json")
}

/// How much a media type is liked, in thousandths: by the most specific range that holds it (RFC 9110,
/// section 12.5.1).
fn weight(lines: &[&str], kind: &str, name: &str) -> u16 {
    let ranges = lines.iter().flat_map(|line| line.split(','));
    let fitting = ranges.filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let (of_kind, of_name) = parts.next()?.split_once('/')?;
        let (is_kind, is_name) = (
            of_kind.eq_ignore_ascii_case(kind),
            of_name.eq_ignore_ascii_case(name),
        );
        let specific = match (is_kind, is_name, of_kind, of_name) {
            (true, true, ..) => 2_u8,
            (true, _, _, "*") => 1,
            (_, _, "*", "*") => 0,
            _ => return None,
        };
        let quality = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
        });
        Some((specific, quality.map_or(1000, thousandths)))
    });
    fitting.max().map_or(0, |(_, weight)| weight)
}

/// `0.75` as 750; what is no quality as 0.
fn thousandths(text: &str) -> u16 {
    let quality: f32 = text.parse().unwrap_or(0.0);
    match quality {
        0.0..=1.0 => (quality * 1000.0).round() as u16,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_gets_the_page_and_a_program_json() {
        for (accept, expected) in [
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                true,
            ),
            ("text/html", true),
            ("TEXT/HTML;level=1", true),
            ("text/*", true),
            ("text/html, application/json;q=0.9", true),
            ("application/json;q=0.5, text/*;q=0.7", true),
            ("*/*", false),
            ("", false),
            ("application/json", false),
            ("text/html, application/json", false),
            ("text/html;q=0.5, application/json", false),
            ("text/html;q=0.5, */*", false),
            ("text/html;q=0, */*;q=0.1", false),
            ("text/html;q=nan", false),
            ("text/html;q=7", false),
            ("text/html;q=-1, */*;q=0", false),
            ("html", false),
            ("text/plain", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(is_preferred(&headers), expected, "{accept}");
        }
        assert!(!is_preferred(&HeaderMap::new()));
        let mut two = HeaderMap::new();
        two.append(ACCEPT, HeaderValue::from_static("application/json;q=0.2"));
        two.append(ACCEPT, HeaderValue::from_static("text/html;q=0.3"));
        assert!(is_preferred(&two));
    }

    /// What stands between the tags, as a browser digests it.
    fn inside<'t>(page: &'t str, tag: &str) -> Vec<&'t str> {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        let parts = page.split(&open).skip(1);
        parts.map(|it| it.split(&close).next().unwrap()).collect()
    }

    #[test]
    fn the_policy_names_what_the_page_holds_and_nothing_else() {
        let answer = show();
        let page = std::str::from_utf8(&MADE.body).unwrap();
        let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        for (tag, source) in [("style", "style-src"), ("script", "script-src")] {
            let found = inside(page, tag);
            assert_eq!(found.len(), 1, "{tag}");
            assert!(found[0].len() > 500, "{tag}");
            let wanted = format!("{source} 'sha256-{}';", digest(found[0]));
            assert!(policy.contains(&wanted), "{policy} has no {wanted}");
        }
        assert!(policy.starts_with("default-src 'none';"));
        assert!(!policy.contains("unsafe"));
        // An attribute cannot be allowed by a digest, and nothing comes from elsewhere.
        let page = page.replace("http://www.w3.org/2000/svg", "");
        let from_elsewhere = [" src=", "http:", "https:", "@import", "url("];
        let inline = [" style=", " onclick", "javascript:", "{{"];
        for never in from_elsewhere.into_iter().chain(inline) {
            assert!(!page.contains(never), "{never}");
        }
        let as_markup = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "write(",
            "eval(",
        ];
        for never in as_markup {
            assert!(!SCRIPT.contains(never), "{never}");
        }
        // Or the browser would see the end of the script there.
        assert!(!SCRIPT.contains("</") && !SCRIPT.contains("<!--") && !STYLE.contains("</"));
    }
}
