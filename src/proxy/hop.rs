//! Decides which fields belong to one connection only and stop here, both ways.
//!
//! Follows RFC 9110 section 7.6.1: the fixed hop-by-hop names ([`Known::is_hop_by_hop`]) and every
//! name on any `Connection` line. `A2A-Version` and `A2A-Extensions` are never removed: they were
//! just judged (**our reading**; RFC 9110 would remove them when listed).

use crate::http1::{Field, Fields, Known};

/// Whether a `Connection` line lists this field.
pub(super) fn lists(fields: &Fields, field: &Field<'_>) -> bool {
    !matches!(field.known, Known::A2aVersion | Known::A2aExtensions)
        && fields.all(Known::Connection).any(|line| {
            line.split(|byte| *byte == b',')
                .any(|option| option.trim_ascii().eq_ignore_ascii_case(field.name))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderName, HeaderValue};

    #[test]
    fn every_connection_line_counts_and_ours_stay() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-One"),
            ("connection", " x-two ,A2A-Version,, é"),
            ("x-one", "1"),
            ("x-one", "2"),
            ("x-two", "1"),
            ("a2a-version", "1.0"),
            ("a2a-extensions", "u"),
            ("x-kept", "1"),
        ] {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        let fields = Fields::from(&headers);
        let listed: Vec<_> = fields
            .iter()
            .filter(|field| lists(&fields, field))
            .collect();
        let names: Vec<_> = listed.iter().map(|field| field.name).collect();
        assert_eq!(names, [&b"x-one"[..], b"x-one", b"x-two"]);
    }
}
