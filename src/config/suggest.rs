//! Decides which known word an unknown one was probably meant to be.
//!
//! Must rather say nothing than something far-fetched.

/// What other servers call the things that are called otherwise here.
const SYNONYMS: [(&str, &str); 24] = [
    ("backend", "upstream"),
    ("bind", "address"),
    ("cert", "certificate"),
    ("cluster", "upstream"),
    ("domain", "host"),
    ("extension_uri", "extension"),
    ("frontend", "listener"),
    ("hostname", "host"),
    ("limit", "quota"),
    ("listen", "address"),
    ("location", "path"),
    ("logging", "log"),
    ("max_body_size", "body"),
    ("port", "address"),
    ("prefix", "path"),
    ("private_key", "key"),
    ("rate_limit", "quota"),
    ("route", "endpoint"),
    ("server", "listener"),
    ("service", "upstream"),
    ("target", "url"),
    ("threads", "workers"),
    ("timeout", "response_timeout"),
    ("version", "a2a_version"),
];

/// The nearest of the known words, if one is near enough.
pub(crate) fn nearest<'k>(
    unknown: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    let folded = fold(unknown);
    let singular = folded.strip_suffix('s').unwrap_or(&folded);
    let synonym = SYNONYMS
        .iter()
        .find(|(foreign, _)| *foreign == folded || *foreign == singular)
        .map(|(_, ours)| *ours);
    let allowed = match folded.chars().count() {
        0..=2 => 0,
        3..=4 => 1,
        5..=8 => 2,
        _ => 3,
    };
    let mut best: Option<(usize, &'k str)> = None;
    for word in known {
        if synonym == Some(word) {
            return Some(word);
        }
        if word.len().abs_diff(folded.len()) > allowed {
            continue;
        }
        let distance = strsim::damerau_levenshtein(&folded, &fold(word));
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, word));
        }
    }
    best.map(|(_, word)| word)
}

/// `did you mean "lakeside"?`, or the words there are, when they are few.
pub(crate) fn hint<'k>(
    unknown: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
    introduction: &str,
) -> Option<String> {
    if let Some(word) = nearest(unknown, known.clone()) {
        return Some(format!("did you mean {word:?}?"));
    }
    let words: Vec<_> = known.into_iter().take(LISTED + 1).collect();
    if words.is_empty() || words.len() > LISTED {
        return None;
    }
    Some(format!("{introduction} {}", words.join(", ")))
}

/// More words than this are not listed in a hint.
const LISTED: usize = 20;

/// Case and the choice between `-` and `_` are the commonest slips.
fn fold(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_and_foreign_words_and_nothing_else() {
        let known = ["address", "tls", "header_timeout", "upstream", "url"];
        for (unknown, meant) in [
            ("adress", Some("address")),
            ("Address", Some("address")),
            ("header-timeout", Some("header_timeout")),
            ("upstreams", Some("upstream")),
            ("listen", Some("address")),
            ("backends", Some("upstream")),
            ("uri", Some("url")),
            ("tsl", Some("tls")),
            ("a", None),
            ("", None),
            ("colour", None),
        ] {
            assert_eq!(nearest(unknown, known), meant, "{unknown}");
        }
    }
}
