//! Holds the two header grammars to slow readings: what a version is and when a line names one,
//! what can be pinned as a URI and when a list has it.
//!
//! The first line of the case is the pinned version, the second the pinned URI, the others are
//! header lines.

use forecourt::protocol::headers::{A2A_EXTENSIONS, A2A_VERSION, Supplied, VersionLines};
use forecourt::protocol::version::VersionError;
use forecourt::protocol::{ExtensionUri, Version};

use super::lines;

/// Any pin against any lines.
pub fn headers(data: &[u8]) {
    let mut texts = lines::lines(data);
    let version = texts.next().map(std::str::from_utf8);
    let uri = texts.next().map(std::str::from_utf8);
    let map = lines::headers(texts.clone());
    let (versions, extensions) = (
        lines::values(&map, &A2A_VERSION),
        lines::values(&map, &A2A_EXTENSIONS),
    );
    supplied(Supplied::new(&map), &versions, &extensions);
    if let Some(Ok(version)) = version {
        pinned_version(version, texts.clone());
    }
    if let Some(Ok(uri)) = uri {
        pinned_uri(uri, &extensions, texts.collect());
    }
}

/// Absent, empty and several are three different things.
fn supplied(supplied: Supplied<'_>, versions: &[&[u8]], extensions: &[&[u8]]) {
    let expected = match *versions {
        [] => VersionLines::Absent,
        [line] => VersionLines::One(line),
        _ => VersionLines::Several,
    };
    assert_eq!(supplied.version(), expected);
    let found: Option<Vec<_>> = supplied.extensions().map(Iterator::collect);
    assert_eq!(
        found.as_deref(),
        (!extensions.is_empty()).then_some(extensions)
    );
}

fn pinned_version<'d>(text: &str, lines: impl Iterator<Item = &'d [u8]>) {
    let parsed = text.parse::<Version>();
    let expected = match numbers(text.as_bytes()).as_deref() {
        Some([_, _]) => Ok(text),
        Some(_) => Err(VersionError::Patch),
        None => Err(VersionError::Malformed),
    };
    assert_eq!(
        parsed.as_ref().map(Version::as_str).map_err(|why| *why),
        expected
    );
    let Ok(version) = parsed else { return };
    assert_eq!(version.value(), text);
    assert!(version.is_named_by(text.as_bytes()), "it names itself");
    assert!(
        version.is_named_by(format!("\t{text}.7 ").as_bytes()),
        "a patch counts"
    );
    for line in lines.flat_map(|line| [line, line.get(2..).unwrap_or_default()]) {
        assert_eq!(version.is_named_by(line), names(line, text), "{line:?}");
    }
}

fn pinned_uri(text: &str, extensions: &[&[u8]], lines: Vec<&[u8]>) {
    let Ok(uri) = text.parse::<ExtensionUri>() else {
        assert!(!is_plain_uri(text), "{text:?} is a URI like any other");
        return;
    };
    assert_eq!(uri.as_str(), text);
    assert_eq!(uri.value(), text);
    assert!(
        text.bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b',')
    );
    let (host, path) = place(text);
    assert!(
        !host.is_empty() && !format!(".{host}").ends_with(".invalid"),
        "{text}"
    );
    assert!(!path.ends_with("/latest"), "{text}");
    assert!(uri.is_listed([text.as_bytes()]), "it lists itself");
    for lines in [extensions, &lines] {
        let joined = lines.join(&b","[..]);
        let is_listed = lists(&joined, text);
        assert_eq!(uri.is_listed(lines.iter().copied()), is_listed, "{lines:?}");
        assert_eq!(
            uri.is_listed([&*joined]),
            is_listed,
            "lines are not one list"
        );
        let more = [&joined, ",,\t".as_bytes(), text.as_bytes(), b" ,"].concat();
        assert!(uri.is_listed([&*more]), "lost beside others");
    }
}

/// Host and path of a URI in lower case, without the dots and slashes at their ends.
fn place(text: &str) -> (String, String) {
    let text = text.to_ascii_lowercase();
    let rest = &text[text.find("://").expect("a scheme") + 3..];
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.starts_with('[') {
        true => host,
        false => host.split(':').next().unwrap_or_default(),
    };
    let (host, path) = (host.trim_end_matches('.'), path.trim_end_matches('/'));
    (host.to_owned(), path.to_owned())
}

/// A URI with nothing in it that could be refused.
fn is_plain_uri(text: &str) -> bool {
    text.strip_prefix("https://").is_some_and(|rest| {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        rest.bytes()
            .all(|byte| is_plain(byte) || b"./".contains(&byte))
            && rest.starts_with(|first: char| first.is_ascii_alphanumeric())
            && !rest.contains("invalid")
            && !rest.contains("latest")
    })
}

/// The two or three numbers of a version, without leading zeros.
fn numbers(text: &[u8]) -> Option<Vec<&[u8]>> {
    let parts: Vec<&[u8]> = text.split(|byte| *byte == b'.').collect();
    let is_number = |part: &&[u8]| {
        !part.is_empty()
            && part.iter().all(u8::is_ascii_digit)
            && (part.len() == 1 || part[0] != b'0')
    };
    (matches!(parts.len(), 2 | 3) && parts.iter().all(is_number)).then_some(parts)
}

/// Whether a header value names the pinned version.
pub(super) fn names(line: &[u8], pinned: &str) -> bool {
    match numbers(trimmed(line)) {
        Some(numbers) => numbers[..2].join(&b"."[..]) == pinned.as_bytes(),
        None => trimmed(line).is_empty() && pinned == "0.3",
    }
}

/// Whether one list has the pinned URI.
pub(super) fn lists(list: &[u8], pinned: &str) -> bool {
    list.split(|byte| *byte == b',')
        .any(|member| trimmed(member) == pinned.as_bytes())
}

/// Without the spaces and tabs at both ends.
pub(super) fn trimmed(value: &[u8]) -> &[u8] {
    let is_ink = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let Some(start) = value.iter().position(is_ink) else {
        return b"";
    };
    let end = value.iter().rposition(is_ink).unwrap_or(start);
    &value[start..=end]
}
