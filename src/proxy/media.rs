//! Decides whether a body says that it is JSON which can be read as it is: media type, charset and
//! coding (A2A 1.0 section 9, RFC 8259 section 8.1).
//!
//! Must never look at the body itself, and never let pass what a dealer could read as something else.

use crate::http1::{Fields, Known};
use crate::protocol::refusal::Media;

/// Whether the body says it is JSON that can be read as it is. No content type at all is accepted.
///
/// # Errors
/// Which of its headers says otherwise.
pub(super) fn speaks_json(fields: &Fields) -> Result<(), Media> {
    let mut lines = fields.all(Known::ContentType);
    if let Some(line) = lines.next()
        && !(is_json(line) && lines.next().is_none())
    {
        return Err(Media::ContentType);
    }
    let mut codings = fields.all(Known::ContentEncoding);
    if codings.any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity")) {
        return Err(Media::ContentEncoding);
    }
    Ok(())
}

/// `application/json` with any parameters, but no charset other than UTF-8: the body would mean
/// something else to a server that honours it (RFC 8259 section 8.1).
fn is_json(line: &[u8]) -> bool {
    if line == b"application/json" {
        return true;
    }
    let mut parts = line.split(|byte| *byte == b';');
    let type_ = parts.next().unwrap_or_default().trim_ascii();
    type_.eq_ignore_ascii_case(b"application/json")
        && parts.all(|parameter| {
            let parameter = parameter.trim_ascii();
            match parameter.split_at_checked(b"charset=".len()) {
                Some((name, value)) if name.eq_ignore_ascii_case(b"charset=") => {
                    let value = value.strip_prefix(b"\"").unwrap_or(value);
                    let value = value.strip_suffix(b"\"").unwrap_or(value);
                    value.eq_ignore_ascii_case(b"utf-8") || value.eq_ignore_ascii_case(b"us-ascii")
                }
                _ => true,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};

    #[test]
    fn json_is_json_whatever_its_parameters_but_only_in_utf_8() {
        for (lines, fine) in [
            (&[][..], true),
            (&["application/json"][..], true),
            (&["Application/JSON;Charset=\"UTF-8\""], true),
            (&["application/json ; profile=x"], true),
            (&["application/json; charset=utf-16"], false),
            (&["application/jsonx"], false),
            (&["text/plain"], false),
            (&["application/json", "application/json"], false),
            (&["application/a2a+json"], false),
            (&[""], false),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(CONTENT_TYPE, HeaderValue::from_static(line));
            }
            assert_eq!(
                speaks_json(&Fields::from(&headers)).is_ok(),
                fine,
                "{lines:?}"
            );
        }
        for (coding, fine) in [
            ("identity", true),
            ("", true),
            ("gzip", false),
            ("GZIP, br", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.append(CONTENT_ENCODING, HeaderValue::from_static(coding));
            assert_eq!(
                speaks_json(&Fields::from(&headers)).is_ok(),
                fine,
                "{coding}"
            );
        }
    }
}
