//! Decides which known word an unknown one was probably meant to be.
//!
//! Must rather say nothing than something far-fetched.

/// What other servers call the things that are called otherwise here.
const SYNONYMS: [(&str, &str); 32] = [
    ("api_key", "key_sha256"),
    ("backend", "upstream"),
    ("bind", "address"),
    ("cert", "certificate"),
    ("cert_file", "certificate"),
    ("cluster", "upstream"),
    ("domain", "host"),
    ("extension_uri", "extension"),
    ("frontend", "listener"),
    ("hostname", "host"),
    ("key", "key_sha256"),
    ("key_file", "key"),
    ("keyfile", "key"),
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
    ("san", "certificate"),
    ("server", "listener"),
    ("service", "upstream"),
    ("sha256", "key_sha256"),
    ("target", "url"),
    ("threads", "workers"),
    ("timeout", "response_timeout"),
    ("version", "a2a_version"),
    ("warning", "warn"),
];

/// The nearest of the known words, if one is near enough and no other as near.
pub(crate) fn nearest<'k>(
    unknown: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    let folded = fold(unknown);
    let singular = folded.strip_suffix('s').unwrap_or(&folded);
    let meant = SYNONYMS
        .iter()
        .find(|(foreign, _)| *foreign == folded || *foreign == singular)
        .map(|(_, ours)| *ours);
    let allowed = match folded.chars().count() {
        0..=2 => 0,
        3..=4 => 1,
        5..=8 => 2,
        _ => 3,
    };
    let mut synonym = None;
    let mut best: Option<(usize, &'k str)> = None;
    let mut is_tied = false;
    for word in known.into_iter().take(COMPARED) {
        if meant == Some(word) {
            synonym = Some(word);
        }
        if word.len().abs_diff(folded.len()) > allowed {
            continue;
        }
        let distance = strsim::damerau_levenshtein(&folded, &fold(word));
        let least = best.map_or(allowed + 1, |(least, _)| least);
        if distance < least {
            best = Some((distance, word));
            is_tied = false;
        } else if distance == least && best.is_some() {
            is_tied = true;
        }
    }
    let near = best.filter(|_| !is_tied);
    match (near, synonym) {
        (Some((0 | 1, word)), _) => Some(word),
        (_, Some(word)) => Some(word),
        (near, None) => near.map(|(_, word)| word),
    }
}

/// `did you mean "lakeside"?`, or the words there are, where they are few.
pub(crate) fn hint<'k>(
    unknown: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
) -> Option<String> {
    if let Some(word) = nearest(unknown, known.clone()) {
        return Some(format!("did you mean {word:?}?"));
    }
    let words: Vec<_> = known.into_iter().take(LISTED + 1).collect();
    if words.is_empty() || words.len() > LISTED {
        return None;
    }
    Some(format!("known: {}", words.join(", ")))
}

/// More words than this are not compared: a huge file must not take minutes to refuse.
const COMPARED: usize = 1000;

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
            ("ur1", Some("url")),
        ] {
            assert_eq!(nearest(unknown, known), meant, "{unknown}");
        }
    }
}
