//! Holds `strip` to a slow reading: every parameter decoded to a text, the two names left out.

use forecourt::protocol::query::strip;

/// The names that must not travel, in lower case.
const NAMES: [&[u8]; 2] = [b"a2a-version", b"a2a-extensions"];

/// Any query, without its `?`.
pub fn query(data: &[u8]) {
    let Ok(query) = std::str::from_utf8(data) else {
        return;
    };
    let parameters: Vec<&str> = query.split('&').collect();
    let kept: Vec<&str> = parameters
        .iter()
        .copied()
        .filter(|parameter| !NAMES.contains(&&*name(parameter)))
        .collect();
    let stripped = strip(query);
    if kept.len() == parameters.len() {
        assert_eq!(stripped, None, "nothing was to be removed");
        return;
    }
    assert_eq!(stripped, Some(kept.join("&")));
    assert_eq!(strip(&kept.join("&")), None, "twice is not once");
}

/// The decoded name of a parameter, in lower case. An escape that is none stands for itself.
fn name(parameter: &str) -> Vec<u8> {
    let name = parameter
        .split_once('=')
        .map_or(parameter, |(name, _)| name);
    let mut pieces = name.split('%');
    let mut decoded: Vec<u8> = pieces.next().unwrap_or_default().into();
    for piece in pieces {
        let digits = piece
            .get(..2)
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                decoded.extend(piece[2..].bytes());
            }
            None => {
                decoded.push(b'%');
                decoded.extend(piece.bytes());
            }
        }
    }
    decoded.make_ascii_lowercase();
    decoded
}
