//! Decides how bytes become header lines: one line of text each, so that a seed can be read.
//!
//! `V value` is a line of `A2A-Version`, `E value` one of `A2A-Extensions`, `H name: value` any
//! other. What HTTP could not carry is skipped; nothing else is.

use forecourt::protocol::headers::{A2A_EXTENSIONS, A2A_VERSION};
use http::{HeaderMap, HeaderName, HeaderValue};

/// More lines than this are left out: the rules know one, several and many.
const MOST: usize = 64;

/// The lines of a text, without their newlines.
pub(super) fn lines(data: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    data.split(|byte| *byte == b'\n')
}

/// The header lines among these lines of text.
pub(super) fn headers<'d>(lines: impl Iterator<Item = &'d [u8]>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines.filter_map(header).take(MOST) {
        map.append(name, value);
    }
    map
}

fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = match line {
        [b'V', b' ', value @ ..] => (A2A_VERSION, value),
        [b'E', b' ', value @ ..] => (A2A_EXTENSIONS, value),
        [b'H', b' ', rest @ ..] => {
            let colon = rest.iter().position(|byte| *byte == b':')?;
            let (name, value) = rest.split_at(colon);
            (HeaderName::from_bytes(name).ok()?, &value[1..])
        }
        _ => return None,
    };
    Some((name, HeaderValue::from_bytes(value).ok()?))
}

/// The values under a name, in order.
pub(super) fn values<'h>(map: &'h HeaderMap, name: &HeaderName) -> Vec<&'h [u8]> {
    map.get_all(name)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect()
}
